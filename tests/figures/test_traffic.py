"""Bytes by link and over time: what is drawn, and that it adds up to what the metrics say."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import ring_against_server, traffic, utilization
from distsim.link_traffic import bytes_by_link, ended
from distsim.metrics import bytes_per_link, summary
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, TraceBuilder
from tests.figures.recorded import tell_all_reduce

GRADIENT = 4 * 2.0**20
SERVER, RING = "backup_server", "synchronous_ring"


def run(name: str, **changes: Any) -> Trace:
    """A simulated example; keys with a double underscore for a dot."""
    return simulate(example(name).replacing({key.replace("__", "."): value for key, value in changes.items()}))


def of_name(figure: go.Figure, name: str) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def as_a_share(link: str) -> str:
    """The key of `link_utilization` for a link that a figure names."""
    return link.replace("-link", "").replace("worker", "host").replace("server", "host")


def link_utilization(trace: Trace) -> dict[str, float]:
    """The share of its capacity until the last update that each link, such as "up of host 2", used."""
    carried, total = bytes_by_link(trace, ended(trace)), trace.total_seconds
    speeds = trace.scenario.cluster.capacities(trace.scenario.hosts)
    return {f"{way} of host {host}": carried.get((way, host), 0.0) / (speed * total)
            for (way, host), speed in speeds.items()}  # fmt: skip


def as_measured(trace: Trace) -> Trace:
    """The same records as a real run would leave them."""
    metadata = trace.metadata | {"producer": "measured"}
    return Trace(trace.spans, trace.updates, trace.contributions, trace.transfers, metadata)


def unobserved() -> Trace:
    """A backend's own all-reduce, of which no transfers are known."""
    builder = TraceBuilder()
    builder.span(0, SpanKind.COMPUTE, 0, 0.0, 0.03)
    tell_all_reduce(builder, 0, [0.03, 0.04], end=0.06)
    table = example(RING).replacing({"cluster.workers": 2, "steps": 1}).table()
    return builder.build(workers=2, servers=0, producer="measured", scenario=table)


@pytest.mark.parametrize("name", [SERVER, RING])
def test_cells_and_bars_add_up_to_the_metrics_bytes(name: str) -> None:
    trace = run(name)
    shown = traffic(trace)
    links = bytes_per_link(trace)
    assert links is not None
    cells = np.nan_to_num(of_name(shown.figure, "between ranks").z)
    up, down = (of_name(shown.figure, f"{way}-link").x for way in ("up", "down"))
    assert up == pytest.approx(links[0] / 1e6)
    assert down == pytest.approx(links[1] / 1e6)
    assert cells.sum(axis=1) == pytest.approx(up)
    assert cells.sum(axis=0) == pytest.approx(down)
    most = summary(trace).bytes_per_link_max
    assert max(row[f"{way}-link (MB)"] for row in shown.table for way in ("up", "down")) == pytest.approx(most / 1e6)


def test_a_servers_traffic_is_one_row_and_one_column() -> None:
    figure = traffic(run(SERVER)).figure
    cells = np.nan_to_num(of_name(figure, "between ranks").z)
    assert (cells[:5, 5] > 0).all()
    assert (cells[5, :5] > 0).all()
    assert cells[:5, :5].sum() == cells[5, 5] == 0
    assert (of_name(figure, "between ranks").zmin, of_name(figure, "between ranks").zmax) == (0.0, cells.max())
    assert figure.layout.yaxis.ticktext[5] == "server 5"
    assert figure.layout.xaxis2.title.text == "bytes of the link (MB)"


def test_a_rings_traffic_is_a_diagonal_and_all_links_are_alike() -> None:
    shown = traffic(run(RING))
    cells = np.nan_to_num(of_name(shown.figure, "between ranks").z)
    assert {(int(source), int(target)) for source, target in np.argwhere(cells)} == {(0, 1), (1, 2), (2, 3), (3, 0)}
    assert "as much as the mean" in shown.summary


@pytest.mark.parametrize("figure", [traffic, utilization])
def test_why_there_are_no_bytes_is_told(figure: Any) -> None:
    nothing = TraceBuilder().build(workers=2, servers=0, producer="simulated")
    builder = TraceBuilder()
    builder.push(0, 1, 0, 1e6, 0.03, 0.06)
    reasons = {
        "The backend's own all-reduce does not show its transfers": unobserved(),
        "Nothing was recorded": nothing,
        "One worker alone sends nothing": run(RING, cluster__workers=1),
        "No transfer had ended by the last update": builder.build(1, 1, "measured"),
    }
    for reason, trace in reasons.items():
        assert figure(trace).summary == f"{reason}, so no bytes are drawn."


@pytest.mark.parametrize("workers", [1, 256])
def test_one_worker_and_256(workers: int) -> None:
    trace = run(SERVER, cluster__workers=workers, steps=2, policy={"kind": "synchronous"})
    figure = traffic(trace).figure
    assert of_name(figure, "between ranks").z.shape == (workers + 1, workers + 1)
    assert figure.layout.height <= 640
    assert (of_name(figure, "between ranks").texttemplate is None) == (workers == 256)
    of_many = ["middle 80 % of up-links", "up-links"]  # of more than 32 ranks
    names = [drawn.name for drawn in utilization(trace).figure.data]
    assert [name for name in names if name in of_many] == (of_many if workers == 256 else [])
    assert len(names) == (5 if workers == 256 else 3)


