"""Collectives at work, without a browser."""

from __future__ import annotations

import pytest

from distsim.collectives import ALL_REDUCES, Topology
from distsim.explorers.collectives import (
    FORMULA,
    KINDS,
    ROUNDS,
    TIME,
    Parameters,
    explore,
    explorer,
    scenarios,
)
from distsim.figures.theme import SHARE_OF_SUM


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 5, 8])
def test_every_kind_takes_what_its_formula_says(kind: str, workers: int) -> None:
    (row,) = explore(Parameters(kind=kind, workers=workers)).table
    assert row[TIME] == pytest.approx(row[FORMULA])
    assert row[ROUNDS] == len(KINDS[kind].schedule(Topology(workers)).rounds)


def test_the_round_control_leads_the_picture_through_the_rounds() -> None:
    pictures = [explore(Parameters(after=after)).figure for after in range(8)]
    frames = pictures[0].frames
    for after, picture in enumerate(pictures):
        shown = min(after, 6)
        assert picture.layout.sliders[0].active == shown
        assert picture.data == frames[shown].data
    assert pictures[6].data == pictures[7].data
    assert len(frames) == 7


@pytest.mark.parametrize("workers", [9, 16])
@pytest.mark.parametrize("after", [0, 3, 30])
def test_a_matrix_keeps_its_look_in_every_round(workers: int, after: int) -> None:
    """A frame of the matrix holds changes alone, without colours."""
    (cells, *_) = explore(Parameters(workers=workers, after=after)).figure.data
    assert cells.type == "heatmap"
    assert tuple(cells.colorscale) == SHARE_OF_SUM
    assert (cells.zmin, cells.zmax, cells.colorbar.ticksuffix) == (0, 100, " %")
    held = 100 * ((cells.z == 100).sum() / cells.z.size)
    assert (held == 100) == (after == 30)


def test_scenarios_are_those_that_train_by_it() -> None:
    for kind in KINDS:
        found = scenarios(Parameters(kind=kind))
        assert [scenario.communication.kind for scenario in found] == ([kind] if kind in ALL_REDUCES else [])


def test_what_cannot_be_trained_by_is_not_run_for_real() -> None:
    view = explorer()
    assert view.real_run.scenario is not None
    view.controls["kind"].value = "broadcast"
    assert view.real_run.scenario is None
    assert view.real_run.controls.layout.display == "none"
