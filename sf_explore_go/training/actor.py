"""The state of one actor that explores first and then goes.

A switch is an episode end for the explorer (done flag on its last step) and an episode start for the agent (zero RNN
state on its first step). The environment does not notice it: its time limit covers both phases.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sample_factory.algo.sampling.non_batched_sampling import ActorState
from sample_factory.algo.utils.misc import EPISODIC, POLICY_ID_KEY

from sf_explore_go.explorers.base import ActorExplorer
from sf_explore_go.phases.rollouts import ENV_INDEX, NEXT_STATE, PHASE_INDEX, PHASE_STEP, STATE, OpenRollout
from sf_explore_go.phases.schedule import AGENT, EXPLORER, Phase, PhaseSchedule
from sf_explore_go.training.messages import ENV_OF_EPISODE, EXPLORE_PHASE, phase_message
from sf_explore_go.training.states import StateRecorder

WATCHED_ONE_IN = 8  # explore phases that are shown throughout although nobody looks, for coverage

StateKey = Callable[[Mapping[str, Any]], int]


def flat_action(action: Any) -> np.ndarray:
    """An action as one array, the way a policy's output holds it (tuples joined)."""
    if isinstance(action, tuple):
        return np.concatenate([np.atleast_1d(part) for part in action])
    return np.asarray(action)


def env_that_goes_unseen(env: Any) -> Any:
    """The environment inside its wrappers, if it offers to leave pictures out (see `World.make_env`); else None."""
    return env.unwrapped if hasattr(env.unwrapped, "unseen") else None


