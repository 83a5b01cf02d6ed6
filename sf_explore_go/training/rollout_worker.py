"""Sample Factory's rollout worker with our environments runner in it."""

from typing import Any

from sample_factory.algo.sampling.rollout_worker import RolloutWorker

from sf_explore_go.core.errors import EnvironmentFailed
from sf_explore_go.training.messages import FATAL
from sf_explore_go.training.policies import has_phases
from sf_explore_go.training.seeds import seed_process
from sf_explore_go.training.vector_env import ExploreGoVectorEnvRunner, SeededVectorEnvRunner


class ExploreGoRolloutWorker(RolloutWorker):
    def init(self) -> None:
        """Overridden whole, since Sample Factory names its runner class inside."""
        if not self.cfg.serial_mode:
            seed_process(self.cfg.seed, "rollout", self.worker_idx)
        runner_class = ExploreGoVectorEnvRunner if has_phases(self.cfg) else SeededVectorEnvRunner
        try:
            for split_idx in range(self.num_splits):
                self.env_runners.append(self._make_env_runner(runner_class, split_idx))
        except (EnvironmentFailed, OSError) as error:
            self.report_msg.emit({FATAL: f"{self.object_id} cannot start its environments: {error}"})
            return
        for runner in self.env_runners:
            self._maybe_send_policy_request(runner)
        self.is_initialized = True

    def _make_env_runner(self, runner_class: type, split_idx: int) -> Any:
        runner = runner_class(
            self.cfg,
            self.env_info,
            self.vector_size // self.num_splits,
            self.worker_idx,
            split_idx,
            self.buffer_mgr,
            self.sampling_device,
            self.training_info,
        )
        runner.init(self.timing)
        return runner
