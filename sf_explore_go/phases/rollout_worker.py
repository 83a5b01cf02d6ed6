"""Sample Factory's rollout worker with our environments runner in it."""

from sample_factory.algo.sampling.rollout_worker import RolloutWorker

from sf_explore_go.phases.vector_env import ExploreGoVectorEnvRunner, SeededVectorEnvRunner
from sf_explore_go.runtime.seeds import seed_process


class ExploreGoRolloutWorker(RolloutWorker):
    def init(self) -> None:
        """Overridden whole, since Sample Factory names its runner class inside."""
        if not self.cfg.serial_mode:
            seed_process(self.cfg.seed, "rollout", self.worker_idx)
        runner_class = ExploreGoVectorEnvRunner if self.cfg.max_pure_expl_steps > 0 else SeededVectorEnvRunner
        for split_idx in range(self.num_splits):
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
            self.env_runners.append(runner)
        for runner in self.env_runners:
            self._maybe_send_policy_request(runner)
        self.is_initialized = True
