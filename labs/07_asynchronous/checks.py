"""What lab 07 asks of tasks.py. Each run is predicted by the simulator, with compute times drawn anew.

Times are seconds long and messages take a tenth of a millisecond, so it is certain who comes first.
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
from distsim.theory.staleness import stale_synchronous_staleness_bound
from distsim.trace import SpanKind

if TYPE_CHECKING:
    from distsim.testbed import Message, Run, Testbed
    from distsim.trace import Trace

WORKERS, STEPS, SIZE, LEARNING_RATE = 4, 5, 6, 0.1
APART_SECONDS = 0.1  # two workers that finish within this time could swap their turns
CLOSE_SECONDS = 0.02  # what some messages may take
LINKS = {"bandwidth": "1 Gbit/s", "latency": "100 us"}


@dataclass(frozen=True)
class Case:
    """A run that is asked for, and what the simulator says of it. used: by update, the worker and the staleness."""

    trace: Trace
    arguments: list[dict[str, Any]]
    used: list[list[int]]

    def run(self, testbed: Testbed, **options: Any) -> Run:
        """The student's server and workers."""
        return testbed.run("train", arguments=self.arguments, cluster=_links(WORKERS + 1), **options)

    def parameters(self) -> Any:
        """The server's at the end: each gradient was computed at the version that its staleness says."""
        versions = [self.arguments[0]["parameters"]]
        for worker, stale in self.used:
            own = self.arguments[worker]
            gradient = own["matrix"] @ (versions[-1 - stale] - own["target"])
            versions.append(versions[-1] - LEARNING_RATE * gradient)
        return versions[-1]


@check(points=3, hint="For every push that comes, from whomever: apply it, and answer this worker with the result.")
def asynchronous_updates(testbed: Testbed) -> Finding:
    """The parameters at the end, on the testbed; on gloo, where the order is not known, that all of them end alike."""
    case = _case(None)
    run = case.run(testbed)
    expected = "the parameters that come of applying each gradient once, as it comes"
    if run.failure:
        return Finding.failed(run, expected)
    if not _same(run.results[-1]["parameters"], case.parameters()):
        return Finding.of(observed=_off(run, case), expected=expected, passed=False, where="the server")
    real = _case(None, seconds=0.01).run(testbed, backend="gloo")
    if real.failure:
        return Finding.failed(real, "a run on gloo that ends well")
    if (made := len(real.results[-1]["used"])) != STEPS * WORKERS:
        return Finding.of(observed=f"{made} updates", expected=f"{STEPS * WORKERS} updates", passed=False, where="gloo")
    return _fine(expected)


@check(points=2, hint="Remember which version each worker was answered with; the staleness is what was made since.")
def the_staleness_of_each_update(testbed: Testbed) -> Finding:
    """Workers and staleness that serve_asynchronous returns, against the simulator's."""
    return _compared(testbed, _case(None))


@check(points=2, hint="An answer goes out when its push has been applied: nobody is waited for.")
def nobody_waits(testbed: Testbed) -> Finding:
    """The time between each push and its answer, as the network has seen it."""
    case = _case(None)
    run = case.run(testbed)
    expected = f"each answer within {1e3 * CLOSE_SECONDS:g} ms of its push"
    if run.failure:
        return Finding.failed(run, expected)
    waits = [wait for worker in range(WORKERS) for wait in _waits(run, worker)]
    if len(waits) < STEPS * WORKERS:
        return Finding.of(observed=f"{len(waits)} answers", expected=expected, passed=False)
    observed = f"an answer {max(waits):.2f} s after its push"
    return Finding.of(observed=observed, expected=expected, passed=max(waits) < CLOSE_SECONDS)


@check(points=3, hint="Count each worker's applied gradients; answer those with at most min(counts) + staleness.")
def stale_synchronous_updates(testbed: Testbed) -> Finding:
    """With bounds of 0, 1 and 2 steps: who makes each update, how stale it is, and the parameters."""
    for staleness in (0, 1, 2):
        if (finding := _compared(testbed, _case(staleness), f"staleness {staleness}")).share < 1.0:
            return finding
    return finding


