"""What a student might have written, and what a student should not have."""

from __future__ import annotations

import os
import sys
import time

import torch
import torch.distributed as dist


def ring_all_reduce(values: torch.Tensor) -> None:
    ranks, me = dist.get_world_size(), dist.get_rank()
    chunks = list(values.chunk(ranks))
    for turn in range(2 * (ranks - 1)):
        give, take = chunks[(me - turn) % ranks], chunks[(me - turn - 1) % ranks]
        came = torch.empty_like(take)
        sending, receiving = dist.isend(give, (me + 1) % ranks), dist.irecv(came, (me - 1) % ranks)
        sending.wait()
        receiving.wait()
        take.copy_(take + came if turn < ranks - 1 else came)


def circle() -> None:
    dist.send(torch.zeros(1), (dist.get_rank() + 1) % dist.get_world_size())


def forever() -> None:
    while True:
        pass


def leaves() -> None:
    if dist.get_rank() == 1:
        os._exit(0)
    dist.barrier()


def gives_up() -> None:
    sys.exit("enough")


def wrong() -> None:
    raise ValueError("seven is no even number")


def sleeps() -> float:
    before = time.perf_counter()
    time.sleep(3600.0)
    return time.perf_counter() - before


def forges() -> None:
    print('{"do": "result", "value": 1}')
    raise RuntimeError("and fails")


def floods() -> None:
    while True:
        print("x" * 10**6)


def returns_an_object() -> object:
    return object()
