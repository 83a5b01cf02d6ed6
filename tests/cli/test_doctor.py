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

NAMES = ["versions", "processors", "GPU", "engines", "segments", "memory", "shared memory", "run folder"]
OF_THE_MACHINE = ("engines", "segments")  # what others have left here is not this test's business


def findings(stdout: str) -> dict[str, tuple[str, str]]:
    """Name -> (ok or BAD, text)."""
    return {line[5:20].strip(): (line[:3].strip(), line[20:]) for line in stdout.splitlines()}


def test_all_is_well(tmp_path: Path) -> None:
    flags = ("--env=illustrative_train", "--serial_mode=False", "--num_workers=1", f"--train_dir={tmp_path}")
    result = sf_explore_go("doctor", *flags)
    found = findings(result.stdout)
    assert list(found) == NAMES
    assert {name: word for name, (word, _) in found.items() if name not in OF_THE_MACHINE} == {
        name: "ok" for name in NAMES if name not in OF_THE_MACHINE
    }
    for name in OF_THE_MACHINE:
        assert found[name][0] == ("ok" if found[name][1] == "none left behind" else "BAD")
    assert result.returncode == int(any(word == "BAD" for word, _ in found.values()))
    assert "sample-factory 2.1.1" in found["versions"][1]
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_too_many_workers_and_a_folder_that_is_a_file_are_bad(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    flags = ("--env=illustrative_train", "--serial_mode=False", f"--train_dir={tmp_path / 'file'}")
    result = sf_explore_go("doctor", *flags, "--num_workers=150000")
    found = findings(result.stdout)
    assert {name for name, (word, _) in found.items() if word == "BAD"} - {*OF_THE_MACHINE} == {
        "memory",
        "shared memory",
        "run folder",
    }
    assert result.returncode == 1


NO_ENVIRONMENT = """
from sf_explore_go.worlds.grid.illustrative import IllustrativeEnv

def refuse(*args, **kwargs):
    raise OSError("nothing can be made here")

IllustrativeEnv.__init__ = refuse
"""


def test_an_environment_that_cannot_be_made_is_bad(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(NO_ENVIRONMENT)  # which Python loads as it starts
    path = {"PYTHONPATH": f"{tmp_path / 'site'}:{Path.cwd()}"}
    result = sf_explore_go("doctor", "--env=illustrative_train", f"--train_dir={tmp_path / 'runs'}", environment=path)
    found = findings(result.stdout)
    sentence = "--env=illustrative_train cannot be made here; the traceback above says why"
    assert found["environment"] == ("BAD", sentence)
    assert "OSError: nothing can be made here" in result.stderr
    assert (result.returncode, found["run folder"][0]) == (1, "ok")
    assert "memory" not in found


def test_bad_flags_are_one_sentence() -> None:
    result = sf_explore_go("doctor", "--env=nowhere")
    assert result.returncode == 2
    assert result.stderr.startswith("sf-explore-go: --env=nowhere: it must be ")


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
