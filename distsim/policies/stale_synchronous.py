"""Stale synchronous updates: asynchronous, but no worker gets more than `staleness` steps ahead of the slowest.

Source: Ho et al. 2013, More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from distsim.policies.policy import WithServer
from distsim.policies.rule import Decision
from distsim.validated_table import CountOrZero


@dataclass(frozen=True)
class StaleSynchronous(WithServer):
    """Every gradient makes an update. The server holds the answer to a worker too far ahead until others catch up.

    staleness: how many steps a worker may be ahead of the slowest. With 0 workers wait as in synchronous training; with
    a large one they never wait, as in asynchronous training. stop: "total": the run ends after steps x workers
    updates; "per_worker": each worker does `steps`.
    """

    staleness: Annotated[CountOrZero, Field(examples=[2])]
    stop: Literal["total", "per_worker"] = "total"

    kind: ClassVar = "stale_synchronous"
    has_global_step: ClassVar = False
    single_server: ClassVar = False
    receive: ClassVar = "fifo"

    def updates(self, steps: int, workers: int) -> int:
        """The number of updates after which the run ends."""
        return steps * workers

    def rule(self, workers: int) -> StaleSynchronousRule:
        """A fresh rule for one run."""
        return StaleSynchronousRule(workers, self.staleness)


class StaleSynchronousRule:
    """An update at every arrival; answers wait until their worker is at most `staleness` steps ahead."""

    def __init__(self, workers: int, staleness: int) -> None:
        self.staleness = staleness
        self.version = 0
        self.steps = [0] * workers  # gradients that have arrived, by worker
        self.slowest = 0  # the fewest gradients of a worker
        self.behind = workers  # the number of workers with no more gradients than the slowest
        self.held: dict[int, list[int]] = {}  # by number of steps: workers that have made as many and wait for others

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002 - the number of arrivals decides
        self.version += 1
        self.steps[worker] += 1
        made = self.steps[worker]
        freed: list[int] = []
        if made - 1 == self.slowest:
            self.behind -= 1
            if self.behind == 0:
                self.slowest = made
                self.behind = self.steps.count(made)
                freed = self.held.pop(made + self.staleness, freed)
        if made > self.slowest + self.staleness:
            self.held.setdefault(made, []).append(worker)
            return Decision(self.version)
        if not freed:
            return Decision(self.version, True, ((worker, self.version),))
        return Decision(self.version, True, tuple([(free, self.version) for free in sorted([*freed, worker])]))
