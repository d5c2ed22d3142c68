"""What the map of a sweep would draw: axes, numbers, colours, marks, the least."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import heat_map
from distsim.figures.heat_map import METRIC_OF, MISSING
from distsim.sweep import RESULTS, Row, sweep


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Backups 0, 1 and an impossible 5, on three bandwidths, of which one combination is left out."""
    scenario = example("backup_server").replacing({"steps": 5})
    bandwidths = ["100 Mbit/s", "1 Gbit/s", "10 Gbit/s"]
    return sweep(scenario, {"policy.backups": [0, 1, 5], "cluster.bandwidth": bandwidths})[:-1]


def made(**values: Any) -> Row:
    """A row by hand."""
    return values | {"error": None}


def test_the_first_key_goes_down_and_the_second_right_in_the_order_of_the_sweep(rows: list[Row]) -> None:
    layout = heat_map(rows).figure.layout
    assert (layout.yaxis.title.text, layout.xaxis.title.text) == ("policy.backups", "cluster.bandwidth")
    assert layout.yaxis.ticktext == ("0", "1", "5")
    assert layout.xaxis.ticktext == ("100 Mbit/s", "1 Gbit/s", "10 Gbit/s")
    assert layout.yaxis.range == (2.5, -0.5)  # the first at the top
    assert layout.annotations[0].text == "<b>step time, median (ms)</b>"


def test_cells_hold_the_numbers_of_the_rows_in_the_metrics_unit(rows: list[Row]) -> None:
    shown = heat_map(rows, "total_seconds")
    cells = shown.figure.data[0]
    expected = np.full(9, np.nan)
    expected[:6] = [row["total_seconds"] for row in rows[:6]]
    table = [[row[f"cluster.bandwidth = {x}"] for x in ("100 Mbit/s", "1 Gbit/s", "10 Gbit/s")] for row in shown.table]
    assert np.array(table, dtype=float).ravel() == pytest.approx(expected, nan_ok=True)
    assert [float(text.replace(",", "")) for text in np.ravel(cells.text)[:6]] == pytest.approx(expected[:6], rel=6e-3)
    order = np.argsort(np.ravel(cells.z)[:6])
    assert (order == np.argsort(expected[:6])).all()  # colours rise with the numbers
    assert np.isnan(np.ravel(cells.z)[6:]).all()


def test_what_has_no_number_is_marked_by_its_reason(rows: list[Row]) -> None:
    figure = heat_map(rows).figure
    marks = {one.name: one for one in figure.data[1:]}
    assert list(marks) == ["impossible", "not run"]
    assert list(zip(marks["impossible"].y, marks["impossible"].x, strict=True)) == [(2, 0), (2, 1)]
    assert list(zip(marks["not run"].y, marks["not run"].x, strict=True)) == [(2, 2)]
    assert "backups = 5 must be fewer than the 5 workers" in marks["impossible"].hovertext[0]
    assert len({one.marker.symbol for one in marks.values()}) == 2
    assert heat_map(rows).summary.endswith("2 are impossible. 1 was not run.")


def test_a_metric_that_does_not_apply_is_no_number_either() -> None:
    shown = heat_map([made(**{"steps": steps, "idle_share": None}) for steps in (1, 2)], "idle_share")
    assert shown.figure.data[1].name == "does not apply"
    assert shown.summary == "Idle share of 0 combinations, so no number is drawn. 2 have no such metric."


def test_the_goodput_of_a_sweep_with_failures_is_drawn() -> None:
    failures = {"mean_time_between": "4 s", "checkpoint_every": "1 s", "checkpoint_cost": "20 ms"}
    scenario = example("synchronous_ring").replacing({"steps": 20, "failures": failures})
    swept = sweep(scenario, {"failures.checkpoint_every": ["100 ms", "500 ms"], "seed": [1, 2]})
    for metric, title, key in (
        ("goodput", "goodput (%)", "goodput"),
        ("paused_shares_checkpoint", "idle share: checkpoint (%)", "paused_shares_checkpoint"),
        ("failures", "failures", "failures"),
    ):
        shown = heat_map(swept, metric)
        assert shown.figure.layout.annotations[0].text == f"<b>{title}</b>"
        scale = 100.0 if title.endswith("(%)") else 1.0
        numbers = [row[column] for row in shown.table for column in ("seed = 1", "seed = 2")]
        assert numbers == pytest.approx([scale * row[key] for row in swept])
        assert min(numbers) >= 0.0
    assert min(row["goodput"] for row in swept) < 1.0


