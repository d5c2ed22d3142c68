"""Real runs fail when the simulator says, come back from their checkpoint, and lose what the simulator predicts."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distsim import InputError, RunError, Scenario, simulate
from distsim.metrics import goodput
from distsim.runtime.measure import measure, measure_all
from distsim.runtime.recording.merge.failures import BEFORE, joined, load_joined, with_pauses
from distsim.runtime.recording.recorder import TABLES, Recorder, journal_of
from distsim.trace import SpanKind, Trace, TraceBuilder, violations

FAULTY = str(Path(__file__).parent / "ranks" / "faulty.py")
OVERLAP_SECONDS = 2e-3
RESTART_SECONDS = 5.0  # far above what torchrun takes
KINDS = [
    # Worker 0 fails, who keeps the checkpoint.
    pytest.param("ring", {"kind": "synchronous"}, 335, marks=pytest.mark.thorough),
    ("parameter_server", {"kind": "synchronous"}, 145),  # worker 1 fails
    ("ring", {"kind": "local_sgd", "period": 3}, 335),
]


def failing(kind: str = "ring", policy: dict[str, Any] | None = None, seed: int = 335, **changes: Any) -> Scenario:
    """Of 50 steps of 40 ms each; the seed has one failure after 1.2 s, and the next after a minute."""
    return Scenario.of(
        {
            "name": "failing",
            "steps": 50,
            "seed": seed,
            "cluster": {"workers": 2, "bandwidth": "1 Gbit/s", "latency": "0 s"},
            "compute": {"mean": "40 ms"},
            "workload": {"gradient": "64 KiB", "batch": 1},
            "policy": policy or {"kind": "synchronous"},
            "communication": {"kind": kind},
            "failures": {
                "mean_time_between": "30 s",
                "checkpoint_every": "300 ms",
                "checkpoint_cost": "100 ms",
                "restart_cost": f"{RESTART_SECONDS:g} s",
            },
        }
        | changes
    )


def of_worker(trace: Trace, worker: int, *kinds: SpanKind) -> list[tuple[float, float]]:
    spans = trace.spans.of_kind(*kinds)
    spans = spans.where(spans.worker == worker)
    return sorted(zip(spans.start_seconds.tolist(), spans.end_seconds.tolist(), strict=True))


def measured_in_turn(scenario: Scenario) -> Trace:
    """A run in which each worker's spans follow each other. A busy machine reads clocks late, so it may try twice."""
    overlaps = []
    for _ in range(2):
        trace = measure(scenario)
        spans = [of_worker(trace, worker, *SpanKind) for worker in range(scenario.cluster.workers)]
        overlaps.append(max(before[1] - after[0] for own in spans for before, after in pairwise(own)))
        if overlaps[-1] <= OVERLAP_SECONDS:
            return trace
    raise AssertionError(f"spans of one worker overlap by {overlaps} s")


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.more
@pytest.mark.parametrize(("kind", "policy", "seed"), KINDS)
def test_what_failures_cost_is_what_the_simulator_predicts(
    kind: str, policy: dict[str, Any], seed: int, whole: Callable[[float, float], float]
) -> None:
    scenario = failing(kind, policy, seed)
    predicted, measured = simulate(scenario), measured_in_turn(scenario)
    (took,) = measured.metadata["restarts_took_seconds"]
    late = max(took - RESTART_SECONDS, 0.0)  # a machine so busy that starting the ranks takes longer
    assert violations(measured) == []
    assert len(measured.updates) == len(predicted.updates)
    for worker in range(2):
        ((_, ours),) = of_worker(predicted, worker, SpanKind.LOST)
        ((begin, theirs),) = of_worker(measured, worker, SpanKind.LOST)
        assert theirs == pytest.approx(ours, abs=1e-6), "a worker fails at the time that the simulator draws"
        assert 0.0 <= theirs - begin < 0.6, "one checkpoint's work at most, and its cost"
        ((begin, end),) = of_worker(measured, worker, SpanKind.RESTART)
        assert (begin, end - begin) == pytest.approx((theirs, RESTART_SECONDS + late), abs=1e-6)
        computed = of_worker(measured, worker, SpanKind.COMPUTE)
        assert len(computed) == scenario.steps, "each step is told once"
        for start, stop in of_worker(measured, worker, SpanKind.CHECKPOINT):
            assert stop - start >= 0.1 - 1e-6
    # Other work on the machine makes a run late, never early.
    assert 0.9 < (measured.total_seconds - late) / predicted.total_seconds < whole(2.0, 1.1)
    useful = [goodput(trace) * trace.total_seconds for trace in (measured, predicted)]
    assert 0.7 < useful[0] / useful[1] < whole(3.0, 1.3)


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.more
@pytest.mark.thorough
def test_goodput_at_three_intervals_is_what_the_simulator_predicts(whole: Callable[[float, float], float]) -> None:
    """More than twenty failures, intervals that differ by a factor of 8, and the best one between them.

    The seed has no failure near the end of a save: there a slow step decides whether the save counts.
    """
    costs = {"mean_time_between": "5 s", "checkpoint_cost": "100 ms", "restart_cost": "2 s"}
    scenarios = [
        failing(seed=4953, steps=220, compute={"mean": "50 ms"}, failures={**costs, "checkpoint_every": every})
        for every in ("200 ms", "600 ms", "1600 ms")
    ]
    predicted = [simulate(scenario) for scenario in scenarios]
    for _ in range(2):  # a restart that takes longer than the scenario says moves later failures to other work
        measured = measure_all(scenarios)
        if max(max(trace.metadata["restarts_took_seconds"]) for trace in measured) <= 2.0:
            break
    assert sum(len(of_worker(trace, 0, SpanKind.LOST)) for trace in measured) >= 20
    shares = [[goodput(trace) for trace in traces] for traces in (predicted, measured)]
    assert shares[0][1] == max(shares[0])
    for ours, theirs in zip(*shares, strict=True):
        assert theirs == pytest.approx(ours, rel=whole(0.3, 0.1))


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.more
def test_an_error_of_ones_own_ends_the_run_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = {"rank": 1, "where": "peers", "call": 4, "fault": "raise"}
    monkeypatch.setenv("DISTSIM_TEST_FAULT", json.dumps(fault))
    words = r"rank 1 \(worker 1\) raised ValueError at faulty\.py:\d+, during compute of step 3"
    with pytest.raises(RunError, match=words) as caught:
        measure_all([failing()], entry=(FAULTY,))
    assert caught.value.trace is not None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"policy": {"kind": "asynchronous"}, "communication": {"kind": "parameter_server"}}, "policy.kind = 'asynchr"),
        ({"policy": {"kind": "ddp"}}, "policy.kind = 'ddp'"),
        ({"communication": {"kind": "parameter_server", "servers": 2}}, "communication.servers = 2"),
        ({"communication": {"kind": "parameter_server", "colocated": True}}, "communication.colocated = True"),
    ],
)
def test_what_cannot_come_back_says_so(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=rf"{named}.*cannot come back from a checkpoint.*\[failures\]"):
        measure(failing(**changes))


