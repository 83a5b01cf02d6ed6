"""My Way Home with a goal that moves: its points and goals, and the WADs that are built from ViZDoom's own.

The stock map's compiled script starts the player at a random map spot of ids 10 to 26 and ends the episode when the
vest is taken. Of 18 points one is the goal, so exactly 17 remain: a map per goal, with the vest moved to the goal and
the spot of the goal's id moved to the 18th point, works with that script unchanged. The vest keeps its thing id, 22,
which is also the id of a spot; the engine resolves the id to the spot, since the spot comes later in the map.

A smaller scenario has fewer points, and doorways that are walled up: their lines block and show a wall. The script is
told to draw from fewer spots, which is the initial value of one of its variables, and those move to the points that
have lost theirs. The labyrinth's nodes stay, so no node builder is needed.

Built files live in a cache folder, named by their hash, and are checked against the committed hash on first use.
"""

import hashlib
import os
import secrets
import struct
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom.udmf import TextMap, parse_textmap, replace_values
from sf_explore_go.worlds.doom.wad import Lump, Wad, parse_wad, read_file, wad_bytes

SCENARIOS = ("my_way_home", "my_way_home_small")
SPLITS = ("train", "test")
SPOT, VEST = 9001, 2018  # thing types
FIRST_SPOT, LAST_SPOT = 10, 26  # ids that the stock script draws the start from

# The chunk of the stock script that says what its variables start with: name, bytes that follow, first variable, then
# armour_x (fixed point), armour_tid, map_point_start_id, map_points.
VARIABLES = struct.Struct("<4s6i")
STOCK_VARIABLES = (b"MINI", 20, 0, 1312 << 16, 22, FIRST_SPOT, LAST_SPOT - FIRST_SPOT + 1)

Line = tuple[tuple[float, float], tuple[float, float]]  # x and y of both ends, map units


@dataclass(frozen=True)
class Point:
    id: int
    x: float  # Doom map units
    y: float


@dataclass(frozen=True)
class Scenario:
    name: str
    points: tuple[Point, ...]
    train_goals: tuple[int, ...]
    test_goals: tuple[int, ...]
    stock_wad: str
    stock_sha256: str
    walled_up: tuple[Line, ...]  # doorways of the stock map
    built_sha256: Mapping[str, str] = field(hash=False)  # split -> hash of the built WAD

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").title()

    def goals(self, split: str) -> tuple[int, ...]:
        """The goals of a split; their order is the order of the maps in its WAD."""
        if split not in SPLITS:
            raise UsageError(f"split={split!r}: it must be {' or '.join(SPLITS)}")
        return self.train_goals if split == "train" else self.test_goals

    def point(self, id: int) -> Point:
        for point in self.points:
            if point.id == id:
                return point
        raise UsageError(f"point {id}: it must be a point of {self.name}, {_listed(p.id for p in self.points)}")

    def map_name(self, split: str, goal: int) -> str:
        """The map with the vest at this goal, as the engine's `set_doom_map` wants it."""
        goals = self.goals(split)
        if goal not in goals:
            raise UsageError(f"goal {goal}: it must be a {split} goal of {self.name}, {_listed(goals)}")
        return f"map{goals.index(goal) + 1:02d}"


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(str(id) for id in ids)


# --- the data files ---------------------------------------------------------------------------------------------------


def data_dir() -> Path:
    """The folder of the scenario data, inside the package; in a checkout it is a link to the top of the repository."""
    folder = Path(__file__).resolve().parents[2] / "doom_scenarios"
    if not (folder / "my_way_home.toml").is_file():
        raise UsageError(f"{folder}: my_way_home.toml is missing; install the package again")
    return folder


def config_path(scenario: Scenario, split: str) -> Path:
    """The ViZDoom config of a split, which all scenarios on the same stock map share."""
    scenario.goals(split)  # refuses an unknown split
    return data_dir() / f"{Path(scenario.stock_wad).stem}_{split}.cfg"


@cache
def load_scenario(name: str = "my_way_home") -> Scenario:
    if name not in SCENARIOS:
        raise UsageError(f"scenario {name!r}: it must be {' or '.join(SCENARIOS)}")
    return read_scenario(data_dir() / f"{name}.toml")


