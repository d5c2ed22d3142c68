"""A policy with a server is a rule without a clock: what the server does with a gradient that has just arrived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)  # not frozen, which would make it twice as slow to make, and a run makes one per gradient
class Decision:
    """What the server does with the gradient that has just arrived.

    version: the version of the parameters that this arrival completes, or None. Versions count 1, 2, 3, …
    applied: whether the gradient goes into an update: the one just made, or the next one to be made. False: dropped.
    answers: (worker, version) pairs: who is sent parameters now, and which version of them. Answering a worker
        whose gradient has not arrived yet cancels that gradient.
    """

    version: int | None = None
    applied: bool = True
    answers: tuple[tuple[int, int], ...] = ()


HELD = Decision()  # the gradient waits for others; one object says it of all, and nobody changes it


class Rule(Protocol):
    """Decides about one arrival after the other; the simulator and the real server ask the same object."""

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        """`worker`'s gradient of its `step`, computed on the parameters of `read_version`, has just arrived."""
        ...
