"""Metrics on traces small enough to work out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from distsim.calibration import Calibration, Exchange
from distsim.cli.summary_tables import summary_table
from distsim.cores import Cores
from distsim.examples import example
from distsim.figures.captioned import shown
from distsim.metrics import (
    METRICS,
    Summary,
    UnavailableError,
    bytes_per_link,
    dropped_gradients,
    goodput,
    mean_staleness,
    regime,
    staleness_histogram,
    step_durations,
    summary,
    throughput_samples_per_second,
    worker_seconds,
)
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, TraceBuilder


def by_hand() -> Trace:
    """Two workers and a server (rank 2), two updates at 3 s and 7 s.

    worker 0: compute 0-1, send 1-2, wait 2-3, receive 3-4, compute 4-6, send 6-7
    worker 1: compute 0-2, send 2-3, receive 3-5 while it computes 4.5-6.5, then nothing until 8, past the end
    """
    builder = TraceBuilder()
    for worker, start, end in ((0, 0, 1), (0, 4, 6), (1, 0, 2), (1, 4.5, 6.5)):
        builder.span(worker, SpanKind.COMPUTE, 0 if start < 3 else 1, start, end)
    builder.push(0, 2, 0, 10.0, 1.0, 2.0)
    builder.push(1, 2, 0, 10.0, 2.0, 3.0)
    builder.update(1, 3.0, server=2)
    builder.applied(1, 0, 0, 0, server=2)
    builder.applied(1, 1, 0, 0, server=2)
    builder.pull(0, 2, 0, 10.0, 2.0, 3.0, 4.0)
    builder.pull(1, 2, 0, 10.0, 3.0, 3.0, 5.0)
    builder.push(0, 2, 1, 10.0, 6.0, 7.0)
    builder.update(2, 7.0, server=2)
    builder.applied(2, 0, 1, 1, server=2)
    builder.not_applied(1, 1, 0, cancelled=False, server=2)
    builder.push(1, 2, 1, 10.0, 7.5, 8.0)  # after the last update: counts for nothing
    scenario = example("backup_server").replacing({"cluster.workers": 2, "steps": 2}).table()
    return builder.build(2, 1, "measured", scenario=scenario)


def printed(found: Summary) -> dict[str, str]:
    """The values of the printed table by row."""
    rows, values = summary_table("run", "simulated", found).columns
    return dict(zip(map(str, rows.cells), map(str, values.cells), strict=True))


def test_steps_last_from_one_update_to_the_next() -> None:
    steps = step_durations(by_hand())
    assert steps.number.tolist() == [1, 2]
    assert steps.seconds.tolist() == [3.0, 4.0]


def test_a_workers_time_is_compute_exposed_communication_and_waiting() -> None:
    parts = worker_seconds(by_hand())
    assert parts["compute"].tolist() == [3.0, 4.0]
    assert parts["communication"].tolist() == [3.0, 1.0 + 1.5]
    assert parts["waiting"].tolist() == [1.0, 0.5]


def test_no_part_is_below_zero_by_a_rounding() -> None:
    """Three computes, and receives that lie behind them: summed in another order the same seconds may be fewer."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        builder, now = TraceBuilder(), 0.0
        for step, (seconds, share) in enumerate(rng.uniform(0.01, 0.1, size=(40, 2))):
            builder.span(0, SpanKind.COMPUTE, step, now, now + seconds)
            builder.span(0, SpanKind.RECEIVE, step, now + share * seconds, now + seconds)
            now += seconds
        builder.update(1, now, server=1)
        trace = builder.build(1, 1, "measured", scenario=example("backup_server").table())
        assert min(seconds[0] for seconds in worker_seconds(trace).values()) >= 0.0
        assert "-0" not in "".join(printed(summary(trace)).values())


@pytest.mark.parametrize("value", [-0.0, -1e-18, -0.0004])
def test_a_share_that_rounds_to_zero_has_no_sign(value: float) -> None:
    shares = {"idle_share": value, "exposed_communication_share": value, "total_seconds": -0.0}
    told = printed(Summary(summary(by_hand()).values | shares))
    assert (told["idle share"], told["exposed communication"], told["total"]) == ("0.0 %", "0.0 %", "0 s")
    assert shown(-0.0) == "0"


