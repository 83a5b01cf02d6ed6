"""Weights & Biases gets what TensorBoard gets. Offline, with wandb itself: what it would send is read from its file."""

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import wandb
from wandb.proto import wandb_internal_pb2

from sf_explore_go.cli import train
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import run
from sf_explore_go.monitoring.weights_and_biases import MirroredWriter
from sf_explore_go.processes.console import VARIABLE
from sf_explore_go.runs.scores import merge_scores
from tests.monitoring.events import scalars_of
from tests.reporting.test_report import make_score

GRID = ("--env=illustrative_train", "--explorer=e3b", "--seed=1", "--experiment=run", "--quiet")
OWN = {"frames", "_step", "_runtime", "_timestamp"}  # columns that are no tag
MESSAGES: Any = wandb_internal_pb2
HEADER, BLOCK = 7, 32768  # bytes, of the log format of LevelDB
FULL, LAST = 1, 4  # kinds of its pieces


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv(VARIABLE, "quiet")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    wandb.teardown()
    torch.set_num_threads(threads)


def records(path: Path) -> Iterator[Any]:
    """What wandb has put into its file, in order."""
    data, place, whole = path.read_bytes(), HEADER, b""
    while place + HEADER <= len(data):
        if BLOCK - place % BLOCK < HEADER:  # too little room for another piece
            place += BLOCK - place % BLOCK
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (FULL, LAST):
            record = MESSAGES.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def sent(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """tag -> [(frames, value)], over all parts of a run."""
    tags = defaultdict(list)
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        for record in records(path):
            items = record.history.item
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
            for tag in row.keys() - OWN:
                tags[tag].append((row["frames"], row[tag]))
    return tags


def shown(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The same from TensorBoard's files."""
    agent, explorer = scalars_of(folder, 0), scalars_of(folder, 1)
    return agent | {f"explorer/{tag}": values for tag, values in explorer.items()}


def flat(values: list[tuple[int, float]]) -> list[float]:
    return [number for pair in values for number in pair]


@pytest.mark.usefixtures("offline")
def test_both_have_the_same_scalars(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    merge_scores(tmp_path / "run/evaluation.csv", [make_score(100, "train", 0.75), make_score(100, "test", 0.5)])
    for budget in (300, 500):  # the second part is a resume
        flags = ("--with_wandb=True", f"--train_dir={tmp_path}", f"--train_for_env_steps={budget}")
        status, runner = train.run(parse_train_args([*GRID, *flags]))
        assert status == 0
        assert runner is not None
        for writer in runner.writers.values():
            writer.close()  # which otherwise happens when the process ends
        time.sleep(1.1)  # TensorBoard names its files by the second: the next part must not take this one's name
    wandb_has, board_has = sent(tmp_path / "run"), shown(tmp_path / "run")
    assert wandb_has.keys() == board_has.keys()
    assert {"go/return", "train/loss", "explorer/train/loss", "eval/test_success"} <= wandb_has.keys()
    for tag, values in board_has.items():
        assert flat(wandb_has[tag]) == pytest.approx(flat(values), rel=1e-6, nan_ok=True), tag
    assert wandb_has["eval/test_success"] == [(100, 0.5)]
    identity = {path.stem for path in (tmp_path / "run").glob("wandb/offline-run-*/*.wandb")}
    assert identity == {f"run-{json.loads((tmp_path / 'run/config.json').read_text())['wandb_unique_id']}"}


def test_without_a_key_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr(wandb, "login", lambda **_: False)
    wandb.teardown()
    assert run(train.main, [*GRID, "--with_wandb=True", f"--train_dir={tmp_path / 'runs'}"]) == 2
    wandb.teardown()
    assert "--with_wandb=True: wandb has no key here; run `wandb login`" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_wandb_that_fails_does_not_harm_the_training() -> None:
    class Board:
        values: list[float] = []  # noqa: RUF012 - of one test

        def add_scalar(self, tag: str, value: float, frames: int) -> None:
            self.values.append(value)

    class Broken:
        calls = 0

        def log(self, row: dict[str, float]) -> None:
            self.calls += 1
            raise ConnectionError("gone")

    broken = Broken()
    writer = MirroredWriter(Board(), broken, "")
    writer.add_scalar("a", 1.0, 10)
    writer.add_scalar("a", 2.0, 20)
    assert Board.values == [1.0, 2.0]
    assert broken.calls == 1


def test_without_the_flag_nothing_of_it_is_loaded() -> None:
    words = "import sys; import sf_explore_go.cli.train; sys.exit('wandb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], check=False).returncode == 0
