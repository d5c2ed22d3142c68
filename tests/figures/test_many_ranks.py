"""Figures of a thousand ranks and more: what they draw and tell, how large they are, and how long they take."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.examples import example
from distsim.figures import stragglers, timeline, traffic, utilization
from distsim.figures.catalogue import KINDS
from distsim.figures.html_page import figure_html
from distsim.figures.timeline_lanes import Window
from distsim.link_traffic import bytes_by_link, carried_by_link
from distsim.metrics import worker_seconds
from distsim.simulation import simulate
from distsim.speed.floor import scaled_seconds, timeouts_per_second
from distsim.theory.order_statistics import WorkerTime, expected_order_statistic_seconds
from distsim.theory.stragglers import worker_times
from distsim.trace import COMPUTE_KINDS, Trace, Transfers

NODES = {"per_node": 8, "bandwidth": "300 GB/s", "latency": "2 us"}
RUNS: dict[str, dict[str, Any]] = {
    "ring": {},
    "hierarchical": {"cluster.nodes": NODES, "communication": {"kind": "hierarchical"}},
    "buckets": {
        "policy": {"kind": "ddp", "bucket": "25 MiB"}, "workload.layers": 40, "workload.gradient": "1 GB",
    },
}  # fmt: skip
MOST_BYTES, SECONDS = 2 * 10**6, 1.0  # of a figure without plotly.js


def run(workers: int, changes: dict[str, Any], steps: int = 20) -> Trace:
    fast = {"cluster.bandwidth": "100 Gbit/s", "cluster.latency": "5 us", "workload.gradient": "100 MiB"}
    return simulate(
        example("synchronous_ring").replacing(fast | {"cluster.workers": workers, "steps": steps} | changes)
    )


def of_name(figure: go.Figure, name: str) -> Any:
    (found,) = [drawn for drawn in figure.data if drawn.name == name]
    return found


@pytest.fixture(scope="module")
def ring() -> Trace:
    return run(400, {}, steps=5)


@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("kind", ["timeline", "utilization", "stragglers", "traffic"])
def test_a_figure_of_many_ranks_is_small_and_drawn_within_a_second(
    kind: str, changes: dict[str, Any], whole: Any
) -> None:
    workers = whole(1024, 1024 if "policy" in changes else 16_384)
    trace = run(workers, changes)
    trace.scenario  # noqa: B018 - kept by the trace
    figure_html("warm", timeline(run(2, {}, steps=2)))
    for _ in range(3):  # again where other programs took the machine for a moment
        floor, start = timeouts_per_second(), time.process_time()
        captioned = KINDS[kind].of_files([trace], {})
        text = figure_html("figure", captioned)
        seconds = scaled_seconds(time.process_time() - start, floor)
        print(f"{kind}, {workers} workers: {seconds:.2f} s, {len(text) / 1e6:.2f} MB")
        if seconds < SECONDS:
            break
    assert seconds < SECONDS
    assert len(text.encode()) < MOST_BYTES
    assert len(captioned.table) <= 20
    assert sum(drawn.showlegend is not False for drawn in captioned.figure.data) <= 12
    assert "source" not in trace.transfers.__dict__  # no row was computed
    assert captioned.summary.endswith(".")


def test_the_median_and_the_slowest_worker_have_lanes(ring: Trace) -> None:
    figure = timeline(ring, end_seconds=ring.total_seconds).figure
    names = [text for text in figure.layout.yaxis.ticktext if "worker " in text]
    seconds = np.zeros(400)
    computing = ring.spans.of_kind(*COMPUTE_KINDS)
    np.add.at(seconds, computing.worker, computing.end_seconds - computing.start_seconds)
    median, slowest = int(np.argsort(seconds)[200]), int(seconds.argmax())
    assert names == [f"median, worker {median}", f"slowest, worker {slowest}"]
    (bars,) = [drawn for drawn in figure.data if drawn.type == "bar" and drawn.name == "compute"]
    places = dict(zip(figure.layout.yaxis.ticktext, figure.layout.yaxis.tickvals, strict=True))
    lanes = [bars.y == places[name] for name in names]
    assert sum(lane.sum() for lane in lanes) == len(bars.y)
    drawn = [float(bars.x[lane].sum()) / Window(0.0, ring.total_seconds).scale for lane in lanes]
    assert drawn == pytest.approx([seconds[median], seconds[slowest]], rel=1e-3)
    three = timeline(ring, ring, ring, names=["one", "two", "three"]).figure
    assert not [text for text in three.layout.yaxis.ticktext if "worker " in text], (
        "three panels have no room for lanes"
    )


def test_workers_that_are_alike_have_one_lane() -> None:
    trace = run(40, {"compute": {"distribution": "constant", "mean": "50 ms"}}, steps=2)
    names = [text for text in timeline(trace).figure.layout.yaxis.ticktext if "," in text]
    assert len(names) == 1
    assert names[0].startswith("median, worker ")


@pytest.mark.parametrize("changes", [RUNS["ring"], RUNS["hierarchical"]], ids=["ring", "hierarchical"])
def test_groups_of_ranks_and_classes_of_links_have_all_bytes(changes: dict[str, Any]) -> None:
    trace = run(400, changes, steps=3)
    shown = traffic(trace)
    cells = np.nan_to_num(of_name(shown.figure, "between ranks").z)
    assert cells.shape == (100, 100)
    rows = Transfers(**simulate(trace.scenario).transfers.columns())
    expected = np.zeros((100, 100))
    np.add.at(expected, (rows.source // 4, rows.target // 4), rows.bytes / 1e6)
    assert cells == pytest.approx(expected, rel=1e-6)
    by_link = bytes_by_link(trace, rows)
    for row in shown.table:
        way = {"up-links": "up", "down-links": "down"}.get(str(row["links"]), f"fast {str(row['links']).split('-')[0]}")
        own = [value / 1e6 for (direction, _), value in by_link.items() if direction == way]
        assert (row["number"], row["busiest"]) == (len(own), "all alike")
        assert row["least (MB)"] == pytest.approx(min(own))
        assert row["most (MB)"] == pytest.approx(max(own))
    assert len(shown.table) == (4 if "cluster.nodes" in changes else 2)


def test_the_busiest_of_many_links_is_named() -> None:
    changes = {"policy": {"kind": "synchronous"}, "cluster.workers": 350, "steps": 2}
    shown = traffic(simulate(example("backup_server").replacing(changes)))
    assert [row["busiest"] for row in shown.table] == ["up-link of server 350", "down-link of server 350"]
    notes = [note.text for note in shown.figure.layout.annotations]
    assert any(note.startswith("down-link of server 350: ") for note in notes)
    assert shown.figure.layout.yaxis2.type == "log"
    assert "the down-link of server 350" in shown.summary


@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)
def test_bundles_of_transfers_draw_the_same_use_of_links(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = run(64, changes, steps=4)
    exact = utilization(trace)
    monkeypatch.setattr(sys.modules["distsim.figures.utilization"], "MOST_ROWS", 4000)
    fresh = simulate(trace.scenario)
    shown = utilization(fresh)
    assert "are drawn as one" in shown.summary
    assert "source" not in fresh.transfers.__dict__
    lines = [np.array(of_name(of.figure, "mean of all links").y[:-1]) for of in (shown, exact)]  # the last comes twice
    maps = [np.array(of_name(of.figure, "up-links").z) for of in (shown, exact)]
    for one, other in (lines, maps):
        assert one.mean() == pytest.approx(other.mean(), rel=1e-5)
        assert np.abs(one - other).mean() < 0.08 * other.max()
    assert [row["link"] for row in shown.table] == [row["link"] for row in exact.table]


def test_the_map_of_links_has_the_bytes_of_each_group(ring: Trace) -> None:
    figure = utilization(ring, 50).figure
    cells = np.array(of_name(figure, "up-links").z)
    assert cells.shape == (58, 50)  # 7 links in a row
    carried = carried_by_link(ring)
    share = np.array([carried["up", host] for host in range(400)]) / (12.5e9 * ring.total_seconds)
    assert cells[:57].mean(axis=1) == pytest.approx(100 * share[: 57 * 7].reshape(57, 7).mean(axis=1), rel=1e-4)
    band = of_name(figure, "middle 80 % of up-links")
    assert (np.array(band.y[:50]) >= np.array(band.y[50:])[::-1]).all()


def test_steps_and_workers_are_drawn_beside_the_distribution() -> None:
    slow = run(400, {"compute.slow": {77: 4.0}}, steps=6)
    shown = stragglers(worker_times(slow.scenario.compute, 400), slow)
    computing = slow.spans.of_kind(*COMPUTE_KINDS)
    seconds = np.zeros((6, 400))
    seconds[computing.step, computing.worker] = computing.end_seconds - computing.start_seconds
    assert of_name(shown.figure, "slowest worker").y == pytest.approx(1e3 * seconds.max(axis=1))
    assert of_name(shown.figure, "median worker").y == pytest.approx(1e3 * np.median(seconds, axis=1))
    cells = np.array(of_name(shown.figure, "slowest of a row").z)
    assert cells.shape == (58, 6)
    assert cells[11] == pytest.approx(1e3 * seconds[:, 77:84].max(axis=1), rel=1e-5)
    assert "worker 77 is the slowest" in shown.summary
    lines = [(drawn.line.color, drawn.line.dash) for drawn in shown.figure.select_traces({"mode": "lines"})]
    assert len(set(lines)) == len(lines), "two lines have one look in the legend"


def test_the_kth_smallest_of_a_large_group_and_a_few_others_is_that_of_all_one_by_one() -> None:
    """Beside the mean of draws; workers that differ a little are all counted one by one."""
    times = worker_times(example("synchronous_ring").compute, 12)
    slow = [WorkerTime(times[0].undisturbed, factor) for factor in (2.0, 2.0, 3.0)]
    draws = np.random.default_rng(3).lognormal(np.log(0.05 / np.sqrt(1.09)), np.sqrt(np.log(1.09)), (200_000, 15))
    draws[:, 12:] *= [2.0, 2.0, 3.0]
    drawn = np.sort(draws, axis=1)
    error = 4 * drawn.std(axis=0) / np.sqrt(len(drawn))
    apart = [WorkerTime(time.undisturbed, 1.0 + 1e-9 * number) for number, time in enumerate(times)]
    for k in (1, 2, 8, 12, 13, 14, 15):
        found = expected_order_statistic_seconds([*times, *slow], k)
        assert abs(found - drawn[:, k - 1].mean()) < error[k - 1]
        assert found == pytest.approx(expected_order_statistic_seconds([*apart, *slow], k), rel=1e-7)


def test_workers_with_as_many_spans_count_as_each_alone(ring: Trace) -> None:
    parts = worker_seconds(ring)
    for worker in (0, 7, 399):
        own = ring.spans.where(ring.spans.worker == worker).of_kind(*COMPUTE_KINDS)
        assert parts["compute"][worker] == pytest.approx(float((own.end_seconds - own.start_seconds).sum()))
