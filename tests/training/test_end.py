"""The end of a training: it comes once, however late a component says that it has stopped."""

from types import SimpleNamespace
from typing import Any

from sample_factory.algo.utils.misc import ExperimentStatus

from sf_explore_go.training.runner import ExploreGoParallelRunner


class Ends:
    """Stands where the signal is."""

    def __init__(self) -> None:
        self.count = 0

    def emit(self) -> None:
        self.count += 1


class Runner(ExploreGoParallelRunner):
    all_components_stopped: Any = Ends()

    def __init__(self, components: list[Any]) -> None:
        """Without what a training needs: only what the end looks at."""
        self.components_to_stop = components
        self.component_profiles: dict[str, Any] = {}
        self.status = ExperimentStatus.SUCCESS
        self.sampling_components = set()
        self._learning_told_to_stop = True
        self.event_loop = None  # which it asks for when it goes
        self._all_stopped = False


def component(name: str, *, alive: bool) -> Any:
    process = SimpleNamespace(is_alive=lambda: alive)
    return SimpleNamespace(object_id=name, event_loop=SimpleNamespace(process=process))


def test_the_message_of_a_component_that_was_not_waited_for_changes_nothing() -> None:
    runner = Runner([component("learner", alive=True), component("worker", alive=False)])
    runner._component_stopped("learner", {"learner": 1})  # the worker's process has ended, its message is on the way
    assert runner.components_to_stop == []
    runner._component_stopped("worker", {"worker": 2})
    assert runner.all_components_stopped.count == 1
    assert runner.component_profiles == {"learner": 1}


def test_all_that_live_are_waited_for() -> None:
    runner = Runner([component("learner", alive=True), component("worker", alive=True)])
    before = runner.all_components_stopped.count
    runner._component_stopped("learner", {})
    assert runner.all_components_stopped.count == before
    runner._component_stopped("worker", {})
    assert runner.all_components_stopped.count == before + 1