def test_links_are_used_for_as_much_of_the_time_as_their_bytes_take() -> None:
    slow = example(SERVER).replacing({"policy.backups": 0, "compute.mean": "1 ns", "compute.cv": 0.01})
    trace = simulate(slow.replacing({"cluster.latency": "0 s", "cluster.nic": {"0": {"up": "20 Gbit/s"}}}))
    used = link_utilization(trace)
    size, total = trace.scenario.gradient_bytes, trace.total_seconds
    assert used["down of host 5"] == pytest.approx(250 * size / (1.25e9 * total))
    assert used["up of host 0"] == pytest.approx(50 * size / (2.5e9 * total))
    assert used["down of host 5"] > 0.5
    assert len(ended(trace)) == 250 + 245


@pytest.mark.parametrize("name", [SERVER, RING])
def test_the_mean_of_a_busiest_link_is_the_metrics_utilization(name: str) -> None:
    trace = run(name)
    shares = link_utilization(trace)
    figure = utilization(trace).figure
    for way in ("up", "down"):
        (line,) = [line for line in figure.data if line.name.startswith(f"{way}-link")]
        most = max(value for link, value in shares.items() if link.startswith(f"{way} "))
        assert shares[as_a_share(line.name)] == pytest.approx(most)
        assert np.mean(line.y[:-1]) == pytest.approx(100 * most)
    mean = of_name(figure, "mean of all links")
    assert np.mean(mean.y[:-1]) == pytest.approx(100 * np.mean(list(shares.values())))


@pytest.mark.parametrize("intervals", [1, 7, 500])
def test_no_link_is_ever_used_to_more_than_its_speed(intervals: int) -> None:
    trace = run(SERVER, cluster__workers=12, steps=8)
    figure = utilization(trace, intervals).figure
    shares = link_utilization(trace)
    for line in figure.data[:2]:
        assert len(line.x) == intervals + 1
        assert 0.0 <= min(line.y) <= max(line.y) <= 100.0 + 1e-9
        assert np.mean(line.y[:-1]) == pytest.approx(100 * shares[as_a_share(line.name)])


def test_bytes_fall_where_their_transfer_is() -> None:
    builder = TraceBuilder()
    builder.transfer(0, 1, 4e6, 0.2, 0.6)
    builder.transfer(0, 1, 1e6, 0.9, 0.9)  # at once
    builder.update(1, 1.0)
    figure = utilization(builder.build(workers=2, servers=0, producer="measured"), 10).figure
    assert of_name(figure, "up-link of worker 0").y[:10] == pytest.approx([0, 0, 10, 10, 10, 10, 0, 0, 0, 10], abs=1e-6)
    assert figure.layout.yaxis.title.text == "carried (MB/s)"
    assert figure.layout.xaxis.title.text == "time (ms)"


def test_a_measured_run_is_told_in_bytes_per_second() -> None:
    trace = run(SERVER)
    shown = utilization(as_measured(trace))
    _, down = bytes_per_link(trace) or (0, 0)
    line = of_name(shown.figure, "down-link of server 5")
    assert np.mean(line.y[:-1]) == pytest.approx(down[5] / trace.total_seconds / 1e6)
    assert "MB/s" in shown.summary
    assert "%" not in shown.summary


def in_nodes(workers: int, per_node: int, communication: str, nic_per: str = "node") -> Trace:
    """Three steps of four gradients of 4 MiB among workers in nodes."""
    nodes = {"per_node": per_node, "bandwidth": "300 GB/s", "latency": "2 us", "nic_per": nic_per}
    return run(
        RING, cluster__workers=workers, cluster__nodes=nodes, communication__kind=communication, steps=3
    )  # fmt: skip


@pytest.mark.parametrize("measured", [False, True])
def test_a_colocated_server_uses_its_workers_nic(measured: bool) -> None:
    communication = {"kind": "parameter_server", "servers": 2, "colocated": True}
    trace = run(RING, cluster__workers=3, communication=communication, steps=3)
    trace = as_measured(trace) if measured else trace
    shown = traffic(trace)
    assert [row["NIC of"] for row in shown.table] == ["worker 0", "worker 1", "worker 2"]
    up = [row["up-link (MB)"] for row in shown.table]
    down = [row["down-link (MB)"] for row in shown.table]
    # A worker without a server pushes both halves of three gradients; its answers to the third come too late.
    assert (up[2], down[2]) == (pytest.approx(3 * GRADIENT / 1e6), pytest.approx(5 / 2 * GRADIENT / 1e6))
    # A server takes three halves from each of the two other workers, and its worker some from the other server.
    assert min(down[:2]) > 3 * GRADIENT / 1e6
    assert summary(trace).bytes_per_link_max == pytest.approx(1e6 * max(*up, *down))


