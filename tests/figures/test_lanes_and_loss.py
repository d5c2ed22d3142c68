"""The figure of lanes and loss without a browser: what it tells, its pages, its bars, and its refusals."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from distsim import simulate, summary
from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import lanes_and_loss
from distsim.figures.lanes_and_loss import LanesAndLoss
from distsim.figures.lanes_scene import LanesScene
from distsim.figures.paged_axis import UNITS, ZOOMS, PagedAxis
from distsim.figures.wording import time_unit
from distsim.learning.curve import Curve
from distsim.learning.optimizers import Sgd
from distsim.learning.quadratic import Quadratic
from distsim.learning.replay import replay
from distsim.trace import COMPUTE_KINDS, Trace

SVG = "{http://www.w3.org/2000/svg}"
KINDS: dict[str, dict[str, Any]] = {
    "synchronous": {"kind": "synchronous"},
    "first 3": {"kind": "backup", "backups": 1},
    "asynchronous": {"kind": "asynchronous"},
}


def raced(workers: int = 4, servers: int = 1, steps: int = 20) -> tuple[dict[str, Trace], dict[str, Curve]]:
    """A run of each policy, and its loss."""
    base = example("backup_server").replacing(
        {
            "policy": {"kind": "synchronous"},
            "steps": steps,
            "cluster.workers": workers,
            "communication.servers": servers,
        }
    )
    traces = {name: simulate(base.replacing({"policy": policy})) for name, policy in KINDS.items()}
    return traces, {name: replay(trace, Quadratic(), Sgd(rate=0.1), batch=8) for name, trace in traces.items()}


@pytest.fixture(scope="module")
def race() -> tuple[dict[str, Trace], dict[str, Curve]]:
    return raced()


@pytest.fixture(scope="module")
def figure(race: tuple[dict[str, Trace], dict[str, Curve]]) -> LanesAndLoss:
    return lanes_and_loss(*race)


def test_what_is_told_is_what_the_trace_and_the_curve_have(
    race: tuple[dict[str, Trace], dict[str, Curve]], figure: LanesAndLoss
) -> None:
    traces, curves = race
    end = figure.losses.axis.end_seconds
    assert end == pytest.approx(min(trace.total_seconds for trace in traces.values()), rel=1e-7)
    for scene in figure.lanes:
        trace, curve = traces[scene.run.name], curves[scene.run.name]
        for share in np.linspace(0.0, 1.0 + 1e-7, 23):
            seconds = share * end
            made = [time for time in trace.updates.time_seconds if time <= seconds]
            used = trace.contributions
            ages = used.staleness[used.version[used.applied] <= len(made)]
            loss = curve.loss_at(seconds)
            age = np.floor(10 * ages.mean() + 0.5) / 10 if len(made) else 0.0
            words = f"{len(made)} update{'' if len(made) == 1 else 's'}, loss {loss:.3g}, staleness {age:.1f}"
            assert scene.run.told(seconds) == words
    trace = traces["asynchronous"]
    assert figure.lanes[2].run.staleness_tenths[-1] == pytest.approx(10 * summary(trace).mean_staleness, abs=0.5)


def bars(path: str) -> list[list[float]]:
    """The left edge, the top and the width of each bar of a path, whose moves are relative."""
    found = np.array(re.findall(r"m(-?\d+),(-?\d+)h(\d+)v", path), dtype=float)
    return np.column_stack([np.cumsum(found[:, :2], axis=0), found[:, 2]]).tolist()


def check_bars(scene: LanesScene, trace: Trace) -> None:
    """Each compute span of the page has a bar at its place."""
    end = scene.axis.end_seconds
    spans = trace.spans.of_kind(*COMPUTE_KINDS)
    spans = spans.where(spans.start_seconds <= end)
    paths = [path.get("d", "") for path in ET.fromstring(scene.svg(0.0)).iter(f"{SVG}path")
             if path.get("class") == "compute"]  # fmt: skip
    drawn = sorted((top // scene.row_pixels, left, left + width) for path in paths for left, top, width in bars(path))
    scale = UNITS / end
    times = zip(spans.worker.tolist(), spans.start_seconds * scale, spans.end_seconds * scale, strict=True)
    assert np.array(drawn) == pytest.approx(np.array(sorted(times)), abs=0.5001)
    assert len(drawn) > 20


def test_bars_stand_where_the_spans_are(figure: LanesAndLoss, race: tuple[dict[str, Trace], dict[str, Curve]]) -> None:
    for scene in figure.lanes:
        check_bars(scene, race[0][scene.run.name])


def test_a_span_that_begins_before_the_clock_has_a_bar(race: tuple[dict[str, Trace], dict[str, Curve]]) -> None:
    """As in measured runs: a rank may begin to compute a moment before the agreed start."""
    trace, curve = race[0]["asynchronous"], race[1]["asynchronous"]
    starts = np.where(trace.spans.start_seconds == 0.0, -2e-3, trace.spans.start_seconds)
    early = replace(trace, spans=replace(trace.spans, start_seconds=starts))
    (scene,) = lanes_and_loss({"early": early}, {"early": curve}).lanes
    check_bars(scene, early)


def test_one_run_alone_has_no_leader(race: tuple[dict[str, Trace], dict[str, Curve]]) -> None:
    found = lanes_and_loss(*({"asynchronous": runs["asynchronous"]} for runs in race))
    assert found.summary.startswith("Over the last tenth of ")
    assert ", the median loss is 0." in found.summary
    assert "lowest" not in found.html().partition("<script")[0]
    assert ">all reach" not in found.html()


@pytest.mark.parametrize("end", [1e-6, 0.037, 1.0, 2.9999, 3.0, 148.0, 7e5])
def test_pages_cover_the_axis_and_ticks_are_round(end: float) -> None:
    for zoom in ZOOMS:
        axis = PagedAxis(end, zoom)
        pages = [axis.page(end * (number + 0.5) / zoom) for number in range(zoom)]
        assert [start for start, _ in pages] == pytest.approx([number / zoom for number in range(zoom)])
        assert axis.page(0.0)[0] == 0.0
        assert axis.page(end)[1] == 1.0
        assert all(0.0 <= axis.place(share * end) <= 100.0 + 1e-9 for share in np.linspace(0.0, 1.0, 77))
        step, decimals = axis.ticks(zoom)
        assert 2 <= end * time_unit(end)[0] / zoom / step <= 6.000001
        assert float(f"{step:.{decimals}f}") == pytest.approx(step)


def test_the_sentence_and_the_table_agree_with_the_runs(figure: LanesAndLoss) -> None:
    rows = {row["run"]: row for row in figure.table}
    assert list(rows) == list(KINDS)
    reached = {name: row["first at the target (s)"] for name, row in rows.items()}
    first = min(reached, key=lambda name: reached[name] or np.inf)
    assert figure.summary.startswith(f"{first[0].upper()}{first[1:]} is first at a loss of ")
    lowest = min(rows, key=lambda name: rows[name]["median loss of the last tenth"])
    assert f" {lowest} has the lowest median loss" in figure.summary
    assert figure.losses.target is not None
    assert all(run.line.last <= figure.losses.target for run in figure.losses.runs)


def test_servers_many_workers_and_few_updates_are_drawn() -> None:
    for workers, servers, steps in ((2, 1, 2), (16, 4, 10), (40, 2, 3)):
        found = lanes_and_loss(*raced(workers, servers, steps))
        for scene in found.scenes:
            for seconds in (0.0, found.losses.axis.end_seconds):
                ET.fromstring(scene.svg(seconds))
        assert ET.fromstring(found.still()).get("width") == "940"


def test_a_run_that_diverges_is_drawn_until_it_does(race: tuple[dict[str, Trace], dict[str, Curve]]) -> None:
    traces, curves = race
    wild = curves["asynchronous"]
    losses = np.where(wild.update > 20, np.inf, wild.loss)
    found = lanes_and_loss(traces, curves | {"asynchronous": replace(wild, loss=losses)})
    assert not found.lanes[2].run.line.whole
    assert "asynchronous diverges" in found.summary
    assert ">others reach" in found.html()
    assert "inf" not in found.html().partition('application/json">')[2].partition("</script>")[0]


def test_bad_input_is_refused(race: tuple[dict[str, Trace], dict[str, Curve]]) -> None:
    traces, curves = race
    one, curve = next(iter(traces.values())), next(iter(curves.values()))
    many = {f"run {number}": one for number in range(6)}
    faults = (
        ({}, {}, "nothing to draw"),
        (traces, {"synchronous": curve}, "same names"),
        (traces, dict(reversed(curves.items())), "same names"),
        (many, dict.fromkeys(many, curve), "at most 5"),
        ({"part": one.between(0.0, one.total_seconds / 2)}, {"part": curve}, "part of a run"),
        ({"run": one}, {"run": replace(curve, loss=curve.loss * np.nan)}, "finite loss"),
        ({"run": one}, {"run": replace(curve, seconds=0.0 * curve.seconds)}, "must last longer"),
        ({"run": simulate(one.scenario.replacing({"cluster.workers": 65}))}, {"run": curve}, "at most 64 ranks"),
    )  # fmt: skip
    for its_traces, its_curves, words in faults:
        with pytest.raises(InputError, match=words):
            lanes_and_loss(its_traces, its_curves)
