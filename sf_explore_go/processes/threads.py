"""How many threads torch computes with in a process that does everything itself."""

import os

import torch


def use_one_thread() -> None:
    """One, unless OMP_NUM_THREADS asks for another number.

    By default torch splits every product over all cores. A network of a few thousand weights gains nothing from that,
    and where another program needs a core, each product waits for the thread that does not get one. Workers of a
    parallel training have one thread each by Sample Factory's own choice.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