def test_time_that_several_spans_share_counts_once() -> None:
    """A long receive around two computes: the second starts after the first has ended, but not after the receive."""
    builder = TraceBuilder()
    builder.span(0, SpanKind.RECEIVE, 0, 0.0, 10.0)
    for start in (2.0, 5.0):
        builder.span(0, SpanKind.COMPUTE, 0, start, start + 1.0)
    builder.update(1, 12.0, server=1)
    parts = worker_seconds(builder.build(1, 1, "measured"))
    assert {part: seconds.tolist() for part, seconds in parts.items()} == {
        "compute": [2.0], "communication": [8.0], "waiting": [2.0],
    }  # fmt: skip


def test_summary() -> None:
    found = summary(by_hand())
    assert found.step_seconds is not None
    assert (found.step_seconds.median, found.step_seconds.mean) == (3.5, 3.5)
    assert found.step_seconds.p90 == pytest.approx(3.9)
    assert (found.total_seconds, found.updates, found.dropped_gradients) == (7.0, 2, 1)
    assert found.mean_staleness == 0.0
    assert found.idle_share == pytest.approx((1.0 + 0.5) / 14)
    assert found.exposed_communication_share == pytest.approx((3.0 + 2.5) / 14)


def test_links_carry_what_had_arrived_by_the_last_update() -> None:
    up, down = bytes_per_link(by_hand()) or (None, None)
    assert up.tolist() == [20.0, 10.0, 20.0]
    assert down.tolist() == [10.0, 10.0, 30.0]
    assert summary(by_hand()).bytes_per_link_max == 30.0


NODES = {"per_node": 2, "bandwidth": "300 GB/s", "latency": "2 us"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cluster.nodes": NODES | {"nic_per": "node"}, "communication.kind": "hierarchical"},
         ([3.0, 0.0, 3.0, 0.0], [3.0, 0.0, 3.0, 0.0])),
        ({"cluster.nodes": NODES, "communication.kind": "hierarchical"}, ([1.5] * 4, [1.5] * 4)),
        ({"cluster.nodes": NODES | {"per_node": 4}}, ([0.0] * 4, [0.0] * 4)),
    ],
    ids=["a NIC per node", "a NIC per worker", "one node"],
)  # fmt: skip
@pytest.mark.parametrize("producer", ["simulated", "measured"])
def test_a_link_is_a_nics_whoever_shares_it(
    changes: dict[str, object], expected: tuple[list[float], list[float]], producer: str
) -> None:
    trace = simulate(example("synchronous_ring").replacing({"steps": 3} | changes))
    trace = replace(trace, metadata=trace.metadata | {"producer": producer})
    up, down = bytes_per_link(trace) or (None, None)
    assert (up / trace.scenario.gradient_bytes).tolist() == pytest.approx(expected[0])
    assert (down / trace.scenario.gradient_bytes).tolist() == pytest.approx(expected[1])
    assert summary(trace).bytes_per_link_max == max(up.max(), down.max())


def test_what_two_ranks_of_one_host_exchange_crosses_no_link() -> None:
    colocated = {"kind": "parameter_server", "servers": 2, "colocated": True}
    scenario = example("synchronous_ring").replacing({"cluster.workers": 3, "communication": colocated})
    builder = TraceBuilder()
    for worker in range(3):
        for server in (3, 4):
            builder.transfer(worker, server, 5.0, 0.0, 1.0)
            builder.transfer(server, worker, 5.0, 0.0, 1.0)
    builder.update(1, 1.0, server=3)
    trace = builder.build(3, 2, "simulated", scenario=scenario.table())
    up, down = bytes_per_link(trace) or (None, None)
    assert (up.tolist(), down.tolist()) == ([15.0, 15.0, 10.0], [15.0, 15.0, 10.0])


def test_what_was_not_observed_is_none() -> None:
    builder = TraceBuilder()
    trace = builder.build(2, 0, "measured", scenario=example("synchronous_ring").table())
    found = summary(trace)
    assert (found.step_seconds, found.mean_staleness, found.idle_share, found.bytes_per_link_max) == (None,) * 4
    assert (found.total_seconds, found.updates) == (0.0, 0)


def test_a_cancelled_gradient_is_not_a_dropped_one() -> None:
    trace = simulate(example("backup_server").replacing({"policy.cancel": True}))
    assert summary(trace).dropped_gradients == 0
    assert trace.contributions.cancelled.sum() == 50


