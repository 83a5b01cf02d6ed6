"""Sample Factory's learner, with honest counters and checkpoints that can be resumed from."""

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from sample_factory.algo.learning.learner import Learner, LearningRateScheduler
from sample_factory.algo.learning.learner_worker import LearnerWorker
from sample_factory.utils.utils import log
from torch import Tensor

from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import LearnedExplorer, resolve_explorer
from sf_explore_go.runs.checkpoints import FORMAT, CheckpointError, checkpoints_in, read_newest, save_atomically
from sf_explore_go.training.accounting import FrameCounter, Frames
from sf_explore_go.training.actor import AGENT
from sf_explore_go.training.advantages import AdvantageScale
from sf_explore_go.training.clock import FrameClock, summary_interval
from sf_explore_go.training.messages import FATAL
from sf_explore_go.training.policies import policy_cfg
from sf_explore_go.training.seeds import generator_states, restore_generators

# A milestone is played, not trained on, so it goes without the optimisers, which are two thirds of a checkpoint.
MILESTONE_KEYS = ("format", "frames", "train_step", "env_steps", "best_performance", "model", "config")


class LinearDecayByFrames(LearningRateScheduler):
    """`--lr_schedule=linear_decay`, from the full rate to 0 at `--train_for_env_steps` total frames.

    Sample Factory counts its own updates instead and forgets the position when a run is resumed; the total of frames
    is the same for all arms of an experiment and survives a resume.
    """

    def __init__(self, learning_rate: float, budget: int, frames: FrameCounter) -> None:
        self._learning_rate, self._budget, self._frames = learning_rate, budget, frames

    def invoke_after_each_minibatch(self) -> bool:
        return True

    def update(self, current_lr: float, recent_kls: list[float]) -> float:
        return self._learning_rate * max(0.0, 1.0 - self._frames.total() / self._budget)


