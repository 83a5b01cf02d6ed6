"""One seed, many independent streams.

A stream is named, so that adding a consumer of randomness never shifts the numbers of another one. The derivation is
SHA-256, hence the same on every machine, Python and NumPy version.
"""

import hashlib


def derive_seed(seed: int, *stream: str | int) -> int:
    """A 32-bit seed for the named stream of a run, e.g. ``derive_seed(cfg.seed, "env", 3)``."""
    name = ":".join(str(part) for part in (seed, *stream))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")


def env_seed(seed: int, stream: str, env_index: int, frames: int = 0) -> int:
    """For one environment of a run: its first reset ("env"), its k ("phase"), its explorer ("explorer").

    `frames` are those made before this part of the run: a resumed run draws anew instead of replaying its beginning.
    """
    return derive_seed(seed, stream, env_index, frames)
