"""`sf-explore-go doctor`: check whether a training will run here.

Lists versions, processors, GPU, memory and shared memory against what the given flags need, what crashed programs left
behind, and whether the run folder can be written. Takes the flags of `train`; exit status 0 if all is well, else 1.
"""

import os
import platform
import re
import shutil
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import torch

from sf_explore_go import __version__
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.machine import cores
from sf_explore_go.processes.console import QUIET, set_up_console
from sf_explore_go.processes.fork_server import check_sockets, env_info_from_server
from sf_explore_go.runs.folder import PACKAGES, check_writable, run_folder
from sf_explore_go.training.environments import prepare_world, register_worlds
from sf_explore_go.training.memory import memory_free, memory_needed
from sf_explore_go.training.shared_memory import MIB, SHARED_MEMORY, SPARE, bytes_free, bytes_needed

CLEAN = "--clean"
# of engines, of torch's tensors, and the semaphores of multiprocessing, which name no process
SEGMENT = re.compile(r"ViZDoom(?:MQCtr|MQDoom|SM)(?P<instance>.+)|torch_(?P<pid>\d+)_|sem\.mp-")
SEMAPHORE = "sem.mp-"
MIN_FREE_DISK = 2**30


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    text: str
    well: bool = True

    def __str__(self) -> str:
        return f"{'ok ' if self.well else 'BAD'}  {self.name:<14} {self.text}"


# --- what is here -----------------------------------------------------------------------------------------------------


def versions() -> Finding:
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    return Finding("versions", f"sf-explore-go {__version__}, Python {platform.python_version()}, {packages}")


def processors() -> Finding:
    return Finding("processors", f"{cores()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB of memory")


def gpu() -> Finding:
    if not torch.cuda.is_available():
        return Finding("GPU", "none; --device=cpu")
    return Finding("GPU", ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())))


def memory(cfg: Any) -> list[Finding]:
    """What a training with these flags takes, of the machine's memory and of the shared part of it."""
    prepare_world(cfg.env)
    register_worlds(cfg.env)
    try:
        check_sockets()
        env_info = env_info_from_server(cfg)
    except UsageError as error:
        return [Finding("environment", str(error), well=False)]
    needed, free = memory_needed(cfg, env_info), memory_free()
    text = f"about {needed / 2**30:.1f} GB needed by these flags, {free / 2**30:.1f} GB free"
    return [Finding("memory", text, free >= needed), shared_memory(SPARE * bytes_needed(cfg, env_info))]


def shared_memory(needed: float) -> Finding:
    free = bytes_free()
    if free is None:
        return Finding("shared memory", f"{needed / MIB:.0f} MB needed; {SHARED_MEMORY} cannot be read here")
    text = f"{needed / MIB:.0f} MB needed by these flags, {free / MIB:.0f} MB free in {SHARED_MEMORY}"
    return Finding("shared memory", text, free >= needed)


def folder(cfg: Any) -> list[Finding]:
    path = run_folder(cfg)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_writable(path)
    except (UsageError, OSError) as error:
        return [Finding("run folder", str(error), well=False)]
    free = shutil.disk_usage(path.parent).free
    return [Finding("run folder", f"{path} is writable, {free / 2**30:.0f} GiB free", free >= MIN_FREE_DISK)]


# --- what was left behind ---------------------------------------------------------------------------------------------


def orphaned_engines() -> list[psutil.Process]:
    """Engines of this user whose program is gone, so that nothing will end them."""
    return [process for process in own_engines() if is_orphan(process)]


def own_engines() -> Iterable[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and "+viz_instance_id" in process.cmdline():
                yield process
        except psutil.Error:  # ended meanwhile, or not ours to look at
            continue


def is_orphan(process: psutil.Process) -> bool:
    """Its parent is init, or one that takes in orphans: at any rate no Python program that could use it."""
    try:
        parent = process.parent()
        return parent is None or parent.pid == 1 or not any("python" in word for word in parent.cmdline()[:1])
    except psutil.Error:
        return False


def orphaned_segments() -> list[Path]:
    """Shared memory of this user whose engine or program is gone."""
    if not SHARED_MEMORY.is_dir():
        return []
    paths = sorted(SHARED_MEMORY.iterdir())
    engines = {word for process in own_engines() for word in command_line(process)}
    mapped = mapped_inodes() if any(path.name.startswith(SEMAPHORE) for path in paths) else set()
    return [path for path in paths if is_left_over(path, engines, mapped)]


def mapped_inodes() -> set[int]:
    """Of the files that some process of this user has mapped, as semaphores are while anybody can use them.

    Not their names: the C library makes a semaphore under another name than the one it then links it to.
    """
    inodes: set[int] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            inodes |= {int(line.split()[4]) for line in maps.read_text().splitlines()}
        except OSError:  # ended meanwhile, or not ours to look at
            continue
    return inodes


def command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def is_left_over(path: Path, engines: set[str], mapped: set[int]) -> bool:
    match = SEGMENT.match(path.name)
    try:
        if match is None or path.stat().st_uid != os.getuid():
            return False
        inode = path.stat().st_ino
    except OSError:
        return False
    if match["instance"]:
        return match["instance"] not in engines
    if match["pid"] is None:
        return inode not in mapped
    return not psutil.pid_exists(int(match["pid"]))


def left_overs(clean: bool) -> list[Finding]:
    """With `clean`, engines are ended first, which frees their segments."""
    engines = orphaned_engines()
    if clean:
        for engine in engines:
            engine.send_signal(signal.SIGKILL)
        psutil.wait_procs(engines, timeout=5)
    segments = orphaned_segments()
    if clean:
        for segment in segments:
            segment.unlink(missing_ok=True)
    size = sum(segment.stat().st_blocks * 512 for segment in segments if segment.exists())
    done = "removed" if clean else f"of programs that are gone ({CLEAN} removes them)"
    return [
        Finding("engines", f"{len(engines)} {done}" if engines else "none left behind", clean or not engines),
        Finding(
            "segments",
            f"{len(segments)} in {SHARED_MEMORY} ({size / MIB:.0f} MB) {done}" if segments else "none left behind",
            clean or not segments,
        ),
    ]


def examine(cfg: Any, *, clean: bool) -> list[Finding]:
    return [versions(), processors(), gpu(), *left_overs(clean), *memory(cfg), *folder(cfg)]


def main(argv: Sequence[str]) -> int:
    if any(word in ("-h", "--help") for word in argv):
        print(__doc__)
        print(f"usage: sf-explore-go doctor [{CLEAN}] [flags of sf-explore-go train]\n")
        print(f"  {CLEAN}   end your engines and remove your shared memory where the program that made them is gone")
        return 0
    flags = [word for word in argv if word != CLEAN]
    if not any(word.split("=")[0] == "--env" for word in flags):
        flags.append("--env=my_way_home_train")
    set_up_console(QUIET)  # Sample Factory tells much while it looks at an environment
    findings = examine(parse_train_args(flags), clean=CLEAN in argv)
    for finding in findings:
        print(finding)
    return 0 if all(finding.well for finding in findings) else 1
