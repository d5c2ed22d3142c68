"""The grid of batches and rates as drawn: numbers in their cells, intervals, the best of each batch, what diverges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from distsim.errors import InputError
from distsim.figures import batch_grid
from distsim.learning.curve import Curve
from distsim.statistics import interval


def ended(accuracy: float, loss: float = 0.5) -> Curve:
    """A run that was looked at in the beginning and in the end."""
    two = np.array([0, 1])
    return Curve(
        update=two, samples=two, seconds=two * 1.0, loss=np.array([2.3, loss]), accuracy=np.array([0.1, accuracy]),
        batch_loss=np.array([loss]), update_samples=np.array([1]),
        parameters=np.zeros(1),
    )  # fmt: skip


WILD = ended(0.1, loss=math.nan)
GRID: dict[tuple[int, float], Any] = {
    (8, 0.1): [ended(0.90), ended(0.94)], (8, 0.4): [ended(0.99), WILD],
    (32, 0.1): [ended(0.70), ended(0.74)], (32, 0.4): [ended(0.88), ended(0.90)],
    (128, 0.1): [ended(0.50), ended(0.40)], (128, 1.6): [WILD, ended(0.1, loss=2.4)],
}  # fmt: skip


def of_name(shown: Any, name: str) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in shown.figure.data if trace.name == name]
    return found


def centres(trace: Any) -> list[tuple[float, float]]:
    """Of a trace of rectangles."""
    x, y = (np.array(values, dtype=float).reshape(-1, 6)[:, :4] for values in (trace.x, trace.y))
    return list(zip(x.mean(axis=1).round(6).tolist(), y.mean(axis=1).round(6).tolist(), strict=True))


def test_numbers_stand_in_their_cells() -> None:
    shown = batch_grid(GRID)
    drawn = of_name(shown, "test accuracy (%)")
    assert list(shown.figure.layout.xaxis.ticktext) == ["8", "32", "128"]
    assert list(shown.figure.layout.yaxis.ticktext) == ["0.1", "0.4", "1.6"]
    nan = math.nan
    assert np.allclose(drawn.z, [[92, 72, 45], [99, 89, nan], [nan, nan, nan]], equal_nan=True)
    assert [list(row) for row in drawn.text] == [["92.0", "72.0", "45.0"], ["99.0", "89.0", ""], ["", "", ""]]
    assert "not run" in drawn.hovertext[2][0]
    first = shown.table[0]
    _, low, high = interval([90.0, 94.0])
    assert high > 100.0  # more than all digits cannot be right
    assert (first["runs"], first["diverged"], first["95 % from"], first["to"]) == (2, 0, low, 100.0)
    assert (shown.table[1]["95 % from"], shown.table[-1]["test accuracy (%)"]) == (None, None)
    assert [row["samples per update"] for row in shown.table] == [8, 8, 32, 32, 128, 128]


def test_what_diverges_is_marked_and_is_never_the_best() -> None:
    shown = batch_grid(GRID)
    whole, partly = of_name(shown, "diverges"), of_name(shown, "diverges for some seeds")
    assert (list(whole.x), list(whole.y)) == ([2], [2])
    assert (math.floor(partly.x[0]), partly.y[0]) == (0, 1)
    assert whole.marker.symbol != partly.marker.symbol
    assert "In 2 of 6 cells runs diverge." in shown.summary
    nothing = batch_grid({(8, 0.1): WILD})
    assert nothing.summary == "In 1 of 1 cells runs diverge."


def test_the_best_rate_of_each_batch_is_outlined_and_so_is_the_linear_rule() -> None:
    shown = batch_grid(GRID)
    best, ruled = of_name(shown, "best rate of its batch"), of_name(shown, "by the linear rule")
    assert centres(best) == [(0, 0), (1, 1), (2, 0)]
    assert centres(ruled) == [(1, 1), (2, 2)]
    assert best.line.dash != ruled.line.dash
    assert shown.summary.startswith(
        "At the best rate the test accuracy is 92 % with batches of 8 (at a rate of 0.1) and 45 % with batches of "
        "128 (at a rate of 0.1). The linear rule leads to the best rate in 1 of 2 cells."
    )


def test_of_losses_the_lowest_is_best() -> None:
    shown = batch_grid({(8, rate): ended(0.5, loss) for rate, loss in ((0.1, 0.4), (0.2, 0.01), (0.4, 1.5))}, "loss")
    assert centres(of_name(shown, "best rate of its batch")) == [(0, 1)]
    drawn = of_name(shown, "loss over all samples")
    assert drawn.reversescale
    assert [row[0] for row in drawn.text] == ["0.4", "0.01", "1.5"]
    assert np.allclose(np.ravel(drawn.z), np.log10([0.4, 0.01, 1.5])), "colours far apart follow the logarithm"
    assert shown.table[0]["95 % from"] is None


def test_one_cell_and_4096() -> None:
    assert (
        batch_grid({(8, 0.1): ended(0.9)}).summary
        == "At the best rate the test accuracy is 90 % with batches of 8 (at a rate of 0.1)."
    )
    run = ended(0.9)
    many = batch_grid({(8 * (1 + batch), 0.01 * (1 + rate)): run for batch in range(64) for rate in range(64)})
    drawn = of_name(many, "test accuracy (%)")
    assert drawn.text is None
    assert drawn.showscale
    assert np.shape(drawn.z) == (64, 64)
    assert len(many.figure.layout.xaxis.tickvals) <= 24


@pytest.mark.parametrize(("curves", "quantity"), [({}, "loss"), ({(8, 0.1): []}, "loss")])
def test_nothing_to_draw_is_refused(curves: Any, quantity: Any) -> None:
    with pytest.raises(InputError, match="there is nothing to draw"):
        batch_grid(curves, quantity)


def test_an_unknown_quantity_is_refused() -> None:
    wrong: Any = "speed"
    with pytest.raises(InputError, match=r"batch_grid\(quantity\) = 'speed': must be one of accuracy, loss"):
        batch_grid(GRID, wrong)
