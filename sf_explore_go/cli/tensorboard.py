"""`sf-explore-go tensorboard`: TensorBoard on all runs, opened where train and test stand in one chart."""

import sys
from collections.abc import Sequence
from pathlib import Path

from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.errors import UsageError


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go tensorboard", description=__doc__.splitlines()[0])
    parser.add_argument(
        "folders", nargs="*", type=Path, default=[Path("train_dir")], help="folders of runs (train_dir)"
    )
    parser.add_argument("--port", type=int, default=6006, help="0 takes any free one (6006)")
    parser.add_argument("--host", default="localhost", help="0.0.0.0 lets other machines look too (localhost)")
    return parser


def logdir(folders: Sequence[Path]) -> list[str]:
    """TensorBoard's own way of saying it: one folder, or several with names."""
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder; name a folder of runs")
    if not any(next(folder.rglob("events.out.tfevents.*"), None) for folder in folders):
        raise UsageError(f"no event file in {', '.join(map(str, folders))}; name a folder in which runs are")
    if len(folders) == 1:
        return ["--logdir", str(folders[0])]
    return ["--logdir_spec", ",".join(f"{folder.name}:{folder}" for folder in folders)]


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
    print(f"{url}#custom_scalars&_smoothingWeight=0", flush=True)  # points as they were measured
    print("Training and test contexts in one chart. End with Ctrl+C.", flush=True)
    return wait()


def wait() -> int:
    import threading

    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