@check(points=2, hint="When the slowest has caught up, answer whom you hold at once, with the newest parameters.")
def held_until_the_slowest_has_come(testbed: Testbed) -> Finding:
    """When each worker computes, against the simulator."""
    case = _case(1)
    run = case.run(testbed)
    expected = "workers who compute when the simulator says"
    if run.failure:
        return Finding.failed(run, expected)
    spans = case.trace.spans.of_kind(SpanKind.COMPUTE)
    for worker in range(WORKERS):
        starts = [busy.start_seconds for busy in run.log.busy if busy.rank == worker]
        predicted = np.sort(spans.start_seconds[spans.worker == worker])
        for number, start in enumerate(predicted):
            if number >= len(starts) or abs(starts[number] - start) > CLOSE_SECONDS:
                observed = f"step {number} begins at {starts[number]:.2f} s" if number < len(starts) else "no such step"
                wanted = f"step {number} begins at {start:.2f} s"
                return Finding.of(observed=observed, expected=wanted, passed=False, where=f"worker {worker}")
    return _fine(expected)


@check(points=2, hint="Take the pushes that are still to come and answer STOP; held workers wait for nothing else.")
def everybody_stops(testbed: Testbed) -> Finding:
    """Few updates, and workers who are held or still compute: all end, and their last gradients change nothing."""
    for staleness in (None, 0, 1):
        case = _case(staleness, steps=1, updates=random.randrange(1, WORKERS))
        run = case.run(testbed)
        expected = "all workers stop, with the parameters of the last update"
        if run.failure:
            return Finding.failed(run, expected)
        for rank, result in enumerate(run.results):
            if not _same(result["parameters"], case.parameters()):
                observed = "parameters that are not those of the last update"
                where = f"rank {rank}, {case.arguments[0]['updates']} updates, staleness {staleness}"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return _fine(expected)


@check(points=2, hint="One send to the server and one answer for each gradient, of 1 + size numbers; nothing else.")
def one_push_and_one_answer(testbed: Testbed) -> Finding:
    """The messages that the network has carried."""
    run = _case(None).run(testbed)
    size = 8 * (1 + SIZE)
    gradients = sum(busy.rank < WORKERS for busy in run.log.busy)
    expected = f"{gradients} pushes and {gradients} answers of {size} bytes"
    if run.failure:
        return Finding.failed(run, expected)
    pushes = [m for m in run.log.messages if m.target == WORKERS and m.num_bytes == size]
    answers = [m for m in run.log.messages if m.source == WORKERS and m.num_bytes == size]
    others = len(run.log.messages) - len(pushes) - len(answers) + len(run.log.collectives)
    observed = f"{len(pushes)} pushes, {len(answers)} answers and {others} other messages"
    passed = len(pushes) == len(answers) == gradients and not others
    return Finding.of(observed=observed, expected=expected, passed=passed)


@check(points=1, hint="Each of the others goes from staleness steps behind you to staleness + 1 steps ahead of you.")
def prediction_of_the_largest_staleness(testbed: Testbed) -> Finding:
    """One worker, a bound of 0, and more."""
    cases = [[1, 3], [random.randrange(2, 9), 0], [random.randrange(2, 9), random.randrange(1, 9)]]
    run = testbed.run("predict", arguments=[{"cases": cases}])
    expected = [stale_synchronous_staleness_bound(*case) for case in cases]
    if run.failure:
        return Finding.failed(run, expected)
    observed = run.results[0]["staleness"]
    where = "(workers, staleness) = " + ", ".join(f"({workers}, {bound})" for workers, bound in cases)
    return Finding.of(observed=observed, expected=expected, passed=observed == expected, where=where)


def _compared(testbed: Testbed, case: Case, where: str = "") -> Finding:
    """The list that the server returns, and the parameters, against the simulator's."""
    run = case.run(testbed)
    expected = f"(worker, staleness) of each update: {_pairs(case.used)}"
    if run.failure:
        return Finding.failed(run, expected)
    used = run.results[-1]["used"]
    if used == case.used and not _same(run.results[-1]["parameters"], case.parameters()):
        return Finding.of(observed=_off(run, case), expected=expected, passed=False, where=where)
    return Finding.of(observed=_pairs(used), expected=expected, passed=used == case.used, where=where)


