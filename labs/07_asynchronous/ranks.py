"""What runs in the ranks: the student's server and workers, whose gradients only they know, or a script of messages."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank


def converse(tasks: ModuleType, *, turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Takes part in one training after the other: as the student's server or worker, or by a script of messages."""
    left = []
    for number, turn in enumerate(turns):
        wait_until(turn["begin"], "pause")
        if "serve" in turn:
            left.append(server(tasks, turn["room"], turn["serve"]))
        elif "work" in turn:
            left.append(worker(tasks, turn["room"], **turn["work"]))
        else:
            left.append(recite(turn["script"]))
        rank.note("over", number)
    return {"turns": left}


def server(tasks: ModuleType, room: torch.Tensor, arguments: dict[str, Any]) -> dict[str, Any]:
    """The student's server, with a bound if one is given. Its parameters are the middle column of `room`."""
    serve = tasks.serve_stale_synchronous if "staleness" in arguments else tasks.serve_asynchronous
    used = serve(middle(room), **arguments)
    return {"room": room, "book": [[int(number) for number in pair] for pair in used]}


def worker(
    tasks: ModuleType,
    room: torch.Tensor,
    ends: list[float],
    base: torch.Tensor,
    decay: torch.Tensor,
    tick: torch.Tensor,
) -> dict[str, Any]:
    """The student's worker. Its gradient depends on the parameters, the number named, and how many came before."""
    done = 0

    def gradient(at: torch.Tensor, push: int) -> torch.Tensor:
        nonlocal done
        wait_until(ends[min(done, len(ends) - 1)], "gradient")
        done += 1
        return base[(done - 1) % len(base)] + decay * at + push * tick

    tasks.work(middle(room), gradient)
    return {"room": room}


def recite(script: list[dict[str, Any]]) -> dict[str, Any]:
    """Sends and receives what the script says, line by line, and notes what has come."""
    for line in script:
        if "send" in line:
            wait_until(line["at"], "pause")
            dist.send(line["send"], line["to"])
        else:
            vector = torch.zeros(line["receive"], dtype=torch.float64)
            dist.recv(vector, line["source"])
            rank.note("came", {"source": line["source"], "vector": vector.numpy()})
    return {}


def middle(room: torch.Tensor) -> torch.Tensor:
    """The middle column: where there are others, it is no contiguous vector."""
    return room[:, room.shape[1] // 2]


def wait_until(seconds: float, kind: str) -> None:
    """Is busy until this time; not at all where it is over, as in a run on gloo."""
    rank.busy(max(seconds - rank.now(), 0.0), kind)


def predict(tasks: ModuleType, *, cases: list[list[int]]) -> dict[str, Any]:
    """The student's formula, for pairs of workers and bound."""
    return {"staleness": [float(tasks.largest_staleness(workers, bound)) for workers, bound in cases]}


def real(
    tasks: ModuleType, seconds: list[list[float]], updates: int | None = None, size: int = 1024,
    unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """A run for real, in which workers sleep for their seconds, again and again.

    At the server: the mean staleness of all updates, and of those by the fast, who are all workers but the last.
    """
    if {"serve_asynchronous", "work"} & set(unwritten):
        return {}
    me, last = dist.get_rank(), dist.get_world_size() - 1
    parameters = torch.zeros(size, dtype=torch.float64)
    if me == last:
        updates = updates or last * len(seconds[0])
        used = tasks.serve_asynchronous(parameters, updates, 0.01)
        fast = [stale for number, stale in used if number != last - 1]
        return {
            "mean_staleness": sum(stale for _, stale in used) / updates,
            "of_the_fast": sum(fast) / max(len(fast), 1),
        }

    def gradient(at: torch.Tensor, push: int) -> torch.Tensor:
        rank.busy(seconds[me][push % len(seconds[me])])
        return at

    tasks.work(parameters, gradient)
    return {}
