"""What lab 06 asks of tasks.py. Each run is predicted by the simulator, with compute times drawn anew.

Times are seconds long and messages take a hundredth of that of a millisecond, so it is certain who comes first.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import distsim
from distsim.cluster import Cluster
from distsim.compute import ComputeTimes
from distsim.grading import Finding, check
from distsim.trace import SpanKind

if TYPE_CHECKING:
    from distsim.testbed import Message, Run, Testbed
    from distsim.testbed.log import Busy
    from distsim.trace import Trace

UPDATES, SIZE, LEARNING_RATE = 8, 6, 0.2
APART_SECONDS = 0.1  # two workers that finish within this time could swap their turns
CLOSE_SECONDS = 0.02  # what some messages may take
LINKS = {"bandwidth": "1 Gbit/s", "latency": "100 us"}


@dataclass(frozen=True)
class Case:
    """A run that is asked for, and what the simulator says of it. used: by update, the workers that make it."""

    trace: Trace
    arguments: list[dict[str, Any]]
    used: list[list[int]]

    @property
    def workers(self) -> int:
        """Without the server."""
        return len(self.arguments) - 1

    def run(self, testbed: Testbed, **options: Any) -> Run:
        """The student's server and workers."""
        cluster = Cluster.model_validate({"workers": self.workers + 1, **LINKS})
        return testbed.run("train", arguments=self.arguments, cluster=cluster, **options)

    def parameters(self) -> Any:
        """The server's at the end, from who makes each update, and the parameters that they had."""
        now = self.arguments[0]["parameters"]
        for workers in self.used:
            gradients = [self._gradient(worker, now) for worker in workers]
            now = now - LEARNING_RATE * np.mean(gradients, axis=0)
        return now

    def _gradient(self, worker: int, at: Any) -> Any:
        own = self.arguments[worker]
        return own["matrix"] @ (at - own["target"])


@check(points=3, hint="Wait for one push of every worker, take off the mean, then answer all of them.")
def synchronous_training(testbed: Testbed) -> Finding:
    """Waiting for all: the same parameters as one process that has all gradients; on the testbed and on gloo."""
    for workers, backend in ((2, "testbed"), (4, "testbed"), (2, "gloo")):
        case = _case(workers, backups=0, seconds=5.0 if backend == "testbed" else 0.01)
        expected = "the parameters of one process that takes the mean of all workers' gradients"
        run = case.run(testbed, backend=backend)
        if run.failure:
            return Finding.failed(run, expected)
        if not _same(run.results[-1]["parameters"], case.parameters()):
            where = f"{workers} workers, {backend}"
            return Finding.of(observed=_off(run, case), expected=expected, passed=False, where=where)
    return _fine(expected)


@check(points=3, hint="An update needs the first wait_for gradients of its own version; compare push[0] with it.")
def updates_from_the_first(testbed: Testbed) -> Finding:
    """With one and two backup workers: who makes each update, and the parameters that come of it."""
    for backups in (1, 2):
        case = _case(4, backups)
        run = case.run(testbed)
        if run.failure:
            return Finding.failed(run, f"updates by workers {case.used}")
        where = f"4 workers, waiting for {4 - backups}"
        if (used := run.results[-1]["used"]) != case.used:
            return Finding.of(observed=used, expected=case.used, passed=False, where=where)
        if not _same(run.results[-1]["parameters"], case.parameters()):
            expected = "the start minus, for each update, the learning rate times the mean of these gradients"
            return Finding.of(observed=_off(run, case), expected=expected, passed=False, where=where)
    return _fine("updates by those who come first")


@check(points=2, hint="Take pushes in the order in which they come: dist.recv without a source.")
def updates_in_time(testbed: Testbed) -> Finding:
    """Where the simulator sees the updates."""
    case = _case(4, backups=2)
    run = case.run(testbed)
    expected = _milestones(case.trace.updates.time_seconds)
    if run.failure:
        return Finding.failed(run, expected)
    made = [min(m.started_seconds for m in answers) for answers in _answers_by_update(run, case)]
    passed = len(made) == UPDATES and np.allclose(made, case.trace.updates.time_seconds, atol=CLOSE_SECONDS)
    return Finding.of(observed=_milestones(made), expected=expected, passed=passed, where="4 workers, waiting for 2")


