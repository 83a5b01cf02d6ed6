"""`python -m sf_explore_go.cli.build_pretrained RUN`: make a finished run the agent that comes with the package.

Kept are the networks of both policies, of the newest checkpoints, and the configuration; optimisers, random states and
what names the machine are not.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from sf_explore_go.core.errors import UsageError, run
from sf_explore_go.runs.checkpoints import read_checkpoint, save_atomically
from sf_explore_go.runs.folder import OF_THIS_MACHINE, read_config
from sf_explore_go.runs.names import checkpoints_in
from sf_explore_go.runs.pretrained import SOURCE

KEPT = ("format", "frames", "train_step", "env_steps", "model")


def build(folder: Path, target: Path) -> None:
    newest = {path.name: checkpoints_in(path)[-1:] for path in sorted(folder.glob("checkpoint_p*"))}
    if not newest.get("checkpoint_p0"):
        raise UsageError(f"{folder} has no checkpoint; it must be the folder of a finished run")
    config = read_config(folder)
    shutil.rmtree(target, ignore_errors=True)
    for name, (path,) in newest.items():
        (target / name).mkdir(parents=True)
        state = read_checkpoint(path, "cpu")
        save_atomically({key: state[key] for key in KEPT}, target / name / path.name)
    published = {key: value for key, value in sorted(config.items()) if key not in OF_THIS_MACHINE}
    (target / "config.json").write_text(json.dumps(published, indent=1) + "\n")


def main(argv: Sequence[str]) -> int:
    if len(argv) != 1:
        raise UsageError("python -m sf_explore_go.cli.build_pretrained takes one argument, the folder of a run")
    build(Path(argv[0]), SOURCE)
    return 0


if __name__ == "__main__":
    sys.exit(run(main, sys.argv[1:]))
