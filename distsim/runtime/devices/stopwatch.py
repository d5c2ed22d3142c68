"""Times the beginning and end of a worker's work, also on a GPU, which works after the call has returned.

between = stopwatch.moment()  # does not wait
...
end = stopwatch.wait()        # all work is done: seconds of the monotonic clock
between()                     # after that wait: when the work called before `moment` was done, on the same clock
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

Moment = Callable[[], float]


class Stopwatch:
    """For a CPU, where work is done when its call returns: reads the clock."""

    def moment(self) -> Moment:
        """This moment in the order of the work. Call the result after the next `wait`."""
        now = time.monotonic()
        return lambda: now

    def wait(self) -> float:
        """Waits until all work is done; returns that moment in seconds of the monotonic clock."""
        return time.monotonic()


ON_CPU = Stopwatch()


class CudaStopwatch(Stopwatch):
    """For a GPU: a moment is an event in the current stream, to which the GPU gives a time when it gets there.

    Taking a moment delays neither this process nor the GPU, so work that overlaps still does. Roles wait only where
    they wait anyway: before the drawn time is slept, and where a step needs the sum. `wait` waits for the current
    stream alone, so all-reduces on NCCL's own stream go on.

    Each wait sets the GPU's clock by the monotonic clock again, because the two drift, and because elapsed times are
    milliseconds in float32, whose steps would be 60 us after a quarter of an hour. This process learns of the end of a
    wait some 10 us late. That moves all moments before the end by the same time, so no moment is earlier than the call
    of its work.
    """

    def __init__(self) -> None:
        self.wait()

    def moment(self) -> Moment:
        """An event in the current stream."""
        event = _event()
        return lambda: self._now - event.elapsed_time(self._last) / 1000.0

    def wait(self) -> float:
        """Returns when the current stream has done its work."""
        self._last = _event()
        self._last.synchronize()
        self._now = time.monotonic()
        return self._now


def _event() -> torch.cuda.Event:
    """A new event in the current stream."""
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch
    event.record()
    return event
