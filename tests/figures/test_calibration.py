"""The figure of a calibration: every measured time once, beside the line fitted to it, and the same as a table."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from distsim.calibration import MachineCalibration, fitted
from distsim.calibration.operations import Operation
from distsim.cli.calibrate import _table as table_of_fits
from distsim.figures.calibration import calibration, page
from distsim.units import show

SIZES, WORKERS = (1e4, 1e5, 1e6), (1, 2)


@pytest.fixture
def machine() -> MachineCalibration:
    """Gathers on a line, and computes of one number of workers that are none."""
    gathers = [
        ("gather", None, workers, size, np.full(3, 1e-4 + workers * size / 1e9))
        for workers in WORKERS
        for size in SIZES
    ]
    computes = [
        ("compute", "cnn", 2, batch, np.array([0.9, 1.0, 1.3]) * 1e-3 * batch**2) for batch in (8.0, 16.0, 32.0)
    ]
    return fitted([*gathers, *computes], cores=2)


def test_every_measured_time_is_drawn_once_beside_its_line(machine: MachineCalibration) -> None:
    figure = calibration(machine).figure
    marks, lines = (list(figure.select_traces({"mode": mode})) for mode in ("markers", "lines"))
    drawn = sorted(zip([x for trace in marks for x in trace.x], [y for trace in marks for y in trace.y], strict=True))
    assert drawn == sorted((found.amount, found.seconds) for found in machine.measured)
    assert len(lines) == len(marks) == 3
    gather = next(line for line in lines if line.name == "1 worker, fit")
    assert gather.y[0] == pytest.approx(1e-4 + 1e4 / 1e9)
    assert gather.y[-1] == pytest.approx(1e-4 + 1e6 / 1e9)
    compute = next(trace for trace in marks if trace.xaxis == "x2")
    assert compute.error_y.array[0] == pytest.approx(0.15e-3 * 64)
    assert compute.error_y.arrayminus[0] == pytest.approx(0.05e-3 * 64)
    assert sorted(trace.name for trace in marks if trace.showlegend) == ["1 worker", "2 workers"]
    assert [note.text for note in figure.layout.annotations] == ["gather (pushes)", "compute, cnn"]


def test_below_each_panel_stands_how_far_the_line_is_off(machine: MachineCalibration) -> None:
    found = calibration(machine)
    bars = list(found.figure.select_traces({"type": "bar"}))
    drawn = [
        (bar.hovertemplate.split("<br>")[0], x, f"{y:+.0f} %")
        for bar in bars
        for x, y in zip(bar.x, bar.y, strict=True)
    ]
    told = {"gather (pushes)": lambda amount: show(amount, "byte"), "compute, cnn": str}
    assert sorted(drawn) == sorted(
        (
            f"{row['operation']}, {row['workers']} worker{'s' * (row['workers'] != 1)}",
            told[str(row["operation"])](row["bytes, samples, buckets or units"]), row["line off by"],
        )
        for row in found.table
    )  # fmt: skip
    worst = max(abs(y) for bar in bars for y in bar.y)
    assert worst > 10
    assert f"is {worst:.0f} % off" in found.summary, "the sentence tells of what is drawn"
    assert all(
        max(map(abs, bar.y)) < axis.range[1] for bar in bars for axis in [found.figure.layout[f"yaxis{bar.yaxis[1:]}"]]
    )
    upper = found.figure.layout.xaxis
    assert (upper.type, upper.range[0], list(upper.ticktext)) == (None, 0.0, ["0", "500 kB", "1 MB"])


def test_the_table_and_the_sentence_say_the_same(machine: MachineCalibration) -> None:
    found = calibration(machine)
    assert len(found.table) == len(machine.measured) == 9
    row = next(row for row in found.table if row["operation"] == "gather (pushes)" and row["workers"] == 2)
    assert row["measured (ms)"] == pytest.approx(0.12)
    assert row["line off by"] in ("+0 %", "-0 %")
    assert "Of 9 measured times" in found.summary
    assert "compute, cnn" in found.summary


def test_the_page_needs_nothing_beside_it(machine: MachineCalibration) -> None:
    text = page(machine)
    assert text.count("<h1>Calibration</h1>") == 1
    assert "poor fits" in text
    assert "https://" not in text.split("</script>")[-1]


@pytest.mark.parametrize(("operation", "unit"), [("compute", "sample"), ("ddp", "bucket"), ("units", "unit")])
def test_what_an_amount_of_a_model_counts_has_its_name(operation: Operation, unit: str) -> None:
    machine = fitted(
        [(operation, "mlp", 1, amount, np.full(3, 1e-3 + 1e-4 * amount)) for amount in (1.0, 2.0)], cores=2
    )
    figure = calibration(machine).figure
    assert [axis.title.text for axis in figure.select_xaxes() if axis.title.text] == [f"{unit}s"]
    console = Console(width=200, file=StringIO(), record=True)
    console.print(table_of_fits(machine))
    assert f"100 [100, 100] us/{unit} " in console.export_text()
