"""How far a walking player comes at most: tells the decisions in which it cannot take the vest.

Each tic the engine keeps a part of the player's speed, adds a push if it walks, and moves it by the result. Turns and
walls never make it faster, so speeds and ways summed up as if it always walked straight ahead are bounds.
"""

FRICTION = 0xE800 / 0x10000  # share of its speed that a player keeps from tic to tic
PUSH = 25 * 2048 / 0x10000  # what a tic of walking adds, in map units per tic
TOUCH = 36.0 + 2.0  # a thing is taken where |dx| and |dy| are below both radii (16 + 20); 2 for the engine's rounding


class Reach:
    """Bounds for a player that makes decisions of a fixed number of tics."""

    def __init__(self, tics: int) -> None:
        self.speed = self.way = 0.0  # now, and since the player was last seen; map units
        self._kept, self._coasted = _hold(1.0, 0.0, tics)
        self._gained, self._walked = _hold(0.0, PUSH, tics)

    def rest(self) -> None:
        """The player stands still, and is seen."""
        self.speed = self.way = 0.0

    def seen(self) -> None:
        self.way = 0.0

    def decide(self, walks: bool) -> None:
        """One more decision, to walk (forward or backward) or not."""
        self.way += self._coasted * self.speed + self._walked * walks
        self.speed = self._kept * self.speed + self._gained * walks


def _hold(speed: float, push: float, tics: int) -> tuple[float, float]:
    """Speed after so many tics, and the way made in them; both are linear in the speed before and in the push."""
    way = 0.0
    for _ in range(tics):
        speed = speed * FRICTION + push
        way += speed
    return speed, way
