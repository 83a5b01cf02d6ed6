"""One ViZDoom engine: started with care, put into a map with a seed, stepped, and always removed again.

What ViZDoom leaves to its user and is done here:

- Each engine runs in a private folder, so no working directory is littered with `_vizdoom*`, none has to be writable,
  and engines that run at once do not share settings. Its output goes to a file there, so that it holds no pipe of the
  user's open, and Ctrl-C is left to the user's process.
- Many engines that start at once have failed for people, so only a few start at a time on a machine.
- A dead engine is an `EngineDied`, whichever of ViZDoom's exceptions told of it.
- No engine outlives its user (janitor.py).
"""

import ctypes
import os
import secrets
import shlex
import signal
import tempfile
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vizdoom
from filelock import FileLock

from sf_explore_go.core.errors import EnvironmentFailed
from sf_explore_go.worlds.doom.janitor import CONFIG_NAME, JANITOR, find_engines, remove_engines, remove_files

PARALLEL_STARTS = 8  # on one machine, over all processes of a user
START_ATTEMPTS = 3

DEATHS = (
    vizdoom.ViZDoomErrorException,
    vizdoom.ViZDoomIsNotRunningException,
    vizdoom.ViZDoomUnexpectedExitException,
    vizdoom.SharedMemoryException,
    vizdoom.MessageQueueException,
)


class EngineDied(EnvironmentFailed):
    """The engine's process ended, or does not answer as it should."""


@dataclass(frozen=True)
class EngineSettings:
    """What is fixed for an engine's whole life."""

    config: Path
    wad: Path
    width: int = 160  # rendered picture; a resolution that ViZDoom knows
    height: int = 120
    planar: bool = False  # pictures as (3, height, width) instead of (height, width, 3)


class DoomEngine:
    """A running engine in its first episode. Not to be shared between threads or with forked children."""

    def __init__(self, settings: EngineSettings, map_name: str, seed: int) -> None:
        self._folder = Path(tempfile.gettempdir()) / f"sf_explore_go_doom_{secrets.token_hex(8)}"
        JANITOR.guard(self._folder)  # before anything exists that could be left behind
        self._folder.mkdir(mode=0o700)
        self._game = _make_game(settings, self._folder)
        self._reward_behind = False  # tics have passed whose reward the engine has not counted yet
        self.pid: int | None = None  # None where processes cannot be found by command line
        self._finalizer = weakref.finalize(self, _dispose, self._game, self._folder, os.getpid())
        _engines.add(self)
        self._start(map_name, seed)

    def _start(self, map_name: str, seed: int) -> None:
        self._game.set_doom_map(map_name)
        self._game.set_seed(seed)
        try:
            with _start_slot():
                self._game.init()
        except (*DEATHS, vizdoom.FileDoesNotExistException) as error:
            said = _last_words(self._folder)
            self.close()
            raise EngineDied(f"ViZDoom's engine did not start ({error}){said}") from error
        JANITOR.guard(self._folder, self._game.get_instance_id())
        self.pid = next(iter(find_engines({str(self._folder): ""})), None)

    def new_episode(self, map_name: str, seed: int) -> Any:
        """Start an episode; returns its first state.

        On a running engine `set_doom_map` loads the map with the seed set before and starts an episode by itself;
        ViZDoom's `new_episode` would load it a second time, with the next seed, and take twice as long.
        """
        try:
            self._game.set_seed(seed)
            self._game.set_doom_map(map_name)
            self._reward_behind = False
            return self._game.get_state()
        except DEATHS as error:
            raise EngineDied(str(error)) from error

    def state(self) -> Any:
        """The state of the running episode, e.g. of the one that the engine started with."""
        try:
            return self._game.get_state()
        except DEATHS as error:
            raise EngineDied(str(error)) from error

    def act(self, buttons: Sequence[float], tics: int) -> tuple[float, Any]:
        """Hold these buttons for some tics; returns the reward and the new state, None if the episode is over."""
        try:
            if self._reward_behind:
                self._game.advance_action(0, True)  # no tic: only takes the reward of the tics that nobody saw
                self._reward_behind = False
            return self._game.make_action(buttons, tics), self._game.get_state()
        except DEATHS as error:
            raise EngineDied(str(error)) from error

    def act_unseen(self, buttons: Sequence[float], tics: int) -> None:
        """The same without a picture, in half the time; only for tics in which nothing can happen.

        The engine tells where the player is and what the map's script has paid only together with a picture. Between
        two pictures it tells the time, and whether the episode is over.
        """
        try:
            self._game.set_action(buttons)
            self._game.advance_action(tics, False)
            self._reward_behind = True
            over = self._game.is_episode_finished()
        except DEATHS as error:
            raise EngineDied(str(error)) from error
        if over:
            raise EngineDied("The episode ended in tics that should have been uneventful.")

    @property
    def living_reward(self) -> float:
        """The reward of every tic, as the config has it."""
        return float(self._game.get_living_reward())

    @property
    def time_limit(self) -> int:
        """In tics, as the config has it."""
        return int(self._game.get_episode_timeout())

    def close(self) -> None:
        self._finalizer()


