"""No engine and none of its files outlive the process that used them, however that process ends.

ViZDoom's engine is a process of its own. When its user is killed, leaves by `os._exit` or gets a SIGTERM, nothing tells
the engine: it stays, and so do its shared-memory files. Hence every process that starts engines also starts one small
helper, which is this file run as a script. The helper waits for its parent to end, then kills the engines that the
parent left behind and removes their files.

An engine is told apart by its private folder, a unique path that is on its command line from its first moment. No
process id is remembered, so none can be mistaken, and a parent that dies while its engine starts leaves none either
(at worst two small message queues, if it dies in the millisecond before the engine's process exists).

Linux only: elsewhere there is no /proc to find engines in, and cleaning up rests on `close` and on interpreter exit.
The helper runs without site packages, so this file uses the standard library only. It takes 13 MB, half of it shared,
and no processor time.
"""

import atexit
import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

CONFIG_NAME = "engine.ini"  # in an engine's private folder; its path marks the engine's command line
SHARED_MEMORY = Path("/dev/shm")
POLL_SECONDS = 0.5  # where the kernel cannot report the parent's end
LINUX = sys.platform.startswith("linux")

Guarded = dict[str, str]  # an engine's private folder -> its instance id, "" until it is known


# --- finding and removing ---------------------------------------------------------------------------------------------


def find_engines(folders: Mapping[str, str]) -> dict[int, list[str]]:
    """Process id -> command line of each running engine whose private folder is one of these."""
    marks = {_mark(folder) for folder in folders}
    engines = {}
    for entry in Path("/proc").iterdir() if LINUX else ():
        if entry.name.isdigit() and marks.intersection(words := _command_line(entry)) and "+viz_instance_id" in words:
            engines[int(entry.name)] = words
    return engines


def _mark(folder: str) -> str:
    return str(Path(folder, CONFIG_NAME))


def _command_line(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:  # ended meanwhile, or not ours to look at
        return []


def remove_engines(guarded: Guarded, tries: int = 50) -> None:
    """Kill these engines and remove their files. Looks twice, since an engine may be about to start."""
    quiet = 0
    while guarded and quiet < 2 and tries > 0:
        engines = find_engines(guarded)
        for pid, words in engines.items():
            _note_instance(guarded, words)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        quiet = 0 if engines else quiet + 1
        tries -= 1
        if quiet < 2:
            time.sleep(0.05)
    for folder, instance in guarded.items():
        remove_files(folder, instance)


def _note_instance(guarded: Guarded, words: list[str]) -> None:
    instance = words[words.index("+viz_instance_id") + 1]
    for folder in guarded:
        if _mark(folder) in words:
            guarded[folder] = instance


def remove_files(folder: str, instance: str) -> None:
    """Remove an engine's private folder and its shared memory."""
    if instance:
        for path in SHARED_MEMORY.glob(f"ViZDoom*{instance}"):
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


# --- the helper process -----------------------------------------------------------------------------------------------


def watch(parent: int) -> Guarded:
    """Follow the parent's messages on standard input until it ends; returns what it left behind."""
    guarded: Guarded = {}
    rest = b""
    pidfd = _pidfd(parent)
    waited_for = [0] if pidfd is None else [0, pidfd]
    while True:
        # A forked child of the parent may hold the pipe open, so its end alone does not tell.
        ready, _, _ = select.select(waited_for, [], [], POLL_SECONDS if pidfd is None else None)
        orphaned = pidfd in ready or os.getppid() != parent
        while select.select([0], [], [], 0)[0]:
            chunk = os.read(0, 65536)
            if not chunk:
                return guarded
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                follow(line.decode(), guarded)
        if orphaned:
            return guarded


def follow(line: str, guarded: Guarded) -> None:
    word, folder, instance = line.split("\t")
    if word == "guard":
        guarded[folder] = instance
    elif word == "release":
        guarded.pop(folder, None)


def _pidfd(pid: int) -> int | None:
    """A file descriptor that becomes readable when the process ends; not every kernel or sandbox has them."""
    try:
        pidfd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
    return pidfd if os.getppid() == pid else None  # else the parent is gone, and another process may have its id


def main(argv: list[str]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    remove_engines(watch(int(argv[1])))


# --- the parent's end -------------------------------------------------------------------------------------------------


class Janitor:
    """Tells the helper which engines it guards; starts it with the first one, and again if it was killed."""

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """Also in a forked child, since engines and helper are its parent's."""
        self._lock = threading.Lock()
        self._helper: subprocess.Popen[bytes] | None = None
        self._guarded: Guarded = {}

    def guard(self, folder: Path, instance: str = "") -> None:
        """Before an engine starts, and again when its instance id is known."""
        with self._lock:
            self._guarded[str(folder)] = instance
            self._tell("guard", str(folder), instance)

    def release(self, folder: Path) -> None:
        """After an engine ended and its files are removed."""
        with self._lock:
            if self._guarded.pop(str(folder), None) is not None and self._helper:
                self._tell("release", str(folder), "")

    def _tell(self, *words: str) -> None:
        if not LINUX or not sys.executable:
            return
        try:
            self._write(*words)
        except BrokenPipeError:  # no helper yet, or it was killed
            try:
                self._start()
                for folder, instance in self._guarded.items():
                    self._write("guard", folder, instance)
            except OSError as error:
                warnings.warn(
                    f"a crash would leave engines running, since their guard cannot start: {error}", stacklevel=4
                )

    def _write(self, *words: str) -> None:
        if self._helper is None or self._helper.stdin is None:
            raise BrokenPipeError
        self._helper.stdin.write(("\t".join(words) + "\n").encode())

    def _start(self) -> None:
        self.stop()
        self._helper = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(os.getpid())],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # the helper must not hold the user's pipes open
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C or a kill of the whole group must not end it before its work
        )

    def stop(self) -> None:
        """Let the helper clean up what is left, and wait for it."""
        helper, self._helper = self._helper, None
        if helper and helper.stdin:
            helper.stdin.close()
            helper.wait()


JANITOR = Janitor()
atexit.register(JANITOR.stop)
os.register_at_fork(after_in_child=JANITOR.start_anew)


if __name__ == "__main__":
    main(sys.argv)
