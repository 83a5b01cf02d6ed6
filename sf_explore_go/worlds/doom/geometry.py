"""The plan of a UDMF map: walls, openings and rooms, and which cells of a grid a player can stand in.

Shapes: points are (N, 2) arrays of x, y in Doom map units; lines are (N, 2, 2) arrays: line, end, coordinate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.doom.scenario import Line, Scenario, goal_textmap, read_stock_wad, stock_wad_path
from sf_explore_go.worlds.doom.udmf import Block, TextMap, UdmfError, parse_textmap
from sf_explore_go.worlds.doom.wad import Wad, WadError, find_lump, read_wad

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Room = tuple[Floats, ...]  # the closed outlines of a sector, (K, 2) each; holes run the other way round

MAX_COORDINATE = 32768.0  # the engine's own limit
PLAYER_RADIUS = 16.0  # half the side of the square that the engine moves


@dataclass(frozen=True)
class Geometry:
    walls: Floats  # (N, 2, 2): lines with nothing behind them, or that block
    openings: Floats  # (M, 2, 2): lines between two sectors
    rooms: tuple[Room, ...]  # the sectors

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """x min, y min, x max, y max."""
        ends = self.walls.reshape(-1, 2)
        low, high = ends.min(axis=0), ends.max(axis=0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    def contains(self, points: ArrayLike) -> Bools:
        """Which points lie inside the map, that is, in one of its rooms."""
        points = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        return np.logical_or.reduce([_in_room(room, points) for room in self.rooms])

    def walkable(self, points: ArrayLike, radius: float = PLAYER_RADIUS) -> Bools:
        """Which points a player can stand at: inside, and no wall cuts the square round it (separating axes)."""
        points = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        free = self.contains(points)
        for a, b in self.walls:
            normal = np.array([b[1] - a[1], a[0] - b[0]])
            apart = np.abs((points - a) @ normal) >= radius * np.abs(normal).sum()
            apart |= (np.maximum(a, b) <= points - radius).any(axis=1)
            apart |= (np.minimum(a, b) >= points + radius).any(axis=1)
            free &= apart
        return free


def make_grid(geometry: Geometry, cell: float, radius: float = PLAYER_RADIUS) -> CellGrid:
    """Cells of this size; one is free if any of 4 x 4 points spread over it is walkable."""
    x_min, y_min, x_max, y_max = geometry.bounds
    origin = (np.floor(x_min / cell) * cell, np.floor(y_min / cell) * cell)
    columns, rows = (int(np.ceil((high - low) / cell)) for high, low in zip((x_max, y_max), origin, strict=True))
    xs = origin[0] + (np.arange(columns * 4) + 0.5) * cell / 4
    ys = origin[1] + (np.arange(rows * 4) + 0.5) * cell / 4
    samples = np.stack(np.meshgrid(xs, ys), axis=-1)  # (rows * 4, columns * 4, 2)
    walkable = geometry.walkable(samples, radius).reshape(rows, 4, columns, 4)
    return CellGrid(walkable.any(axis=(1, 3)), (float(origin[0]), float(origin[1])), cell)


@cache
def free_cells(scenario: Scenario, cell: float = 32.0) -> CellGrid:
    """The cells of a scenario; `free.sum()` is what a coverage of 100 % means."""
    return make_grid(scenario_geometry(scenario), cell)


@cache
def scenario_geometry(scenario: Scenario) -> Geometry:
    """The plan of what a player can reach in a scenario, which is the same for every goal."""
    (stock,) = (lump.data for lump in read_stock_wad(scenario).lumps if lump.name == "TEXTMAP")
    point = scenario.points[0]
    textmap = parse_textmap(goal_textmap(scenario, stock, goal=point.id))
    return geometry_of(textmap, str(stock_wad_path(scenario)), inside=(point.x, point.y))


def read_geometry(path: str | Path) -> Geometry:
    """The plan of the first UDMF map of a WAD file."""
    return _first_map(read_wad(path), str(path))


def _first_map(wad: Wad, source: str) -> Geometry:
    lump = find_lump(wad.lumps, "TEXTMAP")
    if lump is None:
        raise WadError(f"{source}: it has no UDMF map, that is, no lump named TEXTMAP")
    return geometry_of(parse_textmap(lump.data, f"{source}: TEXTMAP"), source)


def geometry_of(textmap: TextMap, source: str = "TEXTMAP", inside: tuple[float, float] | None = None) -> Geometry:
    """The plan of a map, or of the part of it that can be reached from a position inside."""
    try:
        return _geometry(textmap, inside)
    except UdmfError as error:
        raise UdmfError(f"{source}: {error}") from error


def _geometry(textmap: TextMap, inside: tuple[float, float] | None) -> Geometry:
    vertices = [_position(vertex) for vertex in textmap.vertices]
    sector_of_side = [side.index("sector", len(textmap.sectors)) for side in textmap.sidedefs]
    lines: list[tuple[Line, set[int], bool]] = []  # ends, sectors at its sides, whether a player can pass
    edges: list[dict[int, list[int]]] = [{} for _ in textmap.sectors]  # per sector: vertex -> next vertices
    for line in textmap.linedefs:
        a, b = line.index("v1", len(vertices)), line.index("v2", len(vertices))
        front = line.index("sidefront", len(sector_of_side))
        back = line.index("sideback", len(sector_of_side), default=-1)
        # A sector lies to the right of its front lines, hence to the left of its back lines.
        edges[sector_of_side[front]].setdefault(a, []).append(b)
        if back >= 0:
            edges[sector_of_side[back]].setdefault(b, []).append(a)
        sectors = {sector_of_side[side] for side in (front, back) if side >= 0}
        lines.append(((vertices[a], vertices[b]), sectors, back >= 0 and line.values.get("blocking") is not True))
    rooms = [tuple(np.array([vertices[v] for v in loop]) for loop in _loops(e)) for e in edges]
    kept = set(range(len(rooms)))
    if inside is not None:
        kept = _connected([sectors for _, sectors, passable in lines if passable], _room_at(rooms, inside))
    walls = [ends for ends, sectors, passable in lines if not passable and sectors & kept]
    openings = [ends for ends, sectors, passable in lines if passable and sectors & kept]
    if not walls:
        raise UdmfError("the map has no walls")
    return Geometry(np.array(walls), np.array(openings).reshape(-1, 2, 2), tuple(rooms[i] for i in sorted(kept)))


def _room_at(rooms: Sequence[Room], position: tuple[float, float]) -> int:
    for i, room in enumerate(rooms):
        if _in_room(room, np.array([position]))[0]:
            return i
    raise UdmfError(f"no sector lies at {position}")


def _in_room(room: Room, points: Floats) -> Bools:
    """Which (N, 2) points lie in the room: those from which a ray to the east meets an odd number of its edges."""
    x, y = points.T
    inside = np.zeros(len(points), dtype=np.bool_)
    for outline in room:
        for (x1, y1), (x2, y2) in pairwise(outline):
            if y1 != y2:
                crosses = (y1 > y) != (y2 > y)
                inside ^= crosses & (x < x1 + (y - y1) * (x2 - x1) / (y2 - y1))
    return inside


def _connected(doors: Sequence[set[int]], first: int) -> set[int]:
    """The rooms that can be reached from the first one; a door is the set of the rooms at its sides."""
    reached = {first}
    while ways := [door for door in doors if door & reached and not door <= reached]:
        reached.update(*ways)
    return reached


def _position(vertex: Block) -> tuple[float, float]:
    x, y = vertex.number("x"), vertex.number("y")
    if not (abs(x) <= MAX_COORDINATE and abs(y) <= MAX_COORDINATE):
        raise UdmfError(f"a vertex is at ({x}, {y}); its coordinates must be at most {MAX_COORDINATE:.0f}")
    return x, y


def _loops(edges: dict[int, list[int]]) -> list[list[int]]:
    """The closed outlines that these directed edges form; what does not close is left out."""
    loops = []
    while edges:
        loop = [next(iter(edges))]
        while (following := edges.get(loop[-1])) is not None:
            loop.append(following.pop())
            if not following:
                del edges[loop[-2]]
            if loop[-1] == loop[0]:
                loops.append(loop)
                break
    return loops
