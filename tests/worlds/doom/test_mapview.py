"""The plan of the map against independent calculations, and the picture against its pixels."""

import threading
from pathlib import Path

import numpy as np
import pytest
import vizdoom
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from scipy import ndimage

from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom.geometry import (
    Geometry,
    free_cells,
    geometry_of,
    make_grid,
    read_geometry,
    scenario_geometry,
)
from sf_explore_go.worlds.doom.mapview import (
    EXPLORE,
    GO,
    SPLIT_COLOURS,
    TRAJECTORIES,
    Start,
    draw_map,
    map_figure,
    map_image,
    save_map,
)
from sf_explore_go.worlds.doom.scenario import load_scenario
from sf_explore_go.worlds.doom.udmf import UdmfError, parse_textmap
from sf_explore_go.worlds.doom.wad import Lump, Wad, WadError, read_wad, wad_bytes

STOCK = Path(vizdoom.scenarios_path) / "my_way_home.wad"
SCENARIO = load_scenario()


def shoelace(loop: np.ndarray) -> float:
    """Area inside a closed (N, 2) outline; positive for one that runs clockwise, as Doom's rooms do."""
    x, y = loop.T
    return float(np.sum(x[1:] * y[:-1] - x[:-1] * y[1:])) / 2


def rooms_at(geometry: Geometry, x: float, y: float) -> list[int]:
    """The rooms around a position; each outline of My Way Home is one loop, so a winding number decides."""
    found = []
    for i, (loop,) in enumerate(geometry.rooms):
        angles = np.unwrap(np.arctan2(loop[:, 1] - y, loop[:, 0] - x))
        if round(abs(angles[-1] - angles[0]) / (2 * np.pi)) == 1:
            found.append(i)
    return found


# --- geometry ---------------------------------------------------------------------------------------------------------


def test_plan_has_the_lines_and_rooms_of_the_map() -> None:
    geometry = scenario_geometry(SCENARIO)
    assert len(geometry.walls) + len(geometry.openings) == 94
    assert len(geometry.rooms) == 18
    assert geometry.bounds == (160.0, -704.0, 1120.0, 128.0)
    assert all(len(room) == 1 and shoelace(room[0]) > 0 for room in geometry.rooms)
    assert read_geometry(STOCK).bounds == geometry.bounds


def test_every_point_is_in_one_room_and_16_of_them_have_a_room_of_their_own() -> None:
    rooms = {point.id: rooms_at(scenario_geometry(SCENARIO), point.x, point.y) for point in SCENARIO.points}
    assert all(len(found) == 1 for found in rooms.values())
    assert rooms.pop(14) == rooms.pop(15)
    assert len({found[0] for found in rooms.values()}) == 16


def test_free_cells_cover_exactly_the_area_of_the_rooms() -> None:
    geometry = scenario_geometry(SCENARIO)
    area = sum(shoelace(loop) for room in geometry.rooms for loop in room)
    assert area == 280_576  # eight rooms of 160 x 160 and ten passages
    # All walls stand on multiples of 16, so small cells fill the rooms without rest.
    for cell in (8.0, 16.0):
        assert make_grid(geometry, cell, radius=0.0).free.sum() * cell**2 == area


def test_free_cells_leave_the_players_width_along_the_walls() -> None:
    inside = make_grid(scenario_geometry(SCENARIO), 8.0, radius=0.0).free
    # The player is a square of 32 units: shrink the floor by 16 units, that is two cells, on every side.
    shrunk = ndimage.binary_erosion(inside, np.ones((5, 5)))
    assert np.array_equal(make_grid(scenario_geometry(SCENARIO), 8.0).free, shrunk)
    assert shrunk.sum() == 2808
    # A cell of 32 is free if any of the 4 x 4 small cells in it is.
    grid = free_cells(SCENARIO, 32.0)
    assert np.array_equal(grid.free, shrunk.reshape(26, 4, 30, 4).any(axis=(1, 3)))
    assert grid.free.sum() == 248


def test_free_cells_are_one_connected_piece_that_holds_every_point() -> None:
    grid = free_cells(SCENARIO)
    assert ndimage.label(grid.free)[1] == 1
    assert all(grid.free[grid.cell_of(point.x, point.y)] for point in SCENARIO.points)
    assert free_cells(SCENARIO) is grid


