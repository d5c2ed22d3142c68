"""When a worker's work began and ended, also where a GPU does it later than the call that asks for it returns.

between = stopwatch.moment()  # does not wait
...
end = stopwatch.wait()        # the work asked for until now is done: seconds of the monotonic clock
between()                     # after that wait: when the work asked for before `moment` was done, in the same clock
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

Moment = Callable[[], float]


class Stopwatch:
    """On a CPU, where work is done when its call returns: what the clock says."""

    def moment(self) -> Moment:
        """Now, in the order of the work; to be read after the next `wait`."""
        now = time.monotonic()
        return lambda: now

    def wait(self) -> float:
        """Returns when all work is done: now, in seconds of the monotonic clock."""
        return time.monotonic()


ON_CPU = Stopwatch()


class CudaStopwatch(Stopwatch):
    """On a GPU: a moment is an event among the work of the current stream, which the GPU stamps when it gets there.

    Taking a moment holds nothing up, neither this process nor the GPU, so what would overlap still does. Stories wait
    where they do so anyway: before the drawn time is slept, and where a step needs the sum. `wait` waits for the
    current stream alone, so all-reduces that travel meanwhile on NCCL's own stream go on.

    Each wait ties the GPU's clock to the monotonic one anew. The two drift, and elapsed times come as milliseconds in
    float32, which after a quarter of an hour would count in steps of 60 us. What this process learns late of the end of
    a wait, some 10 us, moves all moments before it alike: none is earlier than the call that asked for its work.
    """

    def __init__(self) -> None:
        self.wait()

    def moment(self) -> Moment:
        """An event of the current stream."""
        event = _event()
        return lambda: self._now - event.elapsed_time(self._last) / 1000.0

    def wait(self) -> float:
        """Returns when the current stream has done its work."""
        self._last = _event()
        self._last.synchronize()
        self._now = time.monotonic()
        return self._now


def _event() -> torch.cuda.Event:
    """A new one, among the work of the current stream."""
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch
    event.record()
    return event
