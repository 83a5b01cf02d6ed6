"""Stable-Baselines3's PPO on the illustrative CMDP, with the wrapper and without it (docs/any_library.md).

python launch/sb3_illustrative.py run docs/results/sb3_illustrative.csv          # 20 runs, one after the other
python launch/sb3_illustrative.py table docs/results/sb3_illustrative.csv docs/figures/sb3_illustrative

The settings are those of the paper's table. Unlike Sample Factory, Stable-Baselines3 can follow it to the letter:
rollouts of 10 steps, and a symmetric clip.
"""

import csv
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sf_explore_go import ExploreGo
from sf_explore_go.core.contexts import in_equal_numbers
from sf_explore_go.core.files import write_csv
from sf_explore_go.core.statistics import bootstrap_interval, improvement_interval, mean
from sf_explore_go.reporting.tables import markdown_table
from sf_explore_go.worlds.grid.illustrative import IllustrativeEnv

BASELINE, EXPLORE_GO = "baseline (K = 0)", "Explore-Go, K = 8, random"
ARMS = {BASELINE: 0, EXPLORE_GO: 8}  # name -> K
SEEDS = range(10)
BUDGET = 50_000  # steps of both phases
EPISODES = 100  # per split
COLUMNS = ("arm", "seed", "go_steps", "total_env_steps", "train_success", "test_success")


def train(max_explore_steps: int, seed: int, budget: int = BUDGET) -> Any:
    """A model that has learned for as many steps of both phases; it keeps its environments."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class UntilBudget(BaseCallback):
        def _on_step(self) -> bool:
            return sum(self.training_env.get_attr("total_env_steps")) < budget

    torch.set_num_threads(1)
    network = {"net_arch": {"pi": [128, 64, 32], "vf": [128, 64, 32]}, "activation_fn": torch.nn.ReLU}
    model = PPO(
        "MlpPolicy",
        make_vec_env(lambda: ExploreGo(IllustrativeEnv("train"), max_explore_steps), n_envs=4, seed=seed),
        n_steps=10,
        batch_size=5,
        n_epochs=3,
        gamma=0.9,
        gae_lambda=0.95,
        ent_coef=0.01,
        clip_range=0.2,
        max_grad_norm=0.5,
        learning_rate=1e-4,
        policy_kwargs=network,  # Adam's epsilon is 1e-5, as in the table
        seed=seed,
        device="cpu",
    )
    return model.learn(total_timesteps=budget, callback=UntilBudget())


def success(model: Any, split: str, seed: int, episodes: int = EPISODES) -> float:
    """The share of episodes that reach the goal, with sampled actions and no explore phase; each context in turn."""
    env = IllustrativeEnv(split)
    reached = 0
    for context in in_equal_numbers(range(len(env.contexts)), episodes, seed):
        obs, _ = env.reset(options={"context": context})
        ended = False
        while not ended:
            action, _ = model.predict(obs, deterministic=False)
            obs, _, terminated, truncated, info = env.step(int(action))
            ended = terminated or truncated
        reached += info["success"]
    return reached / episodes


def result(arm: str, seed: int, budget: int = BUDGET) -> dict[str, Any]:
    """One run as a row."""
    model = train(ARMS[arm], seed, budget)
    return {
        "arm": arm,
        "seed": seed,
        "go_steps": sum(model.env.get_attr("total_go_steps")),
        "total_env_steps": sum(model.env.get_attr("total_env_steps")),
        "train_success": success(model, "train", seed),
        "test_success": success(model, "test", seed),
    }


def run(target: Path) -> None:
    rows: list[dict[str, Any]] = []
    for seed in SEEDS:
        for arm in ARMS:
            rows.append(result(arm, seed))
            print(*rows[-1].values(), flush=True)
            write_csv(target, COLUMNS, sorted(rows, key=lambda row: (list(ARMS).index(row["arm"]), row["seed"])))


def table(rows: Sequence[dict[str, str]]) -> str:
    """Means with 95 % intervals over seeds, and the gain over the baseline, seed by seed."""

    def of(arm: str, column: str) -> list[float]:
        return [float(row[column]) for row in rows if row["arm"] == arm]

    def cell(values: Sequence[float], low: float, form: str) -> str:
        middle, least, most = bootstrap_interval(values, mean, (low, 1.0))
        return f"{middle:{form}} ({least:{form}} to {most:{form}})"

    def chance(arm: str) -> str:
        share, least, most = improvement_interval(of(arm, "test_success"), of(BASELINE, "test_success")) or (0.5, 0, 1)
        return f"{share:.2f} ({least:.2f} to {most:.2f})"

    shown = []
    for arm in ARMS:
        in_training, on_test = of(arm, "train_success"), of(arm, "test_success")
        gains = [ours - theirs for ours, theirs in zip(on_test, of(BASELINE, "test_success"), strict=True)]
        against = ("", "") if arm == BASELINE else (cell(gains, -1.0, "+.3f"), chance(arm))
        shown.append((arm, str(len(on_test)), cell(in_training, 0.0, ".3f"), cell(on_test, 0.0, ".3f"), *against))
    header = (
        "arm", "seeds", "train success (95 % interval)", "test success (95 % interval)",
        "gain on test, seed by seed (95 % interval)", "P(beats baseline on test)",
    )  # fmt: skip
    return markdown_table(header, shown)


def draw(source: Path, folder: Path) -> None:
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "final.md").write_text(table(rows) + "\n")


if __name__ == "__main__":
    parser = ArgumentParser(description="Train Stable-Baselines3's PPO with and without an explore phase.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("run").add_argument("csv", type=Path, help="where to write one row per run")
    drawn = verbs.add_parser("table")
    drawn.add_argument("csv", type=Path, help="the rows")
    drawn.add_argument("folder", type=Path, help="for the table")
    args = parser.parse_args()
    if args.verb == "run":
        run(args.csv)
    else:
        draw(args.csv, args.folder)