def start_engine(settings: EngineSettings, map_name: str, seed: int) -> DoomEngine:
    """Start an engine in its first episode; a start that fails is tried again."""
    for attempt in range(1, START_ATTEMPTS + 1):
        try:
            return DoomEngine(settings, map_name, seed)
        except EngineDied:
            if attempt == START_ATTEMPTS:
                raise
            time.sleep(0.5 * attempt)
    raise AssertionError("unreachable")


def _make_game(settings: EngineSettings, folder: Path) -> Any:
    game = vizdoom.DoomGame()
    game.load_config(str(settings.config))
    game.set_doom_scenario_path(str(settings.wad))
    game.set_doom_config_path(str(folder / CONFIG_NAME))
    game.set_screen_resolution(getattr(vizdoom.ScreenResolution, f"RES_{settings.width}X{settings.height}"))
    game.set_screen_format(vizdoom.ScreenFormat.CRCGCB if settings.planar else vizdoom.ScreenFormat.RGB24)
    game.set_window_visible(False)
    game.set_sound_enabled(False)
    if launcher := _write_launcher(folder):
        game.set_vizdoom_path(str(launcher))
    return game


def _write_launcher(folder: Path) -> Path | None:
    """A script that starts the engine inside its folder; None where scripts there may not be run."""
    engine = Path(vizdoom.__file__).parent / "vizdoom"
    launcher = folder / "start.sh"
    launcher.write_text(
        "#!/bin/sh\n"
        "trap '' INT TERM HUP\n"  # ignored signals stay ignored in the engine
        f'cd {shlex.quote(str(folder))} && exec {shlex.quote(str(engine))} "$@" </dev/null >engine.log 2>&1\n'
    )
    launcher.chmod(0o700)
    return launcher if engine.is_file() and os.access(launcher, os.X_OK) else None


def _start_slot() -> FileLock:
    """A lock that at most PARALLEL_STARTS processes hold at once; the system frees it when its holder dies."""
    folder = Path(tempfile.gettempdir()) / f"sf_explore_go_starts_{os.getuid()}"
    folder.mkdir(exist_ok=True)
    return FileLock(folder / f"{os.getpid() % PARALLEL_STARTS}.lock")


def _last_words(folder: Path) -> str:
    """What a failed engine wrote, to end an error message with."""
    try:
        lines = (folder / "engine.log").read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return "".join(f"; it wrote: {line.strip()}" for line in [line for line in lines if line.strip()][-1:])


def _dispose(game: Any, folder: Path, owner: int) -> None:
    """End the engine and remove its files; also run when the object is collected and when the interpreter exits."""
    if os.getpid() != owner:
        return  # forked: the engine is the parent's
    guarded = {str(folder): ""}
    try:
        guarded[str(folder)] = game.get_instance_id()
        for pid in find_engines(guarded):
            os.kill(pid, signal.SIGKILL)  # an engine that hangs would let `close` wait for ever
        game.close()
    except (*DEATHS, ProcessLookupError):
        remove_engines(guarded)
    remove_files(str(folder), guarded[str(folder)])
    JANITOR.release(folder)


# --- forks ------------------------------------------------------------------------------------------------------------

_engines: "weakref.WeakSet[DoomEngine]" = weakref.WeakSet()


def _disown_engines() -> None:
    """In a forked child: its copies of the parent's engines count as dead, so that it starts engines of its own.

    ViZDoom's destructor must never run on such a copy, since it would end the parent's engine.
    """
    for engine in list(_engines):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine._game))
        engine._game = vizdoom.DoomGame()
    _engines.clear()


os.register_at_fork(after_in_child=_disown_engines)
