"""The need for memory is said before a run starts."""

from pathlib import Path

import pytest

from sf_explore_go.config import parse_train_args
from sf_explore_go.runtime import memory


def needed(tmp_path: Path, *flags: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(memory, "bytes_needed", lambda cfg, env_info: 1000)
    cfg = parse_train_args(["--env=my_way_home_train", "--preset=laptop", f"--train_dir={tmp_path}", *flags])
    return memory.memory_needed(cfg, None)


def test_every_process_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline = ("--max_pure_expl_steps=0", "--num_workers=2", "--num_envs_per_worker=8")
    one = needed(tmp_path, *baseline, monkeypatch=monkeypatch)
    hand_made = memory.MAIN + memory.LEARNER + memory.INFERENCE + 2 * memory.ROLLOUT_WORKER + 16 * memory.ENGINE + 1000
    assert one == hand_made
    with_explorer = needed(tmp_path, "--explorer=e3b", *baseline[1:], monkeypatch=monkeypatch)
    assert with_explorer - one == memory.LEARNER + memory.INFERENCE
    more_workers = needed(tmp_path, baseline[0], "--num_workers=3", baseline[2], monkeypatch=monkeypatch)
    assert more_workers - one == memory.ROLLOUT_WORKER + 8 * memory.ENGINE


def test_a_sentence_if_there_is_too_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cfg = parse_train_args(["--env=my_way_home_train", "--preset=laptop", f"--train_dir={tmp_path}", "--num_workers=2"])
    monkeypatch.setattr(memory, "memory_needed", lambda cfg, env_info: 3 * 2**30)
    monkeypatch.setattr(memory, "memory_free", lambda: 2 * 2**30)
    sentence = memory.memory_warning(cfg, None)
    assert sentence is not None
    assert sentence.startswith("this run takes about 3.0 GB of memory and 2.0 GB are free; lower --num_workers=2 or")
    monkeypatch.setattr(memory, "memory_free", lambda: 4 * 2**30)
    assert memory.memory_warning(cfg, None) is None
