"""`sf-explore-go report`: runs by arm, curves with intervals over seeds, tables, and a page that holds it all."""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.core.errors import UsageError
from sf_explore_go.reporting.figures import goal_figure, length_figure, main_figure
from sf_explore_go.reporting.page import page
from sf_explore_go.reporting.runs import Arm, Run, find_runs, group
from sf_explore_go.reporting.starts import COVERAGE, GO_STARTS, HEADERS, coverage_cells, read_seen, start_figure
from sf_explore_go.reporting.tables import final_rows, markdown, markdown_table, write_table
from sf_explore_go.runs.scores import BY_GOAL, EVALUATION

OF_THIS_MACHINE = {"train_dir", "cli_args", "command_line", "git_hash", "git_repo_name"}
FORMATS = ("png", "pdf")


def export(runs: Sequence[Run], folder: Path) -> None:
    """Copies that can be published: what a report needs of each run, without paths and names of this machine."""
    for run in runs:
        target = folder / run.folder.name
        target.mkdir(parents=True, exist_ok=True)
        config = {key: value for key, value in sorted(run.config.items()) if key not in OF_THIS_MACHINE}
        (target / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        for name in (EVALUATION, BY_GOAL, COVERAGE, GO_STARTS):
            if (run.folder / name).is_file():
                shutil.copyfile(run.folder / name, target / name)


def write_report(arms: Sequence[Arm], out: Path, title: str) -> str:
    """All files of the report; returns the table in Markdown."""
    out.mkdir(parents=True, exist_ok=True)
    rows, seen, env = final_rows(arms), read_seen(arms), str(arms[0].runs[0].config["env"])
    coverage = coverage_cells(seen)
    sections = {
        "figure": {title: main_figure(arms, title)},
        "lengths": {f"{title}, by K": drawn for drawn in [length_figure(arms, title)] if drawn is not None},
        "goals": {arm.name: drawn for arm in arms if (drawn := goal_figure(arm)) is not None},
        "starts": {name: drawn for name, one in seen.items() if (drawn := start_figure(name, one, env)) is not None},
    }
    for section, figures in sections.items():
        for number, drawn in enumerate(figures.values(), start=1):
            name = section if section in ("figure", "lengths") else f"{section}_{number}"
            for format in FORMATS:
                # without the time of day, so that the same numbers give the same file
                metadata = {"CreationDate": None} if format == "pdf" else None
                drawn.savefig(out / f"{name}.{format}", dpi=130, metadata=metadata)
    tables = markdown(rows)
    (out / "final.md").write_text(tables + "\n")
    if seen:
        (out / "coverage.md").write_text(markdown_table(HEADERS, coverage) + "\n")
    write_table(out / "final.csv", rows)
    (out / "index.html").write_text(page(title, arms, rows, sections, coverage), encoding="utf-8")
    return tables


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go report", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="runs, or folders of runs, that have an evaluation.csv")
    parser.add_argument(
        "--out", type=Path, default=Path("report"), help="folder for index.html, figures (PNG, PDF) and tables (report)"
    )
    parser.add_argument("--title", default="", help="headline of page and figure")
    parser.add_argument(
        "--actions", choices=("sampled", "greedy"), default="sampled", help="which evaluations to take (sampled)"
    )
    parser.add_argument(
        "--export", type=Path, help="folder for copies of the runs' configurations and CSVs, to publish"
    )
    parser.add_argument("--mixed", action="store_true", help="allow runs that differ in more than arm and seed")
    return parser


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    runs = find_runs(args.folders, args.actions)
    arms = group(runs, mixed=args.mixed)
    title = args.title or f"{arms[0].runs[0].config['env']}: success on training and test contexts"
    try:
        print(write_report(arms, args.out, title))
        if args.export is not None:
            export(runs, args.export)
    except OSError as error:
        raise UsageError(f"--out={args.out} cannot be written ({error})") from error
    print(f"figure: {args.out / 'figure.png'}")
    print(f"page: {args.out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
