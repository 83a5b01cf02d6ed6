"""Minutes until an agent has learned: the judge on made-up episodes, the table by hand, and one real training."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sample_factory.algo.utils.misc import EPISODIC, LEARNER_ENV_STEPS

from sf_explore_go.bench import solve as bench_solve
from sf_explore_go.bench import solving
from sf_explore_go.bench.common import main
from sf_explore_go.bench.solve import NOW, STOCK, format_results, row_of, sentence
from sf_explore_go.bench.solving import Judge
from sf_explore_go.cli.doctor import orphaned_segments

ENVS = 4  # hence 8 episodes are judged


class Training:
    """Stands for a stock runner, with what the judge asks of it."""

    def __init__(self) -> None:
        self.cfg = SimpleNamespace(num_workers=2, num_envs_per_worker=ENVS // 2)
        self.policy_msg_handlers: dict[str, list] = {}

    def send(self, name: str, content: Any) -> None:
        for handler in self.policy_msg_handlers[name]:
            handler(self, {name: content}, 0)

    def episode(self, success: bool) -> None:
        self.send(EPISODIC, {"reward": 0.0, "episode_extra_stats": {"success": float(success)}})


def make_judge(tmp_path: Path, limit: float = 100.0) -> tuple[Judge, Training]:
    training = Training()
    return Judge(training, limit, time.time(), tmp_path / "result.json"), training


def test_nothing_counts_before_every_environment_has_ended_two_episodes(tmp_path: Path) -> None:
    judge, training = make_judge(tmp_path)
    for _ in range(2 * ENVS - 1):
        training.episode(success=True)
    assert judge.success() == 0.0
    training.episode(success=False)
    assert judge.success() == 7 / 8
    training.episode(success=True)  # the oldest goes
    assert judge.success() == 7 / 8


def test_other_messages_do_not_count(tmp_path: Path) -> None:
    judge, training = make_judge(tmp_path)
    training.send(EPISODIC, {"reward": 1.0})
    assert not judge.last


@pytest.mark.parametrize(("wins", "limit", "solved"), [(True, 100.0, True), (False, 0.0, False)])
def test_it_ends_when_the_agent_has_learned_or_at_the_limit(
    wins: bool, limit: float, solved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Any] = []
    monkeypatch.setattr(solving, "end_at_once", ended.append)
    judge, training = make_judge(tmp_path, limit)
    training.send(LEARNER_ENV_STEPS, 4096)
    for _ in range(2 * ENVS):
        training.episode(success=wins)
    judge.run()
    assert ended == [training]
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["solved"], result["frames"]) == (solved, 4096)
    assert result["curve"][-1][2] == float(wins)


def result(minutes: float, frames: float, success: float) -> dict[str, Any]:
    seconds = 60 * minutes
    solved = success >= 0.95
    return {"solved": solved, "seconds": seconds, "frames": frames * 1e6, "curve": [[seconds, frames * 1e6, success]]}


def test_the_table_has_medians_and_tells_who_gave_up() -> None:
    ours = [result(2, 1.2, 0.97), result(4, 2.4, 0.96), result(3, 1.8, 0.95)]
    stock = [result(30, 3.6, 0.2), result(30, 3.6, 0.3), result(24, 3.0, 0.96)]
    lines = format_results({NOW: ours, STOCK: stock}).splitlines()
    assert lines[1].split()[-6:] == ["3", "of", "3", "3.0", "1.8", "10000"]
    assert lines[2].split()[-6:] == ["1", "of", "3", "30.0", "3.6", "2000"]
    assert sentence(stock[0]) == "given up at 0.20 after 30.0 minutes, 3.6 M frames"
    assert sentence(ours[0]) == "learned in 2.0 minutes, 1.2 M frames"
    assert row_of(STOCK, ours, stock).ratios == [15, 7.5, 8]


@pytest.mark.slow
def test_quick_run_of_a_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_solve, "QUICK_LIMIT", 25.0)
    target, before = tmp_path / "bench.json", set(orphaned_segments())
    assert main(["solve", "--quick", f"--json={target}"]) == 0
    time.sleep(5)  # guards look once per second
    assert set(orphaned_segments()) <= before
    for row in json.loads(target.read_text())["solve"]:
        for arm in ("ours", "stock"):
            (run,) = row["detail"][arm]
            assert 25 <= run["seconds"] < 60
            assert run["frames"] > 1000
            assert not run["solved"]
    assert "given up at 0.00 after" in capsys.readouterr().out
