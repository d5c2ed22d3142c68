"""Round trips between ranks measure how far two machines' clocks are apart, and how long an empty message takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import torch

from distsim.runtime.recording.clock_offset import Offset, estimated
from distsim.runtime.transport import backend

ROUND_TRIPS = 80


def one_way_seconds() -> float | None:
    """Half the median round trip between ranks 0 and 1, on rank 0; None on the other ranks. All ranks call it."""
    rank = backend.own_rank()
    if rank == 1:
        _answer(0)
    if rank > 0 or backend.num_ranks() == 1:
        return None
    return median(answered - asked for asked, _, answered in _ask(1)) / 2


def measured(machines: Sequence[Sequence[int]]) -> Offset:
    """The offset of this rank's machine. All ranks call it; machines: the ranks of each, rank 0 on the first."""
    rank = backend.own_rank()
    found = torch.zeros(len(machines), 2, dtype=torch.float64)
    for number, (first, *_) in enumerate(machines[1:], 1):
        if rank == 0:
            _answer(first)
        elif rank == first:
            own = estimated(_ask(0))
            found[number] = torch.tensor([own.seconds, own.uncertainty_seconds], dtype=torch.float64)
    backend.all_reduce(found)  # the ranks of a machine share its clock, and so its offset
    own_machine = next(number for number, ranks in enumerate(machines) if rank in ranks)
    return Offset(*found[own_machine].tolist())


def _ask(rank: int) -> list[tuple[float, float, float]]:
    ball = torch.zeros(1, dtype=torch.float64)
    trips = []
    for _ in range(ROUND_TRIPS):
        asked = time.monotonic()
        backend.send(ball, rank)
        backend.receive(ball, rank)
        trips.append((asked, ball.item(), time.monotonic()))
    return trips


def _answer(rank: int) -> None:
    ball = torch.zeros(1, dtype=torch.float64)
    for _ in range(ROUND_TRIPS):
        backend.receive(ball, rank)
        ball[0] = time.monotonic()
        backend.send(ball, rank)
