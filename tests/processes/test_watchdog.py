"""Time without a sign of life, counted with a hand-made clock."""

from sf_explore_go.processes.watchdog import Watchdog


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def look_for(watchdog: Watchdog, clock: Clock, seconds: float, step: float = 0.25) -> list[str]:
    for _ in range(int(seconds / step)):
        clock.now += step
        silent = watchdog.silent()
    return silent


def test_only_who_is_watched_and_silent_is_named() -> None:
    clock = Clock()
    watchdog = Watchdog(10, clock)
    watchdog.watch("a")
    watchdog.watch("b")
    watchdog.sign_of_life("never watched")
    assert look_for(watchdog, clock, 8) == []
    watchdog.sign_of_life("b")
    assert look_for(watchdog, clock, 3) == ["a"]
    watchdog.sign_of_life("a")
    assert look_for(watchdog, clock, 1) == []


def test_watching_again_does_not_begin_anew() -> None:
    clock = Clock()
    watchdog = Watchdog(10, clock)
    for _ in range(44):
        watchdog.watch("a")
        clock.now += 0.25
        silent = watchdog.silent()
    assert silent == ["a"]
    watchdog.forget("a")
    assert watchdog.silent() == []


def test_a_night_in_which_the_machine_slept_blames_nobody() -> None:
    clock = Clock()
    watchdog = Watchdog(10, clock)
    watchdog.watch("a")
    clock.now += 8 * 3600
    assert watchdog.silent() == []
