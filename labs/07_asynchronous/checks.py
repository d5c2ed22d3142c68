"""What lab 07 asks of tasks.py. The simulator's own rules say what must happen in each training.

A student's server is judged beside workers that follow a script of messages, and a student's worker beside such a
server. So both have to keep to the protocol, and not only to each other. The lab's rules are judged in every run, by
`Conversation.judged`: two messages for each gradient and nothing else, nobody waits needlessly, and all stop in time.

Trainings are drawn from this space, and its corners are always among them:

    workers        1 to 7, so 2 to 8 ranks
    staleness      no bound, 0, 1, and more
    updates        1 to 4 for each worker
    parameters     1 to 9 numbers; a vector of its own, or a column of a matrix
    gradients      any numbers; of a single parameter, the last of several workers has gradients of zero
    links          10 Gbit/s and 1 us, or 100 Mbit/s and 20 us
    compute times  such that workers are held at the bound, several are released at once, and some at the end
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.grading import Finding, check
from distsim.grading.conversation import FAST, SLOW, Conversation, first_finding
from distsim.grading.served_training import BOTH, WORKERS, ServedTraining
from distsim.policies.asynchronous import Asynchronous
from distsim.policies.stale_synchronous import StaleSynchronous
from distsim.theory.staleness import stale_synchronous_staleness_bound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distsim.testbed import Testbed

MOST_WORKERS, MOST_ROUNDS, MOST_NUMBERS = 7, 4, 9
RELEASED_TOGETHER = ((12, 3, 9), (40, 6, 3), (5, 8, 2), (2, 4, 7))  # workers 3, 2 and 0 are held, in this order
ROUNDS_OF_ALL = 3  # a set of ranks that is filled anew need not hand them out in their order any more
BY_RANK = tuple((1 + worker,) for worker in range(MOST_WORKERS))  # the last worker is the last to come
ALONE = ((1,) * 300, *((2000,) for _ in range(1, MOST_WORKERS)))  # all others come after 300 gradients of worker 0
FAR_AHEAD = ((2, 2, 2, 2, 2, 2, 2, 2, 2, 2), (37, 41), (11, 5, 8))  # worker 0 is as far ahead as it may be


@check(
    points=3,
    hint="What does the server do with one push before it takes the next one?",
    how="Take the next push, from whomever; take learning_rate times its gradient off the parameters, in place; answer "
    "this worker with [version; parameters]. The version is the number of updates made, with this one.",
)
def asynchronous_updates(testbed: Testbed) -> Finding:
    """One worker, three and six; and both sides with gloo. The list that the server returns is not looked at."""
    rng = testbed.rng
    expected = "the parameters that come of applying each gradient once, as it comes"

    def findings() -> Iterator[Finding]:
        yield _talk([_training(rng, 1, None), _training(rng, 1, None, updates=1, size=1)], SLOW).finding(
            testbed, expected
        )
        yield _talk([_training(rng, 6, None, columns=3), _training(rng, 6, None, updates=2)]).finding(testbed, expected)
        yield _talk([_training(rng, 2, None, size=1)]).finding(testbed, expected)
        yield _talk([_training(rng, 2, None)], students=BOTH).on_gloo(testbed, expected)

    return first_finding(findings())


@check(
    points=2,
    hint="At which version was a gradient computed, and how many updates have been made since, without its own?",
    how="Keep for each worker the version that it was answered with last; at the start that is 0. The staleness is the "
    "number of updates made before this one, less that version.",
)
def the_staleness_of_each_update(testbed: Testbed) -> Finding:
    """The workers and the staleness that serve_asynchronous returns."""
    rng = testbed.rng
    workers = int(rng.integers(2, MOST_WORKERS + 1))
    trainings = [
        _training(rng, workers, None, size=1),
        _training(rng, workers, None, slots=FAR_AHEAD[: min(workers, 3)]),
    ]
    return _talk(trainings, books=True).finding(testbed, "worker and staleness of each update")


@check(
    points=2,
    hint="Is a worker without an answer while its push is there, or is the server waiting for a certain one?",
    how="dist.recv without a source takes the next push, and returns its rank. Answer before you take another one.",
)
def nobody_waits(testbed: Testbed) -> Finding:
    """Both sides: when each gradient begins, each push leaves, and each answer is there. One worker may do it all."""
    rng = testbed.rng
    workers = int(rng.integers(3, MOST_WORKERS + 1))
    links = (FAST, SLOW)[int(rng.integers(2))]
    alone = _training(rng, workers, None, updates=len(ALONE[0]), slots=ALONE[:workers])
    trainings = [_training(rng, workers, None), alone]
    conversation = _talk(trainings, links, students=BOTH, vectors=False)
    return conversation.finding(testbed, "no time between a gradient, its push, its answer and the next gradient")


@check(
    points=3,
    hint="Who may go on after this update? Perhaps the worker of this push, perhaps others, perhaps nobody.",
    how="Count each worker's applied gradients. After each update look at all who have no answer yet: those with at "
    "most min(counts) + staleness are answered, in the order of their ranks, with the version of this moment.",
)
def stale_synchronous_updates(testbed: Testbed) -> Finding:
    """Bounds of 0, 1 and drawn ones, few workers and many: who makes each update, how stale, what is answered, when.

    In two of the trainings one gradient is as stale as the bound allows.
    """
    rng = testbed.rng
    expected = "updates of workers within the bound"
    four = [_training(rng, 4, bound, slots=RELEASED_TOGETHER) for bound in (0, 1)]
    drawn = _training(rng, 4, int(rng.integers(2, 4)), updates=14)
    stalest = [_stalest(rng, 4, bound) for bound in (0, int(rng.integers(1, 3)))]
    two = [_training(rng, 2, bound, size=size) for bound, size in ((0, 1), (1, 0))]
    one = [_training(rng, 1, bound) for bound in (0, 2)]
    seven = [_training(rng, 7, bound, updates=7 * ROUNDS_OF_ALL, slots=BY_RANK) for bound in (0, 1)]
    runs = (
        _talk(talk, links, books=True)
        for talk, links in (([*four, drawn, *stalest], FAST), (two, SLOW), (one, SLOW), (seven, FAST))
    )
    return first_finding(run.finding(testbed, expected) for run in runs)


@check(
    points=2,
    hint="Whose push releases a worker that is held, and which parameters does it get?",
    how="Keep those who are held in a set, and look at all of them after each update. They get the parameters of this "
    "moment, and the version that says so; it is also the one from which their next staleness counts.",
)
def held_until_the_slowest_has_come(testbed: Testbed) -> Finding:
    """A worker as far ahead as it may be, and several who are released at once. The list is not looked at."""
    rng = testbed.rng
    trainings = [
        _training(rng, 3, 1, updates=11, slots=FAR_AHEAD),
        _training(rng, 3, 4, updates=12, slots=FAR_AHEAD),
        _training(rng, 3, 0, columns=3),
    ]
    return _talk(trainings).finding(testbed, "held workers who go on as soon as they may")


@check(
    points=2,
    hint="When the last update is made, which workers wait for an answer, and which ones still compute?",
    how="Answer all who are held with STOP at once. Then take one more push of each of the others, apply nothing, and "
    "answer STOP.",
)
def everybody_stops(testbed: Testbed) -> Finding:
    """Few updates, and workers who are held or still compute: all end, and their last gradients change nothing."""
    rng = testbed.rng
    workers = int(rng.integers(3, 6))
    some = int(rng.integers(2, workers))
    bounds = (None, 0, 1)
    together = [_training(rng, workers, bound, updates=some) for bound in bounds]
    alone = [_training(rng, 7, bound, updates=updates) for bound, updates in ((0, 3), (None, 1), (1, 5))]
    expected = "all workers stop, with the parameters of the last update"
    runs = (_talk(together, students=BOTH), _talk(alone))
    return first_finding(run.finding(testbed, expected) for run in runs)


@check(
    points=2,
    hint="Compare your worker with the two lines of the protocol, and with what it says about parameters.",
    how="Each turn of the loop: compute, send [number of the push; gradient ...], receive, copy answer[1:] into "
    "parameters. Pushes count 0, 1, 2, whatever the versions are; after STOP nothing is computed.",
)
def one_push_and_one_answer(testbed: Testbed) -> Finding:
    """The student's workers beside a server that follows a script."""
    rng = testbed.rng
    three = [_training(rng, 3, 1, slots=FAR_AHEAD, columns=3), _training(rng, 3, None, size=1)]
    six = [_training(rng, 6, None), _training(rng, 6, 0, updates=1)]
    expected = "one push and one answer for each gradient, as the protocol says"
    runs = (_talk(three, students=(WORKERS,)), _talk(six, SLOW, students=(WORKERS,)))
    return first_finding(run.finding(testbed, expected) for run in runs)


