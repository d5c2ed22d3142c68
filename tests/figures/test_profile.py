"""The layers of a profile: bars end where the times say, forward goes down the rows and backward goes up."""

from __future__ import annotations

import numpy as np
import pytest

from distsim.figures import profile
from tests.test_profile import BYTES, FORWARD, OPTIMIZER, READY, profile_of


def test_bars_are_the_times_of_the_layers() -> None:
    forward, backward, optimizer, sizes = profile(profile_of()).figure.data
    starts = np.cumsum([0.0, *FORWARD[::-1]])
    assert np.array(forward.base) == pytest.approx(1e3 * starts[:-1])
    assert np.array(forward.base) + np.array(forward.x) == pytest.approx(1e3 * starts[1:])
    assert np.array(backward.base) + np.array(backward.x) == pytest.approx(1e3 * (starts[-1] + np.array(READY[::-1])))
    assert min(backward.base) == pytest.approx(1e3 * starts[-1])
    assert set(np.round(optimizer.x, 9)) == {round(1e3 * OPTIMIZER, 9)}
    assert np.array(sizes.x) == pytest.approx(np.array(BYTES[::-1]) / 1e6)


def test_sentence_and_table_tell_the_numbers() -> None:
    found = profile(profile_of())
    assert found.summary == (
        "Forward takes 5 ms, backward 10 ms and the optimizer 750 us; "
        "half of the 7 MB are there after 30 % of backward."
    )
    assert [row["layer"] for row in found.table] == [f"layer {number}" for number in (3, 2, 1, 0)]
    assert found.table[-1]["gradient there after (ms)"] == pytest.approx(2.0)


@pytest.mark.parametrize("layers", [1, 300])
def test_few_and_many_layers_are_drawn(layers: int) -> None:
    found = profile(profile_of(forward=(1e-3,) * layers, ready=tuple(1e-3 * (1 + n) for n in range(layers))))
    assert len(found.figure.layout.yaxis.tickvals) <= 40
    assert 150 < found.figure.layout.height < 2500
    assert len(found.table) == layers


def test_a_model_that_takes_no_time_is_drawn_too() -> None:
    assert "100 %" in profile(profile_of(forward=(0.0,), ready=(0.0,))).summary
