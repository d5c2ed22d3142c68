# caught by: the_counter_counts
"""A counter that forgets."""

from __future__ import annotations

import torch
import torch.distributed as dist


def total(tensor: torch.Tensor) -> None:
    """By the back end's own sum."""
    dist.all_reduce(tensor)


class Counter:
    """It has no memory."""

    def add(self, number: int) -> int:
        """Gives the number back."""
        return number
