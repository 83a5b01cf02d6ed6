"""`sf-explore-go report`: runs grouped by arm, curves with intervals over seeds, and the final table.

An arm is what the runs differ in besides their seed: the length of the explore phase and the explorer. Every number
says how many seeds are behind it.
"""

import csv
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from sf_explore_go.arguments import ArgumentParser
from sf_explore_go.errors import UsageError
from sf_explore_go.statistics import bootstrap_interval, probability_of_improvement

COLOURS = ("#4d4d4d", "#0072b2", "#d55e00", "#009e73", "#cc79a7")
STYLES = {"train": "-", "test": "--"}
# flags in which the runs of one report may differ
PER_RUN = {
    "seed", "context_seed", "experiment", "train_dir", "max_pure_expl_steps", "explorer", "num_policies", "cli_args",
    "command_line", "git_hash", "git_repo_name", "restart_behavior", "device", "num_workers", "wandb_unique_id",
}  # fmt: skip
OF_THIS_MACHINE = {"train_dir", "cli_args", "command_line", "git_hash", "git_repo_name"}


@dataclass(frozen=True)
class Run:
    """One training with its evaluation."""

    folder: Path
    config: dict[str, Any]
    scores: dict[str, dict[int, float]]  # split -> frames -> success rate

    @property
    def arm(self) -> str:
        steps = self.config["max_pure_expl_steps"]
        return f"Explore-Go, K = {steps}, {self.config['explorer']}" if steps else "baseline (K = 0)"


@dataclass
class Arm:
    """All runs that differ in their seed only."""

    name: str
    runs: list[Run] = field(default_factory=list)

    def curve(self, split: str, interval: int) -> dict[int, list[float]]:
        """frames -> success rate of each run; evaluations near the same multiple of the interval meet there"""
        points: dict[int, list[float]] = {}
        for run in self.runs:
            for frames, rate in run.scores[split].items():
                multiple = round(frames / interval) * interval
                near = abs(frames - multiple) <= 0.1 * interval
                points.setdefault(multiple if near else frames, []).append(rate)
        return {frames: points[frames] for frames in sorted(points)}

    def final(self, split: str) -> list[float]:
        """Success rate of each run at its last evaluation."""
        return [run.scores[split][max(run.scores[split])] for run in self.runs]


