"""One seed, many independent streams.

A stream is named, so that adding a consumer of randomness never shifts the numbers of another one. The derivation is
SHA-256, hence the same on every machine, Python and NumPy version.
"""

import hashlib


def derive_seed(seed: int, *stream: str | int) -> int:
    """A 32-bit seed for the named stream of a run, e.g. ``derive_seed(cfg.seed, "env", 3)``."""
    name = ":".join(str(part) for part in (seed, *stream))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
