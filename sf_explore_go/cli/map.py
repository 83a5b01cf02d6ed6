"""`sf-explore-go map`: draw the labyrinth with the contexts of a set, and print them as a table."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import hypot
from typing import Any

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.core.contexts import RANDOM, WAYS, Context, draw_context_set
from sf_explore_go.worlds.doom.geometry import read_geometry
from sf_explore_go.worlds.doom.mapview import Start, check_picture_path, save_map
from sf_explore_go.worlds.doom.scenario import SCENARIOS, SPLITS, Scenario, load_scenario

HEADINGS = ("split", "index", "goal", "engine seed", "start", "x", "y", "angle")


@dataclass(frozen=True)
class Row:
    """A context and where it starts; the start is the id of a point, x and y are map units, the angle degrees."""

    split: str
    index: int
    goal: int
    seed: int
    start: int
    x: float
    y: float
    angle: float


def parse(argv: Sequence[str] | None = None) -> Any:
    parser = ArgumentParser(prog="sf-explore-go map", description=__doc__)
    parser.add_argument(
        "--scenario", choices=SCENARIOS, default=SCENARIOS[0], help=f"scenario to draw ({SCENARIOS[0]})"
    )
    parser.add_argument("--split", choices=(*SPLITS, "both"), default="train", help="whose contexts to show (train)")
    parser.add_argument("--num_contexts", type=int, default=10, help="size of the set (10); 0 = the whole distribution")
    parser.add_argument("--context_seed", type=int, default=0, help="seed of the set (0)")
    parser.add_argument("--context_goals", choices=WAYS, default=RANDOM, help=f"how its goals are drawn ({RANDOM})")
    parser.add_argument("--out", default="map.png", help="picture to write: .png, .svg, .pdf or .jpg (map.png)")
    parser.add_argument("--wad", help="draw only the plan of the first UDMF map of this WAD file, without contexts")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args(argv)


def rows_of_split(scenario: Scenario, split: str, args: Any) -> list[Row]:
    """The contexts of a set, with the starts that the engine gives them."""
    drawn = draw_context_set(scenario.goals(split), args.num_contexts, args.context_seed, args.context_goals)
    contexts = drawn.contexts
    starts = zip(contexts, real_starts(scenario, split, contexts), strict=True)
    return [
        Row(split, i, context.goal, context.seed, nearest_point(scenario, x, y), x, y, angle)
        for i, (context, (x, y, angle)) in enumerate(starts)
    ]


def real_starts(scenario: Scenario, split: str, contexts: Sequence[Context]) -> Iterator[tuple[float, float, float]]:
    """Start an episode in each context; yields x, y and the angle in degrees."""
    if not contexts:
        return
    from sf_explore_go.worlds.doom.env import MyWayHomeEnv  # late: only this needs the engine

    env = MyWayHomeEnv(split=split, num_contexts=0, scenario=scenario.name)
    try:
        for context in contexts:
            _, info = env.reset(options={"context": context})
            x, y = info["position"]
            yield round(float(x), 3), round(float(y), 3), round(float(info["angle"]), 3)
    finally:
        env.close()


def nearest_point(scenario: Scenario, x: float, y: float) -> int:
    return min(scenario.points, key=lambda point: hypot(point.x - x, point.y - y)).id


def table(rows: Sequence[Row]) -> str:
    cells = [HEADINGS] + [
        (r.split, str(r.index), str(r.goal), str(r.seed), str(r.start), f"{r.x:.1f}", f"{r.y:.1f}", f"{r.angle:.1f}")
        for r in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in cells)


def title(scenario: Scenario, args: Any) -> str:
    names = {"train": ["training"], "test": ["test"], "both": ["training", "test"]}[args.split]
    if args.num_contexts == 0:
        return f"{scenario.title}: the whole {' and '.join(names)} distribution"
    sets = " and ".join(f"{args.num_contexts} {name}" for name in names)
    balanced = "" if args.context_goals == RANDOM else f", {args.context_goals}"
    return f"{scenario.title}: {sets} contexts, seed {args.context_seed}{balanced}"


def draw_contexts(args: Any) -> int:
    scenario = load_scenario(args.scenario)
    splits = SPLITS if args.split == "both" else (args.split,)
    rows = [row for s in splits for row in rows_of_split(scenario, s, args)]
    starts = [Start(r.x, r.y, r.angle, r.goal) for r in rows]
    save_map(args.out, scenario, starts=starts, title=title(scenario, args))
    if args.json:
        names = ("scenario", "split", "num_contexts", "context_seed", "context_goals")
        settings = {name: getattr(args, name) for name in names}
        print(json.dumps({**settings, "picture": args.out, "contexts": [asdict(row) for row in rows]}))
    else:
        goals = {split: " ".join(map(str, scenario.goals(split))) for split in splits}
        print(table(rows) if rows else "\n".join(f"{s}: any start, goals {goals[s]}" for s in splits))
        print(f"picture: {args.out}")
    return 0


def draw_wad(args: Any) -> int:
    geometry = read_geometry(args.wad)
    save_map(args.out, geometry)
    facts = {"wad": args.wad, "rooms": len(geometry.rooms), "walls": len(geometry.walls), "picture": args.out}
    print(json.dumps(facts) if args.json else "\n".join(f"{name}: {value}" for name, value in facts.items()))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    check_picture_path(args.out)
    return draw_wad(args) if args.wad is not None else draw_contexts(args)
