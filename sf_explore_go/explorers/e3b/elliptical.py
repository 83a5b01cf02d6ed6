"""The episodic elliptical bonus, exactly, from one Cholesky factor that grows with the explore phase.

Henaff, Raileanu, Jiang, Rocktäschel: Exploration via Elliptical Episodic Bonuses (NeurIPS 2022), section 3.
With feature rows phi_1, phi_2, ... of one explore phase (the episode, in the paper) and a ridge lambda:

    b_t = phi_t' C_t^-1 phi_t,    C_t = lambda I + sum_{i<t} phi_i phi_i'

Let Phi hold the rows up to t and G = Phi Phi' / lambda. By the matrix determinant lemma 1 + b_t = det C_t+1 / det C_t,
and det C_t+1 = lambda^d det(I + G). With I + G = L L' the determinant is the product of the squared diagonal of L, so

    1 + b_t = L_tt^2 = 1 + G_tt - sum_{j<t} L_tj^2.

L does not change when rows are added below, so a phase keeps its rows and its L, and T new rows cost their product with
the rows so far, then one triangular solve and one T x T Cholesky for all environments at once. The published code
updates a d x d inverse for every single step instead.

Deviations from that code:

- Products, solve and Cholesky are in float64; features come and bonuses go in float32. Frames that follow each other
  are nearly alike, so b is the small difference of numbers of the size of G_tt (5120 for d = 512 after a LayerNorm,
  against b = 0.005 for the 200th equal frame): in float32 only the first digit of it would be left.
- Rows longer than sqrt(1e8 lambda) are shortened to that length, so that I + G - ... stays positive definite in float64
  whatever comes in. No LayerNorm gives rows like that. With them, b lies in [0, 1e8] and is finite for all finite
  features: rounding is about 1e-14 G_tt, that is at most 1e-6, and what it takes below zero is set to zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

MAX_SQUARED_LENGTH = 1e8  # of a feature row, in units of the ridge


def shorten(features: Tensor, ridge: float) -> Tensor:
    """Rows [..., d] as they are, but for those that are too long for float64 (see the module's docstring)."""
    limit = math.sqrt(MAX_SQUARED_LENGTH * ridge)
    if torch.linalg.vector_norm(features, dim=-1).max() <= limit:  # the usual case; infinite if it overflows
        return features
    length = torch.linalg.vector_norm(features, dim=-1, keepdim=True, dtype=torch.float64)
    return (features * (limit / length).clamp(max=1.0)).to(features.dtype)


def grow(factor: Tensor, cross: Tensor, gram: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Bonuses of T new rows after M earlier ones, and what they add to the factor; P phases, all float64.

    `factor` [P, M, M] is L of the earlier rows; `cross` [P, M, T] and `gram` [P, T, T] are products of the earlier and
    of the new rows with the new ones, over lambda. Shorter phases are padded, `factor` with the identity and the
    others with zeros, which changes nothing for the rest and gives bonuses of zero.
    Returns bonuses [P, T], and the new rows of the factor: left [P, T, M] and corner [P, T, T].
    """
    left = torch.linalg.solve_triangular(factor, cross, upper=False).mT
    rest = torch.baddbmm(gram, left, left.mT, alpha=-1.0)
    rest.diagonal(dim1=-2, dim2=-1).add_(1.0)
    corner = torch.linalg.cholesky(rest)
    explained = left.square().sum(-1) + corner.tril(-1).square().sum(-1)
    return (gram.diagonal(dim1=-2, dim2=-1) - explained).clamp(min=0.0), left, corner


# --- which steps belong together --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PhaseSteps:
    """Where each step of a batch of N rollouts belongs; all [N, T], rollouts of an environment in order of time."""

    env: np.ndarray
    phase: np.ndarray
    step: np.ndarray
    done: np.ndarray  # the phase ends with this step


class Piece(NamedTuple):
    """Steps of one phase that follow each other inside one rollout: [start, stop) of the flattened batch."""

    env: int
    phase: int
    step: int  # of the first
    start: int
    stop: int
    ends: bool


def cut(steps: PhaseSteps) -> list[Piece]:
    """All rollouts in pieces, each within one phase, in order."""
    begins = np.ones(steps.env.shape, bool)
    same_phase = (steps.env[:, 1:] == steps.env[:, :-1]) & (steps.phase[:, 1:] == steps.phase[:, :-1])
    begins[:, 1:] = ~same_phase | (steps.step[:, 1:] != steps.step[:, :-1] + 1) | steps.done[:, :-1].astype(bool)
    starts = np.flatnonzero(begins)
    stops = np.append(starts[1:], begins.size)
    columns = (steps.env.flat[starts], steps.phase.flat[starts], steps.step.flat[starts], starts, stops)
    ends = steps.done.flat[stops - 1].astype(bool)
    return [Piece(*row) for row in zip(*(column.tolist() for column in (*columns, ends)), strict=True)]


@dataclass
class Segment:
    """All steps of one phase in a batch, from one rollout or several."""

    env: int
    phase: int
    next_step: int
    earlier: int  # rows of the phase that are held from earlier batches
    length: int = 0
    ended: bool = False
    pieces: list[Piece] = field(default_factory=list)

    def goes_on_with(self, piece: Piece) -> bool:
        return not self.ended and (self.phase, self.next_step) == (piece.phase, piece.step)

    def take(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.length += piece.stop - piece.start
        self.next_step = piece.step + piece.stop - piece.start
        self.ended = piece.ends


class PhaseMemory:
    """The open phase of one environment, in tensors that serve phase after phase."""

    def __init__(self, max_steps: int, size: int, device: torch.device) -> None:
        self.phase, self.next_step = -1, 0
        self.length = 0  # rows held; 0: no phase is open
        self.rows = torch.empty(max_steps, size, dtype=torch.float64, device=device)
        self.factor = torch.zeros(max_steps, max_steps, dtype=torch.float64, device=device)  # lower triangle L


class EpisodicBonus:
    """Bonuses of batches, with one open phase per environment carried from batch to batch.

    A piece that goes on with a phase whose earlier rows are not held counts as `late`: its bonuses are computed as if
    the phase had begun there, and the phase is held from there on. `first` [N, T] marks the steps of the last batch
    that nothing came before: the first of each phase and of each late piece. Phases have at most `max_steps` steps, so
    an environment takes at most 8 max_steps (d + max_steps) bytes, and only as much as its longest phase so far.
    """

    def __init__(self, ridge: float, max_steps: int) -> None:
        self.ridge = ridge
        self.max_steps = max_steps
        self.late = 0
        self.first = torch.empty(0, 0, dtype=torch.bool)
        self.memories: dict[int, PhaseMemory] = {}  # by environment

    @torch.no_grad()
    def __call__(self, features: Tensor, steps: PhaseSteps) -> Tensor:
        """Bonuses [N, T] float32 of features [N, T, d], on the features' device."""
        rows = shorten(features, self.ridge).flatten(0, 1)
        segments = self._segments(cut(steps))
        self.first = torch.zeros(features.shape[:2], dtype=torch.bool, device=rows.device)
        self.first.view(-1)[[segment.pieces[0].start for segment in segments if segment.earlier == 0]] = True
        padded_bonuses, left, corner = grow(*self._products(segments, rows))
        padded_bonuses = padded_bonuses.float()
        bonuses = torch.empty(len(rows), dtype=torch.float32, device=rows.device)
        for i, segment in enumerate(segments):
            own = padded_bonuses[i, : segment.length].split([piece.stop - piece.start for piece in segment.pieces])
            for piece, values in zip(segment.pieces, own, strict=True):
                bonuses[piece.start : piece.stop] = values
            self._keep(segment, left[i], corner[i])
        return bonuses.view(features.shape[:2])

    def _segments(self, pieces: Sequence[Piece]) -> list[Segment]:
        """Pieces joined by phase; those of one environment stay in order."""
        segments: list[Segment] = []
        newest: dict[int, Segment] = {}  # environment -> its last segment
        for piece in pieces:
            segment = newest.get(piece.env)
            if segment is None or not segment.goes_on_with(piece):
                earlier = self._held(piece) if segment is None else 0
                self.late += earlier == 0 and piece.step > 0
                segment = newest[piece.env] = Segment(piece.env, piece.phase, piece.step, earlier)
                segments.append(segment)
            segment.take(piece)
        return segments

    def _held(self, piece: Piece) -> int:
        """How many rows are held of the phase that this piece goes on with; 0 if it begins one."""
        memory = self.memories.get(piece.env)
        if memory is None or (memory.phase, memory.next_step) != (piece.phase, piece.step):
            return 0
        return memory.length

    def _products(self, segments: Sequence[Segment], rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Factor [P, M, M], cross [P, M, L] and gram [P, L, L] of all segments, as `grow` takes them."""
        count, device = len(segments), rows.device
        longest, earlier = max(s.length for s in segments), max(s.earlier for s in segments)
        factor = torch.zeros(count, earlier, earlier, dtype=torch.float64, device=device)
        factor.diagonal(dim1=-2, dim2=-1).fill_(1.0)
        cross = torch.zeros(count, earlier, longest, dtype=torch.float64, device=device)
        gram = torch.zeros(count, longest, longest, dtype=torch.float64, device=device)
        for i, segment in enumerate(segments):
            m, n = segment.earlier, segment.earlier + segment.length
            memory = self._append(segment, rows)
            products = memory.rows[:n] @ memory.rows[m:n].T
            cross[i, :m, : n - m] = products[:m]
            gram[i, : n - m, : n - m] = products[m:]
            factor[i, :m, :m] = memory.factor[:m, :m]
        return factor, cross.div_(self.ridge), gram.div_(self.ridge)

    def _append(self, segment: Segment, rows: Tensor) -> PhaseMemory:
        """Put the segment's rows behind the earlier ones of its phase, or in the place of an older phase."""
        if segment.env not in self.memories:
            self.memories[segment.env] = PhaseMemory(self.max_steps, rows.shape[1], rows.device)
        memory = self.memories[segment.env]
        place = segment.earlier
        for piece in segment.pieces:
            memory.rows[place : place + piece.stop - piece.start] = rows[piece.start : piece.stop]
            place += piece.stop - piece.start
        return memory

    def _keep(self, segment: Segment, left: Tensor, corner: Tensor) -> None:
        """Hold the phase if it goes on; left [L, M] and corner [L, L] are the factor's new rows."""
        memory = self.memories[segment.env]
        m, n = segment.earlier, segment.earlier + segment.length
        if segment.ended:
            memory.length = 0
            return
        memory.phase, memory.next_step, memory.length = segment.phase, segment.next_step, n
        memory.factor[m:n, :m] = left[: n - m, :m]
        memory.factor[m:n, m:n] = corner[: n - m, : n - m]