class ExploreGoActor(ActorState):
    """One environment's actor: who acts now, one open rollout per policy, and the statistics of both phases."""

    def __init__(
        self,
        *args: Any,
        schedule: PhaseSchedule,
        explorer: ActorExplorer | None = None,
        state_key: StateKey | None = None,
        recorder: StateRecorder | None = None,
    ) -> None:
        super().__init__(*args)
        self.schedule = schedule
        self.explorer = explorer  # None: exploration is policy 1
        self.state_key = state_key  # None: nobody asks for states
        self.recorder = recorder  # None: states cannot be listed
        # whose steps say where they belong: the explorer's if it learns, the agent's if it has a bonus
        self._marked = {Phase.EXPLORE: explorer is None, Phase.GO: bool(self.cfg.agent_bonus)}
        self._state = 0  # the key of the state that `last_obs` shows
        self.name = f"{self.worker_idx}_{self.split_idx}_{self.env_idx}_{self.agent_idx}"
        self.rollouts = {policy_id: OpenRollout(policy_id) for policy_id in range(self.cfg.num_policies)}
        self.acting: OpenRollout | None = None  # None: the explorer acts here, without a policy
        self._zero_rnn_state = np.zeros_like(self.traj_tensors["rnn_states"][0, 0])
        # where each policy output stands in the flat row that the inference worker writes: name -> start, stop
        stops = np.cumsum(self.policy_output_sizes).tolist()
        starts = [0, *stops[:-1]]
        self._output_places = {n: (a, b) for n, a, b in zip(self.policy_output_names, starts, stops, strict=True)}
        self._returns = [0.0, 0.0]  # of this episode, by phase
        self._steps = [0, 0]
        self._episode = -1  # counts the episodes of this environment
        self._visited: list[tuple[float, float]] = []  # positions of the running explore phase, if the world has any
        looked_at = explorer is None or explorer.looks or state_key is not None
        self._unseen_env = None if looked_at else env_that_goes_unseen(self.env)
        self._watched = True  # the running explore phase is shown throughout

    # -- who acts ------------------------------------------------------------------------------------------------

    def begin_episode(self, obs: dict[str, Any], info: Mapping[str, Any]) -> None:
        """A fresh episode starts with `obs` and `info`: draw k and hand over to whoever acts first."""
        self.last_obs = obs
        if self.state_key is not None:
            self._state = self.state_key(info)
        self._returns, self._steps = [0.0, 0.0], [0, 0]
        self._episode += 1
        self._watched = self._unseen_env is None or (self._episode + self.global_env_idx) % WATCHED_ONE_IN == 0
        self._hand_over(self.schedule.begin_episode())

    def _hand_over(self, phase: Phase) -> None:
        self.last_rnn_state = self._zero_rnn_state
        if phase is Phase.EXPLORE and self.explorer is not None:
            self.acting = None
            self.explorer.begin_phase(self.last_obs)
        else:
            self.curr_policy_id = AGENT if phase is Phase.GO else EXPLORER
            self.acting = self.rollouts[self.curr_policy_id]
            if phase is Phase.GO and self.recorder is not None:
                self.recorder.begin_go(self._state)
            if self._unseen_env is not None:
                self._unseen_env.unseen = False

    # -- one step ------------------------------------------------------------------------------------------------

    def write_policy_inputs(self) -> None:
        """Put observation and RNN state where the inference worker looks, or act at once if no policy is asked."""
        if self.acting is None:
            assert self.explorer is not None
            if self._unseen_env is not None:  # the agent looks at what the last step of the phase leads to
                self._unseen_env.unseen = not (self._watched or self.schedule.switches_next)
            self.last_actions = flat_action(self.explorer.act(self.last_obs))
            self.ready = True
            return
        self._write_inputs(self.acting)
        self.ready = False

    def _write_inputs(self, rollout: OpenRollout) -> None:
        assert rollout.buffer is not None
        obs_buffer = rollout.buffer["obs"]
        for key, value in self.last_obs.items():
            obs_buffer[key][rollout.step] = value
        rollout.buffer["rnn_states"][rollout.step] = self.last_rnn_state

    def take_policy_outputs(self) -> None:
        """Copy what the inference worker answered into the rollout."""
        assert self.acting is not None
        assert self.acting.buffer is not None
        row, buffer, step = self.policy_output_tensors, self.acting.buffer, self.acting.step
        for name, (start, stop) in self._output_places.items():
            if name != "new_rnn_states":
                target = buffer[name]
                target[step] = row[start:stop] if target.ndim > 1 else row[start]
        start, stop = self._output_places["actions"]
        self.last_actions = row[start:stop].squeeze()
        start, stop = self._output_places["new_rnn_states"]
        self.last_rnn_state = row[start:stop]
        self.ready = True

    def record_step(
        self, reward: float, raw_reward: float, terminated: bool, truncated: bool, info: dict, next_obs: dict
    ) -> tuple[list[dict], list[dict]]:
        """Account for one decision of the environment; returns full rollouts to send and statistics to report.

        `next_obs` is the first observation of the next episode if this one has ended (the environment resets itself).
        """
        phase, rollout = self.schedule.phase, self.acting
        ended = bool(terminated or truncated)
        switches = self.schedule.advance() and not ended
        self._returns[phase] += float(raw_reward)
        self._steps[phase] += 1
        self.last_obs = next_obs
        before = self._state
        if self.state_key is not None and (self._marked[phase] or self.recorder is not None):
            self._state = self.state_key(info)
        if self.recorder is not None:
            self.recorder.note(before, int(self.last_actions), phase)
        if phase is Phase.EXPLORE and self._watched and "position" in info:
            self._visited.append(info["position"])
        if rollout is not None:
            self._write_outcome(rollout, reward, ended or switches, truncated)
            if self._marked[phase]:
                self._write_place(rollout, phase, before)
            rollout.step += 1

        reports: list[dict] = []
        if ended:
            reports = self._phase_report(go_start=None) + self._episode_reports(info)
            self._update_training_info()
            self.begin_episode(next_obs, info.get("reset_info", {}))
        elif switches:
            reports = self._phase_report(go_start=info.get("position"))
            self._hand_over(Phase.GO)
        return self._send_if_full(rollout), reports

    def _write_outcome(self, rollout: OpenRollout, reward: float, done: bool, timed_out: bool) -> None:
        buffer, step = rollout.buffer, rollout.step
        assert buffer is not None
        buffer["rewards"][step] = reward
        buffer["dones"][step] = done
        buffer["time_outs"][step] = timed_out
        buffer["policy_id"][step] = rollout.policy_id

    def _write_place(self, rollout: OpenRollout, phase: Phase, before: int) -> None:
        """Tell the learner which step of which phase of which environment this is, and its states."""
        assert rollout.buffer is not None
        rollout.buffer[ENV_INDEX][rollout.step] = self.global_env_idx
        rollout.buffer[PHASE_INDEX][rollout.step] = self._episode
        rollout.buffer[PHASE_STEP][rollout.step] = self._steps[phase] - 1
        if STATE in rollout.buffer:
            rollout.buffer[STATE][rollout.step] = before
            rollout.buffer[NEXT_STATE][rollout.step] = self._state

    def _send_if_full(self, rollout: OpenRollout | None) -> list[dict]:
        if rollout is None or rollout.step < self.cfg.rollout:
            return []
        # Position T holds what the value of the state after the last step is computed from. If that step ended the
        # episode or the phase, its done flag makes the learner ignore this value.
        self._write_inputs(rollout)
        return [rollout.send(self.name, self.cfg.rollout)]

    # -- statistics ----------------------------------------------------------------------------------------------

    def _phase_report(self, go_start: tuple[float, float] | None) -> list[dict]:
        """Where the explore phase that ends now has been; nothing if it was reported already, or never began."""
        if not self._visited:
            return []
        message = {EXPLORE_PHASE: phase_message(self._visited, go_start), POLICY_ID_KEY: AGENT}
        self._visited = []
        return [message]

    def _episode_reports(self, info: dict) -> list[dict]:
        """Statistics of the episode that has just ended: the go phase as the agent's, the explore phase beside it."""
        frameskip = self.env_info.frameskip if self.cfg.summaries_use_frameskip else 1
        explored, went = self._steps
        stats: dict[str, Any] = {
            "phases/explore_steps": explored,
            "phases/ended_exploring": float(went == 0),
        }
        if went:
            go_return = self._returns[Phase.GO]
            stats |= {"reward": go_return, "len": went * frameskip, "true_objective": go_return}
            stats["episode_extra_stats"] = info.get("episode_extra_stats", {})
        whose = {ENV_OF_EPISODE: self.global_env_idx}
        reports = [{EPISODIC: stats, POLICY_ID_KEY: AGENT, **whose}]
        if explored and self.explorer is None:
            explore_stats = {"reward": self._returns[Phase.EXPLORE], "len": explored * frameskip}
            reports.append({EPISODIC: explore_stats, POLICY_ID_KEY: EXPLORER, **whose})
        return reports
