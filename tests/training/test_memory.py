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
    """By hand, in MiB as measured: main process 310, learner 350, inference worker 80, rollout worker 60, engine 8.5.

    A batch of 64 pictures of 300 bytes, in 16 copies, is 307 200 bytes; shared memory is 1000 bytes here.
    """
    baseline = ("--max_pure_expl_steps=0", "--num_workers=2", "--num_envs_per_worker=8", "--batch_size=64")
    mib = 2**20
    one = needed(tmp_path, *baseline, monkeypatch=monkeypatch)
    assert one == (310 + 350 + 80 + 2 * 60 + 136) * mib + 307_200 + 1000  # 16 engines
    explorer = ("--explorer=e3b", "--explorer_batch_size=32")
    with_explorer = needed(tmp_path, *explorer, *baseline[1:], monkeypatch=monkeypatch)
    assert with_explorer - one == 430 * mib + 153_600  # a learner with half the batch, and an inference worker
    more_workers = needed(tmp_path, baseline[0], "--num_workers=3", *baseline[2:], monkeypatch=monkeypatch)
    assert more_workers - one == 128 * mib  # one more with 8 engines
    in_one_process = needed(tmp_path, *baseline, "--serial_mode=True", monkeypatch=monkeypatch)
    assert in_one_process == (310 + 350 + 136) * mib + 307_200
    many = [
        needed(tmp_path, baseline[0], f"--num_workers={n}", *baseline[2:], monkeypatch=monkeypatch) for n in (160, 161)
    ]
    # 161 rollout workers, a learner and an inference worker are no longer forked: each loads 170 MiB for itself
    assert many[1] - many[0] == (128 + 163 * 170) * mib


def test_a_sentence_if_there_is_too_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cfg = parse_train_args(["--env=my_way_home_train", "--preset=laptop", f"--train_dir={tmp_path}", "--num_workers=2"])
    monkeypatch.setattr(memory, "memory_needed", lambda cfg, env_info: 3 * 2**30)
    monkeypatch.setattr(memory, "memory_free", lambda: 2 * 2**30)
    sentence = memory.memory_warning(cfg, None)
    assert sentence is not None
    assert sentence.startswith(
        "this run needs about 3.0 GB of memory, but only 2.0 GB is free; lower --num_workers=2 or"
    )
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
