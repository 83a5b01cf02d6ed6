"""Samplers that make our workers."""

from typing import Any

from sample_factory.algo.sampling.sampler import ParallelSampler, Sampler, SerialSampler

from sf_explore_go.training.inference import SeededInferenceWorker
from sf_explore_go.training.rollout_worker import ExploreGoRolloutWorker


class OurWorkers(Sampler):
    def _make_inference_worker(self, event_loop: Any, policy_id: int, worker_idx: int, param_server: Any) -> Any:
        queue = self.inference_queues[policy_id]
        return SeededInferenceWorker(
            event_loop, policy_id, worker_idx, self.buffer_mgr, param_server, queue, self.cfg, self.env_info
        )

    def _make_rollout_worker(self, event_loop: Any, worker_idx: int) -> Any:
        return ExploreGoRolloutWorker(
            event_loop, worker_idx, self.buffer_mgr, self.inference_queues, self.cfg, self.env_info
        )


class ExploreGoSerialSampler(OurWorkers, SerialSampler):
    pass


class ExploreGoParallelSampler(OurWorkers, ParallelSampler):
    pass
