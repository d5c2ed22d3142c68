"""What the figure of step times would draw: its curves, the line of computing, its sentence and its table."""

from __future__ import annotations

import numpy as np
import pytest

from distsim.errors import InputError
from distsim.figures import step_times

CURVES = {"ring": {4: 0.07, 2: 0.06}, "server": {4: 0.16, 8: 0.4}}


def test_each_curve_is_drawn_in_milliseconds_by_increasing_workers() -> None:
    ring, server = step_times(CURVES).figure.data
    assert (ring.name, list(ring.x), list(ring.y)) == ("ring", [2, 4], pytest.approx([60.0, 70.0]))
    assert (list(server.x), list(server.y)) == ([4, 8], pytest.approx([160.0, 400.0]))
    assert ring.line.dash != server.line.dash
    assert ring.marker.symbol != server.marker.symbol


def test_a_law_that_is_linear_in_the_workers_is_drawn_as_a_straight_line() -> None:
    """Nothing is drawn on a logarithmic axis."""
    layout = step_times({"server": {count: 0.05 + 0.02 * count for count in (2, 4, 8, 64)}}).figure.layout
    assert {layout.xaxis.type, layout.yaxis.type} <= {None, "linear"}


def test_what_computing_takes_is_a_line() -> None:
    (line,) = step_times(CURVES, compute_seconds=0.05).figure.layout.shapes
    assert line.y0 == line.y1 == pytest.approx(50.0)
    assert not step_times(CURVES).figure.layout.shapes


def test_the_sentence_and_the_table_tell_the_times() -> None:
    shown = step_times(CURVES, compute_seconds=0.05)
    assert shown.summary == "On 8 workers a step takes 400 ms by server; computing alone takes 50 ms."
    assert [row["workers"] for row in shown.table] == [2, 4, 8]
    assert shown.table[0]["ring (ms)"] == pytest.approx(60.0)
    assert shown.table[0]["server (ms)"] is None


def test_nothing_one_worker_and_256_are_drawn() -> None:
    assert "nothing is drawn" in step_times({}).summary
    assert step_times({"ring": {1: 0.05}}).summary == "On 1 worker a step takes 50 ms by ring."
    many = step_times({"ring": dict.fromkeys(range(1, 257), 0.05)})
    assert len(many.figure.data[0].x) == 256


@pytest.mark.parametrize("most", [6, 8, 17, 33, 36, 64, 256])
def test_numbers_under_the_axis_do_not_run_into_each_other(most: int) -> None:
    """On 520 pixels, where a digit takes 8."""
    for counts in ([*(2**power for power in range(1, most.bit_length())), most], range(1, most + 1)):
        figure = step_times({"ring": dict.fromkeys(counts, 0.05)}).figure
        ticks = np.array(figure.layout.xaxis.tickvals)
        assert ticks[-1] == most
        apart = np.diff(ticks) / (most - min(counts)) * 520
        assert apart.min() >= 8 * len(str(most))


@pytest.mark.parametrize("curve", [{0: 0.1}, {2: -0.1}, {2: float("nan")}, {2.5: 0.1}])
def test_what_is_no_step_time_is_refused(curve: dict[int, float]) -> None:
    with pytest.raises(InputError, match="must have times of at least 0"):
        step_times({"ring": curve})
