"""Whole runs: the rewards that the learner used are the bonuses, by definition, of the features that it had."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.explorers.e3b.recording import EXPLORER, drive
from tests.explorers.e3b.reference import direct_bonuses

RIDGE, COEFF = 0.1, 0.5
MODES = {
    "serial": ("--serial_mode=True", "--num_workers=1", "--num_envs_per_worker=4", "--worker_num_splits=1"),
    "parallel": ("--num_workers=2", "--num_envs_per_worker=3", "--worker_num_splits=1"),
}


@pytest.fixture(scope="module", params=MODES)
def batches(request: Any, tmp_path_factory: Any) -> list[dict[str, np.ndarray]]:
    folder = tmp_path_factory.mktemp("e3b")
    flags = (EXPLORER, f"--intrinsic_reward_coeff={COEFF}", "--e3b_first_bonus=True", "--train_for_env_steps=6000")
    drive(folder, *flags, *MODES[request.param])
    return [dict(np.load(path)) for path in sorted(folder.glob("e3b_*.npz"))]


def test_rewards_are_the_bonuses_of_the_features(batches: list[dict[str, np.ndarray]]) -> None:
    obs = np.concatenate([batch["obs"] for batch in batches])
    features = torch.from_numpy(np.concatenate([batch["features"] for batch in batches]))
    bonuses = np.concatenate([batch["rewards"] * batch["scale"] / COEFF for batch in batches])
    assert len(obs) > 1000
    compared = 0
    for key in np.unique(obs[:, :2], axis=0):
        own = (obs[:, :2] == key).all(axis=1)
        assert obs[own, 2].tolist() == list(range(own.sum()))  # a phase from its first step, in order
        expected = direct_bonuses(features[own], RIDGE).numpy()
        np.testing.assert_allclose(bonuses[own], expected, rtol=1e-4, atol=0.0)
        compared += int(own.sum())
    assert compared == len(obs)


def test_nothing_is_late(batches: list[dict[str, np.ndarray]]) -> None:
    assert batches[-1]["late"] == 0


def test_scale_is_the_standard_deviation_of_all_bonuses_so_far(batches: list[dict[str, np.ndarray]]) -> None:
    seen: list[np.ndarray] = []
    for batch in batches:
        seen.append(batch["rewards"] * batch["scale"] / COEFF)
        assert batch["scale"] == pytest.approx(np.concatenate(seen).std(), rel=1e-4)


def test_the_encoder_learns(batches: list[dict[str, np.ndarray]]) -> None:
    assert not np.array_equal(batches[0]["parameters"], batches[-1]["parameters"])


def test_serial_runs_repeat(tmp_path: Path) -> None:
    parts = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        drive(folder, EXPLORER, "--train_for_env_steps=1500", *MODES["serial"])
        parts.append([dict(np.load(path)) for path in sorted(folder.glob("e3b_*.npz"))])
    assert len(parts[0]) == len(parts[1]) > 5
    for first, second in zip(*parts, strict=True):
        for key, value in first.items():
            assert np.array_equal(value, second[key]), key
