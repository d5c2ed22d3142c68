"""What runs in the ranks."""

from __future__ import annotations

import time


def summed(tasks, *, values):
    """The sum of all ranks' values, as the student makes it."""
    values = values.clone()
    tasks.total(values)
    return {"values": values}


def counted(tasks, *, numbers):
    """What a Counter says after each number."""
    counter = tasks.Counter()
    return {"counts": [counter.add(number) for number in numbers]}


def real(tasks, seconds, size=4):
    """The sum of `size` numbers for real: its seconds, what came out, and the times that the scenario draws."""
    import torch
    import torch.distributed as dist

    values = torch.ones(size)
    began = time.perf_counter()
    tasks.total(values)
    took = time.perf_counter() - began
    return {"seconds": took, "first": float(values[0]), "drawn": seconds[dist.get_rank()]}
