"""Whatever a configuration, a checkpoint or a command line holds: it is used or refused in one sentence."""

import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from sf_explore_go.config.flags import make_parser, parse_train_args
from sf_explore_go.core.errors import run as run_verb
from sf_explore_go.runs.checkpoints import FORMAT
from sf_explore_go.runs.folder import run_folder
from sf_explore_go.runs.resume import check_checkpoints

pytestmark = pytest.mark.slow

CASES = 500
BASE = ("--env=illustrative_train", "--explorer=random", "--experiment=run")
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**80, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", "abc", "0", "\u0000", "../..",
    "e3b", "os:system", [], [1], ["a"], [[]], {}, {"a": 1}, "x" * 5000,
]  # fmt: skip


def exit_status(argv: list[str]) -> int:
    """What the command line would return if training were left out: parsing, checks, and reading the checkpoints."""

    def main(words: Any) -> int:
        cfg = parse_train_args(words)
        check_checkpoints(cfg, run_folder(cfg), lambda message: None)
        return 0

    with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(io.StringIO()):
        try:
            status = run_verb(main, argv)
        except SystemExit as end:
            status = int(end.code or 0)
    assert status in (0, 2)
    if status == 2:
        assert err.getvalue().startswith("sf-explore-go: ")
        assert len(err.getvalue().strip().splitlines()) == 1
    return status


def test_command_lines(tmp_path: Path) -> None:
    rng = random.Random(0)
    flags = [action.option_strings[-1] for action in make_parser()._actions if action.option_strings]
    statuses = set()
    for _ in range(CASES):
        words = [f"{rng.choice(flags)}={rng.choice(VALUES)}" for _ in range(rng.randint(1, 4))]
        words += rng.sample(["--help", "--", "-x", "--env", "word", "--seed=1"], rng.choice([0, 0, 0, 1]))
        statuses.add(exit_status([*BASE, f"--train_dir={tmp_path}", *words]))
    assert statuses == {0, 2}


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Any]:
    cfg = parse_train_args([*BASE, f"--train_dir={tmp_path}", "--seed=1"])
    (tmp_path / "run").mkdir()
    return json.loads(json.dumps(dict(cfg)))


def test_configurations(tmp_path: Path, saved: dict[str, Any]) -> None:
    rng = random.Random(1)
    path = tmp_path / "run" / "config.json"
    statuses = set()
    for case in range(CASES):
        config = dict(saved)
        for key in rng.sample(sorted(saved), rng.randint(1, 3)):
            if rng.random() < 0.2:
                del config[key]
            else:
                config[key] = rng.choice(VALUES)
        text = json.dumps(config)
        if case % 3 == 0:  # and some that are no JSON at all
            cut = rng.randrange(len(text))
            text = text[:cut] + rng.choice(["", "}", "\ud800", "[" * 10000, "null"]) + text[cut + rng.randrange(5) :]
        path.write_text(text, errors="surrogatepass")
        statuses.add(exit_status([*BASE, f"--train_dir={tmp_path}"]))
    assert statuses == {0, 2}


def test_checkpoints(tmp_path: Path, saved: dict[str, Any]) -> None:
    rng = random.Random(2)
    (tmp_path / "run" / "config.json").write_text(json.dumps(saved))
    folder = tmp_path / "run" / "checkpoint_p0"
    folder.mkdir()
    state = {
        "format": FORMAT, "model": {f"layer{i}": torch.randn(7, 5) for i in range(20)}, "frames": [3, 4],
        "train_step": 5, "env_steps": 7, "config": saved,
    }  # fmt: skip
    torch.save(state, tmp_path / "sound.pth")
    sound = (tmp_path / "sound.pth").read_bytes()
    statuses = set()
    for _ in range(CASES):
        data = bytearray(sound)
        for _ in range(rng.choice([1, 1, 5, 100])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        (folder / "checkpoint_000000001_10.pth").write_bytes(data)
        statuses.add(exit_status([*BASE, f"--train_dir={tmp_path}"]))
    assert statuses == {0, 2}
