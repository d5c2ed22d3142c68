"""The bench of redraws: its settings, and its bound for one explorer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.explorers.browser_bench import DEFAULT, LARGEST, Redraw, measure, opened, reset, settings
from tests.jupyterlab import Lab

MOVES = 4


def test_the_largest_setting_is_the_largest_that_is_possible() -> None:
    (backups,) = [one for one in settings("backup_workers") if one.heading.startswith("backups") and one.to]
    assert backups.setting == LARGEST
    assert backups.to == ("End", *["ArrowLeft"] * 12)  # 16, back to 4 of 5 workers


def test_the_difference_is_scaled_to_a_calm_machine() -> None:
    slow = Redraw("race", "workers", DEFAULT, 10, 900.0, 1700.0, 300.0, 500.0, slowness=4.0, bound=400.0)
    assert (slow.difference, slow.scaled, slow.met) == (1200.0, 300.0, True)


@pytest.mark.more
@pytest.mark.chromium
@pytest.mark.alone
@pytest.mark.timeout(300)
def test_sixty_four_workers_are_redrawn_within_the_bound(lab: Lab, browser: Any) -> None:
    (most,) = [
        one for one in settings("backup_workers") if one.heading.startswith("workers") and one.setting == LARGEST
    ]
    with opened(lab, browser, "backup_workers") as page:
        found = [measure(page, most, MOVES)]
        if not found[0].met:  # a busy moment, or slow
            reset(page)
            found.append(measure(page, most, MOVES))
    assert found[-1].met, found
