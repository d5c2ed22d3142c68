"""How long a message without content takes from one rank to another, measured."""

from __future__ import annotations

import time
from statistics import median

import torch
import torch.distributed as dist

ROUND_TRIPS = 40


def one_way_seconds() -> float | None:
    """Half the median round trip between ranks 0 and 1, on rank 0; None on the others, which must call it too."""
    rank = dist.get_rank()
    if rank > 1 or dist.get_world_size() == 1:
        return None
    ball = torch.zeros(1)
    trips = []
    for _ in range(ROUND_TRIPS):
        start = time.monotonic()
        if rank == 0:
            dist.send(ball, dst=1)
            dist.recv(ball, src=1)
        else:
            dist.recv(ball, src=0)
            dist.send(ball, dst=0)
        trips.append(time.monotonic() - start)
    return median(trips) / 2 if rank == 0 else None
