"""What the rest of the package asks of a world: the interface that a user's own world implements.

A world is a family of environments whose contexts are divided into splits: `train`, on which agents are trained,
`test`, and whatever else it wants to be evaluated on. Only `make_env` must be there. What a world does not offer is
left out: without cells there is no coverage, without a map no picture of it. docs/worlds.md builds one step by step.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import gymnasium as gym
import numpy as np

from sf_explore_go.worlds.cells import CellGrid, cell_figure, cell_image

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from torch import nn

    from sf_explore_go.worlds.states import StateTable

TRAIN, TEST = "train", "test"


class Oracle(Protocol):
    """An explorer that knows the world: how much of it a phase can see at best. It goes by `info`, as `reset` and
    `step` give it, and derives what is random from the seed of the phase."""

    def begin(self, info: dict[str, Any], seed: int) -> None: ...

    def act(self, info: dict[str, Any]) -> Any: ...


class World:
    """A family of environments. Settings come as `cfg`, the resolved flags of a run (attributes)."""

    name: ClassVar[str] = ""  # of a world of this package: `--env` names its environments NAME_SPLIT
    about: ClassVar[str] = ""  # one line for `train --help`
    splits: ClassVar[Sequence[str]] = (TRAIN, TEST)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # name -> flags; the first is the default
    about_presets: ClassVar[Mapping[str, str]] = {}  # one line for each
    scored_by_goal: ClassVar[bool] = True  # evaluations also go into a table goal by goal (or context by context)
    identity: ClassVar[Sequence[str]] = ()  # own flags that cannot change from one part of a run to the next
    steps_outside: ClassVar[bool] = False  # environments compute in processes of their own, as Doom's engines do

    # -- environments --------------------------------------------------------------------------------------------

    def make_env(self, split: str, cfg: Any, render_mode: str | None = None) -> gym.Env:
        """An environment that plays the contexts of this split. Its `info` may hold `success`, `position` (x, y),
        `context` and `goal`, in `reset` and in `step`.

        If observations are costly to make, the environment may have an attribute `unseen`, False at first. While it is
        True nobody looks at what `step` returns as observation: it may be the last one again, and `info` may lack
        `position`. Rewards, ends and whatever comes later must be as ever; `reset` returns an observation in any case.
        """
        raise NotImplementedError

    def decisions_per_episode(self, cfg: Any) -> int | None:
        """The time limit, in decisions, so that an explore phase that is too long can be refused; None: not known."""
        return None

    def evaluation_contexts(self, cfg: Any, split: str, count: int, seed: int) -> Sequence[Any] | None:
        """The contexts of `count` episodes to evaluate on, for `reset(options={"context": ...})`.

        None: the environment draws its contexts itself, from the seed that `reset` gets.
        """
        return None

    def prepare(self, split: str) -> None:
        """Build what environments need; called once, before any process starts."""

    # -- flags ---------------------------------------------------------------------------------------------------

    def add_arguments(self, group: argparse._ArgumentGroup) -> None:
        """Add the world's own flags."""

    def check(self, cfg: Any) -> None:
        """Raise a UsageError if a flag of a new run has a value that does not suit this world."""

    # -- the network ---------------------------------------------------------------------------------------------

    def make_encoder(self, cfg: Any, obs_space: gym.spaces.Dict) -> "nn.Module | None":
        """A network from observations {key: [B, ...]} to features [B, size], with the attribute `out_size`.

        None: Sample Factory's own, a convolutional network for pictures and a plain one for vectors.
        """
        return None

    # -- where things are ----------------------------------------------------------------------------------------

    def cells(self) -> CellGrid | None:
        """The cells in which `info["position"]` can lie, for coverage; None: positions are not reported."""
        return None

    @property
    def knows_states(self) -> bool:
        """Whether `state_key` can tell states apart."""
        return type(self).state_key is not World.state_key or self.cells() is not None

    def state_key(self, info: Mapping[str, Any]) -> int:
        """A whole number for the state that `info` describes, for explorers that count states: here, its cell."""
        cells = self.cells()
        assert cells is not None, "a world without cells must define its own keys"
        row, column = cells.cell_of(*info["position"])
        return row * cells.free.shape[1] + column

    def state_table(self, cfg: Any, split: str) -> "StateTable | None":
        """Every state of the split's contexts, for metrics that need exact values; None: they cannot be listed.

        `state_key` of a listed state is its place in the table; a state that ends an episode has a negative key.
        """
        return None

    def make_oracle(self, cfg: Any) -> Oracle | None:
        """An explorer that knows the map, for `coverage` to compare others with; None: this world has none."""
        return None

    def map_figure(self, **options: Any) -> "Figure | None":
        """A picture of the map: `title`, `dpi`, `heat` (visits per cell) or `rates` (success by goal); None: no map."""
        cells = self.cells()
        if cells is None or options.get("rates") is not None:
            return None
        return cell_figure(cells, **options)

    def map_image(self, *, width: int = 720, **options: Any) -> "NDArray[np.uint8] | None":
        """The same as an array (height, width, 3), for TensorBoard, where a world of plain cells needs no axes."""
        cells = self.cells()
        if type(self).map_figure is World.map_figure:
            return None if cells is None or "heat" not in options else cell_image(cells, options["heat"], width)
        figure = self.map_figure(**options)
        if figure is None:
            return None
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure.set_dpi(width / figure.get_figwidth())
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def goal_position(self, goal: int) -> tuple[float, float] | None:
        """Where a goal lies on the map; None: unknown."""
        return None

    def film_fps(self, cfg: Any) -> int:
        """Decisions per second of a film."""
        return 4
