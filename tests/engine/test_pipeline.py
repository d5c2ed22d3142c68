"""Pipeline parallelism: bubbles and hand-computed messages, a recurrence of its own, and the invariants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.engine.recurrence import pipeline
from distsim.engine.recurrence.pipeline import source_of
from distsim.metrics import summary, worker_seconds
from distsim.policies import Pipeline
from distsim.policies.pipeline import Piece
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, violations


def scenario(micro_batches: int, schedule: str = "gpipe", stages: int = 4, steps: int = 3, **tables: Any) -> Scenario:
    table: dict[str, Any] = {
        "steps": steps,
        "seed": 3,
        "cluster": {"workers": stages, "bandwidth": "1 GB/s", "latency": "1 ms"},
        "compute": {"distribution": "constant", "mean": "24 ms"},
        "workload": {"activation": "8 MB"},
        "policy": {"kind": "pipeline", "micro_batches": micro_batches, "schedule": schedule},
        "communication": {"kind": "ring"},
    }
    return Scenario.of(table | tables)


def free(stages: int) -> dict[str, Any]:
    return {
        "cluster": {"workers": stages, "bandwidth": "1 GB/s", "latency": "0 s"},
        "workload": {"activation": "0 B"},
    }


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("share", [2 / 3, 0.5, 0.9])
@pytest.mark.parametrize(("stages", "micro_batches"), [(4, 4), (4, 8), (4, 16), (3, 2), (5, 1), (1, 4)])
def test_the_bubble_is_p_minus_1_of_m_plus_p_minus_1(
    schedule: str, share: float, stages: int, micro_batches: int
) -> None:
    tables = free(stages)
    tables["workload"]["backward_share"] = share
    trace = simulate(scenario(micro_batches, schedule, stages, **tables))
    whole = micro_batches + stages - 1
    assert trace.updates.time_seconds == pytest.approx(24e-3 * whole / micro_batches * np.arange(1, 4), rel=1e-9)
    assert summary(trace).idle_share == pytest.approx((stages - 1) / whole, abs=1e-9)
    assert summary(trace).exposed_communication_share == pytest.approx(0.0, abs=1e-12)


def held_at_most(schedule: str, stage: int) -> int:
    """The most micro-batches a stage holds at once: forward begun, backward not over."""
    spans = simulate(scenario(8, schedule, 4, 1, **free(4))).spans
    own = spans.where(spans.worker == stage)
    begun, over = own.of_kind(SpanKind.FORWARD).start_seconds, own.of_kind(SpanKind.BACKWARD).end_seconds
    return max(int((begun <= now).sum() - (over <= now).sum()) for now in begun.tolist())


def test_1f1b_holds_no_more_micro_batches_than_stages_are_left() -> None:
    assert [held_at_most("gpipe", stage) for stage in range(4)] == [8, 8, 8, 8]
    assert [held_at_most("1f1b", stage) for stage in range(4)] == [4, 3, 2, 1]


def test_one_micro_batch_is_plain_model_parallelism() -> None:
    """Every stage after the other, down and up, with a message of 8 MB (1 + 8 ms) at each border."""
    slow = {"mean": "24 ms", "slow": {"1": 2.0}}
    trace = simulate(scenario(1, compute=slow))
    assert trace.updates.time_seconds == pytest.approx((5 * 24e-3 + 6 * 9e-3) * np.arange(1, 4), rel=1e-9)


@pytest.mark.parametrize(
    ("sends", "total", "waits"),
    [
        ("rendezvous", 56.0, [(0, 8, 30), (1, 0, 4), (1, 38, 56)]),
        ("eager", 47.0, [(0, 8, 26), (1, 0, 4), (1, 34, 47)]),
    ],
)
def test_two_stages_and_two_micro_batches_by_hand(
    sends: str, total: float, waits: list[tuple[int, float, float]]
) -> None:
    """Forward takes 4 ms, backward 8, a message 1 + 4 = 5 ms; times in ms.

    Stage 0 has forward 0 at 4 and forward 1 at 8. Message 0 is on its way from 4 to 9. Message 1 follows at 9 with
    eager sends and arrives at 14; with rendezvous stage 1 turns to it after its forward 0, at 13, and has it at 18.
    Stage 1's forward 1 ends at 18 or 22; its backwards at 26 and 34, or 30 and 38. The gradients arrive 5 later, at
    31 and 39, or 35 and 43; stage 0, waiting for the first since 8, computes backward 0 until 39 or 43, and then
    backward 1 until 47 or, with rendezvous, first receives the gradient, from 43 to 48, and ends at 56.
    """
    trace = simulate(scenario(2, stages=2, steps=1, communication={"kind": "ring", "sends": sends}))
    assert trace.total_seconds == pytest.approx(total * 1e-3, rel=1e-9)
    found = trace.spans.of_kind(SpanKind.WAIT)
    rows = sorted(zip(found.worker.tolist(), found.start_seconds * 1e3, found.end_seconds * 1e3, strict=True))
    assert np.array(rows) == pytest.approx(np.array(waits), rel=1e-9)


def by_hand(found: Scenario, order: list[list[tuple[str, int]]], message: float) -> list[float]:
    """Rounds over the stages until nothing moves, each piece as soon as its input is there.

    Rendezvous: a message leaves when it is ready and its target has nothing before it; the wire is then surely free.
    """
    share, stages, count = found.workload.backward_share, found.cluster.workers, len(order[0]) // 2
    rendezvous = found.communication.sends == "rendezvous"
    times, now, updates = found.compute_times(), 0.0, []
    for step in range(found.steps):
        free_at, place = [now] * stages, [0] * stages
        done: dict[tuple[int, str, int], float] = {}
        wire_free: dict[tuple[int, int], float] = {}
        arrived: dict[tuple[int, int, int], float] = {}
        while any(place[stage] < 2 * count for stage in range(stages)):
            if not rendezvous:  # messages leave in order, one after the other
                for (stage, way, micro), end in sorted(done.items(), key=lambda item: item[1]):
                    target = stage + 1 if way == "forward" else stage - 1
                    if 0 <= target < stages and (stage, target, micro) not in arrived:
                        begin = max(end, wire_free.get((stage, target), 0.0))
                        wire_free[stage, target] = arrived[stage, target, micro] = begin + message
            for stage in range(stages):
                if place[stage] == 2 * count:
                    continue
                way, micro = order[stage][place[stage]]
                source = stage - 1 if way == "forward" else stage + 1
                begin = free_at[stage]
                if 0 <= source < stages:
                    if (source, way, micro) not in done:
                        continue
                    if rendezvous:
                        begin = max(begin, done[source, way, micro]) + message
                    elif (source, stage, micro) not in arrived:
                        continue
                    else:
                        begin = max(begin, arrived[source, stage, micro])
                seconds = times(stage, step) * (share if way == "backward" else 1 - share) / count
                free_at[stage] = done[stage, way, micro] = begin + seconds
                place[stage] += 1
        now = max(free_at)
        updates.append(now)
    return updates


ORDERS = {
    "gpipe": [[("forward", m) for m in range(4)] + [("backward", m) for m in range(4)]] * 3,
    "1f1b": [
        [(way, int(micro)) for way, micro in zip(ways, micros, strict=True)]
        for ways, micros in (
            (["forward"] * 3 + ["backward", "forward"] + ["backward"] * 3, "01203123"),
            (["forward"] * 2 + ["backward", "forward"] * 2 + ["backward"] * 2, "01021323"),
            (["forward", "backward"] * 4, "00112233"),
        )
    ],
}


@pytest.mark.parametrize("sends", ["rendezvous", "eager"])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_drawn_times_follow_the_order_of_pieces(schedule: str, sends: str) -> None:
    """Messages without bytes take the latency and disturb nobody, so the recurrence by hand is exact."""
    found = scenario(
        4,
        schedule,
        stages=3,
        cluster={"workers": 3, "bandwidth": "1 GB/s", "latency": "3 ms"},
        workload={"activation": "0 B"},
        compute={"distribution": "lognormal", "mean": "24 ms", "cv": 0.6},
        communication={"kind": "ring", "sends": sends},
    )
    assert simulate(found).updates.time_seconds == pytest.approx(by_hand(found, ORDERS[schedule], 3e-3), rel=1e-9)


def test_messages_of_a_micro_batch() -> None:
    trace = simulate(scenario(4, stages=3, steps=2))
    ways = np.stack([trace.transfers.source, trace.transfers.target], axis=1)
    assert sorted(map(tuple, np.unique(ways, axis=0).tolist())) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert len(trace.transfers) == 4 * 4 * 2
    assert set(trace.transfers.bytes.tolist()) == {2e6}
    assert trace.contributions.version.tolist() == [1] * 3 + [2] * 3
    assert not trace.contributions.staleness.any()


def test_eager_sends_are_hidden_behind_the_targets_compute() -> None:
    rendezvous = summary(simulate(scenario(4))).exposed_communication_share
    eager = summary(simulate(scenario(4, communication={"kind": "ring", "sends": "eager"})))
    assert eager.exposed_communication_share is not None
    assert rendezvous is not None
    assert eager.exposed_communication_share < rendezvous


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    stages = draw(st.integers(1, 5))
    nics = draw(st.dictionaries(st.integers(0, stages - 1), st.sampled_from(["20 MB/s", "300 MB/s"]), max_size=2))
    return scenario(
        draw(st.integers(1, 6)),
        draw(st.sampled_from(["gpipe", "1f1b"])),
        steps=draw(st.integers(1, 3)),
        cluster={
            "workers": stages,
            "bandwidth": "200 MB/s",
            "latency": draw(st.sampled_from(["0 s", "1 ms"])),
            "nic": {str(host): {draw(st.sampled_from(["up", "down"])): speed} for host, speed in nics.items()},
        },
        compute={"distribution": "pareto", "mean": "20 ms", "alpha": 1.5, "slow": {"0": draw(st.floats(0.5, 4.0))}},
        workload={
            "activation": draw(st.sampled_from(["0 B", "4 kB", "3 MB"])),
            "backward_share": draw(st.floats(0.1, 0.9)),
        },
        communication={"kind": "ring", "sends": draw(st.sampled_from(["rendezvous", "eager"]))},
    )


@settings(max_examples=60)
@given(scenarios())
def test_every_trace_is_sound(found: Scenario) -> None:
    trace = simulate(found)
    stages = found.cluster.workers
    policy: Any = found.policy
    assert violations(trace) == []
    assert len(trace.updates) == found.steps
    parts = worker_seconds(trace)
    assert sum(parts.values()) == pytest.approx(np.full(stages, trace.total_seconds), rel=1e-9)
    drawn = [found.compute_times().first(stage, found.steps)[: found.steps].sum() for stage in range(stages)]
    assert parts["compute"] == pytest.approx(drawn, rel=1e-9)
    kinds = {SpanKind.FORWARD: "forward", SpanKind.BACKWARD: "backward"}
    for stage in range(stages):
        spans = trace.spans.of_kind(*kinds).where(trace.spans.of_kind(*kinds).worker == stage)
        did = [
            (kinds[SpanKind(kind)], int(label.split()[-1])) for kind, label in zip(spans.kind, spans.label, strict=True)
        ]
        assert did == policy.order(stage, stages) * found.steps


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_work_grows_with_the_pieces_and_not_faster(schedule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage is looked at when a message reaches it, and not in every pass over all stages."""
    looks = 0

    def counted(stage: int, piece: Piece) -> int:
        nonlocal looks
        looks += 1
        return source_of(stage, piece)

    monkeypatch.setattr(pipeline, "source_of", counted)
    pieces = list(pipeline.pieces_in_order(Pipeline(micro_batches=2, schedule=schedule), stages=200))
    assert len(set(pieces)) == len(pieces) == 2 * 2 * 200
    assert looks <= 2 * len(pieces)
