"""The explorer of overlap: its table against metrics and formulas, its sentence, its figure, its controls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from distsim.explorers.overlap import Parameters, explore, scenarios
from distsim.metrics import summary
from distsim.simulation import simulate
from distsim.theory.overlap import equal_buckets_step_seconds

STEP, EXPOSED, WAITING, HIDDEN = (
    "step (ms)", "exposed all-reduce (ms)", "waiting for others (ms)", "hidden all-reduce (%)"
)  # fmt: skip
EQUAL = Parameters(bucket_mib=1.0, gradient_mib=10.0, layers=10, workers=4)  # ten buckets of a layer each


@pytest.mark.parametrize(
    "parameters",
    [
        Parameters(),
        EQUAL,
        Parameters(half=True, accumulate=8),
        Parameters(bucket_mib=1000.0, gbit_per_second=1.0),
        Parameters(workers=1),
        Parameters(workers=64, layers=64, bucket_mib=1.0, latency_us=1000.0),
    ],
)
def test_without_stragglers_simulation_and_formula_are_one(parameters: Parameters) -> None:
    simulated, formula, apart, perfect = explore(parameters).table
    for column in (STEP, EXPOSED, WAITING):
        assert simulated[column] == pytest.approx(formula[column], rel=1e-9, abs=1e-9), column
    if parameters.workers == 1:
        assert simulated[HIDDEN] is formula[HIDDEN] is None
    else:
        assert simulated[HIDDEN] == pytest.approx(formula[HIDDEN], abs=1e-6)
    assert perfect[STEP] <= formula[STEP] * (1 + 1e-12)
    assert formula[STEP] <= apart[STEP] * (1 + 1e-12)


def test_the_formula_is_that_of_equal_buckets_where_they_are() -> None:
    row = explore(EQUAL).table[1]
    compute, together = 0.150, 2 * 3 * 10 * 2**20 / 4 / 1.25e9
    expected = equal_buckets_step_seconds(compute / 3, 2 * compute / 3, together, 10, seconds_per_bucket=6 * 50e-6)
    assert row[STEP] == pytest.approx(1e3 * expected, rel=1e-9)


@pytest.mark.parametrize("parameters", [Parameters(cv=0.4), Parameters(cv=0.4, accumulate=4, workers=16)])
def test_the_simulated_row_is_the_metrics(parameters: Parameters) -> None:
    row = explore(parameters).table[0]
    found = summary(simulate(scenarios(parameters)[0]))
    assert row[STEP] == pytest.approx(1e3 * found.total_seconds / 48)
    assert row[EXPOSED] / row[STEP] == pytest.approx(found.exposed_communication_share)
    assert row[WAITING] / row[STEP] == pytest.approx(found.idle_share, abs=1e-9)
    assert row[WAITING] > 1.0


def test_the_sentence_has_the_tables_numbers() -> None:
    shown = explore(Parameters(half=True))
    row = shown.table[0]
    assert shown.summary == (
        f"A local step takes {row[STEP]:.3g} ms, of which {row[EXPOSED]:.3g} ms are exposed all-reduce. "
        f"{row[HIDDEN]:.0f} % of the all-reduce is hidden. The formula says {row[STEP]:.3g} ms, "
        f"and {shown.table[2][STEP]:.3g} ms without overlap."
    )
    assert "stragglers" not in shown.summary
    jittered = explore(Parameters(cv=0.5))
    more = 100 * (jittered.table[0][STEP] / jittered.table[1][STEP] - 1)
    assert f"stragglers change the time by +{more:.1f} %." in jittered.summary


def test_the_figure_has_a_row_for_each_bucket() -> None:
    figure = explore(EQUAL).figure
    (ready,) = [drawn for drawn in figure.data if drawn.name == "gradients ready"]
    assert list(ready.x) == pytest.approx(np.linspace(60.0, 150.0, 10))


def test_half_precision_sends_half() -> None:
    whole, half = (explore(replace(EQUAL, gbit_per_second=1.0, latency_us=0.0, half=half)) for half in (False, True))
    apart = [shown.table[2][EXPOSED] for shown in (whole, half)]
    assert apart[1] == pytest.approx(apart[0] / 2)


def test_accumulation_divides_what_is_exposed() -> None:
    once, often = (explore(Parameters(accumulate=accumulate)).table[0][EXPOSED] for accumulate in (1, 16))
    assert often == pytest.approx(once / 16)