class ExploreGoLearner(Learner):
    """APPO on the steps of one policy."""

    def __init__(
        self, cfg: Any, env_info: Any, versions: Any, policy_id: int, param_server: Any, frames: FrameCounter
    ) -> None:
        super().__init__(cfg, env_info, versions, policy_id, param_server)
        self.frames = frames
        self.on_save_error: Callable[[str], None] = log.error
        self._waited_lag: float | None = None  # of the batch being trained on
        self.advantage_scale = AdvantageScale(cfg.adv_std_memory)
        # In one process nothing may depend on the wall clock, or two runs with one seed would differ.
        self._summary_clock = FrameClock(summary_interval(cfg)) if cfg.serial_mode else None

    def init(self) -> Any:
        # Sample Factory reads the loss as a number, which torch 2.13 remarks on; nothing that a user could mend.
        warnings.filterwarnings("ignore", message="Converting a tensor with requires_grad=True to a scalar")
        model_data = super().init()
        if self.cfg.lr_schedule == "linear_decay":
            self.lr_scheduler = LinearDecayByFrames(self.cfg.learning_rate, self.cfg.train_for_env_steps, self.frames)
        return model_data

    def _should_save_summaries(self) -> bool:
        if self._summary_clock is None:
            return bool(super()._should_save_summaries())
        return self._summary_clock.is_due(self.frames.total())

    def _prepare_batch(self, batch: Any) -> Any:
        if self.cfg.max_pure_expl_steps > 0:
            self._waited_lag = lag_of_waiting_rollouts(batch["policy_version"], batch["dones"], self.train_step)
        return super()._prepare_batch(batch)

    def _calculate_losses(self, mb: Any, num_invalids: int) -> Any:
        distribution, policy_loss, *others, summaries = super()._calculate_losses(mb, num_invalids)
        if self.cfg.adv_std_memory > 0:  # the loss is linear in the advantages
            policy_loss = policy_loss * self.advantage_scale.share(summaries["adv_std"].item())
        return distribution, policy_loss, *others, summaries

    def _record_summaries(self, train_loop_vars: Any) -> Any:
        stats = super()._record_summaries(train_loop_vars)
        if self._waited_lag is not None:
            stats["version_diff_waited"] = self._waited_lag
        return stats

    def save_milestone(self) -> None:
        """Keep a copy of the policy for evaluation, named by the total of frames so that all runs line up."""
        folder = Path(self.checkpoint_dir(self.cfg, self.policy_id)) / "milestones"
        folder.mkdir(exist_ok=True)
        path = folder / f"milestone_{self.frames.total():012d}.pth"
        log.info("Saving a milestone %s", path)
        state = self._get_checkpoint_dict()
        self._write({key: state[key] for key in MILESTONE_KEYS}, path)

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def _get_checkpoint_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = super()._get_checkpoint_dict()
        # a NumPy number here would make every later checkpoint unreadable for torch.load
        state["best_performance"] = float(self.best_performance)
        state["frames"] = list(self.frames.read())
        state["format"] = FORMAT
        state["config"] = json.loads(json.dumps(dict(self.cfg), default=str))
        state["generators"] = generator_states()
        state["advantage_scale"] = [self.advantage_scale.variance, self.advantage_scale.weight]
        return state

    def load_from_checkpoint(self, policy_id: int, load_progress: bool = True) -> None:
        folder = Path(self.checkpoint_dir(self.cfg, policy_id))
        state = read_newest(checkpoints_in(folder, self.cfg.load_checkpoint_kind), self.device, log.warning)
        if state is None:
            return
        try:
            self._load_state(state, load_progress=load_progress)
        except (RuntimeError, KeyError, TypeError, ValueError) as error:  # made by another network
            reason = str(error).strip().splitlines()[0]
            raise CheckpointError(f"the checkpoint in {folder} does not fit this run's network ({reason})") from error

    def _load_state(self, checkpoint_dict: dict[str, Any], load_progress: bool = True) -> None:
        super()._load_state(checkpoint_dict, load_progress)
        if load_progress:
            restore_generators(checkpoint_dict["generators"])
            scale = self.advantage_scale
            scale.variance, scale.weight = checkpoint_dict.get("advantage_scale", (0.0, 0.0))  # older ones have none
            if self.policy_id == AGENT:
                self.frames.restore(Frames(*checkpoint_dict["frames"]))

    def _save_impl(self, name_prefix: str, name_suffix: str, keep_checkpoints: int, verbose: bool = True) -> bool:
        """Atomic and synced; prunes the oldest, never what was just written."""
        if not self.is_initialized:
            return False
        folder = Path(self.checkpoint_dir(self.cfg, self.policy_id))
        path = folder / f"{name_prefix}_{self.train_step:09d}_{self.env_steps}{name_suffix}.pth"
        if verbose:
            log.info("Saving %s...", path)
        if not self._write(self._get_checkpoint_dict(), path):
            return False
        others = sorted((p for p in folder.glob(f"{name_prefix}_*.pth") if p != path), key=lambda p: p.stat().st_mtime)
        for old in others[: max(0, len(others) + 1 - max(1, keep_checkpoints))]:
            old.unlink()
        return True

    def _write(self, state: dict[str, Any], path: Path) -> bool:
        """A disk that is full or gone ends the run with a sentence; what was saved before stays."""
        try:
            save_atomically(state, path)
        except (OSError, RuntimeError) as error:  # torch makes the one into the other
            self.on_save_error(f"{path} cannot be written ({error}); the checkpoints before it are untouched")
            return False
        return True


def lag_of_waiting_rollouts(versions: Tensor, dones: Tensor, version: int) -> float | None:
    """Updates by which steps were behind, mean over rollouts [N, T] that waited through a phase of the other policy.

    Those are the ones in which a phase ends before the last step; None if the batch has none.
    """
    waited = dones[:, :-1].any(dim=1)
    return float((version - versions[waited]).float().mean()) if waited.any() else None


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
        learner_class: type[ExploreGoLearner] = ExploreGoLearner
        if policy_id != AGENT:
            explorer = resolve_explorer(cfg.explorer)
            assert issubclass(explorer, LearnedExplorer)
            learner_class = explorer.learner_class()
        return learner_class(
            policy_cfg(cfg, policy_id),
            env_info,
            buffer_mgr.policy_versions,
            policy_id,
            self.param_server,
            buffer_mgr.frames,
        )


def run_or_die(event_loop: Any) -> None:
    """A batcher's thread. Without it a learner would wait without end, so its process ends, and with it the run."""
    try:
        event_loop.exec()
    except BaseException:
        log.exception("%s failed", event_loop.object_id)
        os._exit(1)
