"""Processes that die, hang, or are asked to stop."""

import random
import signal
import time
from pathlib import Path

import psutil
import pytest

from sf_explore_go.runs.status import EXIT_INTERRUPTED, read_status
from tests.e2e.cli import sf_explore_go
from tests.faults.stalling import STALL
from tests.faults.training import ROLES, Training, total_frames

pytestmark = pytest.mark.slow


def lock_is_lost(training: Training) -> bool:
    """The worker was struck in one of the moments in which it held the lock of a queue, which nobody can free."""
    return "the main process has not responded for" in training.stderr


@pytest.mark.parametrize("role", list(ROLES))
def test_a_killed_worker_ends_the_run(tmp_path: Path, role: str) -> None:
    with Training(tmp_path) as training:
        training.wait_until_it_trains()
        training.kill(training.worker(role))
        assert training.end(within=60) == 1
        assert "died (SIGKILL)" in training.stderr
        saved = training.checkpoints(0)[-1]
        assert total_frames(saved) > 0
        # the learners had time to save what there was
        if not role.startswith("learner") and not lock_is_lost(training):
            status = read_status(training.folder)
            assert status is not None
            assert total_frames(saved) == status.frames


def test_a_killed_fork_server_ends_the_run(tmp_path: Path) -> None:
    with Training(tmp_path) as training:
        training.wait_until_it_trains()
        server = psutil.Process(training.worker("learner 0")).ppid()
        assert psutil.Process(server).ppid() == training.process.pid
        training.kill(server)
        assert training.end(within=60) == 1
        assert "died" in training.stderr
        assert total_frames(training.checkpoints(0)[-1]) > 0


@pytest.mark.parametrize("role", ["learner 0", "rollout 0"])
def test_a_worker_that_hangs_ends_the_run(tmp_path: Path, role: str) -> None:
    with Training(tmp_path, "--hang_timeout=10") as training:
        training.wait_until_it_trains()
        training.kill(training.worker(role), signal.SIGSTOP)
        assert training.end(within=60) == EXIT_INTERRUPTED
        status = read_status(training.folder)
        assert status is not None
        assert status.state == "interrupted"
        sentence = "is stopped" if lock_is_lost(training) else "gave no sign of life for 10 s (--hang_timeout)"
        assert sentence in training.stderr
        assert total_frames(training.checkpoints(0)[-1]) > 0


def test_a_run_that_stands_still_ends_though_all_its_workers_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STALL, str(tmp_path / "stall"))
    with Training(tmp_path, "--explorer=tests.faults.stalling:Stalling", "--hang_timeout=8") as training:
        training.wait_for(lambda: training.frames > 0 and training.has_trained(0))
        (tmp_path / "stall").touch()
        assert training.end(within=60) == EXIT_INTERRUPTED
        assert "the run made no frame and no update for 8 s, though every worker responds" in training.stderr
        status = read_status(training.folder)
        assert status is not None
        assert (status.state, total_frames(training.checkpoints(0)[-1])) == ("interrupted", status.frames)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_while_training(tmp_path: Path, number: signal.Signals) -> None:
    with Training(tmp_path) as training:
        training.wait_until_it_trains()
        training.stop(number)
        assert training.end(within=60) == EXIT_INTERRUPTED
        status = read_status(training.folder)
        assert status is not None
        assert (status.state, total_frames(training.checkpoints(0)[-1])) == ("interrupted", status.frames)


@pytest.mark.parametrize("seconds", [0.3, 3.0, 6.0])
def test_sigterm_while_starting(tmp_path: Path, seconds: float) -> None:
    with Training(tmp_path) as training:
        time.sleep(seconds)
        training.stop()
        status = training.end(within=60)
        # before Python has run our first line the system's own end for the signal applies
        assert status == EXIT_INTERRUPTED or (seconds < 1 and status == -signal.SIGTERM)
        assert "Traceback" not in training.stderr


