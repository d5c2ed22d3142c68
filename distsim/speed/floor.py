"""The floor: the number of timeouts per second that SimPy itself does on this machine now.

Machines differ, and the speed of a shared machine changes from minute to minute. The ratio of a processor time to
SimPy's own processor time hardly changes.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import simpy

PROCESSES = 100
NOMINAL_TIMEOUTS_PER_SECOND = 1.4e6  # on the machine that the bounds were written for
SAMPLES, TIMEOUTS = 2, 1000  # timeouts of each process
SHORT_TIMEOUTS = 150  # some 10 ms


def timeouts_per_second(samples: int = SAMPLES, timeouts: int = TIMEOUTS) -> float:
    """The best of some samples, each with `PROCESSES` processes that only wait for 1.

    timeouts: of each process. A short sample tells the speed of the moment.
    """
    return max(_sample(timeouts) for _ in range(samples))


def _sample(timeouts: int) -> float:
    environment = simpy.Environment()

    def waits() -> Generator[Any, Any, None]:
        while True:
            yield environment.timeout(1)

    for _ in range(PROCESSES):
        environment.process(waits())
    start = time.process_time()
    environment.run(until=timeouts)
    return PROCESSES * timeouts / (time.process_time() - start)


def scaled_seconds(seconds: float, floor: float) -> float:
    """Converts `seconds` from a machine with `floor` SimPy timeouts/s to a machine with 1.4 million timeouts/s.

    >>> scaled_seconds(0.02, floor=0.7e6)
    0.01
    """
    return seconds * floor / NOMINAL_TIMEOUTS_PER_SECOND
