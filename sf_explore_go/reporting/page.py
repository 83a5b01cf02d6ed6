"""The report as one HTML page that needs nothing else: pictures are inside, and it asks for nothing from outside."""

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from sf_explore_go import __version__
from sf_explore_go.reporting.runs import Arm
from sf_explore_go.reporting.starts import HEADERS as COVERAGE_HEADERS
from sf_explore_go.reporting.tables import columns, lines_of, state_columns

# The browser is told to load nothing, so that the page is the same on any machine and tells no one that it is read.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #24292f; max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.lead { color: #57606a; margin-top: 0; }
p.note { background: #fff8c5; border-left: 4px solid #d4a72c; padding: .4rem .8rem; overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; display: block; }
.maps { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 1rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #d0d7de; padding: .4rem .7rem; text-align: left; vertical-align: top; }
td { white-space: nowrap; } th { background: #f6f8fa; }
"""

EXPLANATION = (
    "Success is the share of episodes that reach the goal, played without an explore phase. Curves and tables give the"
    " mean over seeds; the band and the brackets are 95 % intervals over seeds, from the bootstrap's standard error and"
    " Student's factor for their number. IQM is the interquartile mean: the mean without the best and the worst quarter"
    " of the seeds."
    " The gain seed by seed is the mean difference in test success between a seed of the arm and the same seed of the"
    " baseline, which has the same training contexts."
    " P(beats baseline) is the chance that a random seed of the arm has a higher test success than a random seed of the"
    " baseline, ties counting half, with Newcombe's interval (his method 5) from two seeds per arm on."
)

COVERAGE_EXPLANATION = (
    "Phases of full length from the training contexts; the agent takes over after a number of decisions that is drawn"
    " as in training. The last column is the exponential of the entropy of the starting cells: n equally likely cells"
    " count as n. Means with 95 % intervals over runs."
)


def count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def picture(figure: Figure, alt: str, dpi: int = 130) -> str:
    """An <img> with the picture inside."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{html.escape(alt, quote=True)}" src="data:image/png;base64,{data}">'


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(tag: str, words: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(word)}</{tag}>" for word in words) + "</tr>"

    return f'<div class="table"><table>{line("th", headers)}{"".join(line("td", row) for row in rows)}</table></div>'


def maps(figures: Mapping[str, Figure], what: str) -> str:
    pictures = "".join(picture(figure, f"{name}: {what}", dpi=100) for name, figure in figures.items())
    return f'<div class="maps">{pictures}</div>'


def run_rows(arms: Sequence[Arm]) -> list[list[str]]:
    """Every run behind the report."""
    rows = []
    for arm in arms:
        for run in arm.runs:
            train, test = run.final("train"), run.final("test")
            rows.append([
                arm.name, run.folder.name, str(run.config["seed"]), f"{test.frames:,}",
                f"{train.success_rate:.3f} ({train.episodes})", f"{test.success_rate:.3f} ({test.episodes})",
            ])  # fmt: skip
    return rows


def page(
    title: str,
    arms: Sequence[Arm],
    rows: Sequence[dict[str, Any]],
    sections: Mapping[str, Mapping[str, Figure]],
    coverage: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
) -> str:
    """The whole page as text; `sections` are figures by what they show, and by name; `notes` are sentences that its
    reader must know."""
    runs = sum(len(arm.runs) for arm in arms)
    actions = arms[0].runs[0].final("test").actions
    worlds = ", ".join(dict.fromkeys(str(arm.config["env"]) for arm in arms))
    lead = f"{worlds}, {count(runs, 'run')} in {count(len(arms), 'arm')}, {actions} actions"
    lead += f", sf_explore_go {__version__}"
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f'<p class="lead">{html.escape(lead)}</p>',
        *(f'<p class="note">{html.escape(note)}</p>' for note in notes),
        *(picture(figure, name) for name, figure in sections["figure"].items()),
        "<h2>Final success</h2>",
        table(list(columns(rows)), lines_of(columns(rows))),
        f"<p>{html.escape(EXPLANATION)}</p>",
    ]
    if sections["exact"]:
        parts += ["<h2>All states</h2>", *(picture(figure, name) for name, figure in sections["exact"].items())]
        parts += [table(list(state_columns(rows)), lines_of(state_columns(rows)))]
    if sections["lengths"]:
        parts += ["<h2>How long the explore phase may be</h2>"]
        parts += [picture(figure, name) for name, figure in sections["lengths"].items()]
    if sections["contexts"]:
        parts += ["<h2>How many training contexts</h2>"]
        parts += [picture(figure, name) for name, figure in sections["contexts"].items()]
    if sections["goals"]:
        parts += ["<h2>Where it succeeds on test goals</h2>", maps(sections["goals"], "test success by goal")]
    if coverage:
        parts += ["<h2>Where the agent starts</h2>", maps(sections["starts"], "starts of the go phases")]
        parts += [table(COVERAGE_HEADERS, coverage), f"<p>{html.escape(COVERAGE_EXPLANATION)}</p>"]
    headers = ("arm", "run", "seed", "frames", "train success (episodes)", "test success (episodes)")
    parts += ["<h2>Runs</h2>", table(headers, run_rows(arms))]
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'