@check(points=2, hint="A late push is no part of an update, and its worker should not wait for one: answer it now.")
def late_workers_are_answered_at_once(testbed: Testbed) -> Finding:
    """The time between a late push and its answer, in three runs: in one, a wrong server may be right by chance."""
    expected = "each late worker has its answer as soon as its push is there"
    for case in (_case(4, backups=2) for _ in range(3)):
        run = case.run(testbed)
        if run.failure:
            return Finding.failed(run, expected)
        for worker, late in _late(case).items():
            pushes, answers = _talk(run, worker)
            for number in late:
                if number >= min(len(pushes), len(answers)):
                    return Finding.of(observed="no answer", expected=expected, passed=False, where=f"worker {worker}")
                waited = answers[number].ended_seconds - pushes[number].ended_seconds
                if waited > CLOSE_SECONDS:
                    observed = f"an answer {waited:.2f} s after the push"
                    where = f"worker {worker}, push {number}"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return _fine(expected)


@check(points=2, hint="One send to the server and one answer for each gradient, of 1 + size numbers; nothing else.")
def one_push_and_one_answer(testbed: Testbed) -> Finding:
    """The messages that the network has carried."""
    case = _case(3, backups=1)
    run = case.run(testbed)
    size = 8 * (1 + SIZE)
    gradients = sum(busy.rank < 3 and _is_a_gradient(busy, case) for busy in run.log.busy)
    expected = f"{gradients} pushes and {gradients} answers of {size} bytes, between workers and server"
    if run.failure:
        return Finding.failed(run, expected)
    pushes = [m for m in run.log.messages if m.target == 3 and m.num_bytes == size]
    answers = [m for m in run.log.messages if m.source == 3 and m.num_bytes == size]
    others = len(run.log.messages) - len(pushes) - len(answers) + len(run.log.collectives)
    observed = f"{len(pushes)} pushes, {len(answers)} answers and {others} other messages"
    passed = len(pushes) == len(answers) == gradients and not others
    return Finding.of(observed=observed, expected=expected, passed=passed)


@check(points=2, hint="After the last update wait for the pushes that are still to come, and answer STOP.")
def everybody_stops(testbed: Testbed) -> Finding:
    """One update and most workers still computing: all end, each with parameters that the server gave it last."""
    case = _case(4, backups=3, updates=1)
    expected = "all workers stop, with the parameters of the last update"
    run = case.run(testbed)
    if run.failure:
        return Finding.failed(run, expected)
    for rank, result in enumerate(run.results):
        if not _same(result["parameters"], case.parameters()):
            observed = "parameters that are not those of the last update"
            return Finding.of(observed=observed, expected=expected, passed=False, where=f"rank {rank}")
    return _fine(expected)


@check(points=2, hint="The first of n comes after mean / n; then n - 1 are left, and an exponential has no memory.")
def prediction_of_the_wait(testbed: Testbed) -> Finding:
    """One worker, all workers, and fewer."""
    sizes = ((1, 1), (4, 4), (10, 7), (5, 1))
    cases = [{"mean": random.uniform(0.01, 2.0), "workers": n, "wait_for": k} for n, k in sizes]
    run = testbed.run("predict", arguments=[{"cases": cases}])
    expected = [_expected_seconds(**case) for case in cases]
    if run.failure:
        return Finding.failed(run, _milestones(expected))
    observed = run.results[0]["seconds"]
    passed = np.allclose(observed, expected, rtol=1e-6)
    where = "" if passed else "1 of 1, 4 of 4, 7 of 10 and 1 of 5 workers"
    return Finding.of(observed=_milestones(observed), expected=_milestones(expected), passed=passed, where=where)


