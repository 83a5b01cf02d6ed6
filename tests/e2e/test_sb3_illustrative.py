"""The comparison of docs/any_library.md: Stable-Baselines3's PPO with and without an explore phase."""

from pathlib import Path

from launch.sb3_illustrative import ARMS, BASELINE, COLUMNS, EXPLORE_GO, draw, result, table
from sf_explore_go.core.files import write_csv


def test_a_run_counts_both_phases() -> None:
    row = result(EXPLORE_GO, seed=0, budget=2000)
    assert tuple(row) == COLUMNS
    assert 2000 <= row["total_env_steps"] < 2000 + 4 * 9
    assert row["go_steps"] < 0.9 * row["total_env_steps"]
    assert all(0 <= row[column] <= 1 for column in ("train_success", "test_success"))
    plain = result(BASELINE, seed=0, budget=2000)
    assert plain["go_steps"] == plain["total_env_steps"] == 2000


def test_the_table(tmp_path: Path) -> None:
    successes = {BASELINE: (0.2, 0.4), EXPLORE_GO: (0.6, 1.0)}
    rows = [
        {"arm": arm, "seed": seed, "go_steps": 1, "total_env_steps": 1, "train_success": 1.0, "test_success": value}
        for arm in ARMS
        for seed, value in enumerate(successes[arm])
    ]
    write_csv(tmp_path / "rows.csv", COLUMNS, rows)
    draw(tmp_path / "rows.csv", tmp_path)
    drawn = (tmp_path / "final.md").read_text()
    assert drawn == table([{key: str(value) for key, value in row.items()} for row in rows]) + "\n"
    *_, first, second = drawn.splitlines()
    assert first.startswith("| baseline (K = 0) | 2 | 1.000 (1.000 to 1.000) | 0.300 (0.000 to 1.000) |")
    assert "| 0.800 (0.000 to 1.000) | +0.500 (-0.7" in second
