"""A speed figure: what is timed or weighed, its bound, and what was found."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.speed.floor import scaled_seconds, timeouts_per_second
from distsim.speed.memory import peak_bytes

Unit = Literal["seconds", "times", "bytes"]
Work = Callable[[], object]

ROUNDS, FEWEST_ROUNDS, QUICK_ROUNDS = 5, 3, 1
LONG_SECONDS = 5.0  # of measuring, after which the fewest rounds are enough
SLICE_SECONDS = 0.05  # of each round: what takes less is repeated within it


@dataclass(frozen=True)
class Result:
    """One row of the report.

    measured: in `unit`. floor: SimPy's timeouts per second, measured in turns with it; None where it does not matter.
    value: what the bound is for: a time scaled to `NOMINAL_TIMEOUTS_PER_SECOND`, else `measured` itself. repeats: of
    which the best counts. simgrid_seconds: what SimGrid takes for the same in C++, where it is known.
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

    @property
    def met(self) -> bool:
        """Whether the bound is kept."""
        return self.value <= self.bound

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `distsim bench --json` prints them."""
        return asdict(self) | {"met": self.met}


class Figure(Protocol):
    """Something with a bound that can be measured."""

    @property
    def group(self) -> str:
        """The table that it stands in."""

    @property
    def name(self) -> str:
        """Its row."""

    def measure(self, rounds: int = ROUNDS) -> Result:
        """Measures it anew; what is timed is warm."""


@dataclass(frozen=True)
class Duration:
    """How long something takes. prepare: gives the work to be timed; seconds: the bound, on the nominal machine."""

    group: str
    name: str
    seconds: float
    prepare: Callable[[], Work]
    simgrid_seconds: float | None = None

    def measure(self, rounds: int = ROUNDS) -> Result:
        """The best time and the best floor of some rounds, in each of which both are measured."""
        (best,), floor, repeats = in_turns([self.prepare()], rounds)
        return Result(
            self.group, self.name, "seconds", best, floor, scaled_seconds(best, floor), self.seconds, repeats,
            self.simgrid_seconds,
        )  # fmt: skip


@dataclass(frozen=True)
class Growth:
    """How many times as long ten times the steps take. times: the bound; 10 is linear."""

    group: str
    name: str
    times: float
    scenario: Callable[[int], Scenario]
    steps: int
    engine: Literal["story", "loop", "recurrence"]

    def measure(self, rounds: int = ROUNDS) -> Result:
        """The ratio of the best times, measured in turns."""
        few, many = self.scenario(self.steps), self.scenario(10 * self.steps)
        (short, long), floor, repeats = in_turns([self._work(few), self._work(many)], rounds)
        ratio = long / short
        return Result(self.group, self.name, "times", ratio, floor, ratio, self.times, repeats)

    def _work(self, scenario: Scenario) -> Work:
        return lambda: simulate(scenario, engine=self.engine)


@dataclass(frozen=True)
class Memory:
    """The most memory that a process of its own takes to simulate a scenario, Python and its modules included."""

    group: str
    name: str
    bytes: float
    scenario: Callable[[], Scenario]

    def measure(self, rounds: int = ROUNDS) -> Result:  # noqa: ARG002 - memory is no matter of luck
        """One run."""
        found = peak_bytes(self.scenario())
        return Result(self.group, self.name, "bytes", found, None, found, self.bytes, 1)


def in_turns(works: list[Work], rounds: int) -> tuple[list[float], float, int]:
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
