"""Runs of many workers: bands that tell how many of them do what, and windows that hold few bars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distsim.examples import example
from distsim.figures import timeline
from distsim.figures.theme import COMMUNICATION, COMPUTE, WAIT
from distsim.figures.timeline_bands import CELLS, workers_busy
from distsim.figures.timeline_lanes import MOST_BARS, MOST_LANES
from distsim.simulation import simulate
from distsim.trace import COMMUNICATION_KINDS, COMPUTE_KINDS, Spans, Trace

ASYNCHRONOUS = {"kind": "asynchronous"}


def run(workers: int, **changes: Any) -> Trace:
    return simulate(example("backup_server").replacing({"cluster.workers": workers, **changes}))


def busy_at(spans: Spans, second: float) -> set[int]:
    """The workers with a span around this moment, one span after the other."""
    return {
        worker
        for worker, start, end in zip(spans.worker, spans.start_seconds, spans.end_seconds, strict=True)
        if start <= second < end
    }


@pytest.mark.parametrize(
    "changes",
    [{}, {"policy": {"kind": "ddp", "bucket": "1 MiB"}, "communication": {"kind": "ring"}, "workload.layers": 4}],
    ids=["server", "ddp"],
)
def test_a_band_is_as_high_as_workers_are_busy(changes: dict[str, Any]) -> None:
    trace = run(40, **changes)
    own = trace.spans.where(trace.spans.worker < trace.workers)
    computes, sends = own.of_kind(*COMPUTE_KINDS), own.of_kind(*COMMUNICATION_KINDS)
    for second in np.random.default_rng(7).uniform(0.0, trace.total_seconds, 20):
        found = workers_busy(trace, np.array([second, second + 1e-6]))
        computing = busy_at(computes, second)
        assert found.get(COMPUTE, np.zeros(1))[0] == pytest.approx(len(computing), abs=0.2)
        sending = busy_at(sends, second) - computing
        assert found.get(COMMUNICATION, np.zeros(1))[0] == pytest.approx(len(sending), abs=0.2)


def test_bands_of_a_whole_run_sum_to_its_time() -> None:
    trace = run(MOST_LANES + 1)
    edges = np.linspace(0.0, trace.total_seconds, 301)
    found = workers_busy(trace, edges)
    assert set(found) == {COMPUTE, COMMUNICATION, WAIT}
    own = trace.spans.of_kind(*COMPUTE_KINDS)
    took = np.minimum(own.end_seconds, trace.total_seconds) - np.minimum(own.start_seconds, trace.total_seconds)
    assert float(found[COMPUTE].sum() * edges[1]) == pytest.approx(float(took.sum()), rel=1e-6)
    assert float(sum(found.values()).max()) <= trace.workers + 1e-6  # type: ignore[union-attr]


def test_lanes_become_bands_above_the_most_lanes() -> None:
    lanes, bands = (timeline(run(workers)).figure for workers in (MOST_LANES, MOST_LANES + 1))
    assert {drawn.type for drawn in lanes.data if drawn.name == "compute"} == {"bar"}
    band, *of_two = [drawn for drawn in bands.data if drawn.name == "compute"]
    assert (band.type, band.fill) == ("scatter", "toself")
    assert [drawn.type for drawn in of_two] == ["bar"]
    assert len(set(of_two[0].y)) == 2  # the lanes of the median and the slowest worker
    assert max(band.customdata) == MOST_LANES + 1
    assert bands.layout.yaxis.ticktext[0] == "0 workers"
    assert bands.layout.yaxis.ticktext[-1] == f"server {MOST_LANES + 1}"
    low, high = bands.layout.yaxis.range
    assert all(high <= place <= low for place in [*band.y, *bands.layout.yaxis.tickvals])


def test_bands_are_steps_that_end_with_the_run() -> None:
    trace = simulate(example("synchronous_ring").replacing({"cluster.workers": MOST_LANES + 1, "steps": 3}))
    drawn = list(timeline(trace).figure.select_traces({"type": "scatter", "fill": "toself"}))
    assert {band.name for band in drawn} == {"compute", "communication", "wait"}
    for band in drawn:
        times, upper = np.array(band.x[: 2 * CELLS]), np.array(band.y[: 2 * CELLS])
        assert (upper[::2] == upper[1::2]).all()
        assert (times[1:-1:2] == times[2::2]).all()
        assert (times[0], times[-1]) == (0.0, pytest.approx(1e3 * trace.total_seconds))


@pytest.mark.parametrize("workers", [8, 21, 32, 64])
@pytest.mark.parametrize("policy", [{"kind": "backup", "backups": 1}, ASYNCHRONOUS], ids=["backup", "asynchronous"])
def test_few_bars_are_drawn_of_many_workers(workers: int, policy: dict[str, Any]) -> None:
    trace = run(workers, policy=policy)
    figure = timeline(trace, trace, names=["one", "two"]).figure
    bars = sum(len(drawn.x) for drawn in figure.data if drawn.type == "bar")
    assert bars < 2.2 * MOST_BARS  # the servers' bars, and two steps at least, come on top
    assert figure.layout.xaxis.range[1] > 0.0
