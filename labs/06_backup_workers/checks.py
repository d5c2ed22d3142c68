"""What lab 06 asks of tasks.py. The simulator's own rule says what must happen in each training.

A student's server is judged beside workers that follow a script of messages, and a student's worker beside such a
server. So both have to keep to the protocol, and not only to each other. The lab's rules are judged in every run, by
`Conversation.judged`: two messages for each gradient and nothing else, nobody waits needlessly, and all stop in time.

Trainings are drawn from this space, and its corners are always among them:

    workers        1 to 7, so 2 to 8 ranks
    wait_for       1 to all workers
    updates        1 to 6
    parameters     1 to 9 numbers; a vector of its own, or a column of a matrix
    links          10 Gbit/s and 1 us, or 100 Mbit/s and 20 us
    compute times  such that a gradient is late by 1, 2 and more versions, and comes in the middle of an update
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.distributions import Exponential
from distsim.grading import Finding, check
from distsim.grading.conversation import FAST, SLOW, Conversation, first_finding
from distsim.grading.served_training import BOTH, WORKERS, ServedTraining
from distsim.policies.backup import Backup

if TYPE_CHECKING:
    from distsim.testbed import Testbed

MOST_WORKERS, MOST_UPDATES, MOST_NUMBERS = 7, 6, 9
OLD_BY_MANY = ((3, 3, 3, 3, 3, 3), (19, 9), (10, 25))  # with 1 of 3: worker 1 comes when many updates are made
IN_THE_MIDDLE = ((10, 5, 17), (20, 100), (26, 10, 9))  # with 2 of 3: worker 2 is late when half an update is there
ALL_BUT_ONE_COMPUTE = ((9,), (2,), (30,), (12,), (25,), (19,), (22,))


@check(
    points=3,
    hint="What does an update need when the server waits for everybody, and who is answered after it?",
    how="Take one push of each worker and add up the gradients. Then take the learning rate times their mean off the "
    "parameters, in place (parameters -= ...), and send the new version to each of them.",
)
def synchronous_training(testbed: Testbed) -> Finding:
    """Waiting for 1, 4 and a drawn number of workers; with gloo, too, where both sides are the student's."""
    rng = testbed.rng
    alone = [_training(rng, 1, 1, updates=1, size=1), _training(rng, 1, 1)]
    four = [_training(rng, 4, 4, columns=3), _training(rng, 4, 4, updates=1, size=1)]
    expected = "the parameters of one process that takes the mean of all workers' gradients"

    def findings() -> Any:
        yield Conversation(alone, any_order=True).finding(testbed, expected)
        yield Conversation(four, links=SLOW, any_order=True).finding(testbed, expected)
        yield Conversation([_training(rng, 2, 2, updates=3)], BOTH, any_order=True).on_gloo(testbed, expected)

    return first_finding(findings())


@check(
    points=3,
    hint="Which gradients belong to an update, and what does the beginning of a push say about that?",
    how="A push belongs to the update that is being made if push[0] is the version that the server has now. Note its "
    "rank, which dist.recv returns, and make the update when wait_for such pushes are there.",
)
def updates_from_the_first(testbed: Testbed) -> Finding:
    """With backup workers: who makes each update, what is answered, and the parameters."""
    rng = testbed.rng
    two = [_training(rng, 2, 1), _training(rng, 2, 2), _training(rng, 2, 1, size=1)]
    six = [_training(rng, 6, wait_for) for wait_for in (5, 1, int(rng.integers(2, 5)))]
    expected = "updates by those who come first"
    runs = (Conversation(two, links=SLOW, in_turn=True), Conversation(six, in_turn=True))
    return first_finding(run.finding(testbed, expected) for run in runs)


@check(
    points=2,
    hint="Is the server ever waiting for a certain worker, while another one's push is there?",
    how="Take pushes in the order in which they come: dist.recv without a source takes the next one, from whomever.",
)
def updates_in_time(testbed: Testbed) -> Finding:
    """When each worker is answered; the numbers in answers are not looked at."""
    rng = testbed.rng
    workers = int(rng.integers(3, MOST_WORKERS + 1))
    trainings = [_training(rng, workers, int(rng.integers(1, workers))) for _ in range(2)]
    links = (FAST, SLOW)[int(rng.integers(2))]
    return Conversation(trainings, links=links, books=False, vectors=False).finding(
        testbed, "each answer when it is due"
    )


