"""Seeding of whole processes: every generator that Sample Factory or torch may draw from."""

import random
from typing import Any

import numpy as np
import torch

from sf_explore_go.core.seeding import derive_seed


def seed_process(seed: int, *stream: str | int) -> None:
    """Seed Python's, NumPy's and torch's global generators of this process for the named stream."""
    derived = derive_seed(seed, *stream)
    random.seed(derived)
    np.random.seed(derived)  # noqa: NPY002 - Sample Factory draws from the global generator
    torch.manual_seed(derived)


def generator_states() -> dict[str, Any]:
    """Where NumPy's and torch's global generators of this process stand, as tensors and numbers."""
    name, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "numpy": [
            str(name),
            torch.from_numpy(np.asarray(keys, dtype=np.int64)),
            int(position),
            int(has_gauss),
            float(gauss),
        ],
    }


def restore_generators(states: dict[str, Any]) -> None:
    torch.set_rng_state(states["torch"].cpu())
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, keys.cpu().numpy().astype(np.uint32), *rest))  # noqa: NPY002
