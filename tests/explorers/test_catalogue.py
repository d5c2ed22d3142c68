"""The table of all explorers names every one there is, and each keeps to the frame."""

from __future__ import annotations

import pkgutil
import re
from typing import Any

import pytest

from distsim import explorers
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.explorer import Explorer


@pytest.fixture(scope="module", params=EXPLORERS)
def view(request: pytest.FixtureRequest) -> Explorer[Any]:
    return EXPLORERS[request.param].open()


def test_every_module_with_an_explorer_is_in_the_table() -> None:
    names = set()
    for module in pkgutil.iter_modules(explorers.__path__):
        loaded = __import__(f"distsim.explorers.{module.name}", fromlist=["explorer"])
        if hasattr(loaded, "explorer"):
            names.add(module.name)
    assert names == set(EXPLORERS)


def test_questions_are_questions() -> None:
    for entry in EXPLORERS.values():
        assert entry.question.endswith("?"), entry.name


def test_it_starts_with_a_figure_a_sentence_and_a_table(view: Explorer[Any]) -> None:
    assert view.shown is not None, view.message.value
    assert view.shown.summary == view.picture.says
    assert re.search(r"\d", view.shown.summary)
    assert view.shown.summary.endswith(".")
    assert view.shown.table


def test_each_control_has_a_heading_with_bounds_and_reports_on_release(view: Explorer[Any]) -> None:
    for field, control in view.controls.items():
        assert not getattr(control, "continuous_update", False), field
        assert control.heading, field


def test_its_output_is_small_enough_for_a_notebook(view: Explorer[Any]) -> None:
    assert 100 < len(view.picture.figure) < 250_000
