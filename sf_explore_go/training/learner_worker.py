"""The process of a learner: the agent's, or the explorer's."""

import os
from threading import Thread
from typing import Any

from sample_factory.algo.learning.learner_worker import LearnerWorker
from sample_factory.utils.utils import log

from sf_explore_go.core.errors import UsageError
from sf_explore_go.phases.schedule import AGENT
from sf_explore_go.training.clock import FrameClock
from sf_explore_go.training.explorer_learner import ExplorerLearner
from sf_explore_go.training.learner import ExploreGoLearner
from sf_explore_go.training.messages import FATAL


class ExploreGoLearnerWorker(LearnerWorker):
    """Holds the learner of one policy: the agent's, or the one that the explorer brings."""

    def __init__(self, evt_loop: Any, cfg: Any, env_info: Any, buffer_mgr: Any, batcher: Any, policy_id: int) -> None:
        super().__init__(evt_loop, cfg, env_info, buffer_mgr, batcher, policy_id)
        # The parent class names its learner inside, so it is replaced here, before anything was initialised.
        self.learner = self.make_learner(cfg, env_info, buffer_mgr, policy_id)
        self._milestones: FrameClock | None = None

    def init(self) -> None:
        self.learner.on_save_error = self.give_up
        try:
            super().init()
        except UsageError as error:
            self.give_up(str(error))
            return
        if self.learner.policy_id == AGENT and self.cfg.milestone_step_freq > 0:
            self._milestones = FrameClock(self.cfg.milestone_step_freq, begun_at=self.learner.frames.total())

    def give_up(self, sentence: str) -> None:
        """Tell the main process, which ends the run."""
        self.report_msg.emit({FATAL: sentence})

    def start_batcher_thread(self) -> None:
        """As the parent does, but no thread keeps a process alive whose other one has died."""
        self.batcher.event_loop.process = self.event_loop.process
        self.batcher_thread = Thread(target=run_or_die, args=(self.batcher.event_loop,), daemon=True)
        self.batcher_thread.start()

    def on_new_training_batch(self, batch_idx: int) -> None:
        super().on_new_training_batch(batch_idx)
        self._save_milestone_if_due()

    def on_stop(self, *args: Any) -> None:
        self._save_milestone_if_due()  # sampling has stopped: a budget that is used up ends in a milestone
        super().on_stop(*args)

    def _save_milestone_if_due(self) -> None:
        if self._milestones is not None and self._milestones.is_due(self.learner.frames.total()):
            self.learner.save_milestone()

    def make_learner(self, cfg: Any, env_info: Any, buffer_mgr: Any, policy_id: int) -> ExploreGoLearner:
        learner_class = ExploreGoLearner if policy_id == AGENT else ExplorerLearner
        return learner_class(
            buffer_mgr.policy_cfgs[policy_id],
            env_info,
            buffer_mgr.policy_versions,
            policy_id,
            self.param_server,
            buffer_mgr.frames,
            buffer_mgr.states,
        )


def run_or_die(event_loop: Any) -> None:
    """A batcher's thread. Without it a learner would wait without end, so its process ends, and with it the run."""
    try:
        event_loop.exec()
    except BaseException:
        log.exception("%s failed", event_loop.object_id)
        os._exit(1)