def read_scenario(path: Path) -> Scenario:
    """The scenario of a TOML file, checked."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        scenario = Scenario(
            name=str(table["name"]),
            points=tuple(Point(int(p["id"]), float(p["x"]), float(p["y"])) for p in table["points"]),
            train_goals=tuple(int(goal) for goal in table["goals"]["train"]),
            test_goals=tuple(int(goal) for goal in table["goals"]["test"]),
            stock_wad=str(table["stock_wad"]),
            stock_sha256=str(table["stock_sha256"]),
            walled_up=tuple(_line(ends) for ends in table.get("walled_up", ())),
            built_sha256={split: str(table["built_sha256"][split]) for split in SPLITS},
        )
    except KeyError as error:
        raise UsageError(f"{path}: the entry {error} is missing") from error
    except (OSError, ValueError, TypeError) as error:  # ValueError covers bad TOML and bad UTF-8
        raise UsageError(f"{path}: not a scenario file ({error})") from error
    _check_points(scenario, path)
    return scenario


def _line(ends: Any) -> Line:
    (x1, y1), (x2, y2) = ends
    return (float(x1), float(y1)), (float(x2), float(y2))


def _check_points(scenario: Scenario, path: Path) -> None:
    ids = [point.id for point in scenario.points]
    spots = range(FIRST_SPOT, LAST_SPOT + 2)
    if len(ids) < 2 or ids != sorted(set(ids).intersection(spots)):
        raise UsageError(
            f"{path}: the points are {_listed(ids)}; they must be two or more of {spots[0]} to {spots[-1]}, in order"
        )
    if sorted(scenario.train_goals + scenario.test_goals) != ids:
        raise UsageError(f"{path}: each point must be a goal of exactly one split")


# --- the built WADs ---------------------------------------------------------------------------------------------------


def stock_wad_path(scenario: Scenario, stock_dir: Path | None = None) -> Path:
    if stock_dir is None:
        import vizdoom  # late: drawing and context sets do not need the engine

        stock_dir = Path(vizdoom.scenarios_path)
    return stock_dir / scenario.stock_wad


def read_stock_wad(scenario: Scenario, stock_dir: Path | None = None) -> Wad:
    """The WAD that ViZDoom ships; another one than expected is refused, since building on it could give nonsense."""
    path = stock_wad_path(scenario, stock_dir)
    data = read_file(path)
    if (found := _sha256(data)) != scenario.stock_sha256:
        raise UsageError(
            f"{path}: its SHA-256 is {found} instead of {scenario.stock_sha256}, so it is damaged or from another "
            f"version of ViZDoom; install the version in requirements.txt"
        )
    return parse_wad(data, path)


def build_wad(scenario: Scenario, split: str, stock_dir: Path | None = None) -> bytes:
    """The WAD of a split, a map per goal; the same bytes every time."""
    stock = read_stock_wad(scenario, stock_dir)
    lumps: list[Lump] = []
    for goal in scenario.goals(split):
        lumps.append(Lump(scenario.map_name(split, goal).upper(), b""))
        for lump in stock.lumps[1:]:
            data = lump.data
            if lump.name == "TEXTMAP":
                data = goal_textmap(scenario, data, goal)
            elif lump.name == "BEHAVIOR":
                data = script_with_starts(data, len(scenario.points) - 1)
            lumps.append(Lump(lump.name, data))
    return wad_bytes(Wad("PWAD", tuple(lumps)))


def script_with_starts(behavior: bytes, starts: int) -> bytes:
    """The compiled script, made to draw the player's start from the first so many spots."""
    stock = VARIABLES.pack(*STOCK_VARIABLES)
    if behavior.count(stock) != 1:
        raise UsageError("BEHAVIOR: the script's variables do not have the initial values of the stock map")
    return behavior.replace(stock, VARIABLES.pack(*STOCK_VARIABLES[:-1], starts))


def goal_textmap(scenario: Scenario, stock: bytes, goal: int) -> bytes:
    """The stock TEXTMAP with the vest at the goal, spots at all other points, and the doorways walled up."""
    textmap = parse_textmap(stock, f"TEXTMAP of {scenario.stock_wad}")
    changes = {_thing(textmap, VEST): _place(scenario.point(goal))}
    for spot, point in _moved_spots(scenario, goal).items():
        changes[_thing(textmap, SPOT, spot)] = _place(scenario.point(point))
    for ends in scenario.walled_up:
        changes |= _wall(scenario, textmap, ends)
    return replace_values(textmap, changes)


def _moved_spots(scenario: Scenario, goal: int) -> dict[int, int]:
    """Spot -> point, for the drawn spots that stand at no start; the others stay where they are."""
    starts = [point.id for point in scenario.points if point.id != goal]
    drawn = range(FIRST_SPOT, FIRST_SPOT + len(starts))
    free = (spot for spot in drawn if spot not in starts)
    return dict(zip(free, (start for start in starts if start not in drawn), strict=True))


