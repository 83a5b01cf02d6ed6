"""Observers of a training: the runner calls each one that is registered with it at certain moments."""

from typing import Any


class Observer:
    """An observer that does nothing. Its first six methods are those of Sample Factory's observers."""

    def on_init(self, runner: Any) -> None:
        """All checks have passed; no process has been started."""

    def on_connect_components(self, runner: Any) -> None:
        """The parts of the training are being connected."""

    def on_start(self, runner: Any) -> None:
        """All processes have been started."""

    def on_training_step(self, runner: Any, training_iteration_since_resume: int) -> None:
        """A learner has trained on a batch."""

    def extra_summaries(self, runner: Any, policy_id: int, writer: Any, env_steps: int) -> None:
        """Curves are being written; called for each policy with its writer."""

    def on_stop(self, runner: Any) -> None:
        """The training ends."""

    def on_lost(self, runner: Any, state: str) -> None:
        """The run ends at once, in this state. Called outside the main thread, which hangs."""