@check(
    points=2,
    hint="A late gradient may come while an update is half made. What does its worker get, and when?",
    how="Drop the gradient, and answer at once with the parameters of the last update that is whole, and with their "
    "version. So collect gradients beside the parameters, and change these only when the last one is there.",
)
def late_workers_are_answered_at_once(testbed: Testbed) -> Finding:
    """Gradients that are late by one, two and more versions, and gradients that come in the middle of an update."""
    rng = testbed.rng
    trainings = [
        _training(rng, 3, 1, updates=6, slots=OLD_BY_MANY),
        _training(rng, 3, 2, updates=3, slots=IN_THE_MIDDLE),
        _training(rng, 3, 2, columns=3),
    ]
    expected = "each late worker has the newest whole version as soon as its push is there"
    return Conversation(trainings, books=False).finding(testbed, expected)


@check(
    points=2,
    hint="Compare your worker with the two lines of the protocol, and with what it says about parameters.",
    how="Each turn of the loop: compute, send [version, gradient ...], receive, copy answer[1:] into parameters. The "
    "version of the next push is answer[0], which may be larger by more than one; after STOP nothing is computed.",
)
def one_push_and_one_answer(testbed: Testbed) -> Finding:
    """The student's workers beside a server that follows a script; versions grow by one, two and more."""
    rng = testbed.rng
    three = [
        _training(rng, 3, 1, updates=6, slots=OLD_BY_MANY, columns=3),
        _training(rng, 3, 2, updates=3, slots=IN_THE_MIDDLE, size=1),
    ]
    six = [_training(rng, 6, int(rng.integers(1, 7)), updates=2), _training(rng, 6, 1, updates=1)]
    expected = "one push and one answer for each gradient, as the protocol says"
    runs = (Conversation(three, (WORKERS,)), Conversation(six, (WORKERS,), SLOW))
    return first_finding(run.finding(testbed, expected) for run in runs)


@check(
    points=2,
    hint="Who still computes when the last update is made, and who takes these pushes?",
    how="Those who made the last update get STOP in place of a version. Then take one more push of each of the others, "
    "change nothing, and answer STOP.",
)
def everybody_stops(testbed: Testbed) -> Finding:
    """Few updates and most workers still computing: all end, with the parameters of the last update."""
    rng = testbed.rng
    together = [_training(rng, 7, 1, updates=1, slots=ALL_BUT_ONE_COMPUTE), _training(rng, 7, 2, updates=2)]
    workers = int(rng.integers(2, 6))
    alone = [_training(rng, workers, 1, updates=1), _training(rng, workers, workers, updates=1)]
    expected = "all workers stop, with the parameters of the last update"
    runs = (Conversation(together, BOTH, books=False), Conversation(alone, books=False))
    return first_finding(run.finding(testbed, expected) for run in runs)


@check(
    points=2,
    hint="How long does the first of n workers take on average? How many are left then, and what have they done?",
    how="The first of n comes after mean / n. An exponential time has no memory, so the others begin anew: the next "
    "comes after another mean / (n - 1). Go on like this until wait_for have come.",
)
def prediction_of_the_wait(testbed: Testbed) -> Finding:
    """One worker, the first of several, all, and drawn numbers."""
    rng = testbed.rng
    drawn = sorted(int(number) for number in rng.integers(2, 12, size=2))
    sizes = ((1, 1), (5, 1), (4, 4), (10, 7), (3, 2), (drawn[1] + 1, drawn[0]))
    cases = [{"mean": float(rng.uniform(0.01, 2.0)), "workers": n, "wait_for": k} for n, k in sizes]
    run = testbed.run("predict", arguments=[{"cases": cases}])
    wanted = [Exponential(case["mean"]).expected_order_statistic(case["wait_for"], case["workers"]) for case in cases]
    if run.failure:
        return Finding.failed(run, "the expected seconds")
    for case, found, right in zip(cases, run.results[0]["seconds"], wanted, strict=True):
        if not np.isclose(found, right, rtol=1e-9, atol=0.0):
            where = f"mean {case['mean']:.4g} s, the first {case['wait_for']} of {case['workers']}"
            return Finding.of(observed=f"{found:.6g} s", expected=f"{right:.6g} s", passed=False, where=where)
    return Finding.of(observed="the expected seconds", expected="the expected seconds", passed=True)


def _training(
    rng: np.random.Generator, workers: int, wait_for: int, updates: int = 0, size: int = 0, **options: Any
) -> ServedTraining:
    """A training drawn from the space; 0: drawn as well."""
    updates = updates or int(rng.integers(2, MOST_UPDATES + 1))
    size = size or int(rng.integers(2, MOST_NUMBERS + 1))
    name = f"{workers} workers, waiting for {wait_for}, updates: {updates}"
    rule = Backup(backups=workers - wait_for).rule(workers)
    return ServedTraining.drawn(
        rng, name, rule, workers, updates, size=size, options={"wait_for": wait_for}, numbered=False, **options
    )
