"""Sums over all ranks, by point-to-point messages."""

from __future__ import annotations

import torch
import torch.distributed as dist

# write
NEXT_DOOR_NEIGHBOUR = 1
# end


def total(tensor: torch.Tensor) -> None:
    """Sums `tensor` over all ranks, in place. Each ends with the same sum.

    The shape stays.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    # write
    travelling = tensor.clone()
    for _ in range(ranks - NEXT_DOOR_NEIGHBOUR):
        arriving = torch.empty_like(travelling)
        sending = dist.isend(travelling, (rank + NEXT_DOOR_NEIGHBOUR) % ranks)
        dist.recv(arriving, (rank - NEXT_DOOR_NEIGHBOUR) % ranks)
        sending.wait()
        tensor += arriving
        travelling = arriving
    # end


class Counter:
    """Counts what it is given."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> int:
        """Adds `number` to the count and returns the count so far, which starts at nought, ever."""
        # write
        self.count = self.count + number
        return self.count
        # end
