"""The environments of one rollout worker (or of one half of it, when double-buffered), stepped in unison."""

import copy
from functools import partial
from queue import Empty
from typing import Any

from sample_factory.algo.sampling.non_batched_sampling import NonBatchedVectorEnvRunner
from sample_factory.algo.utils.env_info import check_env_info
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.algo.utils.tensor_utils import clone_tensor
from sample_factory.utils.attr_dict import AttrDict
from sample_factory.utils.timing import Timing
from sample_factory.utils.utils import log

from sf_explore_go.core.seeding import env_seed
from sf_explore_go.explorers.base import ActorExplorer
from sf_explore_go.explorers.registry import resolve_explorer
from sf_explore_go.phases.rollouts import OpenRollout
from sf_explore_go.phases.schedule import AGENT, Phase, PhaseSchedule
from sf_explore_go.training.actor import ExploreGoActor
from sf_explore_go.training.explore_length import max_explore_steps
from sf_explore_go.training.messages import ENV_OF_EPISODE
from sf_explore_go.training.policies import needs_states
from sf_explore_go.worlds.registry import world_of


class SeededVectorEnvRunner(NonBatchedVectorEnvRunner):
    """Sample Factory's runner, with environments seeded from the run's seed and frames counted. Used when K = 0."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.frames = self.buffer_mgr.frames.row(self.worker_idx)
        started = self.buffer_mgr.frames.restored()
        self._frames_at_start = started.total
        memory = self.buffer_mgr.states
        self.recorder = memory and memory.recorder(self._groups(), started.go // self.env_info.frameskip)
        asks = self.recorder is not None or needs_states(self.cfg)
        self._state_key = world_of(self.cfg.env).state_key if asks else None
        self._states: dict[int, int] = {}  # of each environment, if they are recorded

    def _groups(self) -> int:
        """Of environments that step in turn, in the whole run."""
        return int(self.cfg.num_workers * self.cfg.worker_num_splits)

    def seed_for(self, stream: str, global_env_idx: int) -> int:
        return env_seed(self.cfg.seed, stream, global_env_idx, self._frames_at_start)

    def _reset(self) -> None:
        """The very first reset. Sample Factory would pass the environment's index as seed, whatever `--seed` is."""
        for env_i, env in enumerate(self.envs):
            actor = self.actor_states[env_i][0]
            observations, infos = env.reset(seed=self.seed_for("env", actor.global_env_idx))
            env.action_space.seed(self.seed_for("decorrelate", actor.global_env_idx))
            if self.cfg.decorrelate_envs_on_one_worker:
                observations, infos = self._decorrelate(env, env_i, observations, infos)
            self._first_observations(env_i, observations, infos)
        self.env_step_ready = True

    def _decorrelate(self, env: Any, env_i: int, observations: Any, infos: Any) -> tuple[Any, Any]:
        steps = self.cfg.rollout * (self.num_envs * self.split_idx + env_i)
        log.info("Decorrelating experience for %d frames...", steps)
        for _ in range(steps):
            observations, *_, infos = env.step([env.action_space.sample() for _ in range(self.num_agents)])
        return observations, infos

    def _first_observations(self, env_i: int, observations: Any, infos: Any) -> None:
        if self.recorder is not None:
            self._begin(env_i, infos[0].get("reset_info", infos[0]))
        for actor, obs in zip(self.actor_states[env_i], observations, strict=True):
            actor.last_obs = obs
            actor.last_rnn_state = clone_tensor(self.traj_tensors["rnn_states"][0, 0])
            actor.reset_rnn_state()

    def _process_env_step(self, *args: Any) -> list[dict]:
        *_, terminated, truncated, infos, env_i = args
        if self.recorder is not None:
            self._record(env_i, infos[0], ended=bool(terminated[0] or truncated[0]))
        whose = {ENV_OF_EPISODE: self.actor_states[env_i][0].global_env_idx}
        return [report | whose for report in super()._process_env_step(*args)]

    def _record(self, env_i: int, info: dict, *, ended: bool) -> None:
        assert self.recorder is not None
        assert self._state_key is not None
        self.recorder.note(self._states[env_i], int(self.actor_states[env_i][0].last_actions), Phase.GO)
        if ended:
            self._begin(env_i, info["reset_info"])
        else:
            self._states[env_i] = self._state_key(info)

    def _begin(self, env_i: int, info: dict) -> None:
        assert self.recorder is not None
        assert self._state_key is not None
        self._states[env_i] = self._state_key(info)
        self.recorder.begin_go(self._states[env_i])

    def advance_rollouts(self, policy_id: int, timing: Timing) -> tuple[list[dict], list[dict]]:
        result = super().advance_rollouts(policy_id, timing)
        if self.env_step_ready:  # all answers were there, so the environments have made a step
            self.frames.add(Phase.GO, self.num_envs * self.env_info.frameskip)
        return result


