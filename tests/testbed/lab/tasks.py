"""What a student might have written, and what a student should not have."""

from __future__ import annotations

import os
import sys
import time

import torch
import torch.distributed as dist

from distsim.testbed import rank


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


def goes_on() -> str:
    """An error tells the shapes of all ranks' tensors, and no message has passed."""
    try:
        dist.all_reduce(torch.zeros(7 + dist.get_rank()))
    except RuntimeError as error:
        return str(error)
    return ""


def shape_as_message() -> list[int]:
    line = rank.context
    if dist.get_rank() == 0:
        line.wait(line.post("send", to=1, tag=0, group="", data=torch.empty(0, 1234).numpy()))
        return []
    key = line.post("recv", source=0, tag=0, group="", bytes=8)
    return list(line.wait(key)["received"][0].shape)


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