def _wall(scenario: Scenario, textmap: TextMap, ends: Line) -> dict[int, dict[str, str]]:
    """Changes that make the doorway between these ends a wall, on each side with the texture of that side's sector."""
    line = _doorway(scenario, textmap, ends)
    # A middle texture is drawn once; wrapping it fills the doorway from floor to ceiling.
    changes = {line: {"blocking": "true", "wrapmidtex": "true"}}
    sides = [i for i, block in enumerate(textmap.blocks) if block.kind == "sidedef"]
    for key in ("sidefront", "sideback"):
        side = sides[textmap.blocks[line].index(key, len(sides))]
        sector = textmap.blocks[side].values["sector"]
        textures = (s.values.get("texturemiddle") for s in textmap.sidedefs if s.values["sector"] == sector)
        changes[side] = {"texturemiddle": f'"{next(filter(None, textures))}"'}
    return changes


def _doorway(scenario: Scenario, textmap: TextMap, ends: Line) -> int:
    """The index of the block of the line between two sectors that has these ends, in either order."""
    corners = [(vertex.number("x"), vertex.number("y")) for vertex in textmap.vertices]
    for i, block in enumerate(textmap.blocks):
        if block.kind == "linedef" and "sideback" in block.values:
            found = {corners[block.index(key, len(corners))] for key in ("v1", "v2")}
            if found == set(ends):
                return i
    raise UsageError(f"{scenario.name}.toml: walled_up has {ends}, where {scenario.stock_wad} has no doorway")


def _thing(textmap: TextMap, type: int, id: int | None = None) -> int:
    """The index of the block of the one thing of this type (and id)."""
    (index,) = (
        i
        for i, block in enumerate(textmap.blocks)
        if block.kind == "thing" and block.values.get("type") == type and id in (None, block.values.get("id"))
    )
    return index


def _place(point: Point) -> dict[str, str]:
    return {"x": f"{point.x:.3f}", "y": f"{point.y:.3f}"}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- the cache --------------------------------------------------------------------------------------------------------

_verified: set[Path] = set()


def cache_dir() -> Path:
    """`$SF_EXPLORE_GO_CACHE`, else `$XDG_CACHE_HOME/sf_explore_go`, else `~/.cache/sf_explore_go`."""
    try:
        if chosen := os.environ.get("SF_EXPLORE_GO_CACHE"):
            return Path(chosen).expanduser().absolute()
        if (xdg := os.environ.get("XDG_CACHE_HOME")) and Path(xdg).is_absolute():
            return Path(xdg) / "sf_explore_go"
        return Path.home() / ".cache" / "sf_explore_go"
    except RuntimeError as error:  # a container user without a home
        raise UsageError(
            f"there is no folder for the cache of built WADs ({error}); set SF_EXPLORE_GO_CACHE"
        ) from error


def wad_path(scenario: Scenario, split: str) -> Path:
    """Where the built WAD of a split belongs; nothing is built or checked."""
    scenario.goals(split)  # refuses an unknown split
    return cache_dir() / f"{scenario.name}_{split}_{scenario.built_sha256[split][:12]}.wad"


def ensure_wad(scenario: Scenario, split: str, stock_dir: Path | None = None) -> Path:
    """The path of the built WAD, which is checked on first use in a process, and built if it is missing or damaged.

    Any number of processes may do this at once: each writes a file of its own and moves it into place.
    """
    path = wad_path(scenario, split)
    if path in _verified and path.is_file():
        return path
    found = wad_state(scenario, split)
    if found == "damaged":
        warnings.warn(f"{path} is damaged (its SHA-256 is wrong); building it again", stacklevel=2)
    if found != "sound":
        _write_atomically(path, _checked_build(scenario, split, stock_dir))
    _verified.add(path)
    return path


def wad_state(scenario: Scenario, split: str) -> str:
    """Whether the built WAD in the cache is "sound", "missing" or "damaged"."""
    path = wad_path(scenario, split)
    if not path.exists():
        return "missing"
    return "sound" if _sha256(read_file(path)) == scenario.built_sha256[split] else "damaged"


def _checked_build(scenario: Scenario, split: str, stock_dir: Path | None) -> bytes:
    data = build_wad(scenario, split, stock_dir)
    if (found := _sha256(data)) != scenario.built_sha256[split]:
        raise UsageError(
            f"{scenario.name}.toml: the built {split} WAD has the SHA-256 {found}, but built_sha256 is "
            f"{scenario.built_sha256[split]}"
        )
    return data


def _write_atomically(path: Path, data: bytes) -> None:
    # Not `tempfile`: its files are readable by their owner only, and a cache may be shared.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(
            f"{path.parent}: the built WAD cannot be written there ({error.strerror or error}); "
            f"set SF_EXPLORE_GO_CACHE to a writable folder"
        ) from error
