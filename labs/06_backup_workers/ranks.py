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
    """The student's server. Its parameters are the middle column of `room`."""
    used = tasks.serve(middle(room), **arguments)
    return {"room": room, "book": [[int(worker) for worker in ranks] for ranks in used]}


def worker(
    tasks: ModuleType,
    room: torch.Tensor,
    ends: list[float],
    base: torch.Tensor,
    decay: torch.Tensor,
    tick: torch.Tensor,
) -> dict[str, Any]:
    """The student's worker. Its gradient depends on the parameters, on the version, and on how many came before."""
    done = 0

    def gradient(at: torch.Tensor, version: int) -> torch.Tensor:
        nonlocal done
        wait_until(ends[min(done, len(ends) - 1)], "gradient")
        done += 1
        return base[(done - 1) % len(base)] + decay * at + version * tick

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


def predict(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The student's formula."""
    return {"seconds": [float(tasks.step_seconds(**case)) for case in cases]}


def real(
    tasks: ModuleType, seconds: list[list[float]], wait_for: int | None = None, size: int = 1024,
    unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """A run for real, in which workers sleep for their seconds; its seconds for each update. One is the backup."""
    if {"serve", "work"} & set(unwritten):
        return {}
    me, last = dist.get_rank(), dist.get_world_size() - 1
    updates = len(seconds[0])
    parameters = torch.zeros(size, dtype=torch.float64)
    dist.barrier()
    before = rank.now()
    if me == last:
        tasks.serve(parameters, updates, wait_for or last - 1, 0.1)
    else:

        def gradient(at: torch.Tensor, version: int) -> torch.Tensor:
            rank.busy(seconds[me][version])
            return at

        tasks.work(parameters, gradient)
    return {"step_seconds": (rank.now() - before) / updates}
