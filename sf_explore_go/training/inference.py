"""Sample Factory's inference worker, with action sampling seeded from the run's seed."""

from typing import Any

from sample_factory.algo.sampling.inference_worker import InferenceWorker

from sf_explore_go.training.seeds import seed_process


class SeededInferenceWorker(InferenceWorker):
    def init(self, init_model_data: Any) -> None:
        # In serial mode all components share one generator, which the learners have seeded.
        if not self.is_initialized and not self.cfg.serial_mode:
            restored = self.buffer_mgr.frames.restored().total
            seed_process(self.cfg.seed, "inference", self.policy_id, self.worker_idx, restored)
        super().init(init_model_data)
