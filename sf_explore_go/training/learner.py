"""Sample Factory's learner, with exact counters and checkpoints that can be resumed from."""

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sample_factory.algo.learning.learner import Learner, LearningRateScheduler
from sample_factory.utils.utils import log
from torch import Tensor

from sf_explore_go.phases.schedule import AGENT
from sf_explore_go.runs.checkpoints import FORMAT, MET, CheckpointError, read_newest, save_atomically
from sf_explore_go.runs.names import checkpoints_in, milestone_path
from sf_explore_go.training.accounting import FrameCounter, Frames
from sf_explore_go.training.advantages import AdvantageScale
from sf_explore_go.training.bonus import AGENTS_COUNTS, explore_batch, make_agents_bonus
from sf_explore_go.training.clock import FrameClock, summary_interval
from sf_explore_go.training.pictures import can_normalize, normalize
from sf_explore_go.training.seeds import generator_states, restore_generators
from sf_explore_go.training.states import STATES, StateMemory

# A milestone is played, not trained on, so it goes without the optimisers, which are two thirds of a checkpoint.
MILESTONE_KEYS = ("format", "frames", "train_step", "env_steps", "best_performance", "model", "config", MET)


# How the best policy is found. Checkpoints of earlier versions do not say: theirs was judged by the first episodes to
# end, whose mean an untrained agent can have and a trained one may never beat.
BEST_BY = "rounds"


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

    curr_lr: float | None

    def __init__(
        self,
        cfg: Any,
        env_info: Any,
        versions: Any,
        policy_id: int,
        param_server: Any,
        frames: FrameCounter,
        states: StateMemory | None = None,
    ) -> None:
        super().__init__(cfg, env_info, versions, policy_id, param_server)
        self.frames, self.states = frames, states
        self._bonus = make_agents_bonus(cfg) if policy_id == AGENT else None
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
        if self._bonus is not None:
            assert self.curr_lr is not None
            batch["rewards"].add_(self._bonus.rewards(explore_batch(batch, batch["obs"], self.curr_lr)))
        if self.cfg.max_pure_expl_steps > 0:
            self._waited_lag = lag_of_waiting_rollouts(batch["policy_version"], batch["dones"], self.train_step)
        return super()._prepare_batch(batch)

    def _prepare_and_normalize_obs(self, obs: Any) -> Any:
        normalizer = self.actor_critic.obs_normalizer
        if not (self.cfg.fast_pictures and can_normalize(normalizer, obs)):
            return super()._prepare_and_normalize_obs(obs)
        pictures = obs["obs"]
        with self.param_server.policy_lock:
            normalized = normalize(normalizer, pictures.flatten(0, 1))
        return type(obs)({"obs": normalized.view(pictures.shape)})

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
        path = milestone_path(Path(self.checkpoint_dir(self.cfg, self.policy_id)), self.frames.total())
        path.parent.mkdir(exist_ok=True)
        log.info("Saving milestone %s", path)
        state = self._get_checkpoint_dict()
        self._write({key: state[key] for key in MILESTONE_KEYS if key in state}, path)

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def _get_checkpoint_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = super()._get_checkpoint_dict()
        # a NumPy number here would make every later checkpoint unreadable for torch.load
        state["best_performance"], state["best_by"] = float(self.best_performance), BEST_BY
        state["frames"], state["explore_began"] = list(self.frames.read()), self.frames.explore_began
        state["format"] = FORMAT
        state["config"] = json.loads(json.dumps(dict(self.cfg), default=str))
        state["generators"] = generator_states()
        state["advantage_scale"] = [self.advantage_scale.variance, self.advantage_scale.weight]
        if self._bonus is not None:
            state[AGENTS_COUNTS] = self._bonus.state_dict()
        if self.states is not None and self.policy_id == AGENT:
            state[STATES], state[MET] = self.states.state_dict(), asdict(self.states.share())
        return state

    def load_from_checkpoint(self, policy_id: int, load_progress: bool = True) -> None:
        folder = Path(self.checkpoint_dir(self.cfg, policy_id))
        state = read_newest(checkpoints_in(folder), self.device, log.warning)
        if state is None:
            return
        try:
            self._load_state(state, load_progress=load_progress)
        except (RuntimeError, KeyError, TypeError, ValueError) as error:  # made by another network
            reason = str(error).strip().splitlines()[0]
            raise CheckpointError(f"the checkpoint in {folder} does not fit this run's network ({reason})") from error

    def _load_state(self, checkpoint_dict: dict[str, Any], load_progress: bool = True) -> None:
        if checkpoint_dict.get("best_by") != BEST_BY:
            checkpoint_dict = {key: value for key, value in checkpoint_dict.items() if key != "best_performance"}
        super()._load_state(checkpoint_dict, load_progress)
        self._take_new_rate(checkpoint_dict["config"]["learning_rate"])
        if load_progress:
            restore_generators(checkpoint_dict["generators"])
            scale = self.advantage_scale
            scale.variance, scale.weight = checkpoint_dict.get("advantage_scale", (0.0, 0.0))  # older ones have none
            if self.policy_id == AGENT:
                frames, began = Frames(*checkpoint_dict["frames"]), checkpoint_dict.get("explore_began")
                self.frames.restore(frames, began)
                if self.states is not None:
                    self.states.load_state_dict(checkpoint_dict[STATES])
            if self._bonus is not None:
                self._bonus.load_state_dict(checkpoint_dict[AGENTS_COUNTS])

    def _take_new_rate(self, before: float) -> None:
        """A learning rate that was changed for this part of the run wins over the one that the checkpoint stands at.

        One that was not changed leaves the schedule where it stood, which may be far from the flag.
        """
        if self.cfg.learning_rate != before:
            assert self.curr_lr is not None
            decayed = self.curr_lr / before if self.cfg.lr_schedule == "linear_decay" else 1.0
            self.curr_lr = self.cfg.learning_rate * decayed

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
        """A full or missing disk ends the run with one sentence; earlier checkpoints stay."""
        try:
            save_atomically(state, path)
        except (OSError, RuntimeError) as error:  # torch makes the one into the other
            self.on_save_error(f"{path} cannot be written ({error}); earlier checkpoints are untouched")
            return False
        return True


def lag_of_waiting_rollouts(versions: Tensor, dones: Tensor, version: int) -> float | None:
    """Updates by which steps were behind, mean over rollouts [N, T] that waited through a phase of the other policy.

    Those are the ones in which a phase ends before the last step; None if the batch has none.
    """
    waited = dones[:, :-1].any(dim=1)
    return float((version - versions[waited]).float().mean()) if waited.any() else None
