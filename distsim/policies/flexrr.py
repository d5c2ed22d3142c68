"""FlexRR: a stale synchronous run in which a worker that falls behind hands pieces of its step to its helpers.

Source: Harlap et al. 2016, Addressing the straggler problem for iterative convergent parallel ML (SoCC). There a
worker asks for help when about 20 % behind; the defaults here say the same (read at second hand).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Gt, Le

from distsim.description import Count, CountOrZero
from distsim.policies.stale_synchronous import StaleSynchronousRule


@dataclass(frozen=True)
class FlexRR:
    """Rapid reassignment of work among small groups of workers.

    staleness, stop: as in stale synchronous. items: pieces of work in a step. group: helpers of each worker.
    threshold: how far behind a helper a worker must be to hand it a piece, as a share of a step.
    """

    staleness: CountOrZero = 0
    items: Count = 8
    group: Count = 2
    threshold: Annotated[float, Gt(0.0), Le(1e6)] = 0.2
    stop: Literal["total", "per_worker"] = "total"

    kind: ClassVar = "flexrr"
    has_global_step: ClassVar = False
    collectives: ClassVar = ("parameter_server",)
    receive: ClassVar = "fifo"
    single_server: ClassVar = True

    def check_workers(self, workers: int) -> None:
        """Raises ValueError where a worker has not so many others to help it."""
        if self.group >= workers:
            raise ValueError(
                f"group = {self.group} must be fewer than the {workers} workers, which are helpers of each other. "
                f"Cure: write group = {max(workers - 1, 1)} or fewer, or add workers"
            )

    def updates(self, steps: int, workers: int) -> int:
        """The number of updates after which the run ends."""
        return steps * workers

    def plan(self, workers: int) -> FlexRRPlan:
        """A fresh plan for one run: who does which piece."""
        return FlexRRPlan(self, workers)

    def rule(self, workers: int) -> StaleSynchronousRule:
        """A fresh rule for one run; who does which piece is the plan's business, not the server's."""
        return StaleSynchronousRule(workers, self.staleness)


@dataclass(frozen=True, slots=True)
class Piece:
    """Item number `item` of a worker's step, whoever does it."""

    worker: int
    step: int
    item: int


class FlexRRPlan:
    """Who does which piece of whose step; asked whenever somebody is free for one.

    A worker takes the pieces of its own step from the front. Once through, it asks those it helps, and while it waits
    for parameters it is handed pieces from the back of the one furthest behind, one at a time: what has begun stays.
    The helpers of worker w are workers w + 1 to w + group, counted round.

    >>> plan = FlexRR(items=2, group=1).plan(workers=2)
    >>> plan.begin(0, step=0), plan.begin(1, step=0), plan.own(0), plan.own(1)
    (None, None, Piece(worker=0, step=0, item=0), Piece(worker=1, step=0, item=0))
    >>> plan.hand_over(1)     # it has not done its own yet
    >>> for item in range(2):
    ...     plan.done(Piece(1, 0, item))
    >>> plan.hand_over(1)
    Piece(worker=0, step=0, item=1)
    >>> plan.own(0)
    """

    def __init__(self, policy: FlexRR, workers: int) -> None:
        self.policy = policy
        self.workers = workers
        self.steps = [-1] * workers  # by worker: its latest step
        self.left = [range(0)] * workers  # by worker: the items of that step which nobody has begun
        self.undone = [0] * workers  # by worker: how many items of that step are not done
        self.messages = 0  # questions to those helped, and pieces handed over

    def helpers(self, worker: int) -> list[int]:
        """Who may do pieces of this worker's."""
        return [(worker + distance) % self.workers for distance in range(1, self.policy.group + 1)]

    def helped(self, helper: int) -> list[int]:
        """Whose pieces this worker may do."""
        return [(helper - distance) % self.workers for distance in range(1, self.policy.group + 1)]

    def begin(self, worker: int, step: int) -> None:
        """A worker begins a step: nobody has begun any of its items."""
        self.steps[worker] = step
        self.left[worker] = range(self.policy.items)
        self.undone[worker] = self.policy.items

    def own(self, worker: int) -> Piece | None:
        """The next piece of its own step that a worker does; None: all are done or begun, maybe by others."""
        left = self.left[worker]
        if not left:
            return None
        self.left[worker] = left[1:]
        return Piece(worker, self.steps[worker], left[0])

    def ask(self, helper: int) -> None:
        """A worker is through with its own step and says so to those it helps."""
        self.messages += len(self.helped(helper))

    def hand_over(self, helper: int) -> Piece | None:
        """The piece that a waiting worker does for another; None: nobody it helps is far enough behind."""
        waiting = [worker for worker in self.helped(helper) if self.left[worker]]
        worker = max(waiting, key=lambda worker: (self.behind(worker, helper), -worker), default=None)
        if worker is None or self.behind(worker, helper) < self.policy.threshold * self.policy.items:
            return None
        left = self.left[worker]
        self.left[worker] = left[:-1]
        self.messages += 1
        return Piece(worker, self.steps[worker], left[-1])

    def done(self, piece: Piece) -> None:
        """Somebody has done this piece."""
        self.undone[piece.worker] -= 1

    def behind(self, worker: int, helper: int) -> int:
        """How many items less than the helper a worker has behind it, counted from the start of the run."""
        ahead = self.steps[helper] - self.steps[worker]
        return ahead * self.policy.items + self.undone[worker] - self.undone[helper]