def test_cells_of_positions() -> None:
    grid = free_cells(SCENARIO, 32.0)
    assert grid.origin == (160.0, -704.0)
    assert grid.extent == (160.0, 1120.0, -704.0, 128.0)
    assert grid.cell_of(160.0, -704.0) == (0, 0)
    assert grid.cell_of(191.9, -672.0) == (1, 0)
    assert grid.cell_of(1119.9, 127.9) == (25, 29)
    assert grid.cell_of(-1e9, 1e9) == (25, 0)
    counts = grid.visit_counts([(240.0, -176.0), (241.0, -175.0), (1040.0, -352.0)])
    assert counts.sum() == 3
    assert counts[grid.cell_of(240.0, -176.0)] == 2
    assert grid.visit_counts([]).sum() == 0


def test_walkable_knows_slanted_walls_and_holes() -> None:
    # A diamond with a square pillar in its middle.
    corners = [(0, 100), (100, 0), (0, -100), (-100, 0), (-10, 10), (-10, -10), (10, -10), (10, 10)]
    lines = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)]
    text = "".join(f"vertex {{ x = {x}; y = {y}; }}" for x, y in corners)
    text += "".join(f"linedef {{ v1 = {a}; v2 = {b}; sidefront = {i}; }}" for i, (a, b) in enumerate(lines))
    text += "sidedef { sector = 0; }" * 8 + "sector {}"
    geometry = geometry_of(parse_textmap(text.encode()))
    assert [len(loop) for loop in geometry.rooms[0]] == [5, 5]
    assert sum(shoelace(loop) for loop in geometry.rooms[0]) == 20_000 - 400
    points = [(0, 0), (0, 50), (49, 49), (52, 52), (0, 27), (0, 25), (35, 34), (33, 33)]
    assert geometry.contains(points).tolist() == [False, True, True, False, True, True, True, True]
    assert geometry.walkable(points).tolist() == [False, True, False, False, True, False, False, True]


def test_a_real_walk_stays_on_free_cells() -> None:
    from tests.worlds.doom.test_starts import engine

    rng = np.random.default_rng(0)
    grid = free_cells(SCENARIO)
    with engine(SCENARIO, "train", 10) as game:
        visited = []
        for seed in range(3):
            game.set_seed(seed)
            game.new_episode()
            while not game.is_episode_finished():
                x, y, _ = game.get_state().game_variables
                visited.append((x, y))
                turn = rng.integers(0, 3)
                game.make_action([int(turn == 1), int(turn == 2), 1, 0], 8)
    assert len(visited) > 500
    assert not np.any(grid.visit_counts(visited)[~grid.free])
    assert scenario_geometry(SCENARIO).walkable(visited, radius=15.99).all()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((b"v1 = 0;", b"v1 = 76;"), "a linedef has v1 = 76; it must be from 0 to 75"),
        ((b"v1 = 0;", b'v1 = "a";'), "a linedef has v1 = 'a'"),
        ((b"sidefront = 0;", b""), "a linedef has sidefront = None"),
        ((b"sector = 0;", b"sector = 99;"), "a sidedef has sector = 99; it must be from 0 to 17"),
        ((b"vertex // 0\n{\nx = 160.000;", b"vertex // 0\n{\nx = 1e30;"), "a vertex is at (1e+30, -256.0)"),
        ((b"vertex // 0\n{\nx = 160.000;", b"vertex // 0\n{\n"), "a vertex has x = None"),
        ((b"linedef", b"other"), "the map has no walls"),
    ],
)
def test_a_broken_map_is_named_in_one_sentence(tmp_path: Path, change: tuple[bytes, bytes], reason: str) -> None:
    lumps = list(read_wad(STOCK).lumps)
    count = -1 if change[0] == b"linedef" else 1
    lumps[1] = Lump("TEXTMAP", lumps[1].data.replace(*change, count))
    path = tmp_path / "broken.wad"
    path.write_bytes(wad_bytes(Wad("PWAD", tuple(lumps))))
    with pytest.raises(UdmfError) as caught:
        read_geometry(path)
    assert str(caught.value).startswith(f"{path}: {reason}")


