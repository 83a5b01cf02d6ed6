"""`sf-explore-go scenario`: build missing scenario WADs, check all of them, and list what they hold."""

import json
from collections.abc import Sequence
from typing import Any

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom.scenario import (
    SCENARIOS,
    SPLITS,
    Scenario,
    ensure_wad,
    load_scenario,
    wad_path,
    wad_state,
)


def parse(argv: Sequence[str] | None = None) -> Any:
    parser = ArgumentParser(prog="sf-explore-go scenario", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check the built WADs; build nothing")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    return parser.parse_args(argv)


def describe(scenario: Scenario, split: str) -> dict[str, Any]:
    """What there is to say about a sound WAD."""
    path = wad_path(scenario, split)
    return {
        "scenario": scenario.name,
        "split": split,
        "path": str(path),
        "bytes": path.stat().st_size,
        "sha256": scenario.built_sha256[split],
        "maps": {scenario.map_name(split, goal): goal for goal in scenario.goals(split)},
    }


def check(scenario: Scenario, split: str) -> None:
    state = wad_state(scenario, split)
    if state != "sound":
        raise UsageError(f"{wad_path(scenario, split)} is {state}; `sf-explore-go scenario` builds it")


def as_text(wad: dict[str, Any]) -> str:
    maps = ", ".join(f"{name} (vest at {goal})" for name, goal in wad["maps"].items())
    return f"{wad['scenario']} {wad['split']}: {wad['path']}\n  {wad['bytes']} bytes, sha256 {wad['sha256']}\n  {maps}"


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    maps = [(load_scenario(name), split) for name in SCENARIOS for split in SPLITS]
    for scenario, split in maps:
        check(scenario, split) if args.check else ensure_wad(scenario, split)
    wads = [describe(scenario, split) for scenario, split in maps]
    print(json.dumps({"wads": wads}) if args.json else "\n".join(map(as_text, wads)))
    return 0
