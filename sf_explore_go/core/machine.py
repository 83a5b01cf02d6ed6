"""What this machine has."""

import os


def cores() -> int:
    """The processors that this process may use, which in a container or a job can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
