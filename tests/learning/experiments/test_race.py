"""Error against run time crosses, and floors are where theory puts them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from distsim.learning.batches import seeds
from distsim.learning.experiments.race import EARLY, LATE, floors, losses, predicted_floor
from distsim.statistics import interval


@pytest.mark.whole
def test_asynchronous_updates_lead_and_then_trail(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(14, 40), first=101)
    ahead, behind = (losses(name, own, [EARLY, LATE]) for name in ("asynchronous", "synchronous"))
    assert interval(behind[:, 0] - ahead[:, 0]).low > 0.0
    assert interval(ahead[:, 1] - behind[:, 1]).low > 0.0


@pytest.mark.whole
def test_floors_are_those_of_theory(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(12, 40), first=201)
    found = interval(floors("synchronous", own))
    assert found.mean == pytest.approx(predicted_floor("synchronous"), rel=0.1)
    for name in ("4 of 8", "2 of 8"):
        some = interval(floors(name, own[: len(own) // 3]))
        assert some.mean == pytest.approx(predicted_floor(name), rel=0.1)
    stale = interval(floors("asynchronous", own[: len(own) // 3]))
    assert stale.low > predicted_floor("asynchronous") > 2 * predicted_floor("4 of 8")
