"""What holds for every figure of a trace: whoever made it, of one worker and of 256, and where there is nothing."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim import figures
from distsim.collectives import ring
from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import (
    Captioned,
    SpeedUps,
    catalogue,
    checkpoints,
    collective,
    overlap,
    pipeline,
    ring_against_server,
    scaling,
    theme,
)
from distsim.figures.catalogue import FIGURES, Entry
from distsim.figures.collective_marks import NAMES
from distsim.metrics import goodput
from distsim.simulation import simulate
from distsim.trace import NO_VERSION, SpanKind, Trace, TraceBuilder

GRADIENT = example("synchronous_ring").gradient_bytes


def _drawn(entry: Entry) -> Callable[[Trace], Captioned]:
    """How a figure is drawn of one trace, as `distsim figure` draws it."""
    return lambda trace: entry.of_files([trace, trace] if entry.files == "pair" else [trace], {})


OF_A_TRACE = {entry.name: _drawn(entry) for entry in FIGURES if entry.files not in ("none", "sweep", "profile")} | {
    "scaling": lambda trace: scaling(SpeedUps.of_traces("ring", [_alone(trace), trace])),
    "ring_against_server": lambda trace: ring_against_server(GRADIENT, [2, 4], [trace]),
}
RUN_WITH_A_SERVER = ("timeline", "critical_path", "sequence", "staleness")
TEXT_CONTRAST = 4.5  # WCAG 2, level AA, of text below 18 points; of the outline of what is drawn it asks for 3
SAID_OF_NOTHING = ("nothing is drawn", "no bytes are drawn", "no gradient was applied", "was recorded")


def _alone(trace: Trace) -> Trace:
    """The run of one worker that a run is compared with; of an empty one an empty one."""
    table = trace.scenario.replacing({"cluster.workers": 1})
    if not len(trace.updates):
        return TraceBuilder().build(workers=1, servers=0, producer="measured", scenario=table.table())
    return simulate(table)


@pytest.mark.parametrize("name", [*RUN_WITH_A_SERVER, "traffic", "utilization", "comparison", "step_scatter"])
def test_a_real_run_is_drawn(name: str) -> None:
    """measured.npz holds 4 steps of the example backup_server, 10 ms each, with a gradient of 64 KiB."""
    trace = Trace.load(Path(__file__).with_name("measured.npz"))
    shown = OF_A_TRACE[name](trace)
    assert len(shown.figure.data) > 0
    assert any(letter.isdigit() for letter in shown.summary)
    assert shown.table
    assert json.loads(shown.figure.to_json())


def test_the_table_names_every_module_with_a_figure_of_its_name_and_type_checkers_see_all() -> None:
    drawing = {
        module.name
        for module in pkgutil.iter_modules(figures.__path__)
        if callable(getattr(importlib.import_module(f"distsim.figures.{module.name}"), module.name, None))
    }
    assert drawing - {"calibration"} == {
        entry.name for entry in FIGURES
    }  # calibration is a page of `distsim calibrate`
    checked = Path(catalogue.__file__).read_text("utf-8")
    assert [name for name in figures.__all__ if f" {name} as {name}" not in checked] == [], "import these for mypy, too"


def test_a_name_is_its_figure_whichever_module_is_imported_first() -> None:
    code = "import distsim.figures.timeline, distsim.figures as f; print(type(f.timeline).__name__)"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told == "function\n"


def test_the_table_is_read_without_plotly() -> None:
    code = "import sys, distsim.cli.figure; assert 'plotly' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def run(name: str, workers: int) -> Trace:
    """A short run of the kind that the figure is about."""
    changes: dict[str, Any] = {"cluster.workers": workers, "steps": 2, "compute": {"mean": "50 ms"}}
    if name == "pipeline":
        changes |= {"policy": {"kind": "pipeline", "micro_batches": 2}, "workload.activation": "1 MiB"}
    if name == "overlap":
        changes["policy"] = {"kind": "ddp", "bucket": "1 MiB"}
    server = name in RUN_WITH_A_SERVER
    changes |= {"policy": {"kind": "asynchronous"}} if server else {}
    return simulate(example("backup_server" if server else "synchronous_ring").replacing(changes))


@pytest.mark.parametrize("workers", [1, 4, 256])
@pytest.mark.parametrize("producer", ["simulated", "measured"])
@pytest.mark.parametrize("name", OF_A_TRACE)
def test_a_figure_draws_tells_and_tabulates_and_changes_nothing(name: str, producer: str, workers: int) -> None:
    trace = run(name, workers)
    trace = replace(trace, metadata=trace.metadata | {"producer": producer})
    before = trace.spans.columns()["start_seconds"].copy()
    shown = OF_A_TRACE[name](trace)
    assert shown.figure.layout.template.layout.font.family.startswith("Open Sans")
    # A ring of one worker sends nothing.
    assert len(shown.figure.data) > 0 or workers == 1
    assert shown.summary.endswith(".")
    assert any(letter.isdigit() for letter in shown.summary) or workers == 1
    assert all(isinstance(value, (str, float, int, type(None))) for row in shown.table for value in row.values())
    assert len({tuple(row) for row in shown.table}) <= 1
    assert json.loads(shown.figure.to_json())
    assert OF_A_TRACE[name](trace).figure.to_json() == shown.figure.to_json()
    assert (trace.spans.start_seconds == before).all()


@pytest.mark.parametrize("name", [name for name in OF_A_TRACE if name != "ring_against_server"])
def test_nothing_is_told_where_nothing_was_recorded(name: str) -> None:
    table = example("synchronous_ring").table()
    empty = TraceBuilder().build(workers=4, servers=0, producer="measured", scenario=table)
    shown = OF_A_TRACE[name](empty)
    assert any(said in shown.summary for said in SAID_OF_NOTHING)


@pytest.mark.parametrize("workers", [1, 4, 256])
@pytest.mark.parametrize("producer", ["simulated", "measured"])
def test_goodput_is_drawn_of_runs_with_failures_whoever_made_them(producer: str, workers: int) -> None:
    table = {
        "mean_time_between": f"{workers} s", "checkpoint_every": "300 ms", "checkpoint_cost": "20 ms",
        "restart_cost": "100 ms",
    }  # fmt: skip
    trace = simulate(example("synchronous_ring").replacing({"cluster.workers": workers, "failures": table}))
    trace = replace(trace, metadata=trace.metadata | {"producer": producer})
    failures = trace.scenario.failures
    assert failures is not None
    shown = checkpoints(failures, workers, {failures.checkpoint_every_seconds: [goodput(trace)]})
    assert shown.table[0]["mean of the runs (%)"] == 100 * goodput(trace)
    assert f"({100 * goodput(trace):.1f} % in one run)" in shown.summary
    json.loads(shown.figure.to_json())
    of_nothing = checkpoints(failures, workers, {failures.checkpoint_every_seconds: []})
    assert "run" not in of_nothing.summary


def cut_off(trace: Trace, seconds: float) -> Trace:
    """What a run that failed then leaves behind: what had ended."""
    updates = trace.updates.where(trace.updates.time_seconds <= seconds)
    kept = np.isin(trace.contributions.version, [NO_VERSION, *updates.version])
    return replace(
        trace,
        spans=trace.spans.where(trace.spans.end_seconds <= seconds),
        updates=updates,
        contributions=trace.contributions.where(kept),
        transfers=trace.transfers.where(trace.transfers.end_seconds <= seconds),
    )


@pytest.mark.parametrize("share", [0.0, 0.1, 0.35, 0.6, 0.9])
@pytest.mark.parametrize("name", OF_A_TRACE)
def test_a_run_that_was_cut_off_is_drawn_as_far_as_it_went(name: str, share: float) -> None:
    whole = run(name, 4)
    ends = np.sort(whole.spans.end_seconds)
    cut = cut_off(whole, float(ends[int(share * len(ends))]))
    shown = OF_A_TRACE[name](cut)
    assert shown.summary.endswith(".")
    assert "nan" not in shown.summary
    assert json.loads(shown.figure.to_json())


def test_a_step_that_was_cut_off_is_told_so() -> None:
    told = "No update of this step was recorded: it may have gone on."
    whole = run("pipeline", 4)
    first = cut_off(whole, float(whole.spans.of_kind(SpanKind.FORWARD).end_seconds.min()))
    assert pipeline(first).summary.endswith(f"A stage holds at most 1 micro-batch. {told}")
    assert told not in pipeline(whole).summary
    whole = run("overlap", 4)
    reduced = whole.spans.of_kind(SpanKind.ALL_REDUCE).end_seconds.min()
    assert "cut off before the first backward" in overlap(cut_off(whole, float(reduced))).summary
    through = whole.spans.of_kind(SpanKind.BACKWARD).end_seconds.min()
    assert overlap(cut_off(whole, float(through))).summary.endswith(told)
    assert told not in overlap(whole).summary


def test_a_step_without_a_backward_has_no_overlap() -> None:
    whole = run("overlap", 4)
    forwards = whole.spans.of_kind(SpanKind.FORWARD)
    last = forwards.where(forwards.step == 1)
    with pytest.raises(InputError, match=r"overlap\(step\) = 1: must be one with a backward"):
        overlap(cut_off(whole, float(last.end_seconds.max())), step=1)


@pytest.mark.parametrize(("name", "kind"), [("pipeline", "pipeline"), ("overlap", "ddp")])
@pytest.mark.parametrize("policy", ["synchronous", "asynchronous", "backup", "local_sgd", "ddp", "pipeline"])
def test_a_figure_of_one_policy_refuses_runs_of_others(name: str, kind: str, policy: str) -> None:
    """None of them is drawn as an empty picture."""
    changes: dict[str, Any] = {"policy": {"kind": policy}, "steps": 2, "compute": {"mean": "50 ms"}}
    changes["policy"] |= {"local_sgd": {"period": 2}, "backup": {"backups": 1}, "pipeline": {"micro_batches": 2}}.get(
        policy, {}
    )
    changes |= {"workload.activation": "1 MiB"} if policy == "pipeline" else {}
    trace = simulate(
        example("backup_server" if policy in {"asynchronous", "backup"} else "synchronous_ring").replacing(changes)
    )
    if policy == kind:
        assert OF_A_TRACE[name](trace).figure.data
        return
    refusal = rf"{name}\(trace\): policy\.kind = '{policy}': has no .* Cure: draw a run of policy\.kind = \"{kind}\""
    with pytest.raises(InputError, match=refusal):
        OF_A_TRACE[name](trace)


def test_every_axis_that_is_drawn_has_a_title_or_names() -> None:
    for name, figure in OF_A_TRACE.items():
        drawn = figure(run(name, 4)).figure
        layout = drawn.to_plotly_json()["layout"]
        titled = [axis for axis in layout if axis.startswith(("xaxis", "yaxis")) and layout[axis].get("title")]
        named = [axis for axis in layout if axis.startswith(("xaxis", "yaxis")) and "ticktext" in layout[axis]]
        assert any(axis.startswith("xaxis") for axis in [*titled, *named]), name
        by_name = any(
            isinstance(one.y[0], str) for one in drawn.data if one.y is not None and len(one.y)
        )  # a row for each name
        assert by_name or any(axis.startswith("yaxis") for axis in [*titled, *named]), name
    assert collective(ring(2)).figure.layout.xaxis.visible is False


def luminance(colour: str) -> float:
    """Of "#rrggbb", as WCAG 2 defines it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The ratio of two colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def colours_of_text(figure: go.Figure) -> Iterator[str]:
    """Every colour that some text of the figure is given by itself."""

    def found(part: Any, *, of_text: bool) -> Iterator[str]:
        if isinstance(part, dict):
            for key, value in part.items():
                if key == "color" and of_text and isinstance(value, str):
                    yield value
                yield from found(value, of_text="font" in key)
        elif isinstance(part, (list, tuple)):
            for value in part:
                yield from found(value, of_text=False)

    yield from found(figure.to_plotly_json(), of_text=False)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)  # the lightest grey that passes


def test_text_is_read_on_paper_and_on_every_colour_it_may_stand_on() -> None:
    assert contrast(theme.INK, theme.PAPER) >= TEXT_CONTRAST
    for _, colour in [*theme.MAGNITUDE, *theme.SHARE_OF_SUM]:
        assert contrast(theme.INK, colour) >= TEXT_CONTRAST, colour
    for colour in NAMES.values():
        assert contrast(theme.INK, colour) >= TEXT_CONTRAST, colour


@pytest.mark.parametrize("name", OF_A_TRACE)
def test_text_of_its_own_colour_is_read_on_paper(name: str) -> None:
    for colour in colours_of_text(OF_A_TRACE[name](run(name, 4)).figure):
        assert contrast(colour, theme.PAPER) >= TEXT_CONTRAST, colour


def test_categories_are_told_apart_without_colour() -> None:
    assert len({look.pattern for look in theme.CATEGORIES}) == len(theme.CATEGORIES)
