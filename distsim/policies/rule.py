"""The rule of a policy with a server. A rule decides about each gradient that arrives; it has no clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)  # a run makes one per gradient, and frozen ones take twice as long to make
class Decision:
    """The server's decision about the gradient that has just arrived.

    version: the version of the parameters that this arrival completes, or None. Versions count 1, 2, 3, …
    applied: whether the gradient goes into an update, the one just made or the next. False: the gradient is dropped.
    answers: (worker, version) pairs: the workers that are sent parameters now, and the version of these. An answer to a
        worker whose gradient has not arrived yet cancels that gradient.
    """

    version: int | None = None
    applied: bool = True
    answers: tuple[tuple[int, int], ...] = ()


HELD = Decision()  # the gradient waits for others; one object serves all gradients


class Rule(Protocol):
    """Decides about each arrival in turn. The simulator and the real server ask the same object."""

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        """`worker`'s gradient of its `step`, computed on the parameters of `read_version`, has just arrived."""
        ...
