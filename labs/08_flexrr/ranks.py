"""What runs in the ranks: the student's server and workers, whose gradients only they know."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank

Arguments = dict[str, Any]


def decide(tasks: ModuleType, *, name: str, cases: list[list[Any]]) -> Arguments:
    """What one of the student's functions says in each case."""
    function = getattr(tasks, name)
    return {"found": [function(*case) for case in cases]}


def train(tasks: ModuleType, *, cases: list[Arguments]) -> Arguments:
    """Takes part in one training after the other, as the student's server or worker. begin: when each one begins."""
    return {"cases": [_trained(tasks, number, **case) for number, case in enumerate(cases)]}


def _trained(
    tasks: ModuleType, number: int, *, begin: float, serve: Arguments | None = None, work: Arguments | None = None,
    lines: Sequence[Sequence[Any]] = (),
) -> Arguments:  # fmt: skip
    """lines: a script in place of the student's server."""
    rank.busy(max(begin - rank.now(), 0.0), "pause")
    for kind, worker, content in lines:
        if kind == "order":
            dist.send(content, worker)
        else:
            _heard(content, worker, f"report {worker}")
    if lines:
        return {}
    if serve is None:
        assert work is not None
        return _worked(tasks, number, **work)
    room = serve.pop("room")
    handed = tasks.serve(room[:, room.shape[1] // 2], **serve)  # where there are other columns, not contiguous
    return {"room": room, "handed": [[int(one) for one in piece] for piece in handed]}


def _worked(
    tasks: ModuleType, number: int, *, own: torch.Tensor, decay: torch.Tensor, ends: list[float],
    seconds: list[float], pieces: list[list[int]] | None,
) -> Arguments:  # fmt: skip
    """own: vectors that only this rank has. ends: when its first pieces end; later ones take these seconds, in turn.

    pieces: a script in place of the student's worker.
    """
    done = 0

    def gradient(parameters: torch.Tensor, worker: int, step: int, item: int) -> torch.Tensor:
        nonlocal done
        place, done = done, done + 1
        rank.note("parameters", parameters.detach().numpy().copy())
        long = ends[place] - rank.now() if place < len(ends) else seconds[place % len(seconds)]
        rank.busy(max(long, 0.0), f"{number} {int(worker)} {int(step)} {int(item)}")
        return own[place % len(own)] + decay * parameters

    scripted = pieces is not None
    if not scripted:
        tasks.work(own.shape[1], gradient)
        return {}
    last, room, name = dist.get_world_size() - 1, 3 + own.shape[1], f"order {dist.get_rank()}"
    for piece in pieces or ():
        came = _heard(room, last, name)
        dist.send(gradient(came[3:], piece[0], piece[1], piece[2]), last)
    _heard(room, last, name)
    return {}


def _heard(size: int, source: int, name: str) -> torch.Tensor:
    """Receives a vector, and notes it under this name."""
    vector = torch.zeros(size, dtype=torch.float64)
    dist.recv(vector, source)
    rank.note(name, vector.numpy().copy())
    return vector


def predict(tasks: ModuleType, *, cases: list[list[Any]]) -> Arguments:
    """The student's formula."""
    return {"seconds": [float(tasks.shared_step_seconds(*case)) for case in cases]}


def real(
    tasks: ModuleType, seconds: list[list[float]], items: int = 12, threshold: int = 2, size: int = 1024,
    unwritten: Sequence[str] = (),
) -> Arguments:  # fmt: skip
    """A run for real, in which a piece is a sleep, without helpers and then with them.

    seconds: by rank and step, how long this rank takes for all pieces of a step.
    """
    if {"serve", "work", "may_begin", "whom_to_help"} & set(unwritten):
        return {}
    me, server, steps = dist.get_rank(), dist.get_world_size() - 1, len(seconds[0])

    def gradient(parameters: torch.Tensor, _worker: int, step: int, _item: int) -> torch.Tensor:
        rank.busy(seconds[me][step] / items)
        return parameters

    taken, handed = [], []
    for group in (0, server - 1):
        dist.barrier()
        before = rank.now()
        if me == server:
            parameters = torch.zeros(size, dtype=torch.float64)
            handed = tasks.serve(parameters, steps, items, 0, group, threshold, 0.01)
        else:
            tasks.work(size, gradient)
        taken.append((rank.now() - before) / steps)
    return {"alone_seconds": taken[0], "helped_seconds": taken[1], "handed": len(handed)}
