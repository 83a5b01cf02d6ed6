"""A short soak; the long one is `python -m tests.e2e.soak --minutes=30 --folder=DIR`."""

from pathlib import Path

import pytest

from tests.e2e.soak import SHORT, is_sound, soak


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_minutes_of_parallel_training_stay_flat_and_leave_nothing(tmp_path: Path) -> None:
    result = soak(tmp_path, minutes=3, flags=["--num_envs_per_worker=8"])
    assert is_sound(result, SHORT), result