def test_what_stays_inside_a_node_is_told_apart_from_what_its_nic_carries() -> None:
    one, two = in_nodes(4, 4, "ring"), in_nodes(4, 2, "hierarchical")
    assert traffic(one).summary == "75.5 MB in 72 transfers, all of them inside nodes: no NIC carries anything."
    assert summary(one).bytes_per_link_max == 0.0
    assert "50.3 MB of them inside nodes; the busiest link, the up-link of node 0, carries 12.6 MB" in (
        traffic(two).summary
    )
    assert [row["NIC of"] for row in traffic(two).table] == ["node 0", "node 1"]
    apart = in_nodes(4, 2, "hierarchical", nic_per="worker")
    assert [row["NIC of"] for row in traffic(apart).table] == [f"worker {worker}" for worker in range(4)]


@pytest.mark.parametrize("nic_per", ["node", "worker"])
def test_both_figures_of_the_links_call_them_the_same(nic_per: str) -> None:
    trace = in_nodes(4, 2, "ring", nic_per)
    owners = {row["NIC of"] for row in traffic(trace).table}
    used = [row["link"].partition(" of ")[2] for row in utilization(trace).table[:2]]
    assert set(used) <= owners


def test_links_inside_a_node_count_as_their_own() -> None:
    trace = run(
        RING, cluster__nodes={"per_node": 2, "bandwidth": "100 GB/s", "latency": "1 us"}, cluster__bandwidth="1 GB/s"
    )
    shares = link_utilization(trace)
    most = max(value for link, value in shares.items() if "down" in link)
    (line,) = [line for line in utilization(trace).figure.data if "down-link" in line.name]
    assert np.mean(line.y[:-1]) == pytest.approx(100 * most)


def test_a_server_grows_with_the_workers_and_a_ring_does_not() -> None:
    runs = [
        run(name, cluster__workers=workers, policy={"kind": "synchronous"}, steps=3)
        for name in (SERVER, RING)
        for workers in (2, 8)
    ]
    shown = ring_against_server(GRADIENT, [1, 2, 4, 8], runs)
    ring, server = (of_name(shown.figure, f"{name}, formula") for name in ("ring", "one server"))
    assert list(server.y) == pytest.approx([GRADIENT * count / 1e6 for count in (1, 2, 4, 8)])
    assert list(ring.y) == pytest.approx([None, 4.194304, 6.291456, 7.340032])
    for line, name in ((ring, "ring, run"), (server, "one server, run")):
        marks = of_name(shown.figure, name)
        assert list(marks.x) == [2, 8]
        drawn = dict(zip(line.x, line.y, strict=True))
        assert list(marks.y) == pytest.approx([drawn[count] for count in marks.x])
    assert ring.line.dash != server.line.dash
    assert "of 4 runs, the largest difference from the formula is 0 %" in shown.summary
    assert [row["ring, run (MB)"] for row in shown.table] == [
        None,
        pytest.approx(4.194304),
        None,
        pytest.approx(7.340032),
    ]


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        ring_against_server(GRADIENT, [])
    with pytest.raises(InputError, match="must be of 1e\\+06 bytes"):
        ring_against_server(1e6, [2], [run(RING)])
    with pytest.raises(InputError, match="ring or one server"):
        ring_against_server(GRADIENT, [2], [run(RING, communication__kind="tree")])
    for workers in ([1.5], [2, 0], [True], np.array([1.5, 2.0]), ["2"]):
        with pytest.raises(InputError, match="counts of at least 1"):
            ring_against_server(GRADIENT, workers)
    for intervals in (0, 1.5, "7", None, True):
        with pytest.raises(InputError, match="at least 1"):
            utilization(run(RING), intervals)


def test_counts_may_be_numpys() -> None:
    shown = ring_against_server(GRADIENT, np.array([1, 2]))
    assert [row["workers"] for row in shown.table] == [1, 2]
    assert len(utilization(run(RING), np.int64(7)).figure.data[0].x) == 8


NODES = {"per_node": 2, "bandwidth": "300 GB/s", "latency": "2 us"}


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        (SERVER, {"policy": {"kind": "backup", "backups": 1, "cancel": True}}, "every worker's whole gradient"),
        (SERVER, {"policy": {"kind": "flexrr"}}, "every worker's whole gradient"),
        (SERVER, {"policy": {"kind": "asynchronous"}}, "every worker's whole gradient"),
        (RING, {"policy": {"kind": "ddp", "compression": 0.5}}, "every worker's whole gradient"),
        (RING, {"policy": {"kind": "pipeline", "micro_batches": 2}, "workload__activation": "1 MiB"}, "whole gradient"),
        (SERVER, {"policy": {"kind": "synchronous"}, "communication__colocated": True}, "a NIC of its own"),
        (RING, {"cluster__nodes": NODES}, "a NIC of its own"),
    ],
    ids=["cancelled", "flexrr", "asynchronous", "compressed", "pipeline", "colocated", "nodes"],
)
def test_a_run_whose_bytes_are_not_the_formulas_is_refused(name: str, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        ring_against_server(GRADIENT, [2], [run(name, steps=3, **changes)])
