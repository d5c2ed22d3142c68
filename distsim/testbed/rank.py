"""What code on a rank's side may ask of the run it is in, on the testbed as in a real run.

On the testbed time is virtual: `busy` takes exactly what it is told, whatever the machine does. In a real run
(torchrun, gloo or NCCL) `busy` sleeps, and `now` is the machine's own clock.
"""

from __future__ import annotations

import time
from typing import Any, Protocol


class RunContext(Protocol):
    """Where a rank runs."""

    def busy(self, seconds: float, kind: str) -> None:
        """Lets time pass."""

    def note(self, name: str, value: Any) -> None:
        """Writes something down."""

    def now(self) -> float:
        """Seconds on the run's clock."""


class LocalContext:
    """This machine and its own clock.

    >>> context = LocalContext()
    >>> context.note("loss", 0.5)
    >>> context.notes
    [('loss', 0.5)]
    """

    def __init__(self) -> None:
        self.notes: list[tuple[str, Any]] = []
        self._sleep, self._clock = time.sleep, time.perf_counter

    def busy(self, seconds: float, kind: str) -> None:  # noqa: ARG002 - a testbed draws it
        """Sleeps."""
        self._sleep(max(seconds, 0.0))

    def note(self, name: str, value: Any) -> None:
        """Keeps it in `notes`."""
        self.notes.append((name, value))

    def now(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return self._clock()


context: RunContext = LocalContext()


def busy(seconds: float, kind: str = "compute") -> None:
    """Computes for so many seconds. kind: what it is called in timelines, such as "forward" or "backward"."""
    context.busy(seconds, kind)


def note(name: str, value: Any) -> None:
    """Writes down a value, with the time and the rank: for figures and messages, never as a proof."""
    context.note(name, value)


def now() -> float:
    """Seconds on the clock of the run.

    >>> earlier = now()
    >>> busy(0.001)
    >>> now() - earlier >= 0.001
    True
    """
    return context.now()
