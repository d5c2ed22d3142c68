"""Sums over all ranks, by point-to-point messages."""

from __future__ import annotations

import torch
import torch.distributed as dist


def total(tensor: torch.Tensor) -> None:
    """Sums `tensor` over all ranks, in place. Each ends with the same sum.

    The shape stays.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    raise NotImplementedError("write total: Sums `tensor` over all ranks, in place.")


class Counter:
    """Counts what it is given."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> int:
        """Adds `number` to the count and returns the count so far, which starts at nought, ever."""
        raise NotImplementedError(
            "write Counter.add: Adds `number` to the count and returns the count so far, which starts at nought, ever."
        )
