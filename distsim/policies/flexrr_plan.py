"""FlexRR's plan: which worker does which piece of whose step, without a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from distsim.policies.flexrr import FlexRR


class Piece(NamedTuple):
    """Item number `item` of a worker's step, whoever does it."""

    worker: int
    step: int
    item: int


class FlexRRPlan:
    """Who does which piece of whose step; asked whenever somebody is free for one.

    A worker takes the pieces of its own step from the front. Once through, it asks those it helps, and while it waits
    for parameters it is handed pieces from the back of the one furthest behind, one at a time: what has begun stays.
    The helpers of worker w are workers w + 1 to w + group, counted round.

    >>> from distsim.policies import FlexRR
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
        self.undone = [0] * workers  # by worker: how many items of that step are not done
        self.messages = 0  # questions to those helped, and pieces handed over
        self._begun = [0] * workers  # by worker: how many items of that step it has begun itself, from the front
        self._done = [0] * workers  # by worker: how many of them `on_its_own` was told to be done
        self._taken = [0] * workers  # by worker: the first item of that step which others have begun, from the back
        self._far = policy.threshold * policy.items  # so many items behind a helper a worker is far enough behind
        group = range(1, policy.group + 1)
        self._helpers = [[(worker + distance) % workers for distance in group] for worker in range(workers)]
        self._helped = [sorted((worker - distance) % workers for distance in group) for worker in range(workers)]

    def helpers(self, worker: int) -> list[int]:
        """Who may do pieces of this worker's."""
        return self._helpers[worker]

    def helped(self, helper: int) -> list[int]:
        """Whose pieces this worker may do."""
        return self._helped[helper]

    def begin(self, worker: int, step: int) -> None:
        """A worker begins a step: nobody has begun any of its items."""
        self.steps[worker] = step
        self.undone[worker] = self._taken[worker] = self.policy.items
        self._begun[worker] = self._done[worker] = 0

    def left(self, worker: int) -> int:
        """How many items of its step nobody has begun."""
        return self._taken[worker] - self._begun[worker]

    def own(self, worker: int) -> Piece | None:
        """The next piece of its own step that a worker does; None: all are done or begun, maybe by others."""
        item = self._begun[worker]
        if item == self._taken[worker]:
            return None
        self._begun[worker] = item + 1
        return Piece(worker, self.steps[worker], item)

    def on_its_own(self, worker: int, done: int) -> int:
        """How far a worker has come that takes one piece after the other: as good as `done` and `own` for each.

        done: how many items it has done, or would have if others had taken none. Returns how many it has done.
        """
        taken = self._taken[worker]
        done = done if done < taken else taken
        self.undone[worker] -= done - self._done[worker]
        self._done[worker] = done
        self._begun[worker] = done + 1 if done < taken else taken
        return done

    def ask(self, helper: int) -> None:
        """A worker is through with its own step and says so to those it helps."""
        self.messages += len(self._helped[helper])

    def hand_over(self, helper: int) -> Piece | None:
        """The piece that a waiting worker does for another; None: nobody it helps is far enough behind."""
        furthest, far = None, self._far
        for worker in self._helped[helper]:
            if self._begun[worker] < self._taken[worker]:
                behind = self.behind(worker, helper)
                if behind > far or (behind == far and furthest is None):
                    furthest, far = worker, behind
        if furthest is None:
            return None
        self._taken[furthest] -= 1
        self.messages += 1
        return Piece(furthest, self.steps[furthest], self._taken[furthest])

    def done(self, piece: Piece) -> None:
        """Somebody has done this piece."""
        self.undone[piece.worker] -= 1

    def behind(self, worker: int, helper: int) -> int:
        """How many items less than the helper a worker has behind it, counted from the start of the run."""
        ahead = self.steps[helper] - self.steps[worker]
        return ahead * self.policy.items + self.undone[worker] - self.undone[helper]
