"""`--with_wandb=True`: every scalar that TensorBoard gets goes to Weights & Biases too, under the same name.

Sample Factory's own way asks wandb to patch TensorBoard's writers, with a setting that wandb no longer knows. Here the
writers of a run are handed to a mirror, one call for one call. Nothing of wandb is imported without the flag.
"""

import re
from datetime import datetime
from typing import Any

from sample_factory.utils.utils import log

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.observers import Observer

FRAMES = "frames"  # the x-axis of every scalar
PREFIX = {0: "", 1: "explorer/"}  # by policy: both have their `train/loss`


def check_wandb() -> None:
    """Refuse what would make wandb ask a question on the terminal, or fail where there is no terminal."""
    try:
        import wandb
    except ImportError as error:
        raise UsageError("--with_wandb=True: the package wandb is not installed; run `pip install wandb`") from error
    settings = wandb.setup().settings
    if settings.mode == "online" and not wandb.login(prompt=False, verify=False):
        raise UsageError(
            "--with_wandb=True: wandb has no key here; run `wandb login`, set WANDB_API_KEY, or set WANDB_MODE=offline"
            " and send the run later with `wandb sync`"
        )


def name_run(cfg: Any) -> None:
    """Once for a run: its configuration keeps the name, so that a resume goes on with the same one."""
    if cfg.get("wandb_unique_id") is None:
        time = datetime.now().strftime("%Y%m%d_%H%M%S_%f")
        cfg.wandb_unique_id = re.sub(r"[^\w.-]", "_", f"{cfg.experiment}_{time}")


class MirroredWriter:
    """A writer of TensorBoard's whose scalars also go to wandb; pictures and descriptions stay with TensorBoard."""

    def __init__(self, writer: Any, run: Any, prefix: str) -> None:
        self._writer, self._run, self._prefix = writer, run, prefix

    def add_scalar(self, tag: str, value: float, frames: int) -> None:
        self._writer.add_scalar(tag, value, frames)
        if self._run is None:
            return
        try:
            self._run.log({FRAMES: frames, self._prefix + tag: float(value)})
        except Exception as error:  # whatever wandb may raise, the training goes on
            self._run = None
            log.warning(
                "wandb gets no more scalars (%s); the training continues, and TensorBoard has all of them", error
            )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


class WandbMirror(Observer):
    """Observes one training; `finish` when it has ended."""

    def __init__(self) -> None:
        self._run: Any = None

    def on_init(self, runner: Any) -> None:
        try:
            self._run = start_run(runner.cfg, str(runner.folder))
        except Exception as error:  # no network, no such project, no room
            log.warning("wandb cannot start (%s); the training continues without it", str(error).splitlines()[0])
            return
        for policy, writer in runner.writers.items():
            runner.writers[policy] = MirroredWriter(writer, self._run, PREFIX[policy])

    def finish(self, exit_status: int) -> None:
        if self._run is not None:
            self._run.finish(exit_code=exit_status)


def start_run(cfg: Any, folder: str) -> Any:
    import wandb

    run = wandb.init(
        project=cfg.wandb_project,
        entity=cfg.wandb_user,
        dir=folder,
        id=cfg.wandb_unique_id,
        name=cfg.wandb_unique_id,
        group=cfg.env if cfg.wandb_group is None else cfg.wandb_group,
        job_type=cfg.wandb_job_type,
        tags=cfg.wandb_tags,
        config=dict(cfg),
        resume="allow",
        settings=wandb.Settings(console="off", quiet=True),  # the terminal has a live line of its own
    )
    run.define_metric("*", step_metric=FRAMES)  # evaluations come late, with the frames that they belong to
    return run
