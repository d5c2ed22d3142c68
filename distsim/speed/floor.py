"""The floor: how many timeouts a second SimPy itself does, here and now.

Machines differ, and a shared one differs from minute to minute. Processor time in units of SimPy's own hardly does.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import simpy

PROCESSES = 100
NOMINAL_TIMEOUTS_PER_SECOND = 1.4e6  # of the machine that the bounds were written for
SAMPLES, TIMEOUTS = 2, 1000  # timeouts of each process


def timeouts_per_second() -> float:
    """The best of some samples: `PROCESSES` processes that do nothing but wait for 1."""
    return max(_sample() for _ in range(SAMPLES))


def _sample() -> float:
    environment = simpy.Environment()

    def waits() -> Generator[Any, Any, None]:
        while True:
            yield environment.timeout(1)

    for _ in range(PROCESSES):
        environment.process(waits())
    start = time.process_time()
    environment.run(until=TIMEOUTS)
    return PROCESSES * TIMEOUTS / (time.process_time() - start)


def scaled_seconds(seconds: float, floor: float) -> float:
    """What takes so long where SimPy does `floor` timeouts/s, on a machine where it does 1.4 million.

    >>> scaled_seconds(0.02, floor=0.7e6)
    0.01
    """
    return seconds * floor / NOMINAL_TIMEOUTS_PER_SECOND