def read_run(folder: Path) -> Run:
    try:
        config = json.loads((folder / "config.json").read_text())
        with (folder / "evaluation.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        scores: dict[str, dict[int, float]] = {split: {} for split in STYLES}
        for row in rows:
            scores[row["split"]][int(row["frames"])] = float(row["success_rate"])
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{folder} cannot be read as an evaluated run ({error})") from error
    if not all(scores.values()):
        raise UsageError(f"{folder / 'evaluation.csv'} has no rows for both train and test; run sf-explore-go evaluate")
    return Run(folder, config, scores)


def find_runs(folders: Iterable[Path]) -> list[Run]:
    """Every evaluated run in the given folders (a run, or a folder of runs)."""
    found: list[Path] = []
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder")
        found += sorted(path.parent for path in [*folder.glob("evaluation.csv"), *folder.glob("*/evaluation.csv")])
    if not found:
        raise UsageError(f"no evaluation.csv in {', '.join(map(str, folders))}; run sf-explore-go evaluate first")
    return [read_run(folder) for folder in dict.fromkeys(found)]


def group(runs: Sequence[Run], *, mixed: bool) -> list[Arm]:
    """Runs by arm, the baseline first; refuses runs that differ in more than arm and seed unless `mixed`."""
    if not mixed:
        refuse_differences(runs)
    arms: dict[str, Arm] = {}
    for run in sorted(runs, key=lambda r: (r.config["max_pure_expl_steps"], r.config["explorer"], r.config["seed"])):
        arms.setdefault(run.arm, Arm(run.arm)).runs.append(run)
    return list(arms.values())


def refuse_differences(runs: Sequence[Run]) -> None:
    first = runs[0]
    for run in runs[1:]:
        keys = (first.config.keys() | run.config.keys()) - PER_RUN
        different = sorted(key for key in keys if first.config.get(key) != run.config.get(key))
        if different:
            shown = ", ".join(f"{k} ({first.config.get(k)} and {run.config.get(k)})" for k in different[:5])
            raise UsageError(f"{first.folder} and {run.folder} differ in {shown}; pass --mixed to report them together")


def draw_curves(axes: Axes, arms: Sequence[Arm], interval: int) -> None:
    """Mean over seeds with its 95 % bootstrap interval; training contexts solid, test contexts dashed."""
    for arm, colour in zip(arms, COLOURS, strict=False):
        for split, style in STYLES.items():
            curve = arm.curve(split, interval)
            frames = list(curve)
            summary = np.array([bootstrap_interval(curve[f]) for f in frames])
            label = f"{arm.name}: {split} ({len(arm.runs)} seed{'s' if len(arm.runs) > 1 else ''})"
            face = colour if split == "train" else "white"
            (line,) = axes.plot(frames, summary[:, 0], style, color=colour, label=label, linewidth=1.8)
            line.set(marker="o", markersize=3.5, markerfacecolor=face)
            axes.fill_between(frames, summary[:, 1], summary[:, 2], color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("total environment frames (both phases)")
    axes.set_ylabel("success rate")
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def draw_finals(axes: Axes, arms: Sequence[Arm]) -> None:
    """Every seed as a point, the mean with its interval beside it."""
    for column, (arm, colour) in enumerate(zip(arms, COLOURS, strict=False)):
        for offset, split in ((-0.2, "train"), (0.2, "test")):
            values = arm.final(split)
            jitter = np.linspace(-0.07, 0.07, len(values)) if len(values) > 1 else np.zeros(1)
            face = colour if split == "train" else "none"
            axes.scatter(column + offset + jitter, values, s=16, facecolors=face, edgecolors=colour, alpha=0.6)
            mean, low, high = bootstrap_interval(values)
            axes.errorbar(
                column + offset + 0.13, mean, [[mean - low], [high - mean]], fmt="_", color="black", capsize=3
            )
            axes.annotate(split, (column + offset, -0.1), ha="center", fontsize=8, annotation_clip=False)
    axes.set_xticks(range(len(arms)), [arm.name.replace(", ", "\n") for arm in arms], fontsize=8)
    axes.tick_params(axis="x", pad=24, length=0)
    axes.set_ylim(-0.03, 1.03)
    axes.set_title("final, one point per seed", fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def figure(arms: Sequence[Arm], title: str) -> Figure:
    config = arms[0].runs[0].config
    interval = config.get("milestone_step_freq") or config["train_for_env_steps"]
    picture = Figure(figsize=(10, 4.4), layout="constrained")
    FigureCanvasAgg(picture)
    curves, finals = picture.subplots(1, 2, width_ratios=[3, 2])
    draw_curves(curves, arms, interval)
    draw_finals(finals, arms)
    picture.suptitle(title, fontsize=12)
    handles, labels = curves.get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return picture


def final_rows(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """The final table: success with intervals over seeds, and how probably an arm beats the first one on test."""
    rows = []
    for arm in arms:
        row: dict[str, Any] = {"arm": arm.name, "seeds": len(arm.runs)}
        for split in STYLES:
            row[split], row[f"{split}_low"], row[f"{split}_high"] = bootstrap_interval(arm.final(split))
        better = probability_of_improvement(arm.final("test"), arms[0].final("test")) if arm is not arms[0] else None
        row["p_better_on_test"] = better
        rows.append(row)
    return rows


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| arm | seeds | train success (95 % interval) | test success (95 % interval) | P(beats baseline on test) |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [f"{row[s]:.3f} ({row[f'{s}_low']:.3f} to {row[f'{s}_high']:.3f})" for s in STYLES]
        better = "" if row["p_better_on_test"] is None else f"{row['p_better_on_test']:.2f}"
        lines.append(f"| {row['arm']} | {row['seeds']} | {cells[0]} | {cells[1]} | {better} |")
    return "\n".join(lines)


def export(runs: Sequence[Run], folder: Path) -> None:
    """Copies that can be published: what a report needs of each run, without paths and names of this machine."""
    for run in runs:
        target = folder / run.folder.name
        target.mkdir(parents=True, exist_ok=True)
        config = {key: value for key, value in sorted(run.config.items()) if key not in OF_THIS_MACHINE}
        (target / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        shutil.copyfile(run.folder / "evaluation.csv", target / "evaluation.csv")


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go report", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="runs, or folders of runs, that have an evaluation.csv")
    parser.add_argument(
        "--out", type=Path, default=Path("report"), help="folder for figure.png, final.md and final.csv"
    )
    parser.add_argument("--title", default="", help="headline of the figure")
    parser.add_argument(
        "--export", type=Path, help="folder for copies of the runs' configurations and CSVs, to publish"
    )
    parser.add_argument("--mixed", action="store_true", help="allow runs that differ in more than arm and seed")
    return parser


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    runs = find_runs(args.folders)
    arms = group(runs, mixed=args.mixed)
    rows = final_rows(arms)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        title = args.title or f"{arms[0].runs[0].config['env']}: success on training and test contexts"
        figure(arms, title).savefig(args.out / "figure.png", dpi=130)
        (args.out / "final.md").write_text(markdown(rows) + "\n")
        with (args.out / "final.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        if args.export is not None:
            export(runs, args.export)
    except OSError as error:
        raise UsageError(f"--out={args.out} cannot be written ({error})") from error
    print(markdown(rows))
    print(f"figure: {args.out / 'figure.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
