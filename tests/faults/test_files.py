"""Files that are damaged, foreign, or cannot be written."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from sf_explore_go.runs.names import checkpoints_in
from tests.e2e.cli import sf_explore_go
from tests.faults.training import GRID, Training, total_frames

pytestmark = pytest.mark.slow

SERIAL = (*GRID, "--serial_mode=True", "--num_workers=1", "--keep_checkpoints=3")
FRAMES = 400


def train(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return sf_explore_go("train", *SERIAL, f"--train_dir={folder}", "--experiment=run", *flags)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that has several checkpoints of each policy."""
    folder = tmp_path_factory.mktemp("finished")
    for budget in (FRAMES, 2 * FRAMES, 3 * FRAMES):
        result = train(folder, f"--train_for_env_steps={budget}")
        assert result.returncode == 0, result.stderr[-3000:]
    assert all(len(checkpoints_in(folder / "run" / f"checkpoint_p{p}")) == 3 for p in (0, 1))
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    shutil.copytree(finished / "run", tmp_path / "run")
    return tmp_path / "run"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_bits(path: Path) -> None:
    """In the pickle that describes the tensors."""
    data = bytearray(path.read_bytes())
    start = data.index(b"data.pkl") + 100
    for i in range(start, start + 40):
        data[i] ^= 0x55
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [truncate, flip_bits])
def test_a_damaged_newest_checkpoint_falls_back(run: Path, damage: object) -> None:
    agent = checkpoints_in(run / "checkpoint_p0")
    before = total_frames(agent[-2])
    assert callable(damage)
    damage(agent[-1])
    result = train(run.parent, f"--train_for_env_steps={before + FRAMES}")
    assert result.returncode == 0, result.stderr[-3000:]
    assert f"{agent[-1]} cannot be read" in result.stderr
    assert "trying the previous one" in result.stderr
    parts = json.loads((run / "status.json").read_text())["parts"]
    assert parts[-1]["begun_at"] == before


def test_if_none_loads_nothing_is_touched(run: Path) -> None:
    for path in checkpoints_in(run / "checkpoint_p0"):
        truncate(path)
    before = contents(run)
    result = train(run.parent, "--train_for_env_steps=100000")
    assert result.returncode == 2
    assert "none of the 3 checkpoints in" in result.stderr
    assert "Traceback" not in result.stderr
    assert contents(run) == before


@pytest.mark.parametrize("origin", ["earlier version", "Sample Factory"])
def test_checkpoints_of_another_format(run: Path, origin: str) -> None:
    path = checkpoints_in(run / "checkpoint_p0")[-1]
    state = torch.load(path, weights_only=True)
    del state["format"]
    if origin == "Sample Factory":
        for key in ("frames", "config", "generators"):
            del state[key]
    torch.save(state, path)
    before = contents(run)
    result = train(run.parent, "--train_for_env_steps=100000")
    assert result.returncode == 2
    sentence = "has format 1" if origin == "earlier version" else "was written by Sample Factory itself"
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert contents(run) == before


def test_a_checkpoint_that_would_run_code_does_not(run: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path}/executed",)

    for path in checkpoints_in(run / "checkpoint_p0"):
        torch.save({"model": Evil()}, path)
    assert train(run.parent, "--train_for_env_steps=100000").returncode == 2
    assert not (tmp_path / "executed").exists()


def test_a_config_that_names_foreign_code_is_not_enough(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"explorer": "antigravity:Explorer"}))
    result = sf_explore_go("train", "--env=illustrative_train", f"--train_dir={run.parent}", "--experiment=run")
    assert result.returncode == 2
    assert "names an explorer from outside this package; pass --explorer=antigravity:Explorer" in result.stderr


def test_contradictions_are_listed(run: Path) -> None:
    before = contents(run)
    result = train(run.parent, "--max_pure_expl_steps=4", "--encoder_mlp_layers", "7", "--learning_rate=0.5")
    assert result.returncode == 2
    assert "--max_pure_expl_steps=4 (saved: 8), --encoder_mlp_layers=[7] (saved: [128, 64, 32]);" in result.stderr
    assert contents(run) == before


def test_restart_keeps_and_overwrite_removes(run: Path) -> None:
    before = contents(run)
    assert train(run.parent, "--restart_behavior=restart", f"--train_for_env_steps={FRAMES}").returncode == 0
    assert contents(run.parent / "run_old0001") == before
    assert train(run.parent, "--restart_behavior=overwrite", f"--train_for_env_steps={FRAMES}").returncode == 0
    assert sorted(path.name for path in run.parent.iterdir() if path.is_dir()) == ["run", "run_old0001"]
    assert len((run / "history.jsonl").read_text().splitlines()) == 1


def test_the_history_of_a_run(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert len(lines) == 3
    assert all(line["packages"]["torch"] == torch.__version__ for line in lines)
    assert [f"--train_for_env_steps={n * FRAMES}" in line["command"] for n, line in enumerate(lines, 1)] == [True] * 3
    checkpoint = torch.load(checkpoints_in(run / "checkpoint_p0")[-1], weights_only=True)
    assert checkpoint["config"]["max_pure_expl_steps"] == 8


# --- disks ------------------------------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    if os.getuid() != 0 or sys.platform != "linux":
        pytest.skip("mounting a small disk needs root on Linux")
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=12m") as disk, Training(disk, console=tmp_path) as training:
        training.wait_until_it_trains()
        last_good = training.checkpoints(0)[-1]
        frames = total_frames(last_good)
        with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))
        assert training.end(within=60) == 1
        assert "cannot be written" in training.stderr
        assert "No space left on device" in training.stderr
        assert total_frames(training.checkpoints(0)[-1]) >= frames


def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=1m,ro") as disk:
        result = train(disk)
        assert result.returncode == 2
        assert f"{disk / 'run'} cannot be written to (Read-only file system)" in result.stderr
        assert "Traceback" not in result.stderr


def test_too_little_shared_memory(tmp_path: Path) -> None:
    """In a mount namespace of its own, where /dev/shm is as small as in a container."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a mount namespace of its own needs root and unshare")
    command = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$0" "$@"'
    wrapper = ("unshare", "--mount", "sh", "-c", command)
    large = ("--num_workers=16", "--num_envs_per_worker=16", "--res_w=128", "--res_h=72", "--rollout=32")
    with Training(tmp_path, "--env=my_way_home_train", *large, wrapper=wrapper) as training:
        assert training.end(within=120) == 2
        assert re.search(r"/dev/shm has \d\d MB free, but this run needs \d\d\d MB", training.stderr)
        assert "docker run --shm-size=" in training.stderr
        assert "Traceback" not in training.stderr
        assert not (training.folder / "config.json").exists()
