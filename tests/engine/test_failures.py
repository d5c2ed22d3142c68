"""Failures and checkpoints: by hand, against the renewal formula, and the useful work is all there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.engine import failures as failures_module
from distsim.errors import InputError
from distsim.metrics import goodput, summary
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, violations

FAILURES = {
    "mean_time_between": "1000000 h", "checkpoint_every": "1 s", "checkpoint_cost": "100 ms", "restart_cost": "500 ms",
}  # fmt: skip


def scenario(failures: dict[str, Any] | None, **changes: Any) -> Scenario:
    table: dict[str, Any] = {
        "steps": 40,
        "cluster": {"workers": 4, "bandwidth": "1 GB/s", "latency": "0 s"},
        "compute": {"mean": "250 ms"},
        "workload": {"gradient": "0 B"},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "parameter_server"},
    }
    table |= changes
    return Scenario.of(table | ({"failures": failures} if failures else {}))


def test_without_failures_only_checkpoints_cost_time() -> None:
    """40 steps of 250 ms, saved every second (after 4 steps), not after the last: nine checkpoints."""
    trace = simulate(scenario(FAILURES))
    assert violations(trace) == []
    saved = trace.spans.of_kind(SpanKind.CHECKPOINT)
    assert len(saved) == 9 * 4
    assert saved.start_seconds[saved.worker == 0] == pytest.approx(1.0 + 1.1 * np.arange(9))
    assert trace.total_seconds == pytest.approx(10.0 + 0.9)
    assert goodput(trace) == pytest.approx(10.0 / 10.9)


def test_a_failure_throws_the_run_back_to_the_last_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures at 2.6 s and, while it comes back, at 2.9 s: 0.4 s of work is lost; coming back takes 0.3 + 0.5 s."""
    monkeypatch.setattr(failures_module, "_failures", lambda *_: iter([2.6, 2.9, math.inf]))
    trace = simulate(scenario(FAILURES))
    assert violations(trace) == []
    lost, back = trace.spans.of_kind(SpanKind.LOST), trace.spans.of_kind(SpanKind.RESTART)
    assert (lost.start_seconds[0], lost.end_seconds[0]) == pytest.approx((2.2, 2.6))
    assert (back.start_seconds[0], back.end_seconds[0]) == pytest.approx((2.6, 3.4))
    assert trace.total_seconds == pytest.approx(10.9 + 0.4 + 0.8)
    assert goodput(trace) == pytest.approx(10.0 / 12.1)
    compute = trace.spans.of_kind(SpanKind.COMPUTE)
    own = compute.where(compute.worker == 2)
    assert own.start_seconds[8] == pytest.approx(3.4)
    assert (own.end_seconds - own.start_seconds) == pytest.approx(np.full(40, 0.25))


def test_goodput_is_the_renewal_formula() -> None:
    """Work w and a save c, at failure rate f, with restarts r that may fail: E = (e^{f r} / f) (e^{f (w + c)} - 1)."""
    rough = FAILURES | {"mean_time_between": "20 s", "checkpoint_every": "2 s"}
    trace = simulate(scenario(rough, steps=10_000))
    rate, work, cost, restart = 4 / 20.0, 2.0, 0.1, 0.5
    saves = trace.spans.of_kind(SpanKind.CHECKPOINT)
    ends = saves.end_seconds[saves.worker == 0]
    took = np.diff(ends)
    expected = math.exp(rate * restart) / rate * math.expm1(rate * (work + cost))
    assert took.mean() == pytest.approx(expected, abs=4 * took.std() / math.sqrt(len(took)))


@settings(max_examples=60)
@given(
    st.integers(0, 200), st.sampled_from(["3 s", "30 s"]), st.sampled_from(["100 ms", "700 ms"]),
    st.sampled_from(["synchronous", "asynchronous", "backup"]),
)  # fmt: skip
def test_the_useful_run_is_all_there(seed: int, mean: str, every: str, kind: str) -> None:
    policy = {"kind": kind} | ({"backups": 1} if kind == "backup" else {})
    compute = {"distribution": "lognormal", "mean": "200 ms", "cv": 0.5}
    changes = {"policy": policy, "compute": compute, "seed": seed, "workload": {"gradient": "10 MB"}}
    plain = simulate(scenario(None, **changes))
    trace = simulate(scenario(FAILURES | {"mean_time_between": mean, "checkpoint_every": every}, **changes))
    assert violations(trace) == []
    assert trace.contributions == plain.contributions
    assert len(trace.updates) == len(plain.updates)
    for kind_of_span in (SpanKind.COMPUTE, SpanKind.SEND):
        ours, theirs = trace.spans.of_kind(kind_of_span), plain.spans.of_kind(kind_of_span)
        for worker in range(4):
            worked = (ours.end_seconds - ours.start_seconds)[ours.worker == worker].sum()
            assert worked == pytest.approx((theirs.end_seconds - theirs.start_seconds)[theirs.worker == worker].sum())
    assert goodput(trace) == pytest.approx(plain.total_seconds / trace.total_seconds)
    assert summary(trace).total_seconds >= plain.total_seconds


@pytest.mark.parametrize("engine", ["recurrence", "story"])
@pytest.mark.parametrize(
    "policy",
    [{"kind": "synchronous"}, {"kind": "sharded", "stage": 2}, {"kind": "pipeline", "micro_batches": 2}],
    ids=str,
)
def test_a_pause_at_an_update_lengthens_no_row(policy: dict[str, Any], engine: Any) -> None:
    """All workers are idle at an update. A row that rounding ends after the update, or begins before it, is whole."""
    changes = {
        "policy": policy,
        "communication": {"kind": "ring"},
        "compute": {"distribution": "exponential", "mean": "50 ms"},
        "workload": {"gradient": "4 MiB", "activation": "4 MiB"},
    }
    plain = simulate(scenario(None, **changes), engine=engine)
    often = FAILURES | {"mean_time_between": "5 s", "checkpoint_every": "100 ms"}
    trace = simulate(scenario(often, **changes), engine=engine)
    worked = trace.spans.where(~np.isin(trace.spans.kind, [SpanKind.CHECKPOINT, SpanKind.LOST, SpanKind.RESTART]))
    assert len(worked) < len(trace.spans)
    for ours, theirs in ((worked, plain.spans), (trace.transfers, plain.transfers)):
        lasted = theirs.end_seconds - theirs.start_seconds
        assert ours.end_seconds - ours.start_seconds == pytest.approx(lasted, abs=1e-12)


def test_a_run_that_never_gets_on_is_refused() -> None:
    with pytest.raises(InputError, match=r"failures\.mean_time_between = 0\.001: lets 4 workers fail 10000 times"):
        simulate(scenario(FAILURES | {"mean_time_between": "1 ms"}))


def test_more_pauses_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    often = scenario(FAILURES | {"mean_time_between": "2 s"})
    rows = sum(
        len(simulate(often).spans.of_kind(kind)) for kind in (SpanKind.CHECKPOINT, SpanKind.LOST, SpanKind.RESTART)
    )
    monkeypatch.setattr(failures_module, "largest_rows", lambda: rows)
    simulate(often)
    monkeypatch.setattr(failures_module, "largest_rows", lambda: rows // 2)
    with pytest.raises(InputError, match="lets 4 workers fail too often between two checkpoints"):
        simulate(often)