def _case(workers: int, backups: int, updates: int = UPDATES, seconds: float = 5.0) -> Case:
    """A run in which no two workers finish at nearly the same time, and the first is not the first by rank as well."""
    while True:
        scenario = _scenario(workers, backups, updates, seconds)
        trace = distsim.simulate(scenario)
        ends = np.sort(trace.spans.of_kind(SpanKind.COMPUTE).end_seconds)
        by_rank = _used(trace, updates)[0][0] == 0
        if np.diff(ends).min() > APART_SECONDS * seconds / 5.0 and not by_rank:
            break
    times = ComputeTimes(scenario.compute, scenario.seed, scenario.workload.batch)
    generator = np.random.default_rng()
    start = generator.normal(size=SIZE)
    arguments = [
        {
            "parameters": start,
            "updates": updates,
            "wait_for": workers - backups,
            "learning_rate": LEARNING_RATE,
            "matrix": np.eye(SIZE) + 0.1 * generator.normal(size=(SIZE, SIZE)),
            "target": generator.normal(size=SIZE),
            "times": times.first(worker, updates).tolist() if worker < workers else [],
        }
        for worker in range(workers + 1)
    ]
    return Case(trace, arguments, _used(trace, updates))


def _scenario(workers: int, backups: int, updates: int, seconds: float) -> distsim.Scenario:
    return distsim.Scenario.of(
        {
            "steps": updates,
            "seed": random.randrange(10**9),
            "cluster": {"workers": workers, **LINKS},
            "compute": {"distribution": "lognormal", "mean": f"{seconds} s", "cv": 0.5},
            "workload": {"gradient": f"{8 * (1 + SIZE)} B"},
            "policy": {"kind": "backup", "backups": backups} if backups else {"kind": "synchronous"},
            "communication": {"kind": "parameter_server", "receive": "fifo"},
        }
    )


def _used(trace: Trace, updates: int) -> list[list[int]]:
    """By update, the workers whose gradients it is made of, in the order in which they came."""
    rows = trace.contributions
    return [[int(w) for w in rows.worker[rows.applied & (rows.read_version == version)]] for version in range(updates)]


def _late(case: Case) -> dict[int, list[int]]:
    """By worker, which of its pushes are late while updates are still to come."""
    rows = case.trace.contributions
    return {
        worker: [number for number, applied in enumerate(rows.applied[rows.worker == worker]) if not applied]
        for worker in range(case.workers)
    }


def _talk(run: Run, worker: int) -> tuple[list[Message], list[Message]]:
    """A worker's pushes, and its answers."""
    messages = run.log.messages
    return [m for m in messages if m.source == worker], [m for m in messages if m.target == worker]


def _is_a_gradient(busy: Busy, case: Case) -> bool:
    """Whether it is as long as one of the worker's gradients: a rank can add as many short times as it likes."""
    times = case.arguments[busy.rank]["times"]
    return any(abs(busy.end_seconds - busy.start_seconds - seconds) < CLOSE_SECONDS for seconds in times)


def _answers_by_update(run: Run, case: Case) -> list[list[Message]]:
    """The answers that follow each update: those to the workers who made it, counted by their pushes until then."""
    done = dict.fromkeys(range(case.workers), 0)
    rows = case.trace.contributions
    found: list[list[Message]] = [[] for _ in range(UPDATES)]
    for worker, version, applied in zip(rows.worker, rows.read_version, rows.applied, strict=True):
        _, answers = _talk(run, int(worker))
        if applied and done[int(worker)] < len(answers):
            found[int(version)].append(answers[done[int(worker)]])
        done[int(worker)] += 1
    return [answers for answers in found if answers]


def _expected_seconds(mean: float, workers: int, wait_for: int) -> float:
    scenario = distsim.Scenario.of(
        {
            "steps": 1,
            "cluster": {"workers": workers, **LINKS},
            "compute": {"distribution": "exponential", "mean": f"{mean!r} s"},
            "workload": {"gradient": "8 B"},
            "policy": {"kind": "synchronous"},
            "communication": {"kind": "ring"},
        }
    )
    return scenario.compute.of_worker(0, scenario.workload.batch).expected_order_statistic(wait_for, workers)


def _same(one: Any, other: Any) -> bool:
    return bool(np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-9, atol=1e-9))


def _off(run: Run, case: Case) -> str:
    distance = np.linalg.norm(run.results[-1]["parameters"] - case.parameters())
    moved = np.linalg.norm(case.parameters() - case.arguments[0]["parameters"])
    return f"parameters that are {distance / moved:.1%} of the whole way off"


def _milestones(seconds: Any) -> str:
    return ", ".join(f"{one:.2f} s" for one in seconds)


def _fine(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)