def test_sigterm_while_saving(tmp_path: Path) -> None:
    with Training(tmp_path, "--save_every_sec=1") as training:
        training.wait_until_it_trains()
        training.wait_for(lambda: any((training.folder / "checkpoint_p0").glob(".*.tmp")))
        training.stop()
        assert training.end(within=60) == EXIT_INTERRUPTED
        assert all(total_frames(path) > 0 for path in training.checkpoints(0))
        assert not list(training.folder.glob("*/.*.tmp"))


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with Training(tmp_path) as training:
        training.wait_until_it_trains()
        training.stop(signal.SIGTERM)
        time.sleep(0.02)  # too little time to follow the first
        training.stop(signal.SIGINT)  # another one: two of a kind become one if the process is busy
        assert training.end(within=10) in (-signal.SIGTERM, -signal.SIGINT)


@pytest.mark.parametrize("world", ["--env=illustrative_train", "--env=my_way_home_train"])
def test_nothing_outlives_a_killed_main_process(tmp_path: Path, world: str) -> None:
    with Training(tmp_path, world) as training:
        training.wait_for(lambda: training.frames > 0)
        training.note_processes()
        assert len(training.alive()) > 3
        training.process.kill()
        training.process.wait()
        training.nothing_is_left(within=30)


@pytest.mark.parametrize("flags", [(), ("--serial_mode=True", "--num_workers=1")])
def test_nothing_outlives_processes_that_are_all_killed_at_once(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """As a scheduler does it. Whoever could remove anything is killed too."""
    with Training(tmp_path, "--heartbeat_interval=1", *flags) as training:
        training.wait_until_it_trains()
        time.sleep(3)  # every worker has been heard of
        training.note_processes()
        training.process.send_signal(signal.SIGSTOP)  # it starts nobody any more
        training.note_processes()
        for process in [*training.alive(), psutil.Process(training.process.pid)]:
            process.kill()
        training.process.wait()
        training.nothing_is_left(within=5)


def test_a_dead_engine_costs_its_episode_only(tmp_path: Path) -> None:
    with Training(tmp_path, "--env=my_way_home_train") as training:
        training.wait_for(lambda: training.frames > 0)
        training.note_processes()
        engine = next(p for p in training.alive() if "+viz_instance_id" in p.cmdline())
        engine.kill()
        before = training.frames
        training.wait_for(lambda: training.frames > before + 2000)
        training.stop()
        assert training.end(within=60) == EXIT_INTERRUPTED


def test_twenty_kills(tmp_path: Path) -> None:
    """Killed at random moments and resumed each time, a training loses at most what came since the last save."""
    rng = random.Random(0)
    known = 0  # frames that the newest checkpoint held when the training was killed
    pids: dict[int, psutil.Process] = {}
    for _ in range(20):
        with Training(tmp_path, "--save_every_sec=1") as training:
            if rng.random() < 0.6:  # while it trains; else while it starts
                training.wait_for(lambda: training.frames > 0)
            time.sleep(rng.uniform(0.0, 4.0))
            training.note_processes()
            pids |= training.seen
            training.process.kill()
            training.process.wait()
            training.nothing_is_left(within=30)
            if checkpoints := training.checkpoints(0):
                newest = total_frames(checkpoints[-1])
                assert newest >= known
                known = newest
    with Training(tmp_path) as training:
        training.wait_for(lambda: training.frames > known)
        training.stop()
        assert training.end(within=60) == EXIT_INTERRUPTED
        status = read_status(training.folder)
    assert status is not None
    assert status.parts[-1].begun_at == known > 0
    assert total_frames(training.checkpoints(0)[-1]) == status.frames == status.explore_frames + status.go_frames
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).ppid() == 1 for pid in pids)


def test_two_trainings_in_one_folder(tmp_path: Path) -> None:
    with Training(tmp_path) as training:
        training.wait_until_it_trains()
        config = (training.folder / "config.json").read_bytes()
        for behaviour in ("resume", "restart", "overwrite"):
            result = sf_explore_go(
                "train", "--env=illustrative_train", f"--train_dir={tmp_path}", "--experiment=run",
                f"--restart_behavior={behaviour}",
            )  # fmt: skip
            assert result.returncode == 2
            assert "another training is running in" in result.stderr
        assert (training.folder / "config.json").read_bytes() == config
        assert training.process.poll() is None
        training.stop()
        assert training.end(within=60) == EXIT_INTERRUPTED