def test_a_wad_without_a_udmf_map_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.wad"
    path.write_bytes(wad_bytes(Wad("PWAD", (Lump("MAP01", b""),))))
    with pytest.raises(WadError, match="has no UDMF map"):
        read_geometry(path)


# --- picture ----------------------------------------------------------------------------------------------------------


def colour_count(image: np.ndarray, colour: str) -> int:
    """How many pixels have this colour, nearly."""
    target = np.array(to_rgb(colour)) * 255
    return int((np.abs(image.astype(float) - target).max(axis=-1) < 4).sum())


def pixel_at(figure: Figure, x: float, y: float) -> np.ndarray:
    """The colour at a position of the map, read from the rendered figure."""
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    column, row = figure.axes[0].transData.transform((x, y))
    return image[image.shape[0] - 1 - int(row), int(column), :3]


def test_image_is_an_rgb_array_of_the_asked_width() -> None:
    image = map_image(SCENARIO, width=720)
    assert image.dtype == np.uint8
    assert image.shape == (528, 720, 3)
    assert map_image(SCENARIO, width=360).shape == (264, 360, 3)
    assert np.array_equal(map_image(SCENARIO, width=360), map_image(SCENARIO, width=360))


def test_goals_have_the_colours_of_their_split() -> None:
    figure = map_figure(SCENARIO)
    for split, colour in SPLIT_COLOURS.items():
        for goal in SCENARIO.goals(split):
            point = SCENARIO.point(goal)
            assert np.allclose(pixel_at(figure, point.x, point.y + 12.5), np.array(to_rgb(colour)) * 255, atol=3)


def test_starts_point_where_the_player_looks() -> None:
    point = SCENARIO.point(22)
    for angle, goal in ((0.0, 10), (90.0, 11), (225.0, 27)):
        figure = map_figure(SCENARIO, starts=[Start(point.x, point.y, angle, goal)])
        colour = np.array(to_rgb(SPLIT_COLOURS["train" if goal == 10 else "test"])) * 255
        towards = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))]) * 29
        ahead, behind = (pixel_at(figure, *(np.array([point.x, point.y]) + sign * towards)) for sign in (1, -1))
        assert np.allclose(ahead, colour, atol=3)
        assert not np.allclose(behind, colour, atol=60)


def test_starts_alike_do_not_hide_each_other() -> None:
    point = SCENARIO.point(22)
    figure = map_figure(SCENARIO, starts=[Start(point.x, point.y, 359.0, 10), Start(point.x, point.y, 4.0, 11)])
    for distance, split in ((29.0, "train"), (47.0, "test")):
        found = pixel_at(figure, point.x + distance, point.y)
        assert np.allclose(found, np.array(to_rgb(SPLIT_COLOURS[split])) * 255, atol=3)


def test_trajectories_are_drawn_in_the_colours_of_their_phases() -> None:
    line = np.stack([np.linspace(180.0, 300.0, 50), np.full(50, -230.0)], axis=1)  # in the western room
    plain = map_image(SCENARIO)
    one = map_image(SCENARIO, trajectories=[line])
    assert colour_count(one, TRAJECTORIES[0]) > colour_count(plain, TRAJECTORIES[0])
    both = map_image(SCENARIO, trajectories=[line], phases=[np.arange(50) < 25])
    for colour in (EXPLORE, GO):
        assert colour_count(both, colour) > colour_count(plain, colour)
    only_go = map_figure(SCENARIO, trajectories=[line], phases=[np.zeros(50)])
    assert pixel_at(only_go, 180.0, -230.0)[1] > pixel_at(only_go, 180.0, -230.0)[0]  # green, not purple
    for degenerate in (np.zeros((0, 2)), line[:1]):
        map_image(SCENARIO, trajectories=[degenerate])
    with pytest.raises(ValueError, match="2 phases for 1 trajectories"):
        map_image(SCENARIO, trajectories=[line], phases=[[1], [0]])
    with pytest.raises(ValueError, match="1 phase flags for a trajectory of 50"):
        map_image(SCENARIO, trajectories=[line], phases=[[1]])