class ExploreGoVectorEnvRunner(SeededVectorEnvRunner):
    """Alternates between explorer and agent inside each episode."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.explorer_class = resolve_explorer(self.cfg.explorer)
        self.actors: list[ExploreGoActor] = []  # one per environment, in order
        self.without_buffer: list[OpenRollout] = []  # rollouts that need a buffer before their next step

    def init(self, timing: Timing) -> None:
        """Make the environments and their actors. Overridden whole: Sample Factory names its actor class inside."""
        for env_i in range(self.num_envs):
            vector_idx = self.split_idx * self.num_envs + env_i
            global_env_idx = self.worker_idx * self.cfg.num_envs_per_worker + vector_idx
            env_config = AttrDict(worker_index=self.worker_idx, vector_index=vector_idx, env_id=global_env_idx)
            env = make_env_func_non_batched(self.cfg, env_config=env_config)
            check_env_info(env, self.env_info, self.cfg)
            self.envs.append(env)
            self.actors.append(self._make_actor(env, env_i, global_env_idx))
            self.actor_states.append([self.actors[-1]])
        self._reset()

    def _make_actor(self, env: Any, env_i: int, global_env_idx: int) -> ExploreGoActor:
        explorer = None
        if issubclass(self.explorer_class, ActorExplorer):
            seed = self.seed_for("explorer", global_env_idx)
            explorer = self.explorer_class(copy.deepcopy(env.action_space), seed, self.cfg)
        longest = partial(max_explore_steps, self.cfg, self.buffer_mgr.frames)
        return ExploreGoActor(
            self.cfg,
            self.env_info,
            env,
            self.worker_idx,
            self.split_idx,
            env_i,
            0,  # the only agent of its environment
            global_env_idx,
            self.buffer_mgr,
            self.traj_buffer_queue,
            self.traj_tensors,
            self.policy_output_tensors[env_i, 0],
            self.training_info,
            AgentFirst(),
            schedule=PhaseSchedule(longest, self.seed_for("phase", global_env_idx)),
            explorer=explorer,
            state_key=self._state_key,
            recorder=self.recorder,
        )

    def _first_observations(self, env_i: int, observations: Any, infos: Any) -> None:
        self.actors[env_i].begin_episode(observations[0], infos[0].get("reset_info", infos[0]))
        self._ask_for_buffer(self.actors[env_i])

    def _ask_for_buffer(self, actor: ExploreGoActor) -> None:
        if actor.acting is not None and actor.acting.needs_buffer:
            self.without_buffer.append(actor.acting)

    def update_trajectory_buffers(self, timing: Timing) -> bool:
        """Get a free buffer for every rollout that needs one; False if some are still without."""
        while self.without_buffer:
            with timing.add_time("wait_for_trajectories"):
                try:
                    free = self.traj_buffer_queue.get_many(block=False, max_messages_to_get=len(self.without_buffer))
                except Empty:
                    return False
            for buffer_index in free:
                self.without_buffer.pop(0).attach(buffer_index, self.traj_tensors)
        return True

    def generate_policy_request(self) -> dict[int, list[tuple]] | None:
        """What each policy shall answer: policy -> (env, agent, buffer, step); None if it is not time to ask."""
        if not self.env_step_ready or self.without_buffer:
            return None
        request: dict[int, list[tuple]] = {}
        for env_i, actor in enumerate(self.actors):
            actor.write_policy_inputs()
            if actor.acting is not None:
                place = (env_i, 0, actor.acting.buffer_index, actor.acting.step)
                request.setdefault(actor.acting.policy_id, []).append(place)
        self.env_step_ready = False
        return request

    def _process_policy_outputs(self, policy_id: int, timing: Timing) -> bool:
        """Take the answers of one policy; True once every actor has an action."""
        all_ready = True
        for actor in self.actors:
            if not actor.ready:
                if actor.acting is not None and actor.acting.policy_id == policy_id:
                    actor.take_policy_outputs()
                else:
                    all_ready = False
        return all_ready

    def advance_rollouts(self, policy_id: int, timing: Timing) -> tuple[list[dict], list[dict]]:
        """One decision in every environment, once all of them have their action."""
        with timing.add_time("save_policy_outputs"):
            if not self._process_policy_outputs(policy_id, timing):
                return [], []
        full_rollouts: list[dict] = []
        reports: list[dict] = []
        scale, clip = self.cfg.reward_scale, self.cfg.reward_clip
        with timing.add_time("env_step"):  # once for all: two clocks per environment cost more than the bookkeeping
            for env, actor in zip(self.envs, self.actors, strict=True):
                obs, rewards, terminated, truncated, infos = env.step([actor.curr_actions()])
                self.frames.add(actor.schedule.phase, self.env_info.frameskip)
                reward = min(max(rewards[0] * scale, -clip), clip)
                full, stats = actor.record_step(reward, rewards[0], terminated[0], truncated[0], infos[0], obs[0])
                full_rollouts += full
                reports += stats
                self._ask_for_buffer(actor)
        self.env_step_ready = True
        return full_rollouts, reports


class AgentFirst:
    """Stands where Sample Factory maps agents to policies at random; the actor hands over by itself."""

    def get_policy_for_agent(self, agent_idx: int, env_idx: int, global_env_idx: int) -> int:
        return AGENT
