"""FlexRR's plan: it decides which worker computes each piece of each worker's step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from distsim.policies.flexrr import FlexRR


class Piece(NamedTuple):
    """Item number `item` of `worker`'s step. Another worker may compute it."""

    worker: int
    step: int
    item: int


class FlexRRPlan:
    """Decides which worker computes which piece, whenever a worker is free.

    A worker takes the pieces of its own step from the front. When its step is done, the worker asks the workers that it
    helps. While it waits for parameters, it is handed one piece at a time, from the back of the step of the worker
    furthest behind. A piece that has begun stays where it is.
    A worker with new parameters first helps the workers that would make it wait after its next step, by the bound on
    staleness. Without this rule it would run ahead to the bound, and would wait there although the slow worker has no
    piece left to hand over. All workers would then wait for the slow worker's push, in this step and in later ones.
    The helpers of worker w are workers w + 1 to w + group, modulo the number of workers.

    >>> from distsim.policies import FlexRR
    >>> plan = FlexRR(items=2, group=1).plan(workers=2)
    >>> plan.begin(0, step=0), plan.begin(1, step=0), plan.own(0), plan.own(1)
    (None, None, Piece(worker=0, step=0, item=0), Piece(worker=1, step=0, item=0))
    >>> plan.hand_over(1)     # worker 1 has not done its own pieces yet
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
        self.undone = [0] * workers  # by worker: the number of items of that step that are not done
        self.messages = 0  # questions to helped workers, and pieces handed over
        self._begun = [0] * workers  # by worker: the number of items of that step that it has begun itself
        self._done = [0] * workers  # by worker: the number of these that `on_its_own` has counted as done
        self._taken = [0] * workers  # by worker: the first item of that step which others have begun, from the back
        self._far = policy.threshold * policy.items  # items behind a helper from which a worker hands over
        group = range(1, policy.group + 1)
        self._helpers = [[(worker + distance) % workers for distance in group] for worker in range(workers)]
        self._helped = [sorted((worker - distance) % workers for distance in group) for worker in range(workers)]

    def helpers(self, worker: int) -> list[int]:
        """The workers that may compute pieces of this worker's step."""
        return self._helpers[worker]

    def helped(self, helper: int) -> list[int]:
        """The workers whose pieces this worker may compute."""
        return self._helped[helper]

    def begin(self, worker: int, step: int) -> None:
        """A worker begins a step; none of its items has begun."""
        self.steps[worker] = step
        self.undone[worker] = self._taken[worker] = self.policy.items
        self._begun[worker] = self._done[worker] = 0

    def left(self, worker: int) -> int:
        """The number of items of a worker's step that have not begun."""
        return self._taken[worker] - self._begun[worker]

    def own(self, worker: int) -> Piece | None:
        """The next piece of a worker's own step; None where all pieces are done or begun, maybe by others."""
        item = self._begun[worker]
        if item == self._taken[worker]:
            return None
        self._begun[worker] = item + 1
        return Piece(worker, self.steps[worker], item)

    def on_its_own(self, worker: int, done: int) -> int:
        """Advances a worker that computes its pieces one after the other, like calls of `done` and `own` for each.

        done: how many items the worker would have done if others had taken none. Returns how many it has done.
        """
        taken = self._taken[worker]
        done = done if done < taken else taken
        self.undone[worker] -= done - self._done[worker]
        self._done[worker] = done
        self._begun[worker] = done + 1 if done < taken else taken
        return done

    def ask(self, helper: int) -> None:
        """A worker has finished its own step and tells the workers that it helps."""
        self.messages += len(self._helped[helper])

    def hand_over(self, helper: int, *, answered: bool = False) -> Piece | None:
        """The piece that a worker computes for another; None where no worker it helps is far enough behind.

        answered: whether the helper has its new parameters. Else it waits for them.
        """
        furthest, far = None, self._far
        for worker in self._helped[helper]:
            if self._begun[worker] < self._taken[worker] and not (answered and self._is_free_of(worker, helper)):
                behind = self.behind(worker, helper)
                if behind > far or (behind == far and furthest is None):
                    furthest, far = worker, behind
        if furthest is None:
            return None
        self._taken[furthest] -= 1
        self.messages += 1
        return Piece(furthest, self.steps[furthest], self._taken[furthest])

    def _is_free_of(self, worker: int, helper: int) -> bool:
        """Whether the helper may end its next step, and get an answer, before the worker ends its latest step."""
        return self.steps[helper] + 2 <= self.steps[worker] + self.policy.staleness

    def done(self, piece: Piece) -> None:
        """This piece is done."""
        self.undone[piece.worker] -= 1

    def behind(self, worker: int, helper: int) -> int:
        """The number of items that the helper has done more than the worker since the start of the run."""
        ahead = self.steps[helper] - self.steps[worker]
        return ahead * self.policy.items + self.undone[worker] - self.undone[helper]