@pytest.mark.parametrize(
    ("counts", "ticks"),
    [((27, 130), ["50", "100"]), ((1, 10), ["1", "2", "5", "10"]), ((3, 3), ["5"]), ((21, 49), ["21", "49"])],
)
def test_the_scale_of_visits_has_plain_numbers(counts: tuple[int, int], ticks: list[str]) -> None:
    """Also where it spans less than a power of ten, for which matplotlib would write 6 x 10^1."""
    heat = free_cells(SCENARIO).visit_counts([(200.0, -230.0)] * counts[0] + [(1040.0, -390.0)] * counts[1])
    (axes,) = map_figure(SCENARIO, heat=heat).axes[0].child_axes
    axes.figure.canvas.draw()
    low, high = axes.get_ylim()
    shown = [
        t.get_text() for t in axes.get_yticklabels(which="both") if 0.999 * low < t.get_position()[1] < 1.001 * high
    ]
    assert [text for text in shown if text] == ticks


def test_heat_lies_where_the_visits_were() -> None:
    grid = free_cells(SCENARIO)
    heat = grid.visit_counts([(200.0, -230.0)] * 9 + [(1040.0, -390.0)])
    figure, plain = map_figure(SCENARIO, heat=heat), map_figure(SCENARIO)
    assert not np.array_equal(pixel_at(figure, 200.0, -230.0), pixel_at(plain, 200.0, -230.0))
    assert pixel_at(figure, 200.0, -230.0).sum() < pixel_at(figure, 1040.0, -390.0).sum()  # more visits, darker
    assert np.array_equal(pixel_at(figure, 250.0, -120.0), pixel_at(plain, 250.0, -120.0))
    empty = map_figure(SCENARIO, heat=np.zeros(grid.free.shape))
    assert len(empty.axes[0].child_axes) == 0  # nothing to show, no scale
    with pytest.raises(ValueError, match=r"heat has the shape \(3, 3\)"):
        map_figure(SCENARIO, heat=np.ones((3, 3)))


def test_legend_and_labels_stay_inside_the_picture_and_off_the_map() -> None:
    starts = [Start(240.0, -176.0, 30.0, 11), Start(240.0, -176.0, 80.0, 10)]
    grid = free_cells(SCENARIO)
    heat = grid.visit_counts([(240.0, -176.0)] * 30_000 + [(464.0, -176.0)])
    line = np.array([[240.0, -176.0], [300.0, -176.0]])
    figure = map_figure(SCENARIO, starts=starts, heat=heat, trajectories=[line], phases=[[1, 0]], title="A title")
    figure.canvas.draw()
    ax = figure.axes[0]
    legend = ax.get_legend()
    assert legend is not None
    map_right = ax.transData.transform((1120.0, 0.0))[0]
    boxes = [legend.get_window_extent(), ax.child_axes[0].get_tightbbox(), *(t.get_window_extent() for t in ax.texts)]
    for box in boxes:
        assert box is not None
        assert map_right < box.x0
        assert box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 <= box.y1 <= figure.bbox.y1
    overlaps = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a and b and a.overlaps(b)]
    assert overlaps == []
    assert ax.get_aspect() == 1.0


def test_pictures_are_drawn_in_threads_without_pyplot() -> None:
    images: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: images.append(map_image(SCENARIO, width=300))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(images) == 3
    assert all(np.array_equal(image, images[0]) for image in images)


def test_draw_map_works_on_any_axes_and_another_plan_has_no_goals() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    draw_map(left, SCENARIO)
    draw_map(right, read_geometry(STOCK))
    assert left.get_legend() is not None
    assert right.get_legend() is None


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "jpg"])
def test_save_writes_the_format_of_the_suffix(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map.{suffix}"
    save_map(path, SCENARIO, dpi=60)
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "jpg": b"\xff\xd8"}[suffix]
    assert path.read_bytes().startswith(magic)
    if suffix == "png":
        assert Image.open(path).size == (540, 396)


def test_paths_that_cannot_become_a_picture_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    for path, reason in (
        (tmp_path / "map.gif", "a picture's name must end in .png or .svg or .pdf or .jpg"),
        (tmp_path / "none" / "map.png", "does not exist"),
        (tmp_path / "folder.png", "cannot be written"),
    ):
        with pytest.raises(UsageError, match=reason):
            save_map(path, SCENARIO)
