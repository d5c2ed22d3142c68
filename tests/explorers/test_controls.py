"""Every control of every explorer does something: what is drawn, or the table, and the sentence on what changed."""

from __future__ import annotations

from typing import Any

import pytest

from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.explorer import Explorer
from tests.explorers.drives import values

OF_A_FILE = {"your_cluster"}  # its own test has the file
# The picture of a collective shows no seconds.
TABLE_ALONE = {"collectives": {"gradient_mib", "gbit_per_second", "latency_us"}}
ALWAYS_A_NUMBER = {"failures", "overlap", "pipeline", "race"}  # of those watched


@pytest.mark.parametrize("name", sorted(EXPLORERS.keys() - OF_A_FILE))
def test_every_control_changes_what_is_shown_and_the_sentence_on_change(name: str) -> None:
    """From the first values on, or with all controls before it moved: a seed does nothing where nothing is random."""
    view = EXPLORERS[name].open()
    figures, tables, numbers = set(), set(), set()
    for stays in (False, True):
        for field, control in view.controls.items():
            before, start = view.shown, control.value
            move_far_within_the_possible(view, field)
            after = view.shown
            assert before is not None
            assert after is not None
            assert getattr(view.parameters, field) == control.value != start, field
            assert ">Changed " in view.changed.value, field
            figures |= {field} if after.figure != before.figure else set()
            tables |= {field} if after.table != before.table else set()
            numbers |= {field} if "no number in the table changed" not in view.changed.value else set()
            if not stays:
                control.value = start
    table_alone = TABLE_ALONE.get(name, set())
    assert figures == set(view.controls) - table_alone
    assert table_alone <= tables
    assert name not in ALWAYS_A_NUMBER or numbers == set(view.controls)


def move_far_within_the_possible(view: Explorer[Any], field: str) -> None:
    """Moves the control to the value farthest from the present one that leads to a figure."""
    control = view.controls[field]
    every = values(view, field)
    start = every.index(control.value)
    far = sorted(range(len(every)), key=lambda place: abs(place - start), reverse=True)
    for value in [every[place] for place in far if place != start]:
        control.value = value
        if not view.message.value:
            return
    pytest.fail(f"{field}: no other value is possible")