@check(
    points=1,
    hint="Follow one of the other workers from the moment when you begin a step until your gradient has come. How far "
    "behind you can it be at first, and how far ahead at the end?",
    how="It may go from staleness steps behind you to staleness + 1 steps ahead of the step that you began. Each of "
    "its steps is an update, and there are workers - 1 such workers.",
)
def prediction_of_the_largest_staleness(testbed: Testbed) -> Finding:
    """One worker, a bound of 0, and more."""
    rng = testbed.rng
    drawn = [[int(rng.integers(2, 9)), 0], [int(rng.integers(3, 9)), int(rng.integers(2, 9))]]
    cases = [[1, 3], [2, 1], [5, 1], *drawn]
    run = testbed.run("predict", arguments=[{"cases": cases}])
    expected = [stale_synchronous_staleness_bound(*case) for case in cases]
    if run.failure:
        return Finding.failed(run, "the largest staleness")
    for (workers, bound), found, right in zip(cases, run.results[0]["staleness"], expected, strict=True):
        if found != right:
            where = f"{workers} workers, a bound of {bound} steps"
            return Finding.of(observed=f"{found:g}", expected=right, passed=False, where=where)
    return Finding.of(observed="the largest staleness", expected="the largest staleness", passed=True)


def _talk(
    trainings: list[ServedTraining], links: dict[str, str] = FAST, *, books: bool = False, **options: Any
) -> Conversation:
    """A conversation in which those who are released at once are answered by rank."""
    return Conversation(trainings, links=links, in_turn=True, books=books, **options)


