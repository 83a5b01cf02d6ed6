"""A command that is refused takes nothing of an older run away, whatever `--restart_behavior` says."""

import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sf_explore_go.cli import train
from sf_explore_go.core.errors import run
from sf_explore_go.processes import console
from sf_explore_go.processes.stopping import EARLY
from sf_explore_go.training import shared_memory
from sf_explore_go.worlds.grid.world import Illustrative
from tests.e2e.cli import sf_explore_go

GRID = ("--env=illustrative_train", "--seed=0", "--train_for_env_steps=100")


def long_tmpdir(patch: pytest.MonkeyPatch) -> tuple[str, ...]:
    patch.setattr(tempfile, "tempdir", "/tmp/" + "x" * 80)
    return ("--serial_mode=False",)


def little_shared_memory(patch: pytest.MonkeyPatch) -> tuple[str, ...]:
    patch.setattr(shared_memory, "bytes_free", lambda: 1000)
    return ()


def no_world(patch: pytest.MonkeyPatch) -> tuple[str, ...]:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no engine\nin three\nlines")

    patch.setattr(Illustrative, "make_env", fail)
    return ()


def long_phase(patch: pytest.MonkeyPatch) -> tuple[str, ...]:
    return ("--max_pure_expl_steps=20",)


def uneven_rollouts(patch: pytest.MonkeyPatch) -> tuple[str, ...]:
    return ("--max_pure_expl_steps=0", "--async_rl=False", "--num_envs_per_worker=3")


CASES: dict[Callable[[pytest.MonkeyPatch], tuple[str, ...]], str] = {
    long_tmpdir: "TMPDIR=/tmp/xxx",
    little_shared_memory: "/dev/shm has 0 MB free",
    no_world: "--env=illustrative_train cannot be made here (no engine)",
    long_phase: "--max_pure_expl_steps=20",
    uneven_rollouts: "Sample Factory rejects these flags together",
}


@pytest.fixture
def old_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(console.VARIABLE, "normal")
    folder = tmp_path / "runs" / "run"
    (folder / "checkpoint_p0").mkdir(parents=True)
    for name in ("evaluation.csv", "config.json", "checkpoint_p0/checkpoint_000000001_10.pth"):
        (folder / name).write_text("what a run has found")
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below; locks, which lie beside a run and hold nothing, aside."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def words(folder: Path, behaviour: str, *flags: str) -> list[str]:
    where = (f"--train_dir={folder.parent}", f"--experiment={folder.name}", f"--restart_behavior={behaviour}")
    return [*GRID, *where, *flags]


@pytest.mark.parametrize("behaviour", ["overwrite", "restart"])
@pytest.mark.parametrize("cause", CASES, ids=lambda cause: cause.__name__)
def test_what_is_refused_changes_nothing(
    old_run: Path,
    cause: Callable[[pytest.MonkeyPatch], tuple[str, ...]],
    behaviour: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = tree(old_run.parent)
    flags = cause(monkeypatch)
    assert run(train.main, words(old_run, behaviour, *flags)) == 2
    assert tree(old_run.parent) == before
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("sf-explore-go: ")]
    assert len(error) == 1
    assert error[0].startswith(f"sf-explore-go: {CASES[cause]}")


def test_a_new_run_that_is_refused_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(console.VARIABLE, "normal")
    little_shared_memory(monkeypatch)
    assert run(train.main, words(tmp_path / "runs" / "new", "resume")) == 2
    assert not (tmp_path / "runs" / "new").exists()


def test_a_stop_while_it_starts_changes_nothing(old_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(old_run.parent)
    monkeypatch.setattr(EARLY, "signal", signal.SIGINT)
    with pytest.raises(SystemExit) as ended:
        run(train.main, words(old_run, "overwrite"))
    assert ended.value.code == 75
    assert tree(old_run.parent) == before


@pytest.mark.slow
def test_an_engine_that_cannot_be_made(old_run: Path) -> None:
    """In the process that is forked to try it."""
    before = tree(old_run.parent)
    doom = ("--env=my_way_home_small_train", "--preset=smoke", "--pixel_format=nonsense")
    result = sf_explore_go("train", *words(old_run, "overwrite", *doom))
    assert result.returncode == 2
    assert "--env=my_way_home_small_train cannot be made here; the traceback above says why" in result.stderr
    assert tree(old_run.parent) == before
