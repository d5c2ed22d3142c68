"""Chosen rounds of a ring start when the ring that is computed round by round starts them."""

from __future__ import annotations

import numpy as np
import pytest

from distsim.collective_times.max_plus_rounds import ring_round_times
from distsim.collective_times.round_sample import ring_ends_of_alike, ring_starts


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 17])
def test_chosen_rounds_start_as_round_by_round(ranks: int, *, eager: bool) -> None:
    joins = np.random.default_rng(ranks).exponential(1.0, (ranks, 3))
    for rounds in (1, 2, 5, 2 * (ranks - 1)):
        *starts, end = (times.copy() for times in ring_round_times(joins, np.full(ranks, 0.3), rounds, eager=eager))
        found = ring_starts(joins, 0.3, range(rounds), eager=eager)
        for expected, start in zip(starts, found, strict=True):
            assert start == pytest.approx(expected, rel=1e-12)
        assert ring_ends_of_alike(joins, 0.3, rounds, eager=eager) == pytest.approx(end, rel=1e-12)