@pytest.mark.parametrize("servers", [1, 3, 8])
def test_a_gradient_in_parts_is_dropped_once(servers: int) -> None:
    changes = {"communication.servers": servers, "workload.gradient": "64 kB"}
    trace = simulate(example("backup_server").replacing(changes))
    # One of five is late in each step, but at the end.
    assert trace.scenario.steps - 5 <= dropped_gradients(trace) <= trace.scenario.steps


def test_simulated_bytes_are_the_policys() -> None:
    trace = simulate(example("backup_server").replacing({"policy.backups": 0}))
    size = trace.scenario.gradient_bytes
    up, down = bytes_per_link(trace) or (None, None)
    assert down[5] == 50 * 5 * size
    assert up[:5] == pytest.approx(np.full(5, 50 * size))
    assert up[5] == 49 * 5 * size  # the last answers are sent after the last update


def test_throughput_counts_the_samples_of_applied_gradients() -> None:
    trace = by_hand()
    assert throughput_samples_per_second(trace) == pytest.approx(3 * trace.scenario.workload.batch / 7.0)


def test_throughput_falls_short_of_one_worker_alone_by_the_time_of_the_exchange() -> None:
    ring = example("synchronous_ring").replacing({"compute.distribution": "constant", "compute.cv": None})
    four, alone = simulate(ring), simulate(ring.replacing({"cluster.workers": 1}))
    assert alone.total_seconds == pytest.approx(50 * 0.05)
    efficiency = throughput_samples_per_second(four) / (4 * throughput_samples_per_second(alone))
    assert efficiency == pytest.approx(50 * 0.05 / four.total_seconds)


def test_staleness_is_counted() -> None:
    trace = simulate(example("backup_server").replacing({"policy": {"kind": "asynchronous"}, "steps": 10}))
    assert sum(staleness_histogram(trace).values()) == 50
    assert staleness_histogram(trace) == dict(
        zip(*(column.tolist() for column in np.unique(trace.contributions.staleness, return_counts=True)), strict=True)
    )


def test_a_gradient_in_parts_counts_once() -> None:
    """Step 0 is half a range of staleness 1 and a quarter each of 0 and 3; step 1 is whole and fresh."""
    builder = TraceBuilder()
    for version, read, items in ((4, 2, (0, 4)), (4, 3, (4, 2)), (4, 0, (6, 2)), (5, 4, (0, 8))):
        builder.applied(version, 0, version - 4, read, server=1, items=items)
    builder.update(4, 1.0, server=1)
    builder.update(5, 2.0, server=1)
    table = example("backup_server").replacing({"cluster.workers": 1, "policy": {"kind": "synchronous"}}).table()
    trace = builder.build(1, 1, "simulated", scenario=table)
    assert staleness_histogram(trace) == {0: 1.25, 1: 0.5, 3: 0.25}
    assert summary(trace).mean_staleness == mean_staleness(trace) == (0.5 + 0.75) / 2
    assert throughput_samples_per_second(trace) == 2 * trace.scenario.workload.batch / 2.0


def test_a_gradient_to_several_servers_counts_once() -> None:
    trace = simulate(example("backup_server").replacing({"communication.servers": 3, "policy.backups": 0, "steps": 4}))
    assert len(trace.contributions) == 3 * 4 * 5
    assert staleness_histogram(trace) == {0: pytest.approx(4 * 5)}
    assert throughput_samples_per_second(trace) == pytest.approx(
        20 * trace.scenario.workload.batch / trace.total_seconds
    )


def test_flexrrs_pieces_are_weighed_by_their_items() -> None:
    slow = {"cluster.workers": 4, "steps": 20, "compute.slow": {"0": 3.0}}
    trace = simulate(example("backup_server").replacing(slow | {"policy": {"kind": "flexrr", "staleness": 2}}))
    rows = trace.contributions.where(trace.contributions.applied)
    assert len(rows) > 20 * 4
    assert sum(staleness_histogram(trace).values()) == pytest.approx(rows.items.sum() / 8)
    by_item = np.repeat(rows.version - 1 - rows.read_version, rows.items)
    assert mean_staleness(trace) == summary(trace).mean_staleness == pytest.approx(by_item.mean())


def test_the_price_is_of_every_host() -> None:
    trace = simulate(example("backup_server").replacing({"cost": {"price_per_hour": 3.6}}))
    assert summary(trace).price == pytest.approx(6 * 3.6 * trace.total_seconds / 3600)
    free = summary(simulate(example("backup_server")))
    assert free.price is None
    assert "price" not in free.as_dict()


