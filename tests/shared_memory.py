"""What a test leaves behind in /dev/shm, on a machine where others work too."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sf_explore_go.training.shared_memory import SHARED_MEMORY

LOOK_SECONDS = 0.2


class SharedMemoryWatch:
    """Counts every file of this user that comes into /dev/shm, but those that only processes of others have used.

    A process belongs to the test if `mark` stands in its environment, which it hands on to all that it starts. A file
    that nobody was seen to use counts too: its user may have been killed in its first moment.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode()
        self._before = own_files()
        self._ours: set[str] = set()
        self._of_others: set[str] = set()

    def look(self) -> set[str]:
        """Note whose files are there; returns those that count."""
        files = own_files() - self._before - self._of_others
        if unknown := files - self._ours:
            users = users_by_inode()
            for name in unknown:
                self._note_users(name, users)
        return files - self._of_others

    def _note_users(self, name: str, users: dict[int, list[int]]) -> None:
        with suppress(OSError):  # removed while we look
            inode = (SHARED_MEMORY / name).stat().st_ino
            environments = list(filter(None, (_read(pid, "environ") for pid in users.get(inode, ()))))
            if environments:  # the dead have none
                ours = any(self._mark in environment for environment in environments)
                (self._ours if ours else self._of_others).add(name)

    def nothing_is_left(self, within: float) -> None:
        deadline = time.monotonic() + within
        while (left := self.look()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not left, f"left in {SHARED_MEMORY}: {sorted(left)}"

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look again and again, since users can be told only while they live."""
        ended = threading.Event()

        def look_on() -> None:
            while not ended.wait(LOOK_SECONDS):
                self.look()

        thread = threading.Thread(target=look_on, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def own_files() -> set[str]:
    names = set()
    for path in SHARED_MEMORY.iterdir():
        with suppress(OSError):  # removed while we look
            if path.stat().st_uid == os.getuid():
                names.add(path.name)
    return names


def users_by_inode() -> dict[int, list[int]]:
    """Inode -> process ids, of all files in shared memory that processes have mapped."""
    users: dict[int, list[int]] = {}
    for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        for line in _read(pid, "maps").splitlines():
            if f"{SHARED_MEMORY}/".encode() in line:
                users.setdefault(int(line.split()[4]), []).append(pid)
    return users


def _read(pid: int, file: str) -> bytes:
    with suppress(OSError):  # ended meanwhile, or not ours to look at
        return Path(f"/proc/{pid}/{file}").read_bytes()
    return b""
