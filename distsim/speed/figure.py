"""A speed figure: the work that is timed or whose memory is measured, its bound, and the result."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.speed.floor import scaled_seconds, timeouts_per_second
from distsim.speed.whole_process import spent

Unit = Literal["seconds", "times", "bytes"]
Work = Callable[[], object]

ROUNDS, FEWEST_ROUNDS, QUICK_ROUNDS = 5, 3, 1
LONG_SECONDS = 5.0  # of measuring, after which the fewest rounds are enough
SLICE_SECONDS = 0.05  # of each round: shorter work is repeated within it


@dataclass(frozen=True)
class Result:
    """One row of the report.

    measured: in `unit`. floor: SimPy's timeouts per second, measured alternately with the work; None for memory.
    value: the number that the bound limits: a time scaled to `NOMINAL_TIMEOUTS_PER_SECOND`, or `measured`.
    repeats: the best repeat counts. simgrid_seconds: SimGrid's time for the same work in C++, where it is known.
    slower_engine: the next slower engine that serves the scenario. times_faster: the slower engine's time divided by
    this time, in the same run.
    """

    group: str
    figure: str
    unit: Unit
    measured: float
    floor: float | None
    value: float
    bound: float
    repeats: int
    simgrid_seconds: float | None = None
    slower_engine: str | None = None
    times_faster: float | None = None

    @property
    def met(self) -> bool:
        """Whether the bound is kept."""
        return self.value <= self.bound

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `distsim bench --json` prints them."""
        return asdict(self) | {"met": self.met}


class Figure(Protocol):
    """Work with a bound on its time or memory."""

    @property
    def group(self) -> str:
        """The table of the report that holds the figure."""

    @property
    def name(self) -> str:
        """The row of that table."""

    def measure(self, rounds: int = ROUNDS) -> Result:
        """Measures the figure anew, after a first run that does not count."""


@dataclass(frozen=True)
class Duration:
    """The time of some work. prepare: returns the work to be timed; seconds: the bound, on the nominal machine.

    slower: the name of the next slower engine, and a function that returns its work; timed once, in the same run.
    """

    group: str
    name: str
    seconds: float
    prepare: Callable[[], Work]
    simgrid_seconds: float | None = None
    slower: tuple[str, Callable[[], Work]] | None = None

    def measure(self, rounds: int = ROUNDS) -> Result:
        """The best time and the best floor of some rounds. Each round measures both."""
        (best,), floor, repeats = alternating([self.prepare()], rounds)
        engine, times_faster = None, None
        if self.slower:
            engine, prepare = self.slower
            times_faster = _timed(prepare()) / best
        return Result(
            self.group, self.name, "seconds", best, floor, scaled_seconds(best, floor), self.seconds, repeats,
            self.simgrid_seconds, engine, times_faster,
        )  # fmt: skip


@dataclass(frozen=True)
class Growth:
    """The factor by which ten times the steps lengthen a run. times: the bound; 10 is linear."""

    group: str
    name: str
    times: float
    scenario: Callable[[int], Scenario]
    steps: int
    engine: Literal["story", "loop", "recurrence"]

    def measure(self, rounds: int = ROUNDS) -> Result:
        """The ratio of the best times, measured alternately."""
        few, many = self.scenario(self.steps), self.scenario(10 * self.steps)
        (short, long), floor, repeats = alternating([self._work(few), self._work(many)], rounds)
        ratio = long / short
        return Result(self.group, self.name, "times", ratio, floor, ratio, self.times, repeats)

    def _work(self, scenario: Scenario) -> Work:
        return lambda: simulate(scenario, engine=self.engine)


@dataclass(frozen=True)
class Process:
    """The processor time of a process that only simulates a scenario; Python and its imports are included."""

    group: str
    name: str
    seconds: float
    scenario: Callable[[], Scenario]

    def measure(self, rounds: int = ROUNDS) -> Result:
        """The best time and the best floor of at most `FEWEST_ROUNDS` rounds. Every process is a fresh one."""
        scenario, rounds = self.scenario(), min(rounds, FEWEST_ROUNDS)
        floors, times = zip(*[(timeouts_per_second(), spent(scenario).seconds) for _ in range(rounds)], strict=True)
        best, floor = min(times), max(floors)
        scaled = scaled_seconds(best, floor)
        return Result(self.group, self.name, "seconds", best, floor, scaled, self.seconds, rounds)


@dataclass(frozen=True)
class Memory:
    """The peak memory of such a process."""

    group: str
    name: str
    bytes: float
    scenario: Callable[[], Scenario]

    def measure(self, rounds: int = ROUNDS) -> Result:  # noqa: ARG002 - memory does not vary
        """Measures one run."""
        found = spent(self.scenario()).peak_bytes
        return Result(self.group, self.name, "bytes", found, None, found, self.bytes, 1)


def alternating(works: list[Work], rounds: int) -> tuple[list[float], float, int]:
    """The best processor seconds of each work, the best floor, and the fewest repeats; first runs do not count."""
    for work in works:
        work()
    best, floor, repeats = [float("inf")] * len(works), 0.0, [0] * len(works)
    start = time.perf_counter()
    for number in range(rounds):
        if number >= FEWEST_ROUNDS and time.perf_counter() - start > LONG_SECONDS:
            break
        floor = max(floor, timeouts_per_second())
        for place, work in enumerate(works):
            gc.collect()
            spent = 0.0
            while spent < SLICE_SECONDS:
                seconds = _timed(work)
                best[place] = min(best[place], seconds)
                repeats[place] += 1
                spent += seconds
    return best, floor, min(repeats)


def _timed(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