def test_what_cannot_be_computed_says_why() -> None:
    trace = TraceBuilder().build(4, 0, "measured", scenario=example("synchronous_ring").table())
    with pytest.raises(UnavailableError, match="no update that took time"):
        throughput_samples_per_second(trace)
    assert goodput(trace) is None


def test_a_name_that_is_no_metric_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"no metric 'total_second', only step_seconds, total_seconds, "):
        summary(by_hand()).total_second  # noqa: B018


def test_every_metric_has_names_of_its_own() -> None:
    for names in ([metric.name for metric in METRICS], [metric.column for metric in METRICS],
                  [metric.label for metric in METRICS], [metric.title for metric in METRICS]):  # fmt: skip
        assert len(set(names)) == len(names)
    whole = {metric.words for metric in METRICS if not metric.part_of}
    assert {metric.part_of for metric in METRICS if metric.part_of} <= whole


def test_the_summary_of_a_run_that_may_fail_counts_failures() -> None:
    scenario = example("synchronous_ring")
    assert not {"failures", "goodput"} & summary(simulate(scenario)).as_dict().keys()
    failing = scenario.replacing(
        {"failures": {"mean_time_between": "4 s", "checkpoint_every": "500 ms", "checkpoint_cost": "20 ms",
                      "restart_cost": "200 ms"}}
    )  # fmt: skip
    trace = simulate(failing)
    found = summary(trace)
    assert found.goodput == goodput(trace) < 1.0
    one = trace.spans.of_kind(SpanKind.RESTART)
    assert found.failures == len(one.where(one.worker == 0)) > 0
    assert {"failures", "goodput"} <= found.as_dict().keys()
    assert sum(found.paused_shares.values()) == pytest.approx(1 - found.goodput)
    rows = list(printed(found))
    below = rows.index("idle share") + 1
    assert rows[below : below + 3] == ["of it checkpoint", "of it lost work", "of it restart"]
    never = simulate(failing.replacing({"failures.mean_time_between": "100000 h"}))
    assert (summary(never).failures, summary(never).goodput) == (0, goodput(never))


@pytest.mark.parametrize(("sleep", "own", "capacity"), [(0.03, 0.0, 8.0), (0.03, 0.01, 8.0), (0.03, 0.02, 1.0)])
def test_the_regime_divides_the_predicted_time(sleep: float, own: float, capacity: float) -> None:
    """Four equal workers, so none waits: each sleeps, computes, lacks a core where fewer are there, and exchanges."""
    asked = example("synchronous_ring").replacing({"compute": {"mean": f"{sleep} s"}})
    cores = Cores(capacity=capacity, step_seconds=own)
    exchange = Exchange("ring", 4, 1e9, 1e-3, 0.0, ((1e6, 1e-2),), cores=cores)
    trace = simulate(asked, Calibration((exchange,)))
    shares = regime(trace)
    assert shares is not None
    assert sum(shares.values()) == pytest.approx(1.0)
    seconds = {name: share * trace.total_seconds / asked.steps for name, share in shares.items()}
    assert seconds["slept"] == pytest.approx(sleep)
    assert seconds["computed"] == pytest.approx(own)
    assert seconds["shared"] == pytest.approx(own * (max(4 / capacity, 1.0) - 1.0), abs=1e-12)
    assert seconds["exchanged"] > 6e-3
    assert seconds["waited"] == pytest.approx(0.0, abs=1e-9)


def test_a_models_own_time_is_no_sleep() -> None:
    """Without shared cores it stands in `compute.added`."""
    exchange = Exchange("ring", 4, 1e9, 1e-3, 0.0, ((1e6, 1e-2),), model_seconds=0.01)
    trace = simulate(example("synchronous_ring"), Calibration((exchange,)))
    shares = regime(trace)
    assert shares is not None
    assert shares["computed"] * trace.total_seconds == pytest.approx(0.01 * trace.scenario.steps)
    assert shares["shared"] == 0.0


@pytest.mark.parametrize("workers", [2, 5, 7])
def test_what_rounding_leaves_of_idle_time_is_none(workers: int) -> None:
    """With constant times nobody waits; the sums of the parts leave some 1e-15 of the total."""
    constant = {"cluster.workers": workers, "compute": {"mean": "30 ms", "distribution": "constant"}}
    assert summary(simulate(example("synchronous_ring").replacing(constant))).idle_share == 0.0
