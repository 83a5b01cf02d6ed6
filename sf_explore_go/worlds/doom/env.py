"""My Way Home as a contextual Gymnasium environment, in ViZDoom."""

import warnings
from collections.abc import Mapping
from operator import index
from typing import Any

import cv2
import gymnasium
import numpy as np
from numpy.typing import NDArray

from sf_explore_go.core.contexts import RANDOM, WAYS, Context, draw_context_set
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom.engine import DoomEngine, EngineDied, EngineSettings, start_engine
from sf_explore_go.worlds.doom.reach import TOUCH, Reach
from sf_explore_go.worlds.doom.scenario import config_path, ensure_wad, load_scenario

# Which of the config's buttons (turn left, turn right, move forward, move backward) each action holds down.
BUTTONS = ([0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1])
WALKS = tuple(bool(forward or backward) for _, _, forward, backward in BUTTONS)
RESET_ATTEMPTS = 3
SEEDS = 2**32

Picture = NDArray[np.uint8]
Info = dict[str, Any]


class MyWayHomeEnv(gymnasium.Env[Picture, int]):
    """Find the green vest in a labyrinth, from first-person pictures.

    A *context* is a goal, which is where the vest lies, and a seed, which fixes where the player starts and which way
    it looks. Each reset draws one from the environment's set: ``num_contexts`` contexts of the split, or with
    ``num_contexts=0`` any context of the split. With ``context_goals="balanced"`` instead of ``"random"`` a set has all
    goals equally often, give or take one. The same context gives the same first picture, always and everywhere.
    ``scenario`` is the labyrinth: ``my_way_home``, or ``my_way_home_small`` with half of its points.

    | observation | |
    |---|---|
    | space | ``Box(0, 255, uint8)``, RGB, (res_h, res_w, 3), or (3, res_h, res_w) with ``pixel_format="CHW"`` |
    | picture | rendered at 160x120 (256x144 with ``wide_aspect_ratio``) and resized to the nearest pixel, as stock \
Sample Factory does |
    | last one | where the engine has no picture of an episode's end, the last one before it is returned again |

    | action | held down for ``frameskip`` tics |
    |---|---|
    | 0 | nothing |
    | 1 | turn left |
    | 2 | turn right |
    | 3 | move forward |
    | 4 | move backward |

    | reward | |
    |---|---|
    | each tic | -0.0001 |
    | the vest is taken | +1 |

    | end | |
    |---|---|
    | terminated | the vest is taken |
    | truncated | 2100 tics have passed (525 decisions at ``frameskip=4``) without it, or the engine died |

    | info | in ``reset`` and ``step`` |
    |---|---|
    | context, goal | the ``Context`` that is played, and its goal (id of a point of the map) |
    | position, angle | the player's (x, y) in map units, and where it looks, in degrees, 0 = east, counterclockwise; \
at an episode's end, as last seen |
    | success | whether the vest is taken |
    | num_frames | tics of this decision: ``frameskip``, or fewer at an episode's end; 0 in ``reset`` |
    | engine_failed | only, and True, where the engine died |
    | episode_extra_stats | only at an episode's end: numbers that Sample Factory logs |

    ``reset(options={"context": context})`` plays a chosen context of the split, in the set or not: a ``Context``, a
    mapping with ``goal`` and ``seed``, or a pair. An engine that dies ends its episode as truncated, with a warning,
    and the next reset replaces it. The engine starts with the first reset, and is replaced after
    ``episodes_per_engine`` episodes (about 0.2 s), since its memory grows by about 0.3 kB with each.

    While ``unseen`` is True nobody looks at what steps lead to. A step in which the vest is out of reach, and that does
    not end the episode, is then not rendered, which takes half the time: it returns the last picture again, and
    ``info`` without position and angle, which the engine tells only with a picture. Everything else, and every later
    picture, is as it would have been.

    ``total_frames`` counts frames as Sample Factory does: ``frameskip`` for every decision that was ever made.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 35}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(
        self,
        split: str = "train",
        num_contexts: int = 10,
        context_seed: int = 0,
        res_w: int = 128,
        res_h: int = 72,
        wide_aspect_ratio: bool = False,
        frameskip: int = 4,
        pixel_format: str = "HWC",
        render_mode: str | None = None,
        scenario: str = "my_way_home",
        episodes_per_engine: int = 10_000,
        context_goals: str = RANDOM,
    ) -> None:
        _at_least("num_contexts", num_contexts, 0)
        for name, value in {"frameskip": frameskip, "res_w": res_w, "res_h": res_h}.items():
            _at_least(name, value, 1)
        _at_least("episodes_per_engine", episodes_per_engine, 1)
        _one_of("context_goals", context_goals, WAYS)
        _one_of("pixel_format", pixel_format, ("HWC", "CHW"))
        _one_of("render_mode", render_mode, (None, "rgb_array"))
        self.scenario, self.split = load_scenario(scenario), split
        self.contexts = draw_context_set(self.scenario.goals(split), num_contexts, context_seed, context_goals)
        self.frameskip, self.render_mode = frameskip, render_mode
        self.unseen = False
        self.total_frames = 0
        self._size = (res_w, res_h)
        self._native_size = (256, 144) if wide_aspect_ratio else (160, 120)
        self._planar = pixel_format == "CHW"
        self._pixels = nearest_pixels(self._native_size, self._size) if self._planar else None
        shape = (3, res_h, res_w) if self._planar else (res_h, res_w, 3)
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(BUTTONS))  # type: ignore[assignment]
        self._episodes_per_engine = episodes_per_engine
        self._episodes = 0  # of this engine
        self._engine: DoomEngine | None = None
        self._playing = False
        self._reach = Reach(frameskip)

    # --- an episode's start ---

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Picture, Info]:
        super().reset(seed=seed)
        chosen = self._chosen_context(options or {})
        self._context = self.contexts.sample(self.np_random) if chosen is None else chosen
        vest = self.scenario.point(self._context.goal)
        self._vest = vest.x, vest.y
        self._show(self._first_state())
        self._reach.rest()
        self._decisions, self._playing = 0, True
        return self._observation, self._info(num_frames=0)

    def _chosen_context(self, options: Mapping[str, Any]) -> Context | None:
        if unknown := set(options) - {"context"}:
            raise UsageError(f"reset options {', '.join(sorted(map(repr, unknown)))}: the only option is 'context'")
        if options.get("context") is None:
            return None
        context = parse_context(options["context"])
        self.scenario.map_name(self.split, context.goal)  # refuses a goal of another split
        return context

    def _first_state(self) -> Any:
        """Put an engine into the context; one that dies on the way is replaced."""
        for attempt in range(1, RESET_ATTEMPTS + 1):
            try:
                return self._start_episode()
            except EngineDied as error:
                self._discard_engine()
                if attempt == RESET_ATTEMPTS:
                    raise
                warnings.warn(f"ViZDoom's engine died at the start of {self._context}: {error}", stacklevel=3)
        raise AssertionError("unreachable")

    def _start_episode(self) -> Any:
        map_name, seed = self.scenario.map_name(self.split, self._context.goal), self._context.seed
        if self._engine and self._episodes >= self._episodes_per_engine:
            self._discard_engine()
        self._episodes += 1
        if self._engine:
            return self._engine.new_episode(map_name, seed)
        self._engine = start_engine(self._engine_settings(), map_name, seed)
        return self._engine.state()

    def _engine_settings(self) -> EngineSettings:
        config, wad = config_path(self.scenario, self.split), ensure_wad(self.scenario, self.split)
        return EngineSettings(config, wad, *self._native_size, planar=self._planar)

    # --- a decision ---

    def step(self, action: int) -> tuple[Picture, float, bool, bool, Info]:
        if self._engine is None or not self._playing:
            raise gymnasium.error.ResetNeeded("step was called without an episode; call reset first")
        action = index(action)  # of a NumPy array, comparisons would take longer than the rest of this method
        if not 0 <= action < len(BUTTONS):
            raise UsageError(f"action={action!r}: it must be from 0 to {len(BUTTONS) - 1}")
        self._reach.decide(WALKS[action])
        try:
            if self.unseen and self._is_uneventful(self._engine):
                return self._step_unseen(self._engine, action)
            reward, state = self._engine.act(BUTTONS[action], self.frameskip)
        except EngineDied as error:
            return self._lose_engine(error)
        self._decisions += 1
        self.total_frames += self.frameskip
        if state is None or reward > 0:
            return self._end_episode(self._engine, reward, state)
        self._show(state)
        return self._observation, reward, False, False, self._info(num_frames=self.frameskip)

    def _is_uneventful(self, engine: DoomEngine) -> bool:
        """Whether this decision can neither take the vest nor meet the time limit."""
        x, y, _ = self._variables.tolist()
        away = max(abs(x - self._vest[0]), abs(y - self._vest[1]))
        return self._reach.way < away - TOUCH and (self._decisions + 1) * self.frameskip < engine.time_limit

    def _step_unseen(self, engine: DoomEngine, action: int) -> tuple[Picture, float, bool, bool, Info]:
        engine.act_unseen(BUTTONS[action], self.frameskip)
        self._decisions += 1
        self.total_frames += self.frameskip
        return self._observation, self.frameskip * engine.living_reward, False, False, self._facts(self.frameskip)

    def _end_episode(self, engine: DoomEngine, reward: float, state: Any) -> tuple[Picture, float, bool, bool, Info]:
        """Only the vest gives a positive reward; that tells success from time-out even where both fall together.

        The map's script ends the episode one tic after the reward. Where a decision ends between the two, the engine
        has a picture left and would want another decision; here the vest ends the episode in every case.
        """
        self._playing = False
        success = reward > 0
        if state is not None:
            self._show(state)
        # The engine's clock is gone with the map, but every tic has cost the living reward.
        info = self._info(num_frames=round((reward - success) / engine.living_reward), success=success)
        info["episode_extra_stats"] = {"success": float(success), "engine_failed": 0.0}
        return self._observation.copy(), reward, success, not success, info

    def _lose_engine(self, error: EngineDied) -> tuple[Picture, float, bool, bool, Info]:
        pid = self._engine.pid if self._engine else None
        warnings.warn(
            f"ViZDoom's engine (process {pid}) died in {self._context} after {self._decisions} decisions: {error} "
            f"The episode ends as truncated, and the next reset starts another engine.",
            stacklevel=3,
        )
        self._discard_engine()
        self._decisions += 1
        self.total_frames += self.frameskip
        info = self._info(num_frames=self.frameskip)
        info |= {"engine_failed": True, "episode_extra_stats": {"success": 0.0, "engine_failed": 1.0}}
        return self._observation.copy(), 0.0, False, True, info

    # --- what is shown ---

    def _show(self, state: Any) -> None:
        self._screen: Picture = state.screen_buffer
        self._variables: NDArray[np.float64] = state.game_variables
        self._observation = self._resize(self._screen)
        self._reach.seen()

    def _resize(self, screen: Picture) -> Picture:
        if self._size == self._native_size:
            return screen
        if self._pixels is None:
            return cv2.resize(screen, self._size, interpolation=cv2.INTER_NEAREST)
        return screen.take(self._pixels, mode="wrap")  # faster than to resize each plane

    def _info(self, num_frames: int, success: bool = False) -> Info:
        x, y, angle = self._variables.tolist()
        return {**self._facts(num_frames, success), "position": (x, y), "angle": angle}

    def _facts(self, num_frames: int, success: bool = False) -> Info:
        return {"context": self._context, "goal": self._context.goal, "success": success, "num_frames": num_frames}

    def render(self) -> Picture | None:  # type: ignore[override]
        """The picture as rendered, before resizing: (120, 160, 3), or (144, 256, 3) if wide."""
        if self.render_mode is None or self._engine is None:
            return None
        return self._screen.transpose(1, 2, 0).copy() if self._planar else self._screen.copy()

    def close(self) -> None:
        self._discard_engine()

    def _discard_engine(self) -> None:
        self._playing = False
        self._episodes = 0
        if self._engine:
            self._engine.close()
            self._engine = None


def nearest_pixels(size: tuple[int, int], small: tuple[int, int]) -> NDArray[np.intp]:
    """Which pixels of a picture [3, height, width] the smaller one shows, as OpenCV chooses them; sizes are (w, h)."""
    width, height = size
    plane = np.arange(width * height, dtype=np.uint16).reshape(height, width)
    chosen = cv2.resize(plane, small, interpolation=cv2.INTER_NEAREST).astype(np.intp)
    return np.stack([chosen + colour * plane.size for colour in range(3)])


# --- checks -----------------------------------------------------------------------------------------------------------


def parse_context(value: Any) -> Context:
    """A context from a `Context`, a mapping with goal and seed, or a pair (goal, seed)."""
    try:
        if isinstance(value, Context):
            value = (value.goal, value.seed)
        elif isinstance(value, Mapping):
            value = value["goal"], value["seed"]
        goal, seed = (_integer(part) for part in value)
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"context={value!r}: it must be a Context, a mapping or a pair of a goal and a seed") from None
    if not 0 <= seed < SEEDS:
        raise UsageError(f"context seed {seed}: it must be from 0 to {SEEDS - 1}")
    return Context(goal, seed)


def _integer(value: Any) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError
    return int(value)


def _at_least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{name}={value!r}: it must be a whole number, at least {least}")


def _one_of(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{name}={value!r}: it must be {' or '.join(map(str, choices))}")