def test_the_least_is_outlined_and_told_with_the_most(rows: list[Row]) -> None:
    shown = heat_map(rows)
    (least,) = shown.figure.layout.shapes
    assert ((least.x0 + least.x1) / 2, (least.y0 + least.y1) / 2) == (2, 1)
    assert "at policy.backups = 1 and cluster.bandwidth = 10 Gbit/s; the most is" in shown.summary
    equal = heat_map([made(**{"steps": steps, "idle_share": 0.25}) for steps in (1, 2)], "idle_share")
    assert len(equal.figure.layout.shapes) == 0
    assert equal.summary == "Idle share of 2 combinations: 25 % in each."


def test_numbers_far_apart_are_coloured_by_their_logarithm_and_near_ones_are_not() -> None:
    far = heat_map([made(**{"steps": n, "total_seconds": 10.0**n}) for n in range(4)], "total_seconds")
    assert np.diff(np.ravel(far.figure.data[0].z)) == pytest.approx([1.0, 1.0, 1.0])
    near = heat_map([made(**{"steps": n, "total_seconds": 1.0 + n}) for n in range(4)], "total_seconds")
    assert list(np.ravel(near.figure.data[0].z)) == [1.0, 2.0, 3.0, 4.0]
    assert near.figure.data[0].colorbar.ticktext[0] == "1"


def test_of_many_cells_colours_have_a_scale_instead_of_numbers() -> None:
    many = [made(**{"steps": a, "seed": b, "total_seconds": 1.0 + a * b}) for a in range(30) for b in range(30)]
    cells = heat_map(many, "total_seconds").figure.data[0]
    assert cells.showscale
    assert cells.text is None
    assert not heat_map(many[:30], "total_seconds").figure.data[0].showscale


def test_a_file_of_a_sweep_draws_the_same_map(rows: list[Row], tmp_path: Path) -> None:
    pd.DataFrame(rows).to_csv(tmp_path / "sweep.csv", index=False)
    with (tmp_path / "sweep.csv").open(newline="") as stream:
        read = list(csv.DictReader(stream))
    for metric in METRIC_OF:
        assert heat_map(read, metric).summary == heat_map(rows, metric).summary
        assert (
            heat_map(pd.read_csv(tmp_path / "sweep.csv").to_dict("records"), metric).table
            == heat_map(rows, metric).table
        )


def test_every_result_can_be_drawn_and_every_reason_has_a_mark_of_its_own() -> None:
    assert set(METRIC_OF) == set(RESULTS) - {"error"}
    assert len({symbol for symbol, *_ in MISSING.values()}) == len(MISSING)


def test_what_cannot_be_drawn_is_refused(rows: list[Row]) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        heat_map([])
    with pytest.raises(InputError, match="is not a metric of a sweep"):
        heat_map(rows, "speed")
    with pytest.raises(InputError, match="must be two keys"):
        heat_map([made(a=n, b=n, c=n, total_seconds=1.0) for n in range(2)])


def test_a_combination_that_stands_twice_is_refused_and_named() -> None:
    one = made(**{"policy.backups": 0, "compute.cv": 0.1, "step_seconds_median": 0.1})
    other = made(**{"policy.backups": 1, "compute.cv": 0.2, "step_seconds_median": 0.2})
    again = one | {"step_seconds_median": 0.3}
    heat_map([one, other])
    told = r"heat_map\(rows\) = 'policy.backups = 0 and compute.cv = 0.1': stands in more than one row. Cure: keep one"
    with pytest.raises(InputError, match=told):
        heat_map([one, other, again])
    with pytest.raises(InputError, match=r"'policy\.backups = 0': stands in more than one row"):
        heat_map([made(**{"policy.backups": 0, "step_seconds_median": value}) for value in (0.1, 0.2)])