def _stalest(rng: np.random.Generator, workers: int, bound: int) -> ServedTraining:
    """A training in which a gradient of worker 0 is as stale as the bound allows, and is used as any other.

    It is begun `bound` steps ahead of the others, who all are as far ahead as they may be when it comes.
    """
    others, steps = workers - 1, 2 * bound + 1
    slots = ((1,) * bound + (others * (steps + 2),), *((bound + 1 + one, *(others,) * steps) for one in range(others)))
    return _training(rng, workers, bound, updates=bound + others * steps + 3, slots=slots)


def _training(
    rng: np.random.Generator, workers: int, staleness: int | None, updates: int = 0, size: int = 0, **options: Any
) -> ServedTraining:
    """A training drawn from the space; 0: drawn as well. staleness: the bound, if there is one."""
    updates = updates or workers * int(rng.integers(2, MOST_ROUNDS + 1))
    size = size or int(rng.integers(2, MOST_NUMBERS + 1))
    rule = Asynchronous().rule(workers) if staleness is None else StaleSynchronous(staleness).rule(workers)
    bound = "no bound" if staleness is None else f"a bound of {staleness}"
    name = f"{workers} workers, {bound}, updates: {updates}"
    given = {} if staleness is None else {"staleness": staleness}
    return ServedTraining.drawn(rng, name, rule, workers, updates, size=size, options=given, numbered=True, **options)
