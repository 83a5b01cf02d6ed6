"""What doctor sees and what it removes."""

import mmap
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sf_explore_go.cli import doctor
from sf_explore_go.training.shared_memory import SHARED_MEMORY
from tests.e2e.cli import sf_explore_go


def test_all_is_well(tmp_path: Path) -> None:
    result = sf_explore_go("doctor", "--env=illustrative_train", "--serial_mode=False", f"--train_dir={tmp_path}")
    lines = result.stdout.strip().splitlines()
    names = ["versions", "processors", "GPU", "engines", "segments", "memory", "shared memory", "run folder"]
    assert [line[5:20].strip() for line in lines] == names
    assert result.returncode == int(any(line.startswith("BAD") for line in lines))
    assert "sample-factory 2.1.1" in lines[0]
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_bad_flags_are_one_sentence() -> None:
    result = sf_explore_go("doctor", "--env=nowhere")
    assert result.returncode == 2
    assert result.stderr.startswith("sf-explore-go: --env=nowhere: allowed are ")


def test_segments_of_the_dead_are_left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in (f"torch_{ended.pid}_1_1", f"torch_{os.getpid()}_1_1", "ViZDoomSMnobody", "ViZDoomMQCtrinuse", "other"):
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.setattr(doctor, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(doctor, "own_engines", list)
    monkeypatch.setattr(doctor, "orphaned_engines", list)
    assert {path.name for path in doctor.orphaned_segments()} == {
        f"torch_{ended.pid}_1_1",
        "ViZDoomSMnobody",
        "ViZDoomMQCtrinuse",
    }
    engines, segments = doctor.left_overs(clean=False)
    assert (engines.well, segments.well) == (True, False)
    engines, segments = doctor.left_overs(clean=True)
    assert (engines.well, segments.well) == (True, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", f"torch_{os.getpid()}_1_1"]


def test_semaphores_that_nobody_has_mapped_are_left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used, unused = tmp_path / "sem.mp-used", tmp_path / "sem.mp-unused"
    for path in (used, unused):
        path.write_bytes(bytes(32))
    monkeypatch.setattr(doctor, "SHARED_MEMORY", tmp_path)
    with used.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        assert doctor.orphaned_segments() == [unused]


def test_a_real_semaphore_is_not_left_over() -> None:
    semaphore = multiprocessing.get_context("spawn").Semaphore()
    name = f"sem.{semaphore._semlock.name.lstrip('/')}"  # type: ignore[attr-defined]
    assert (SHARED_MEMORY / name).exists()
    assert name not in {path.name for path in doctor.orphaned_segments()}


def test_an_engine_without_a_program_is_found_and_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process that looks like an engine, started by a program that is gone."""
    sleeper = "import sys, time; time.sleep(100)"
    script = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', sys.argv[1], '+viz_instance_id', 'zz'],"
        " start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); print(p.pid)"
    )
    pid = int(subprocess.run([sys.executable, "-c", script, sleeper], capture_output=True, text=True).stdout)
    monkeypatch.setattr(doctor, "SHARED_MEMORY", tmp_path)
    assert pid in {process.pid for process in doctor.orphaned_engines()}
    monkeypatch.setattr(
        doctor, "own_engines", lambda real=doctor.own_engines: [process for process in real() if process.pid == pid]
    )
    doctor.left_overs(clean=True)
    assert doctor.orphaned_engines() == []
