"""What a browser has to draw of each explorer at its largest settings: it takes about a millisecond for each mark."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest

from distsim.errors import InputError
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Text
from tests.explorers.browser_bench import controls

MOST_MARKS, MOST_TRACES, MOST_BYTES = 1300, 16, 200_000


def marks(figure: Any) -> int:
    """Bars, points with a mark or a text, and lines that stand alone."""
    found = 0
    for drawn in figure.data:
        mode = str(getattr(drawn, "mode", ""))
        if drawn.type == "bar" or "markers" in mode or "text" in mode:
            found += len(drawn.x)
        elif drawn.type == "scatter":
            found += 1 + sum(value is None or value != value for value in drawn.y)  # a gap begins a new line
    return found


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_figure_at_its_largest_settings_is_small(name: str) -> None:
    module = importlib.import_module(f"distsim.explorers.{name}")
    moved = [control for control in controls(EXPLORERS[name].open()) if not isinstance(control, Text)]
    seen = 0
    for control in moved:
        try:
            figure = module.explore(replace(module.Parameters(), **{control.field: control.values[-1]})).figure
        except InputError:
            continue  # more than the other controls allow
        seen += 1
        told = f"{name}, {control.field} at {control.values[-1]}"
        assert marks(figure) <= MOST_MARKS, told
        assert len(figure.data) <= MOST_TRACES, told
        assert len(figure.to_json()) <= MOST_BYTES, told
    assert seen >= len(moved) - 2
