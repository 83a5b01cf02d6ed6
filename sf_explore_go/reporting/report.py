"""A whole report: runs by arm, curves with intervals over seeds, tables, and a page that holds it all."""

import sys
from collections.abc import Sequence
from pathlib import Path

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.core.errors import UsageError
from sf_explore_go.reporting.against import contexts_figure, length_figure
from sf_explore_go.reporting.arms import group
from sf_explore_go.reporting.exact import exact_figure
from sf_explore_go.reporting.export import export
from sf_explore_go.reporting.figures import goal_figure, main_figure
from sf_explore_go.reporting.page import page
from sf_explore_go.reporting.runs import Arm, find_runs
from sf_explore_go.reporting.starts import HEADERS, coverage_cells, read_seen, start_figure
from sf_explore_go.reporting.tables import columns, final_rows, markdown, markdown_table, state_columns, write_table

FORMATS = ("png", "pdf")
ALONE = ("figure", "exact", "lengths", "contexts")  # sections of one figure


def write_report(arms: Sequence[Arm], out: Path, title: str, notes: Sequence[str] = ()) -> str:
    """All files of the report; returns the table in Markdown."""
    out.mkdir(parents=True, exist_ok=True)
    rows, seen, worlds = final_rows(arms), read_seen(arms), {arm.name: str(arm.config["env"]) for arm in arms}
    coverage = coverage_cells(seen)
    sections = {
        "figure": {title: main_figure(arms, title)},
        "exact": {f"{title}: all states": drawn for drawn in [exact_figure(arms)] if drawn is not None},
        "lengths": {f"{title}, by K": drawn for drawn in [length_figure(arms, title)] if drawn is not None},
        "contexts": {f"{title}, by contexts": drawn for drawn in [contexts_figure(arms, title)] if drawn is not None},
        "goals": {arm.name: drawn for arm in arms if (drawn := goal_figure(arm)) is not None},
        "starts": {
            name: drawn for name, one in seen.items() if (drawn := start_figure(name, one, worlds[name])) is not None
        },
    }
    for section, figures in sections.items():
        for number, drawn in enumerate(figures.values(), start=1):
            name = section if section in ALONE else f"{section}_{number}"
            for format in FORMATS:
                # without the time of day, so that the same numbers give the same file
                metadata = {"CreationDate": None} if format == "pdf" else None
                drawn.savefig(out / f"{name}.{format}", dpi=130, metadata=metadata)
    tables = markdown(columns(rows))
    (out / "final.md").write_text(tables + "\n")
    if states := state_columns(rows):
        (out / "states.md").write_text(markdown(states) + "\n")
    if seen:
        (out / "coverage.md").write_text(markdown_table(HEADERS, coverage) + "\n")
    write_table(out / "final.csv", rows)
    (out / "index.html").write_text(page(title, arms, rows, sections, coverage, notes), encoding="utf-8")
    return tables


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="sf-explore-go report",
        description="Runs by arm, curves with intervals over seeds, tables, and a page that holds it all.",
    )
    parser.add_argument(
        "folders", nargs="+", type=Path, help="evaluated runs, experiments, or folders that hold some, also deeper"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("report"), help="folder for index.html, figures (PNG, PDF) and tables (report)"
    )
    parser.add_argument("--title", default="", help="headline of page and figure")
    parser.add_argument(
        "--actions", choices=("sampled", "greedy"), help="which evaluations to take (as each run's --eval_greedy)"
    )
    parser.add_argument(
        "--export",
        type=Path,
        help="folder in which to publish the runs as one experiment: each table once, and one configuration per arm",
    )
    parser.add_argument(
        "--arm_by",
        metavar="FLAG,...",
        type=lambda words: [word.strip().lstrip("-") for word in words.split(",")],
        default=[],
        help="flags of train whose values make the arms, e.g. learning_rate,gamma (default: the sweep's arms, or"
        " whatever differs between the runs)",
    )
    parser.add_argument(
        "--mixed",
        action="store_true",
        help="show different environments side by side, as arms of their own, and compare runs that share no"
        " evaluation each at its own end",
    )
    return parser


def report(argv: Sequence[str]) -> int:
    """What the command line asks for; returns its exit status."""
    args = make_parser().parse_args(argv)
    notes: list[str] = []
    runs = find_runs(args.folders, args.actions, notes.append)
    arms = group(runs, arm_by=args.arm_by, mixed=args.mixed, say=notes.append)
    title = args.title or f"{arms[0].runs[0].config['env']}: success on training and test contexts"
    if args.export is not None:
        export(arms, args.export)
    try:
        print(write_report(arms, args.out, title, notes))
    except OSError as error:
        raise UsageError(f"--out={args.out} cannot be written ({error})") from error
    for note in notes:
        print(f"sf-explore-go: {note}", file=sys.stderr)
    print(f"figure: {args.out / 'figure.png'}")
    print(f"page: {args.out / 'index.html'}")
    return 0
