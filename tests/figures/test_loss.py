"""Loss as drawn: lines that are the curves, means and intervals over seeds, and what is told of one, few and many."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from scipy import stats

from distsim.errors import InputError
from distsim.figures import loss
from distsim.learning.curve import Curve


def curve(losses: Any, seconds_each: float = 1.0, samples_each: int = 8, accuracy: float = np.nan) -> Curve:
    """A look after every update."""
    found = np.asarray(losses, dtype=float)
    update = np.arange(len(found))
    return Curve(
        update=update, samples=update * samples_each, seconds=update * seconds_each, loss=found,
        accuracy=np.full(len(found), accuracy), batch_loss=found[1:],
        update_samples=np.full(len(found) - 1, samples_each), parameters=np.zeros(1),
    )  # fmt: skip


def falling(half_life: float, updates: int = 40, start: float = 4.0) -> np.ndarray:
    return start * 2.0 ** (-np.arange(updates + 1) / half_life)


def lines(figure: go.Figure, name: str) -> list[Any]:
    """The traces of this name, one for each panel."""
    return [trace for trace in figure.data if trace.name == name]


SLOW, FAST = curve(falling(10.0), 1.0, 64), curve(falling(20.0), 0.25, 8)


def test_each_panel_has_the_curve_against_its_own_axis() -> None:
    shown = loss({"synchronous": SLOW, "asynchronous": FAST})
    titles = [axis.title.text for axis in (shown.figure.layout[f"xaxis{n}"] for n in ("", "2", "3"))]
    assert titles == ["time (s)", "updates", "samples"]
    for name, found in (("synchronous", SLOW), ("asynchronous", FAST)):
        drawn = lines(shown.figure, name)
        for trace, column in zip(drawn, (found.seconds, found.update, found.samples), strict=True):
            assert np.array_equal(trace.x, column)
            assert np.array_equal(trace.y, found.loss)
        assert [trace.showlegend for trace in drawn] == [True, False, False]
    looks = [lines(shown.figure, name)[0].line for name in ("synchronous", "asynchronous")]
    assert looks[0].color != looks[1].color
    assert looks[0].dash != looks[1].dash
    assert len(loss({"one": SLOW}, against=["samples"]).figure.data) == 1


def test_who_is_first_depends_on_the_axis() -> None:
    shown = loss({"synchronous": SLOW, "asynchronous": FAST})
    target = float(np.median(FAST.loss[-4:]))
    (row, other) = shown.table
    keys = [f"{title} to {target:.3g}" for title in ("time (s)", "updates", "samples")]
    for found, told in ((SLOW, row), (FAST, other)):
        first = int(np.argmax(found.loss <= target))
        assert [told[key] for key in keys] == [found.seconds[first], found.update[first], found.samples[first]]
    assert shown.summary.startswith(f"All runs reach a loss of {target:.3g}; first asynchronous after ")
    assert shown.summary.endswith(" samples, and synchronous after 20 updates.")
    assert {tuple(set(trace.y)) for trace in shown.figure.data if trace.name.startswith("all reach")} == {(target,)}


def test_runs_are_compared_at_the_target_that_is_given() -> None:
    shown = loss({"synchronous": SLOW, "asynchronous": FAST}, ["updates"], target=2.0)
    assert shown.summary.startswith("All runs reach a loss of 2; first synchronous after 10 updates.")
    assert [row["updates to 2"] for row in shown.table] == [10.0, 20.0]
    assert loss({"one": SLOW}, ["updates"], target=2.0).table[0]["updates to 2"] == 10.0
    gone = curve([*falling(10.0)[:5], np.nan])
    assert "do not diverge reach a loss of 2;" in loss({"synchronous": SLOW, "gone": gone}, target=2.0).summary
    with pytest.raises(InputError, match=r"target\) = 1.0: is not reached by asynchronous.* take 1.04 or more"):
        loss({"synchronous": SLOW, "asynchronous": curve(falling(20.0)[:40])}, target=1.0)
    with pytest.raises(InputError, match="is not reached by any run"):
        loss({"gone": gone}, target=2.0)


def test_several_seeds_are_their_mean_and_its_interval() -> None:
    runs = [curve(falling(10.0, start=start)) for start in (3.0, 4.0, 5.5)]
    shown = loss({"a": runs}, against=["updates"])
    (mean,), (band,) = lines(shown.figure, "a"), lines(shown.figure, "95 % interval of a")
    together = np.array([run.loss for run in runs])
    assert np.allclose(mean.y, together.mean(axis=0))
    reach = stats.t.ppf(0.975, 2) * together.std(axis=0, ddof=1) / np.sqrt(3)
    upper, lower = np.split(np.asarray(band.y, dtype=float), 2)
    assert np.allclose(upper, together.mean(axis=0) + reach)
    assert np.allclose(lower[::-1], together.mean(axis=0) - reach)
    (row,) = shown.table
    assert (row["seeds"], row["95 % from"], row["to"]) == (3, pytest.approx(lower[0]), pytest.approx(upper[-1]))


def test_seeds_of_different_length_are_drawn_as_far_as_all_go() -> None:
    runs = [curve(falling(10.0), seconds_each=1.0), curve(falling(10.0), seconds_each=1.5)]
    (mean,) = lines(loss({"a": runs}, against=["seconds"]).figure, "a")
    assert (mean.x[0], mean.x[-1]) == (0.0, 40.0)
    at = int(np.searchsorted(mean.x, 30.0))
    assert mean.y[at] == pytest.approx((runs[0].loss_at(mean.x[at]) + runs[1].loss_at(mean.x[at])) / 2)


def test_axes_are_logarithmic_where_that_helps() -> None:
    far = loss({"a": curve(falling(5.0)), "b": curve(falling(5.0, updates=400))}, against=["updates"]).figure.layout
    assert (far.yaxis.type, far.xaxis.type) == ("log", "log")
    near = loss({"a": curve(falling(40.0)), "b": curve(falling(50.0))}, against=["updates"]).figure.layout
    assert (near.yaxis.type, near.xaxis.type) == (None, None)


@pytest.mark.parametrize("end", [np.nan, np.inf, 41.0])
def test_a_line_that_diverges_breaks_off_in_a_cross(end: float) -> None:
    wild = curve([4.0, 5.0, 9.0, end, end, 0.1])
    shown = loss({"tame": SLOW, "wild": wild}, against=["updates"])
    (line,), (cross,) = lines(shown.figure, "wild"), lines(shown.figure, "diverges")
    assert list(line.y) == [4.0, 5.0, 9.0]
    assert (list(cross.x), list(cross.y)) == ([2], [9.0])
    assert shown.summary.endswith("1 of 2 diverges: wild.")
    assert shown.table[1]["loss at the end"] is None
    nothing = loss({"wild": wild}, against=["updates"])
    assert nothing.summary == "1 of 1 diverges: wild."


def test_of_one_curve_the_sentence_says_where_it_goes() -> None:
    assert loss({"ring": SLOW}).summary == "Ring: the loss falls from 4 to 0.25 in 40 s."
    assert loss({"ring": SLOW}, ["samples"]).summary.endswith("from 4 to 0.25 with 2,560 samples.")
    risen = loss({"a": curve([1.0, 2.0]), "b": curve([1.0, 3.0])}, ["updates"])
    assert risen.summary == "The loss ends at 2 (a) to 3 (b)."
    assert not lines(risen.figure, "all reach 3")


def test_of_64_the_lowest_and_the_highest_are_told_apart() -> None:
    many = {f"rate {number}": curve(falling(4.0 + number)) for number in range(64)}
    shown = loss(many)
    named = [trace.name for trace in shown.figure.data if trace.showlegend]
    assert named[:3] == ["62 others", "rate 0", "rate 63"]
    assert len(shown.figure.data) == 3 * 4
    (others, *_) = lines(shown.figure, "62 others")
    assert np.isnan(others.y).sum() == 62
    assert len(shown.table) == 64
    assert "; first rate 0 and rate 1 after " in shown.summary


def test_runs_that_are_first_together_are_both_named() -> None:
    same = {"one": curve(falling(8.0)), "other": curve(falling(8.0)), "slow": curve(falling(80.0))}
    assert "; first one and other after " in loss(same, ["updates"]).summary


def test_accuracy_is_told_where_something_is_classified() -> None:
    shown = loss({"a": curve(falling(10.0), accuracy=0.9), "b": SLOW})
    assert [row["test accuracy (%)"] for row in shown.table] == [90.0, None]
    assert "test accuracy (%)" not in loss({"a": SLOW}).table[0]


@pytest.mark.parametrize(("curves", "against"), [({}, ["updates"]), ({"a": []}, ["updates"]), ({"a": SLOW}, []),
                                                 ({"a": SLOW}, ["epochs"])])  # fmt: skip
def test_nothing_to_draw_is_refused(curves: Any, against: Any) -> None:
    with pytest.raises(InputError, match=r"loss\((curves|against)\)"):
        loss(curves, against)


def test_the_sentence_tells_which_loss_rises_again() -> None:
    rising = curve([4.0, 2.0, 1.0, *[3.5] * 17])
    shown = loss({"late": rising, "fresh": SLOW}, against=["updates"])
    assert "The loss of late falls to 1 and rises again to 3.5." in shown.summary
    assert "rises" not in loss({"slow": SLOW, "fast": FAST}).summary
