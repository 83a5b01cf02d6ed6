"""What the fork server imports for all workers. Nothing here may start a thread or touch a GPU."""

import gc

import sf_explore_go.explorers.e3b.learner
import sf_explore_go.runtime.runner  # noqa: F401

gc.freeze()  # a collection in a worker would write to every object that it shares with the others, and so copy it
