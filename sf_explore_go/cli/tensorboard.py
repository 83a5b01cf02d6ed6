"""`sf-explore-go tensorboard`: open TensorBoard on all runs, with train and test in one chart.

Worlds differ a hundredfold in frames, and charts have one axis, so each world that is found gets an address of its own.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.plugins import is_foreign
from sf_explore_go.runs.folder import read_config


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go tensorboard", description=__doc__.splitlines()[0])
    parser.add_argument(
        "folders", nargs="*", type=Path, default=[Path("train_dir")], help="folders of runs (train_dir)"
    )
    parser.add_argument("--port", type=int, default=6006, help="port; 0 = any free one (6006)")
    parser.add_argument("--host", default="localhost", help="host; 0.0.0.0 lets other machines connect (localhost)")
    return parser


def logdir(folders: Sequence[Path]) -> list[str]:
    """TensorBoard's own way of saying it: one folder, or several with names."""
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder; name a folder of runs")
    if not any(next(folder.rglob("events.out.tfevents.*"), None) for folder in folders):
        raise UsageError(f"no event file in {', '.join(map(str, folders))}; name a folder that has runs")
    if len(folders) == 1:
        return ["--logdir", str(folders[0])]
    return ["--logdir_spec", ",".join(f"{folder.name}:{folder}" for folder in folders)]


def worlds(folders: Sequence[Path]) -> dict[str, list[str]]:
    """World -> its runs, as TensorBoard names them; the world is the environment's name without its split."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        for config in sorted(folder.rglob("config.json")):
            if not (config.parent / ".summary").is_dir():
                continue
            try:
                env = str(read_config(config.parent)["env"])
            except (UsageError, KeyError):
                continue  # another program's
            name = config.parent.relative_to(folder)
            found.setdefault(env if is_foreign(env) else env.rpartition("_")[0], []).append(
                str(name if len(folders) == 1 else folder.name / name)
            )
    return found


def run_filter(runs: Sequence[str], others: Sequence[str]) -> str:
    """A pattern that fits these runs and no others; their common folders where that is enough."""
    parents = {str(Path(run).parent) for run in runs}
    shared = parents & {str(Path(run).parent) for run in others} | {"."}
    names = [run for run in runs if str(Path(run).parent) in shared]
    return "^(" + "|".join(re.escape(name) for name in sorted(parents - shared) + names) + ")/"


def addresses(url: str, found: Mapping[str, Sequence[str]]) -> list[str]:
    """Lines to print: one address, or one for each world; points as they were measured."""
    charts = f"{url}#custom_scalars&_smoothingWeight=0"
    if len(found) < 2:
        return [charts]
    lines = []
    for world, runs in found.items():
        others = [run for other, theirs in found.items() if other != world for run in theirs]
        lines.append(f"{world}: {charts}&regexInput={quote(run_filter(runs, others), safe='')}")
    return lines


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    require_at_least(args, port=0)
    words = logdir(args.folders)
    from tensorboard import program

    board = program.TensorBoard()
    board.configure(argv=["tensorboard", *words, "--host", args.host, "--port", str(args.port)])
    try:
        url = board.launch()
    except program.TensorBoardServerException as error:
        raise UsageError(f"--port={args.port}: {str(error).strip().splitlines()[0]}") from error
    print("\n".join(addresses(url, worlds(args.folders))), flush=True)
    print("Charts show training and test contexts together. Press Ctrl+C to stop.", flush=True)
    return wait()


def wait() -> int:
    import threading

    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    return 0