def test_a_run_that_would_never_get_on_is_not_begun() -> None:
    hopeless = {"mean_time_between": "1 ms", "checkpoint_every": "1 s", "restart_cost": "1 s"}
    with pytest.raises(InputError, match=r"failures\.mean_time_between"):
        measure(failing(failures=hopeless))


def record(folder: Path, start: int, rank: int, **tables: list[tuple[float, ...]]) -> None:
    recorder = Recorder(journal_of(folder, 0, rank, start))
    for name, rows in tables.items():
        for row in rows:
            recorder.table(name)(row)
    recorder.save(folder, 0, rank)


def test_no_table_keeps_rows_that_a_failure_undid(tmp_path: Path) -> None:
    of_every_start = {"left", "resumed"}
    of_no_run_with_failures = {
        "computations", "passes", "handed", "taken", "pieces", "sums_sent", "sums_received", "cancelled",
    }  # fmt: skip
    assert set(TABLES) == set(BEFORE) | of_every_start | of_no_run_with_failures
    for name in BEFORE:
        (tmp_path / name).mkdir()
        rows = [(float(number),) * len(TABLES[name]) for number in range(9)]
        record(tmp_path / name, 0, 0, **{name: rows})
        record(tmp_path / name, 1, 0, resumed=[(4, 4, 5.0, 7.0, 10.0)])
        (tables,) = joined(tmp_path / name, 0, 1)
        assert len(tables[name]) in (4, 5), name  # before update and step 4, or up to update 4


def test_of_each_start_what_the_next_went_on_from_is_kept(tmp_path: Path) -> None:
    computes = [(step, step, 1.0 + step, 1.5 + step) for step in range(4)]
    record(tmp_path, 0, 0, computes=computes, checkpoints=[(2, 2.6, 2.8)])
    again = [(step, step, 11.0 + step, 11.5 + step) for step in range(2, 5)]
    record(tmp_path, 1, 0, resumed=[(2, 2, 5.0, 7.0, 10.0)], computes=again)
    more = [(step, step, 31.0 + step, 31.5 + step) for step in range(2, 6)]
    record(tmp_path, 2, 0, resumed=[(2, 2, 15.0, 17.0, 30.0)], computes=more)
    (tables,) = joined(tmp_path, 0, 1)
    assert tables["computes"] == computes[:2] + more
    assert tables["checkpoints"] == [(2, 2.6, 2.8)]

    builder = TraceBuilder()
    builder.span(0, SpanKind.WAIT, 1, 1.0, 2.0)  # goes on through the checkpoint
    trace = with_pauses(builder.build(workers=1, servers=0, producer="measured"), load_joined(tmp_path, 0, 1), zero=1.0)
    assert of_worker(trace, 0, SpanKind.LOST) == [pytest.approx((1.8, 4.0)), pytest.approx((9.0, 14.0))]
    assert of_worker(trace, 0, SpanKind.RESTART) == [pytest.approx((4.0, 9.0)), pytest.approx((14.0, 29.0))]
    assert np.allclose(of_worker(trace, 0, SpanKind.WAIT), [(1.0, 1.6)])
    assert trace.metadata["restarts_took_seconds"] == [2.0, 2.0]
