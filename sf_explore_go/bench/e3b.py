"""`sf-explore-go bench e3b`: the elliptical bonus next to the published per-step update, in one run.

The published learners keep a d x d inverse per environment and change it by Sherman and Morrison's formula after every
step. They do so in two ways, both measured: with new arrays for each result, and in place, in buffers that are kept.
Both arms compute the bonuses of one batch (32 rollouts of 32 steps), given what each of them holds of the phases'
earlier steps. Rates are steps per second of processor time on one thread, which is what Sample Factory gives a learner,
and which load from outside disturbs least.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sf_explore_go.bench.common import Row
from sf_explore_go.explorers.e3b.elliptical import EpisodicBonus, PhaseSteps

ENVS, STEPS, SIZE, EARLIER = 32, 32, 512, 168
SIZES, PHASE_LENGTHS = (128, 256, 1024), (50, 100, 400)  # what else is tried, one at a time
RIDGE = 0.1

Arm = Callable[[], Tensor]  # computes the bonuses [ENVS, STEPS]
Update = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # inverses, u, bonus, buffer -> inverses


# --- the published update ---------------------------------------------------------------------------------------------


def update_in_place(inverses: Tensor, u: Tensor, bonus: Tensor, buffer: Tensor) -> Tensor:
    torch.bmm(u.mT, u, out=buffer)
    torch.mul(buffer, -1.0 / (1.0 + bonus), out=buffer)
    return torch.add(inverses, buffer, out=inverses)


def update_with_new_arrays(inverses: Tensor, u: Tensor, bonus: Tensor, buffer: Tensor) -> Tensor:
    outer = torch.bmm(u.mT, u)
    outer = outer * -1.0 / (1.0 + bonus)
    return inverses + outer


def per_step_bonuses(inverses: Tensor, features: Tensor, buffer: Tensor, update: Update) -> tuple[Tensor, Tensor]:
    """Bonuses [P, T] of features [P, T, d], and the inverses [P, d, d] of the covariances afterwards."""
    bonuses = torch.zeros(features.shape[:2])
    for t in range(features.shape[1]):
        phi = features[:, t]
        u = torch.bmm(phi.unsqueeze(1), inverses)  # [P, 1, d]
        bonus = torch.bmm(u, phi.unsqueeze(2))  # [P, 1, 1]
        bonuses[:, t] = bonus.flatten()
        inverses = update(inverses, u, bonus, buffer)
    return bonuses, inverses


def loop_arm(earlier: Tensor, features: Tensor, update: Update = update_in_place) -> Arm:
    """The loop, with one inverse per environment taken out of a table and put back, as the learner does it."""
    envs = torch.arange(len(features))
    size = features.shape[-1]
    table = (torch.eye(size) / RIDGE).repeat(len(features), 1, 1)
    buffer = torch.empty_like(table)
    for env, rows in enumerate(earlier):  # as the loop would leave it, by Woodbury's identity
        inner = RIDGE * torch.eye(len(rows)) + rows @ rows.T
        table[env] -= rows.T @ torch.linalg.solve(inner, rows) / RIDGE

    def run() -> Tensor:
        bonuses, inverses = per_step_bonuses(table[envs], features, buffer, update)
        table.index_copy_(0, envs, inverses)  # so phases grow from turn to turn, which costs the loop nothing
        return bonuses

    return run


# --- ours -------------------------------------------------------------------------------------------------------------


def our_arm(earlier: Tensor, features: Tensor) -> Arm:
    m, length = earlier.shape[1], features.shape[1]
    bonus = EpisodicBonus(RIDGE, max_steps=m + length)
    for start in range(0, m, length):
        stop = min(start + length, m)
        bonus(earlier[:, start:stop], one_phase_each(len(earlier), start, stop))
    steps = one_phase_each(len(features), m, m + length)

    def run() -> Tensor:
        for memory in bonus.memories.values():  # every turn has the same earlier steps
            memory.length = memory.next_step = m
        return bonus(features, steps)

    return run


def one_phase_each(envs: int, start: int, stop: int) -> PhaseSteps:
    """One rollout per environment with the steps [start, stop) of its first phase."""
    env, step = np.meshgrid(np.arange(envs), np.arange(start, stop), indexing="ij")
    return PhaseSteps(env, np.zeros_like(env), step, np.zeros_like(env))


# --- measuring --------------------------------------------------------------------------------------------------------


def make_features(earlier: int, steps: int, size: int) -> tuple[Tensor, Tensor]:
    """Earlier and new features, [ENVS, earlier, size] and [ENVS, steps, size], as a LayerNorm gives them."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(ENVS, earlier + steps, size, generator=generator)
    rows = torch.nn.functional.layer_norm(rows, (size,))
    return rows[:, :earlier].contiguous(), rows[:, earlier:].contiguous()


def bench_e3b(options: argparse.Namespace) -> list[Row]:
    """Steps per second at the usual size (d = 512 and a phase of 200), with other sizes and lengths; peak memory."""
    with one_thread():
        rows = [measure("new arrays", options, EARLIER, SIZE, update_with_new_arrays)]
        rows += [measure("in place", options, EARLIER, SIZE)]
        rows += [measure(f"d = {size}", options, EARLIER, size) for size in SIZES]
        rows += [measure(f"phase {length}", options, length - STEPS, SIZE) for length in PHASE_LENGTHS]
    return [*rows, peak_memory()]


def measure(name: str, options: argparse.Namespace, earlier: int, size: int, update: Update = update_in_place) -> Row:
    """The arms take turns. What a step costs the loop never changes, so outside the usual case it makes only 4."""
    loop_steps = 2 if options.quick else STEPS if (earlier, size) == (EARLIER, SIZE) else 4
    held, features = make_features(earlier, STEPS, size)
    ours, loop = our_arm(held, features), loop_arm(held, features[:, :loop_steps].contiguous(), update)
    ours(), loop()
    row = Row(name, [], [])
    for _ in range(options.turns):
        row.ours.append(ENVS * STEPS / median_seconds(ours, 3 if options.quick else 15))
        row.stock.append(ENVS * loop_steps / median_seconds(loop, 1))
    return row


def median_seconds(arm: Arm, times: int) -> float:
    seconds = []
    for _ in range(times):
        begin = time.thread_time()
        arm()
        seconds.append(time.thread_time() - begin)
    return float(np.median(seconds))


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def peak_memory() -> Row:
    """MiB that a process needs for what is held and for one batch, on top of the features; each arm in its own."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        ours, loop = (pool.apply(peak_mebibytes, (name,)) for name in ("ours", "loop"))
    return Row("peak MiB", [ours], [loop])


def peak_mebibytes(arm: str) -> float:
    torch.set_num_threads(1)
    make_arm = our_arm if arm == "ours" else loop_arm
    make_arm(*make_features(2, 2, 8))()  # what the first call loads is not counted
    held, features = make_features(EARLIER, STEPS, SIZE)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    make_arm(held, features)()
    return resident("VmHWM") - before


def resident(field: str) -> float:
    """MiB, from Linux's account of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024
