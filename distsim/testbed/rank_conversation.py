"""A rank's part in trainings with a server: it is the student's server or worker, or it recites a script of messages.

`distsim.grading.served_training` makes the turns. Only ranks import this module, because it needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank

Serve = Callable[..., Sequence[Sequence[int]]]
Work = Callable[[torch.Tensor, Callable[[torch.Tensor, int], torch.Tensor]], None]


def conversed(turns: list[dict[str, Any]], serve: Serve, work: Work) -> dict[str, Any]:
    """Takes part in one training after the other. serve, work: the student's; work gets a gradient only it knows."""
    left = []
    for number, turn in enumerate(turns):
        _wait_until(turn["begin"], "pause")
        if "serve" in turn:
            left.append(_served(serve, turn["room"], turn["serve"]))
        elif "work" in turn:
            left.append(_worked(work, turn["room"], **turn["work"]))
        else:
            left.append(_recited(turn["script"]))
        rank.note("over", number)
    return {"turns": left}


def _served(serve: Serve, room: torch.Tensor, arguments: dict[str, Any]) -> dict[str, Any]:
    used = serve(_middle(room), **arguments)
    return {"room": room, "book": [[int(number) for number in row] for row in used]}


def _worked(
    work: Work, room: torch.Tensor, ends: list[float], base: torch.Tensor, decay: torch.Tensor, tick: torch.Tensor
) -> dict[str, Any]:
    """The gradient depends on the parameters, on the number given, and on how many gradients came before."""
    done = 0

    def gradient(parameters: torch.Tensor, *given: int, **named: int) -> torch.Tensor:
        nonlocal done
        (number,) = (*given, *named.values())  # lab 06 calls it version, lab 07 push
        _wait_until(ends[min(done, len(ends) - 1)], "gradient")
        done += 1
        return base[(done - 1) % len(base)] + decay * parameters + number * tick

    work(_middle(room), gradient)
    return {"room": room}


def _recited(script: list[dict[str, Any]]) -> dict[str, Any]:
    """Sends and receives what the script says, line by line, and notes what has come."""
    for line in script:
        if "send" in line:
            _wait_until(line["at"], "pause")
            dist.send(line["send"], line["to"])
        else:
            vector = torch.zeros(line["receive"], dtype=torch.float64)
            dist.recv(vector, line["source"])
            rank.note("came", {"source": line["source"], "vector": vector.numpy()})
    return {}


def _middle(room: torch.Tensor) -> torch.Tensor:
    """The middle column: where there are others, it is no contiguous vector."""
    return room[:, room.shape[1] // 2]


def _wait_until(seconds: float, kind: str) -> None:
    """Is busy until this time; not at all where it is over, as in a run on gloo."""
    rank.busy(max(seconds - rank.now(), 0.0), kind)
