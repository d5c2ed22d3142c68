"""What lab 13 asks of tasks.py. A replay of the rules says which worker does which job, from when to when.

Scheduler and workers are the student's; in `every_trial_once` and `no_trial_is_lost` each side also talks to a script.

Every batch of jobs is judged by all rules: who does which job and with which seed, when it begins, an order and a
report for each job and nothing else, the losses, and which workers are left.

Jobs end at slots of virtual time. No two of them end in one slot, and a slot is far longer than all messages, so it is
certain which report comes first. Batches are drawn from this space, and its corners are always among them:

    workers        1 to 5, so 2 to 6 ranks; some are slower than others, always drawn ones
    jobs           none, fewer than workers, as many, more; numbers of trials in any order, large ones too
    losses         any numbers, and nan
    breakdowns     none, in a first job, in a last one, while others are idle, of all workers
    tries          1 to 3; some jobs break every worker
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.cluster import Cluster
from distsim.grading import Finding, check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from distsim.testbed import Run, Testbed

Job = tuple[int, int, int]
NETWORK = {"bandwidth": "10 Gbit/s", "latency": "1 us"}
SLOT, LATE, EARLY = 1e-3, 0.2e-3, 1e-9  # seconds: of a slot, and how much later and earlier a job may begin
ORDER_BYTES, REPORT_BYTES = 24, 16
STOP_ORDER = (-1.0, -1.0, -1.0)
DRAWS = 500  # to find a batch of a certain kind
LEAST_BITS = 56  # in which the seeds of many pairs differ
MOST_NUMBER = 2**31  # of trials and base seeds, not included
KEEP_HINT = (
    "A comparison with nan is always false, also that of one nan with another. Sort by three things: first whether the "
    "loss is nan, then the loss, with 0 in place of a nan, then the number of the trial."
)
CONSEQUENCES = ("deadlock", "which had room for")  # failures that follow from something earlier
BOTH, WORKERS, SCHEDULER = "", "workers", "scheduler"  # the side that is a script


@check(
    points=2,
    hint="Which numbers make a seed? Do two base seeds, or two trials, ever meet in one seed?",
    how="Let SeedSequence(base_seed, spawn_key=(trial,)) of numpy mix both numbers. Then generate_state(1, np.uint64) "
    "gives 64 bits, of which you need 63; without np.uint64 it gives 32 bits, which are too few. Or put both numbers "
    "side by side in one, with 31 bits each. A sum gives the same seed again: 3 + 4 = 4 + 3. So does a sum with "
    "factors below 2**31.",
)
def seeds_of_trials(testbed: Testbed) -> Finding:
    """Small and large numbers, on three ranks that ask in different orders; pairs that meet if the rule is a sum.

    There are 2**62 pairs. Where each has a seed of its own, those of many drawn pairs differ in nearly all bits.
    """
    rng, expected = testbed.rng, "another seed for each other pair, the same on all ranks"
    small = [(base, trial) for base in range(12) for trial in range(30)]
    large = [tuple(map(int, rng.integers(0, MOST_NUMBER, 2))) for _ in range(60)]
    near = [(base, trial) for base in (0, 1, 2, MOST_NUMBER - 1) for trial in _around_powers()]
    swapped = [(trial, base) for base, trial in (*large, *near)]
    origins = [(0, 0), tuple(map(int, rng.integers(0, MOST_NUMBER // 2, 2)))]
    beside = [pair for base, trial in origins for pair in ((base, trial), (base + 1, trial), (base, trial + 1))]
    run = testbed.run("seeds", [{"pairs": beside, "before": 0}])
    if run.failure:
        return Finding.failed(run, expected)
    found = run.results[0]["found"]
    met = [*_of_a_sum(*origins[0], found[:3]), *_of_a_sum(*origins[1], found[3:])]
    pairs = sorted({*small, *large, *near, *swapped, *met})
    asked = [[pairs[place] for place in rng.permutation(len(pairs))] for _ in range(3)]
    run = testbed.run("seeds", [{"pairs": one, "before": 20 * rank} for rank, one in enumerate(asked)])
    if run.failure:
        return Finding.failed(run, expected)
    told = [dict(zip(one, result["found"], strict=True)) for one, result in zip(asked, run.results, strict=True)]
    seen: dict[str, tuple[int, ...]] = {}
    for pair in pairs:
        first, *others = (one[pair] for one in told)
        about = f"base seed {pair[0]}, trial {pair[1]}"
        if not first.isdecimal() or int(first) >= 2**63:
            return _fault(first, "a number of type int, at least 0 and less than 2**63", about)
        if any(one != first for one in others):
            return _fault(f"seeds {', '.join([first, *others])} on three ranks", "one seed on all ranks", about)
        if first in seen:
            other = f"base seed {seen[first][0]}, trial {seen[first][1]}"
            return _fault(f"seed {first}, as for {other}", "another seed for each other pair", about)
        seen[first] = pair
    drawn = [int(told[0][pair]) for pair in large]
    if (bits := reduce(or_, (one ^ drawn[0] for one in drawn)).bit_count()) < LEAST_BITS:
        few = f"the seeds of {len(drawn)} drawn pairs differ in {bits} bits only"
        return _fault(few, f"in at least {LEAST_BITS}: there are 2**62 pairs, and each has another seed", "")
    if any(one["drawn"] != run.results[0]["drawn"] for one in run.results):
        return _fault("seed_of changes what a global generator draws next", "generators left as they are", "")
    return _right(expected)


def _of_a_sum(base: int, trial: int, seeds: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of which two have one seed if seed_of adds multiples of both numbers.

    seeds: of (base, trial), of the next base seed, and of the next trial.
    """
    if not all(one.removeprefix("-").isdecimal() for one in seeds):
        return []
    own, *nexts = map(int, seeds)
    slopes = [abs(one - own) for one in nexts]
    common = math.gcd(*slopes) or 1
    by_trial, by_base = (one // common for one in slopes)
    corners = [(base + one, trial + other) for one in (0, by_base) for other in (0, by_trial)]
    return [pair for pair in corners if max(pair) < MOST_NUMBER]


def _around_powers() -> list[int]:
    """Numbers near powers of two and of ten."""
    powers = [2**one for one in (8, 10, 15, 16, 20, 24, 30)] + [10**one for one in range(2, 10)]
    return sorted({*(one + more for one in powers for more in (-1, 0, 1)), MOST_NUMBER - 2, MOST_NUMBER - 1})


@check(
    points=2,
    hint="Which trial is taken next, and which worker is free first? What if several are equal?",
    how="Sort the trials by seconds, the longest first; a stable sort keeps equals in the order of their numbers. Keep "
    "for each worker when it is free, and give the trial to the least of the pairs (free from, rank).",
)
def longest_first(testbed: Testbed) -> Finding:
    """One worker, more workers than trials, no trial, equal trials, and trials of no time. All sums are exact."""
    rng, cases = testbed.rng, []
    for number in range(60):
        workers, trials = int(rng.integers(1, 7)), int(rng.integers(0, 14))
        seconds = rng.integers(0, (3, 9, 40)[number % 3], trials) / 4
        cases.append([seconds.tolist(), workers])
    cases += [[[0.25] * 40, 7], [(rng.permutation(30) / 2).tolist(), 4], [[], 3], [[2.0], 5]]
    right = [_planned(*case) for case in cases]
    return _asked(testbed, "plan", cases, right, "expected, workers")


def _planned(expected: Sequence[float], workers: int) -> list[list[float]]:
    """The plan, by the rules."""
    until, found = [0.0] * workers, [[0, 0.0] for _ in expected]
    for seconds, trial in sorted((-one, number) for number, one in enumerate(expected)):
        worker = int(np.argmin(until))
        found[trial] = [worker, until[worker]]
        until[worker] -= seconds
    return found


@check(
    points=1,
    hint="Until the trial that ends last begins, how much work of the others can all workers have done?",
    how="The others take at most sum(seconds) less this trial's seconds, shared by all workers. Then the trial itself "
    "follows. The result is largest for the longest trial. This is the bound also with fewer trials than workers.",
)
def prediction_of_the_last_end(testbed: Testbed) -> Finding:
    """One worker, equal trials, drawn ones, and fewer trials than workers."""
    rng = testbed.rng
    drawn = [[rng.uniform(0.1, 9.0, count).tolist(), int(rng.integers(2, 9))] for count in (1, 2, 3, 9, 20)]
    cases = [[[2.0], 1], [[1.0, 3.0, 2.0], 1], [[0.5] * 12, 4], [[1.0, 3.0, 2.0], 5], *drawn]
    run = testbed.run("ask", [{"name": "most_seconds", "cases": cases}])
    if run.failure:
        return Finding.failed(run, "the seconds at most")
    for (seconds, workers), found in zip(cases, run.results[0]["found"], strict=True):
        right = sum(seconds) / workers + max(seconds) * (1 - 1 / workers)
        if not math.isclose(float(found), right, rel_tol=1e-6):
            about = f"{workers} workers, trials of {', '.join(f'{one:.3g}' for one in seconds)} s"
            return _fault(f"{float(found):.4g} s", f"{right:.4g} s", about)
    return _right("the seconds at most")


@check(
    points=4,
    hint="Who is idle, what waits, and whose report has come? To which job does a loss belong?",
    how="Keep which job each worker does. First give jobs to idle workers by rank. Then, as long as one works: take a "
    "report of any worker, put its loss at the place of this worker's job, and give that worker the next job.",
)
def every_trial_once(testbed: Testbed) -> Finding:
    """The same jobs on one, two, three and five workers; fewer jobs than workers, one, and none. Nobody breaks down."""
    rng = testbed.rng
    jobs, table = _drawn_jobs(rng, 7)
    few, none = _drawn_jobs(rng, 2), _drawn_jobs(rng, 0)
    large = _drawn_jobs(rng, 9, least=2**30)
    expected = "each job done once, by the worker that is idle first, and its loss in its place"

    def batch(workers: int, given: tuple[list[Job], _Losses], slow: int = 0) -> _Batch:
        return _Batch.drawn(rng, workers, *given, slow=slow)

    three = [batch(3, (jobs, table), slow=1), batch(3, few), batch(3, none), batch(3, large)]
    two = [batch(2, (jobs, table)), batch(2, few, slow=1)]
    one, five = [batch(1, (jobs, table))], [batch(5, (jobs, table), slow=2)]
    talks = [(three[:1], WORKERS), (three[:1], SCHEDULER)]
    return _first(testbed, [*talks, *((batches, BOTH) for batches in (three, two, one, five))], expected)


@check(
    points=4,
    hint="Which job does a lost worker leave behind, who may take it, and how often was it ordered by now?",
    how="On LOST: remove the worker from the list. If its job was ordered fewer than tries times, put it back in its "
    "place among those that wait. Then look at all idle workers, not only at the one that has reported.",
)
def no_trial_is_lost(testbed: Testbed) -> Finding:
    """Workers break down in a first job, a later one, a last one; others are idle or not; some jobs break everybody."""
    rng = testbed.rng
    jobs = _drawn_jobs(rng, 8)
    poisoned = [jobs[0][int(place)][0] for place in rng.permutation(8)[:2]]

    def such(wish: Callable[[_Batch], bool], workers: int, count: int = 8, **options: Any) -> _Batch:
        given = jobs if count == 8 else _drawn_jobs(rng, count)
        return _Batch.such(rng, wish, workers, *given, **options)

    four = [
        such(lambda one: one.queued > 0, 4, breakdowns=2, tries=3),
        such(lambda one: one.back > 1, 4, breakdowns=3, tries=3),
        such(lambda one: one.living != [], 4, tries=2, poisoned=poisoned[:1], slow=1),
        such(lambda one: one.woken > 0 and one.living != [], 4, count=4, breakdowns=1, tries=2),
    ]
    five = [
        such(lambda one: one.behind > 0 and one.living != [], 5, breakdowns=4, tries=3),
        such(lambda one: one.given_up > 1, 5, tries=2, poisoned=poisoned),
        such(lambda one: one.given_up > 0 and one.living != [], 5, tries=1, breakdowns=2),
    ]
    nobody = [such(lambda one: one.unordered > 0, 2, breakdowns=2, tries=3)]
    alone = [such(lambda one: one.unordered > 0, 1, breakdowns=1, tries=2)]
    expected = "each job of a lost worker done by another one"
    scripted = [(four[:2], WORKERS), (four[:2], SCHEDULER)]
    return _first(testbed, [*scripted, *((batches, BOTH) for batches in (four, five, nobody, alone))], expected)


@check(
    points=3,
    hint="When does a rung end at most, and how many trials has it at least? Which epochs are paid a second time?",
    how="Go from (trials, least) to (max(count // eta, 1), eta * epoch) until a rung ends at most. Pay count times the "
    "epochs since the rung before.",
)
def rungs_and_budget(testbed: Testbed) -> Finding:
    """Numbers that eta divides and does not, one trial, one rung; budgets; equal losses, inf and nan."""
    rng = testbed.rng
    cases = [[27, 3, 1, 27], [8, 2, 1, 8], [1, 3, 2, 9], [12, 2, 5, 5], [12, 2, 7, 5], [2, 3, 1, 100], [100, 2, 3, 50]]
    cases += [[1, 2, 7, 7], [9, 3, 1, 9], [10, 3, 1, 9], [3, 3, 1, 10], [64, 4, 2, 1000]]
    cases += [[2 * eta**more, eta, 1, eta**more] for eta in range(2, 8) for more in range(2, 6)]
    cases += [[int(one) for one in rng.integers((1, 2, 1, 1), (200, 6, 9, 300))] for _ in range(60)]
    found = [_rungs(*case) for case in cases]
    finding = _asked(testbed, "rungs", cases, found, "trials, eta, least, most")
    if finding.share == 1:
        paid = [[[tuple(rung) for rung in one]] for one in found]
        paid += [[[(7, 2), (3, 5), (3, 6), (1, 40)]], [[(5, 3)]]]
        right = [_paid(*case) for case in paid]
        finding = _asked(testbed, "paid_epochs", paid, right, "rungs")
    return finding if finding.share < 1 else _kept(testbed)


def _rungs(trials: int, eta: int, least: int, most: int) -> list[list[int]]:
    """The rungs, by the rules."""
    found, power = [], 0
    while not found or found[-1][1] != most:
        count = max(1, trials // eta**power)
        found.append([count, most if count == 1 else min(most, least * eta**power)])
        power += 1
    return found


def _paid(rungs: Sequence[Sequence[int]]) -> int:
    """The epochs that are trained: each trial's last ones, since it continues."""
    ends = [0, *(stop for _, stop in rungs)]
    return sum(count * (stop - ends[place]) for place, (count, stop) in enumerate(rungs))


def _kept(testbed: Testbed) -> Finding:
    """keep_best with equal losses, inf and nan, and trials in any order."""
    rng, cases, right = testbed.rng, [], []
    for number in range(60):
        trials = rng.permutation(50)[: int(rng.integers(1, 30))].tolist()
        losses = rng.integers(-2, (4, 60)[number % 2], len(trials)) / 4
        losses[rng.random(len(trials)) < (0.0, 0.2, 0.6, 1.0)[number % 4]] = np.nan
        losses[rng.random(len(trials)) < 0.1] = np.inf
        count = int(rng.integers(1, len(trials) + 1))
        cases.append([trials, losses.tolist(), count])
        right.append(_sorted(dict(zip(trials, losses.tolist(), strict=True)))[:count])
    run = testbed.run("kept", [{"cases": cases}])
    if run.failure:
        return Finding.failed(run, "the best trials")
    for (trials, losses, count), found, wanted in zip(cases, run.results[0]["found"], right, strict=True):
        if list(found) != wanted:
            told = ", ".join(f"{trial}: {loss:g}" for trial, loss in zip(trials, losses, strict=True))
            return _fault(str(found), str(wanted), f"keep_best of {count}, losses {told}", KEEP_HINT)
    return _right("rungs, their epochs, and the best trials")


def _sorted(losses: dict[int, float]) -> list[int]:
    """Trials from the best to the worst."""
    return sorted(losses, key=lambda trial: (math.isnan(losses[trial]), np.nan_to_num(losses[trial]), trial))


@check(
    points=2,
    hint="Which trials does a rung have, in which order, and at which epoch do they continue?",
    how="For each rung: keep the best of the rung before, dispatch (trial, stop of the rung before, stop), and write "
    "down the losses. Use one list of workers for all rungs, and send STOP to those that are left in it.",
)
def halving_on_workers(testbed: Testbed) -> Finding:
    """One to four workers; rungs of one trial, of one rung, with breakdowns, with losses of nan; nobody left."""
    rng = testbed.rng
    four = [
        _Batch.halving(rng, 4, (9, 2, 2, 11), breakdowns=2, tries=2, wish=lambda one: len(one.living) == 2),
        _Batch.halving(rng, 4, (13, 3, 1, 9), slow=1),
    ]
    two = [_Batch.halving(rng, 2, (7, 2, 1, 20), wish=_late_winner), _Batch.halving(rng, 2, (1, 2, 1, 6))]
    three = [
        _Batch.halving(rng, 3, (6, 2, 1, 8), breakdowns=3, tries=3, wish=lambda one: one.unordered > 0),
        _Batch.halving(rng, 3, (5, 2, 4, 4), wish=_turned),
        _Batch.halving(rng, 3, (6, 2, 3, 5), wish=_turned),
    ]
    one = [
        _Batch.halving(rng, 1, (5, 3, 2, 7), diverged=0.9),
        _Batch.halving(rng, 1, (6, 2, 1, 2), diverged=0.9, wish=_keeps_nan),
    ]
    talks = [(batches, BOTH) for batches in (four, two, three, one)]
    return _first(testbed, talks, "the rungs one after the other, each with the best trials")


def _turned(batch: _Batch) -> bool:
    """The best trial of the last rung does not come first in it."""
    return next(iter(batch.history[-1])) != _sorted(batch.history[-1])[0]


def _keeps_nan(batch: _Batch) -> bool:
    """A rung has a trial that had diverged before, beside others that had not."""
    first, second, *_ = batch.history
    return 0 < sum(math.isnan(first[trial]) for trial in second) < len(second)


def _late_winner(batch: _Batch) -> bool:
    """The trial that is best in the end was not the best one of the first rung."""
    return next(iter(batch.history[-1])) != _sorted(batch.history[0])[0]


@check(
    points=2,
    hint="Which configurations does your code ask the test set for, and how often? What does one lucky seed say?",
    how="Take the mean of each configuration's validation losses, choose by keep_best, and only then call test, once, "
    "for the chosen one.",
)
def chosen_without_the_test_set(testbed: Testbed) -> Finding:
    """Lucky seeds, nan, equal means, different numbers of seeds, and test losses that would choose another one."""
    rng, cases = testbed.rng, []
    for number in range(40):
        configurations = int(rng.integers(1, 9))
        if number % 2:  # equal means, which are exact
            counts = rng.choice([1, 2, 4], configurations)
            validation = [(rng.integers(0, 4, count) / 4).tolist() for count in counts]
        else:
            validation = [rng.normal(size=count).tolist() for count in rng.integers(1, 6, configurations)]
        for losses in validation:
            if rng.random() < (0.0, 0.3, 1.0, 0.0, 0.3)[number % 5]:
                losses[int(rng.integers(len(losses)))] = math.nan
        cases.append([validation, rng.random(configurations).tolist()])
    cases.append([[[0.0, 9.0], [4.0, 4.0], [4.5]], [0.3, 0.2, 0.1]])
    cases.append([[[5.0, 1.0, 1.0], [2.0, 2.0, 2.0]], [0.7, 0.8]])
    cases.append([[[1.0, math.nan], [math.inf, 1.0]], [0.7, 0.8]])
    run = testbed.run("select", [{"cases": cases}])
    expected = "the smallest mean of validation, and one question to the test set"
    if run.failure:
        return Finding.failed(run, expected)
    outcome = run.results[0]
    for (validation, tests), found, asked in zip(cases, outcome["found"], outcome["asked"], strict=True):
        means = {number: sum(one) / len(one) for number, one in enumerate(validation)}
        best = _sorted(means)[0]
        told = "; ".join(", ".join(f"{loss:g}" for loss in losses) for losses in validation)
        if list(asked) != [best]:
            return _fault(f"the test set is asked for {asked}", f"asked for [{best}]", f"validation {told}")
        if not np.allclose(found, [best, means[best], tests[best]], rtol=1e-9, equal_nan=True):
            return _fault(str(found), str([best, means[best], tests[best]]), f"validation {told}")
    return _right(expected)


# The replay


class _Losses(dict[tuple[int, int], float]):
    """By trial and the epoch at which a job stops."""


@dataclass
class _Done:
    """What a worker does in slots `begin` to `end`. lost: whether it breaks down in it."""

    job: Job
    begin: int
    end: int
    lost: bool


@dataclass
class _Batch:
    """Jobs for some workers, and what the rules make of them: who does what, and the end.

    breaks: by rank, the number of the job in which it breaks down. poisoned: trials that break every worker. halving:
    the arguments of a search.
    """

    workers: int
    tries: int
    base_seed: int
    table: _Losses
    slots: Any  # by rank, how many slots its jobs take, in turn
    breaks: dict[int, int]
    poisoned: Sequence[int] = ()
    jobs: Sequence[Job] = ()
    halved: Sequence[int] = ()
    living: list[int] = field(default_factory=list)
    did: list[list[_Done]] = field(default_factory=list)
    script: list[tuple[str, int, Any]] = field(default_factory=list)  # orders and reports, with the worker's rank
    losses: list[float] = field(default_factory=list)
    history: list[dict[int, float]] = field(default_factory=list)
    length: int = 0  # slots
    queued: int = 0  # times that a lost job went to another worker than the one that was idle for the longest time
    woken: int = 0  # times that a lost job went at once to a worker that was idle
    back: int = 0  # times that a lost job came before others that waited
    behind: int = 0  # times that a lost job came behind another lost one that waited
    given_up: int = 0  # jobs that were lost too often
    unordered: int = 0  # jobs for which nobody was left

    @classmethod
    def drawn(
        cls, rng: np.random.Generator, workers: int, jobs: Sequence[Job], table: _Losses, *, tries: int = 2,
        slow: int = 0, breakdowns: int = 0, poisoned: Sequence[int] = (), halved: Sequence[int] = (),
    ) -> _Batch:  # fmt: skip
        """slow: how many workers take longer, which are drawn. breakdowns: how many workers break down."""
        slots = rng.integers(5, 16, (workers, 40))
        slots[rng.permutation(workers)[:slow]] *= 3
        breaking = rng.permutation(workers)[:breakdowns]
        breaks = {int(rank): int(rng.integers(4)) for rank in breaking}
        base_seed = int(rng.integers(MOST_NUMBER))
        made = cls(workers, tries, base_seed, table, slots, breaks, poisoned, jobs, halved)
        made.living, made.did = list(range(workers)), [[] for _ in range(workers)]
        if halved:
            made._halve(*halved)
        else:
            made.losses = made._dispatch(jobs)
        made.script += [("order", rank, np.array(STOP_ORDER)) for rank in made.living]
        return made

    @classmethod
    def such(cls, rng: np.random.Generator, wish: Callable[[_Batch], bool], *given: Any, **options: Any) -> _Batch:
        """The first of those drawn for which the wish is true."""
        for _ in range(DRAWS):
            made = cls.drawn(rng, *given, **options)
            if wish(made):
                return made
        raise AssertionError("no such batch was drawn")

    @classmethod
    def halving(
        cls, rng: np.random.Generator, workers: int, halved: Sequence[int], *, diverged: float = 0.2,
        wish: Callable[[_Batch], bool] = lambda _: True, **options: Any,
    ) -> _Batch:  # fmt: skip
        """A search. halved: trials, eta, least and most. diverged: the share of trials with losses of nan."""
        for _ in range(DRAWS):
            stops = [stop for _, stop in _rungs(*halved)]
            table = _Losses({(trial, stop): float(rng.normal()) for trial in range(halved[0]) for stop in stops})
            for trial in range(halved[0]):
                if rng.random() < diverged:
                    table.update({(trial, stop): math.nan for stop in stops[int(rng.integers(len(stops))) :]})
            made = cls.drawn(rng, workers, (), table, halved=halved, **options)
            if wish(made):
                return made
        raise AssertionError("no such search was drawn")

    @property
    def name(self) -> str:
        """For messages."""
        lost = f", {self.workers - len(self.living)} lost" if len(self.living) < self.workers else ""
        if self.halved:
            trials, eta, least, most = self.halved
            return f"{self.workers} workers{lost}, search({trials}, {eta}, {least}, {most}, {self.tries})"
        return f"{self.workers} workers{lost}, {len(self.jobs)} jobs, tries {self.tries}"

    def _halve(self, *halved: int) -> None:
        """Replays a search."""
        trials, start = list(range(halved[0])), 0
        for count, stop in _rungs(*halved):
            trials = trials[:count]
            losses = self._dispatch([(trial, start, stop) for trial in trials])
            self.history.append(dict(zip(trials, losses, strict=True)))
            trials, start = _sorted(self.history[-1]), stop

    def _dispatch(self, jobs: Sequence[Job]) -> list[float]:
        """Replays the rules."""
        losses = [math.nan for _ in jobs]
        left = dict.fromkeys(range(len(jobs)), self.tries)  # of the jobs that are not over: how often they may be tried
        doing: dict[int, tuple[int, int]] = {}  # by the slot in which it ends: the rank, and the job's place
        while True:
            busy = {rank for rank, _ in doing.values()}
            held = {place for _, place in doing.values()}
            waiting = sorted(place for place, tries in left.items() if tries and place not in held)
            free = [rank for rank in self.living if rank not in busy]
            for rank, place in zip(free, waiting, strict=False):
                left[place] -= 1
                doing[self._begin(rank, jobs[place], doing)] = (rank, place)
            if not doing:
                self.given_up += sum(not tries for tries in left.values())
                self.unordered += sum(tries > 0 for tries in left.values())
                return losses
            self.length = min(doing)
            rank, place = doing.pop(self.length)
            lost = self.did[rank][-1].lost
            self.script.append(("report", rank, None))
            if lost:
                self.living.remove(rank)
                held = {other for _, other in doing.values()}
                others = [other for other, tries in left.items() if tries and other not in {place, *held}]
                again, idle = left[place] > 0, len(self.living) > len(doing)
                self.woken += again and idle
                self.queued += again and idle and self._idle_longest({other for other, _ in doing.values()})
                self.back += again and not idle and any(other > place for other in others)
                self.behind += again and not idle and any(other < place for other in others)
            else:
                losses[place] = self.table[jobs[place][0], jobs[place][2]]
                del left[place]

    def _idle_longest(self, busy: set[int]) -> bool:
        """Whether the idle worker with the lowest rank is not the one that was idle first."""
        free = [rank for rank in self.living if rank not in busy]
        return min(free, key=lambda rank: self.did[rank][-1].end if self.did[rank] else 0) != free[0]

    def _begin(self, rank: int, job: Job, doing: dict[int, Any]) -> int:
        """When this job ends."""
        number = len(self.did[rank])
        end = self.length + int(self.slots[rank][number % self.slots.shape[1]])
        while end in doing:
            end += 1
        lost = self.breaks.get(rank) == number or job[0] in self.poisoned
        self.did[rank].append(_Done(job, self.length, end, lost))
        self.script.append(("order", rank, np.array(job, dtype=np.float64)))
        return end

    def argument(self, rank: int, begin: float, script: str) -> dict[str, Any]:
        """For the driver of one rank."""
        given: dict[str, Any] = {"begin": begin, "workers": self.workers}
        if rank < self.workers:
            table = [[trial, stop, loss] for (trial, stop), loss in self.table.items()]
            did = self.did[rank]
            work = {
                "base_seed": self.base_seed, "table": table, "ends": [begin + SLOT * one.end for one in did],
                "breaks": bool(did) and did[-1].lost, "later": 9 * SLOT, "script": script == WORKERS,
            }  # fmt: skip
            return given | {"work": work}
        if script == SCHEDULER:
            return given | {"lines": [list(line) for line in self.script]}
        if self.halved:
            names = ("trials", "eta", "least", "most")
            return given | {"search": {**dict(zip(names, self.halved, strict=True)), "tries": self.tries}}
        return given | {"dispatch": {"jobs": [list(job) for job in self.jobs], "tries": self.tries}}


def _drawn_jobs(rng: np.random.Generator, count: int, least: int = 0) -> tuple[list[Job], _Losses]:
    """Jobs of trials whose numbers have no order, from some epoch to a later one, and their losses."""
    trials = least + rng.permutation(3 * count + 1)[:count]
    starts = rng.integers(0, 9, count)
    stops = starts + rng.integers(1, 9, count)
    jobs = [(int(trial), int(start), int(stop)) for trial, start, stop in zip(trials, starts, stops, strict=True)]
    losses = rng.normal(size=count)
    losses[: count // 4] = np.nan
    drawn = rng.permutation(losses).tolist()
    return jobs, _Losses({(trial, stop): loss for (trial, _, stop), loss in zip(jobs, drawn, strict=True)})


# The judge


@dataclass(frozen=True)
class _Wrong:
    """What is wrong, and since when."""

    seconds: float
    observed: str
    expected: str


def _first(testbed: Testbed, talks: Sequence[tuple[Sequence[_Batch], str]], expected: str) -> Finding:
    """The first fault of all runs. Each has batches, one after the other, and the side that is a script."""
    for batches, script in talks:
        workers, begins = batches[0].workers, _begins(batches)
        pairs = sorted({(one.base_seed, done.job[0]) for one in batches for did in one.did for done in did})
        arguments: list[dict[str, Any]] = [
            {"cases": [one.argument(rank, at, script) for one, at in zip(batches, begins, strict=False)]}
            for rank in range(workers + 1)
        ]
        if script != WORKERS:
            arguments[-1]["pairs"] = pairs
        run = testbed.run("train", arguments, cluster=Cluster.model_validate({"workers": workers + 1, **NETWORK}))
        failure = run.failure or ""
        if failure and not any(sign in failure for sign in CONSEQUENCES):
            return Finding.failed(run, expected)
        seeds = {} if failure or script == WORKERS else dict(zip(pairs, run.results[workers]["seeds"], strict=True))
        for number, (batch, begin) in enumerate(zip(batches, begins, strict=False)):
            wrong = [*_not_as_replayed(run, number, batch, begin, seeds)]
            if not failure:
                wrong += _other_results(run, number, batch, script)
            if wrong:
                earliest = min(wrong, key=lambda one: one.seconds)
                return _fault(earliest.observed, earliest.expected, batch.name)
        if failure:
            return Finding.failed(run, expected)
        if last := next(_other_messages(run, batches), None):
            return _fault(last.observed, last.expected, batches[0].name)
    return _right(expected)


def _begins(batches: Sequence[_Batch]) -> list[float]:
    """When each batch begins, and when the last one is over, in seconds."""
    return [SLOT * float(slot) for slot in np.cumsum([0, *(2 + one.length for one in batches)])]


def _not_as_replayed(
    run: Run, number: int, batch: _Batch, begin: float, seeds: dict[tuple[int, int], str]
) -> Iterator[_Wrong]:
    for rank, wanted in enumerate(batch.did):
        began = [one for one in run.log.busy if one.rank == rank and one.kind != "pause"]
        noted = run.log.notes_of(rank, "job")
        own = [(one, told) for one, told in zip(began, noted, strict=False) if one.kind.split()[0] == str(number)]
        for (one, (seed, *others)), right in zip(own, wanted, strict=False):
            at, due = one.start_seconds, begin + SLOT * right.begin
            job = tuple(map(int, one.kind.split()[1:]))
            if job != right.job or not due - EARLY <= at <= due + LATE:
                yield _Wrong(min(at, due), _told(rank, job, at - begin), _told(rank, right.job, due - begin))
            elif others:
                yield _Wrong(at, f"train gets a number of type {others[0]}", "four numbers of type int")
            elif seeds and seed != seeds[batch.base_seed, job[0]]:
                about = f"base seed {batch.base_seed}, trial {job[0]}"
                yield _Wrong(at, f"worker {rank} trains with seed {seed}", f"seed_of gives another one: {about}")
        for one, _ in own[len(wanted) :][:1]:
            job = tuple(map(int, one.kind.split()[1:]))
            at = one.start_seconds
            yield _Wrong(at, _told(rank, job, at - begin), "no further job for this worker")
        for right in wanted[len(own) :][:1]:
            due = begin + SLOT * right.begin
            yield _Wrong(due + LATE, f"worker {rank} does nothing", _told(rank, right.job, due - begin))


def _told(rank: int, job: Sequence[int], seconds: float) -> str:
    return f"worker {rank} begins job {tuple(job)} at {1e3 * seconds:.1f} ms"


def _other_results(run: Run, number: int, batch: _Batch, script: str) -> Iterator[_Wrong]:
    found = run.results[batch.workers]["cases"][number]
    if script == SCHEDULER:
        yield from _other_reports(run, number, batch)
    elif batch.halved:
        history = [[[trial, loss] for trial, loss in rung.items()] for rung in batch.history]
        for place, (one, right) in enumerate(zip(found["history"], history, strict=False)):
            if not _same(sorted(one), sorted(right)):
                yield _Wrong(math.inf, f"losses of rung {place} by trial: {one}", str(right))
        if len(found["history"]) != len(history):
            yield _Wrong(math.inf, f"{len(found['history'])} rungs", f"{len(history)} rungs")
        if found["best"] != (best := _sorted(batch.history[-1])[0]):
            yield _Wrong(math.inf, f"trial {found['best']} is the best one", f"trial {best}")
    elif not _same(found["losses"], batch.losses):
        yield _Wrong(math.inf, f"losses {found['losses']}", f"{batch.losses}, of jobs {[*batch.jobs]}")
    elif found["living"] != batch.living:
        yield _Wrong(math.inf, f"workers that are left: {found['living']}", str(batch.living))


def _other_reports(run: Run, number: int, batch: _Batch) -> Iterator[_Wrong]:
    """Reports to the script with other numbers than the protocol has."""
    for rank, did in enumerate(batch.did):
        reports = run.log.notes_of(batch.workers, f"report {number} {rank}")
        for done, report in zip(did, reports, strict=False):
            right = [1.0, math.nan] if done.lost else [0.0, batch.table[done.job[0], done.job[2]]]
            if not _same(list(report), right):
                yield _Wrong(math.inf, f"worker {rank} reports {list(map(float, report))}", f"{right}: job {done.job}")


def _other_messages(run: Run, batches: Sequence[_Batch]) -> Iterator[_Wrong]:
    """Messages that the protocol does not have, collectives, and operations that nobody waits for."""
    due: Counter[tuple[int, int, int]] = Counter()
    for batch in batches:
        for rank, did in enumerate(batch.did):
            due[batch.workers, rank, ORDER_BYTES] += len(did) + (rank in batch.living)
            due[rank, batch.workers, REPORT_BYTES] += len(did)
    seen = Counter((one.source, one.target, one.num_bytes) for one in run.log.messages)
    rule = "an order and a report for each job, and one STOP for each worker that is left"
    for key in sorted({*seen, *due}):
        if seen[key] != due[key]:
            source, target, size = key
            told = f"{seen[key]} messages of {size} bytes from rank {source} to rank {target}"
            yield _Wrong(math.inf, told, f"{due[key]}: {rule}")
    for collective in run.log.collectives:
        yield _Wrong(math.inf, f"a {collective.kind}", rule)
    for operation in run.log.unwaited:
        yield _Wrong(math.inf, str(operation), "a wait for each isend and irecv")


def _asked(testbed: Testbed, name: str, cases: list[Any], right: Sequence[Any], about: str) -> Finding:
    """Whether a function of the student says the right thing in each case. about: the names of its arguments."""
    run = testbed.run("ask", [{"name": name, "cases": cases}])
    if run.failure:
        return Finding.failed(run, f"{name} by its rules")
    for case, found, wanted in zip(cases, run.results[0]["found"], right, strict=True):
        if found != wanted:
            return _fault(str(found), str(wanted), f"{name}, {about}: {', '.join(map(str, case))}")
    return _right(f"{name} by its rules")


def _same(one: Any, other: Any) -> bool:
    return bool(np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=0, atol=0, equal_nan=True))


def _right(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)


def _fault(observed: str, expected: str, where: str, hint: str = "") -> Finding:
    return Finding.of(observed=observed, expected=expected, passed=False, where=where, hint=hint)
