"""A search on the simulated clock: recorded outcomes, and workers that may differ in speed."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

from distsim.errors import InputError
from distsim.search.job import Job, Placed, Source
from distsim.theory.arguments import at_least

Outcome = Callable[[Job], tuple[float, float]]


def simulated_search(
    source: Source, workers: int, outcome: Outcome, slow_factors: Sequence[float] | None = None
) -> list[Placed]:
    """The jobs of a search, in the order of their starts. An idle worker asks the source at once; the lowest first.

    outcome: the seconds that a job takes on a worker of usual speed, and its loss. slow_factors: of each worker, what
    the seconds are multiplied with.

    Raises InputError for less than one worker, for slow factors of another number or not above 0, and where a job takes
    no number of seconds, or fewer than 0.

    >>> from distsim.search.sources import Queue
    >>> minutes = {8: 6.0, 32: 3.0, 128: 2.0, 512: 1.0}
    >>> queue = Queue([{"batch": batch} for batch in minutes], epochs=1)
    >>> found = simulated_search(queue, 2, lambda job: (minutes[job.settings["batch"]], 0.0))
    >>> [(one.worker, one.start_seconds, one.end_seconds) for one in found]
    [(0, 0.0, 6.0), (1, 0.0, 3.0), (1, 3.0, 5.0), (1, 5.0, 6.0)]
    """
    at_least(1, workers=workers)
    factors = [1.0] * workers if slow_factors is None else list(slow_factors)
    if len(factors) != workers or not all(0 < factor < math.inf for factor in factors):
        raise InputError.of(
            "slow_factors", factors, f"must be {workers} numbers above 0, one for each worker", "write 1.0 for each"
        )
    idle, running, placed, now = list(range(workers)), list[tuple[float, int]](), list[Placed](), 0.0
    begun: dict[int, Placed] = {}  # by worker
    while True:
        while idle and (job := source.job()) is not None:
            worker = heapq.heappop(idle)
            seconds, loss = outcome(job)
            if not 0.0 <= seconds < math.inf:
                raise InputError.of(
                    "outcome(job)[0]", seconds, f"must be seconds for trial {job.trial}, 0 or more", "return a number"
                )
            begun[worker] = Placed(job, worker, now, now + factors[worker] * seconds, loss)
            placed.append(begun[worker])
            heapq.heappush(running, (begun[worker].end_seconds, worker))
        if not running:
            return placed
        now = running[0][0]
        while running and running[0][0] == now:
            worker = heapq.heappop(running)[1]
            source.done(begun[worker].job, begun[worker].loss)
            heapq.heappush(idle, worker)
