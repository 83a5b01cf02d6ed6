"""What the fork server imports for all workers. Nothing here may start a thread or touch a GPU."""

import atexit
import gc
import os
import shutil

import sf_explore_go.explorers.e3b.reward
import sf_explore_go.training.runner  # noqa: F401
from sf_explore_go.processes.fork_server import SOCKET_FOLDER

gc.freeze()  # a collection in a worker would write to every object that it shares with the others, and so copy it

# The main process removes the folder of the server's socket too, if it is not killed. Workers leave without this.
atexit.register(shutil.rmtree, os.environ.get(SOCKET_FOLDER, ""), ignore_errors=True)