def _case(staleness: int | None, steps: int = STEPS, updates: int | None = None, seconds: float = 5.0) -> Case:
    """A run in which no two workers finish at nearly the same time, and in which it shows what a server does wrong.

    The first worker is not the first by rank as well, and with a looser bound the run would be another. (With few
    updates, where the end is looked at, it would be the same with any.)
    """
    count = steps * WORKERS if updates is None else updates
    while True:
        scenario = _scenario(staleness, steps, seconds)
        trace = distsim.simulate(scenario)
        ends = np.sort(trace.spans.of_kind(SpanKind.COMPUTE).end_seconds)
        apart = np.diff(ends).min() > APART_SECONDS * seconds / 5.0
        looser = 1 if updates is None else count
        if staleness is None:
            first = {worker for worker, _ in _used(trace)[:count]}
            telling = updates is None or len(first) == count  # nobody comes twice, so no bound would hold anybody
        else:
            telling = _differs(scenario, trace, looser, count) == (updates is None)
        if apart and telling and _used(trace)[0][0] != 0:
            break
    times = ComputeTimes(scenario.compute, scenario.seed, scenario.workload.batch)
    generator = np.random.default_rng()
    start = generator.normal(size=SIZE)
    arguments = [
        {
            "parameters": start,
            "updates": count,
            "learning_rate": LEARNING_RATE,
            "staleness": staleness,
            "matrix": np.eye(SIZE) + 0.1 * generator.normal(size=(SIZE, SIZE)),
            "target": generator.normal(size=SIZE),
            "times": times.first(worker, steps * WORKERS).tolist() if worker < WORKERS else [],
        }
        for worker in range(WORKERS + 1)
    ]
    return Case(trace, arguments, _used(trace)[:count])


def _scenario(staleness: int | None, steps: int, seconds: float) -> distsim.Scenario:
    policy: dict[str, Any] = {"kind": "asynchronous"}
    if staleness is not None:
        policy = {"kind": "stale_synchronous", "staleness": staleness}
    return distsim.Scenario.of(
        {
            "steps": steps,
            "seed": random.randrange(10**9),
            "cluster": {"workers": WORKERS, **LINKS},
            "compute": {"distribution": "lognormal", "mean": f"{seconds} s", "cv": 0.5},
            "workload": {"gradient": f"{8 * (1 + SIZE)} B"},
            "policy": policy,
            "communication": {"kind": "parameter_server"},
        }
    )


def _differs(scenario: distsim.Scenario, trace: Trace, looser_by: int, updates: int) -> bool:
    """Whether a bound that is looser by so many steps changes who makes the first updates."""
    bound = scenario.policy.staleness + looser_by
    looser = distsim.simulate(scenario.replacing({"policy.staleness": bound}))
    return _used(looser)[:updates] != _used(trace)[:updates]


def _used(trace: Trace) -> list[list[int]]:
    """By update, the worker whose gradient made it and the staleness."""
    rows = trace.contributions
    pairs = zip(rows.version, rows.worker, rows.staleness, strict=True)
    return [[int(worker), int(stale)] for _, worker, stale in sorted(pairs)]


def _links(ranks: int) -> Cluster:
    return Cluster.model_validate({"workers": ranks, **LINKS})


def _waits(run: Run, worker: int) -> list[float]:
    """Seconds from each of a worker's pushes, when it was ready to leave, to its answer."""
    messages: list[Message] = run.log.messages
    pushes = [m for m in messages if m.source == worker]
    answers = [m for m in messages if m.target == worker]
    return [answer.ended_seconds - push.posted_seconds for push, answer in zip(pushes, answers, strict=False)]


def _same(one: Any, other: Any) -> bool:
    return bool(np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-9, atol=1e-9))


def _off(run: Run, case: Case) -> str:
    distance = np.linalg.norm(run.results[-1]["parameters"] - case.parameters())
    moved = np.linalg.norm(case.parameters() - case.arguments[0]["parameters"])
    return f"parameters that are {distance / moved:.1%} of the whole way off"


def _pairs(used: list[list[int]]) -> str:
    return " ".join(f"({', '.join(map(str, pair))})" for pair in used)


def _fine(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)
