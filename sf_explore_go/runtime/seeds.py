"""Seeding of whole processes: every generator that Sample Factory or torch may draw from."""

import random

import numpy as np
import torch

from sf_explore_go.seeding import derive_seed


def seed_process(seed: int, *stream: str | int) -> None:
    """Seed Python's, NumPy's and torch's global generators of this process for the named stream."""
    derived = derive_seed(seed, *stream)
    random.seed(derived)
    np.random.seed(derived)  # noqa: NPY002 - Sample Factory draws from the global generator
    torch.manual_seed(derived)
