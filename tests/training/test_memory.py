"""The need for memory is said before a run starts."""

import mmap
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import psutil
import pytest

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.training import memory
from sf_explore_go.training.shared_memory import SHARED_MEMORY


def needed(tmp_path: Path, *flags: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(memory, "bytes_needed", lambda cfg, env_info: 1000)
    cfg = parse_train_args(["--env=my_way_home_train", "--preset=laptop", f"--train_dir={tmp_path}", *flags])
    picture = gymnasium.spaces.Box(0, 255, (3, 10, 10), np.uint8)
    return memory.memory_needed(cfg, SimpleNamespace(obs_space=gymnasium.spaces.Dict(obs=picture)))


def test_every_process_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline = ("--max_pure_expl_steps=0", "--num_workers=2", "--num_envs_per_worker=8", "--batch_size=64")
    one = needed(tmp_path, *baseline, monkeypatch=monkeypatch)
    learner = memory.LEARNER + memory.BATCH_COPIES * 64 * 300
    hand_made = memory.MAIN + learner + memory.INFERENCE + 2 * memory.ROLLOUT_WORKER + 16 * memory.ENGINE + 1000
    assert one == hand_made
    explorer = ("--explorer=e3b", "--explorer_batch_size=32")
    with_explorer = needed(tmp_path, *explorer, *baseline[1:], monkeypatch=monkeypatch)
    explorers_learner = memory.LEARNER + memory.BATCH_COPIES * 32 * 300
    assert with_explorer - one == explorers_learner + memory.INFERENCE
    more_workers = needed(tmp_path, baseline[0], "--num_workers=3", *baseline[2:], monkeypatch=monkeypatch)
    assert more_workers - one == memory.ROLLOUT_WORKER + 8 * memory.ENGINE
    many = [
        needed(tmp_path, baseline[0], f"--num_workers={n}", *baseline[2:], monkeypatch=monkeypatch) for n in (160, 161)
    ]
    # 161 rollout workers, a learner and an inference worker that are no longer forked
    assert many[1] - many[0] == memory.ROLLOUT_WORKER + 8 * memory.ENGINE + 163 * memory.IMPORTS


def test_a_sentence_if_there_is_too_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cfg = parse_train_args(["--env=my_way_home_train", "--preset=laptop", f"--train_dir={tmp_path}", "--num_workers=2"])
    monkeypatch.setattr(memory, "memory_needed", lambda cfg, env_info: 3 * 2**30)
    monkeypatch.setattr(memory, "memory_free", lambda: 2 * 2**30)
    sentence = memory.memory_warning(cfg, None)
    assert sentence is not None
    assert sentence.startswith("this run takes about 3.0 GB of memory and 2.0 GB are free; lower --num_workers=2 or")
    monkeypatch.setattr(memory, "memory_free", lambda: 4 * 2**30)
    assert memory.memory_warning(cfg, None) is None


def test_shared_memory_of_a_process_tree() -> None:
    """A parent and its child map the same five megabytes: they count once, though their file is gone."""
    size = 5 * 2**20
    with tempfile.NamedTemporaryFile(dir=SHARED_MEMORY) as file:
        file.write(b"1" * size)
        file.flush()
        look = f"import mmap; m = mmap.mmap(open({file.name!r}).fileno(), 0, prot=mmap.PROT_READ); print(len(m.read()))"
        command = [sys.executable, "-u", "-c", f"{look}; input()"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with child, mmap.mmap(file.fileno(), 0) as ours:
            assert child.stdout is not None
            child.stdout.readline()  # it has touched every page
            ours.read()
            Path(file.name).unlink()
            before_and_ours = memory.tree_shared_memory(psutil.Process())
            child.communicate(b"\n")
        Path(file.name).touch()  # for the context manager to remove
    assert before_and_ours - memory.tree_shared_memory(psutil.Process()) == pytest.approx(size, rel=0.02)
