"""Where a run keeps its checkpoints, and what they are called. Nothing here reads one, so nothing needs torch."""

from pathlib import Path

from sf_explore_go.core.errors import UsageError
from sf_explore_go.phases.schedule import AGENT

MILESTONE, BEST = "milestone_", "best_"  # how their names begin


def policy_folder(run: Path, policy_id: int) -> Path:
    """Where a run keeps the checkpoints of a policy."""
    return run / f"checkpoint_p{policy_id}"


def checkpoints_in(folder: Path, kind: str = "latest") -> list[Path]:
    """A policy's checkpoints, oldest first."""
    return sorted(folder.glob({"latest": "checkpoint_*.pth", "best": f"{BEST}*.pth"}[kind]))


def milestones(run: Path) -> list[Path]:
    """The kept copies of a run's agent, oldest first."""
    return sorted((policy_folder(run, AGENT) / "milestones").glob(f"{MILESTONE}*.pth"))


def milestone_path(folder: Path, frames: int) -> Path:
    """Of a policy with this folder; named by the total of frames, so that all runs line up."""
    return folder / "milestones" / f"{MILESTONE}{frames:012d}.pth"


def is_milestone(name: str) -> bool:
    return name.startswith(MILESTONE)


def is_best(name: str) -> bool:
    return name.startswith(BEST)


def find_checkpoints(run: Path, choice: str) -> list[Path]:
    """The agent's checkpoint files behind `--checkpoint`: latest, best, all (the milestones) or a file."""
    agent = policy_folder(run, AGENT)
    if choice == "all":
        found = milestones(run)
    elif choice in ("latest", "best"):
        found = checkpoints_in(agent, choice)[-1:]
    else:
        found = [Path(choice)]
        if not found[0].is_file():
            raise UsageError(f"--checkpoint={choice}: there is no such file; it must be latest, best, all or a file")
    if not found and choice == "all":
        raise UsageError(f"{agent} has no milestones; to make some, train with --milestone_step_freq above 0")
    if not found:
        raise UsageError(f"{agent} has no {choice} checkpoint")
    return found
