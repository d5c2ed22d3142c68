"""What a rank's code may ask of its run, on the testbed and in a real run alike.

On the testbed time is virtual: `busy` takes exactly the given time, whatever the machine does. In a real run
(torchrun, gloo or NCCL) `busy` sleeps, and `now` is the machine's own clock.
"""

from __future__ import annotations

import time
from typing import Any, Protocol


class RunContext(Protocol):
    """The run of a rank."""

    def busy(self, seconds: float, kind: str) -> None:
        """Lets time pass."""

    def note(self, name: str, value: Any) -> None:
        """Records a value."""

    def now(self) -> float:
        """Seconds on the run's clock."""


class LocalContext:
    """A run on this machine, with the machine's own clock.

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
        """Keeps the value in `notes`."""
        self.notes.append((name, value))

    def now(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return self._clock()


context: RunContext = LocalContext()


def busy(seconds: float, kind: str = "compute") -> None:
    """Computes for `seconds`. kind: the name in timelines, such as "forward" or "backward"."""
    context.busy(seconds, kind)


def note(name: str, value: Any) -> None:
    """Records a value with the time and the rank, for figures and messages; checks never rely on it."""
    context.note(name, value)


def now() -> float:
    """Seconds on the clock of the run.

    >>> earlier = now()
    >>> busy(0.001)
    >>> now() - earlier >= 0.001
    True
    """
    return context.now()
