"""Where Lightning and Accelerate are missing: the recorded runs, the chapter that shows them, and what to install."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import nbformat
import numpy as np
import pytest

from distsim.errors import InputError
from distsim.frameworks import WAYS, recorded, statements, trained_or_recorded

CHAPTER = Path(__file__).parents[2] / "course" / "11_frameworks.ipynb"
FRAMEWORKS = ("lightning", "accelerate")


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither framework can be found."""
    real = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in FRAMEWORKS else real(name, package)

    for place in ("importlib.util.find_spec", "distsim.frameworks.recorded.find_spec", "distsim.extras.find_spec"):
        monkeypatch.setattr(place, find_spec)


@pytest.mark.usefixtures("hidden")
@pytest.mark.parametrize("way", [way for way, package in WAYS.items() if package in FRAMEWORKS])
@pytest.mark.parametrize(("workers", "updates"), recorded.SIZES)
def test_a_recorded_run_is_whole_and_says_what_it_is(way: str, workers: int, updates: int) -> None:
    run = trained_or_recorded(way, workers, updates)
    assert run.recorded
    assert run.losses.shape == (workers, updates)
    assert run.step_seconds.shape == (updates - 1,)
    assert (run.step_seconds > 0).all()
    assert 0.0 < run.final_loss < run.losses[:, 0].mean()


@pytest.mark.usefixtures("hidden")
def test_what_was_not_recorded_names_the_extra() -> None:
    with pytest.raises(InputError, match=r"distsim-course\[frameworks\]"):
        trained_or_recorded("lightning_way", 3, 7)
    with pytest.raises(InputError, match="way = 'by_hand'"):
        trained_or_recorded("by_hand")


def test_recorded_ways_made_the_same_training() -> None:
    held = json.loads(recorded.RECORDED.read_text("utf-8"))
    sizes = [f"{ranks} ranks, {updates} updates" for ranks, updates in recorded.SIZES]
    assert set(held) == {f"{way}, {size}" for way in WAYS for size in sizes}
    for size in sizes:
        losses = [np.array(held[f"{way}, {size}"]["losses"]) for way in WAYS]
        assert max(np.abs(one - losses[0]).max() for one in losses) <= 2e-6  # rounded to six digits


def test_statements_leave_out_imports_docstrings_and_records(monkeypatch: pytest.MonkeyPatch) -> None:
    script = '''
"""Words."""
import torch

class Noting(Callback):
    def begin(self):
        record.update(1)

def train(updates, record):
    """Words."""
    model = network()
    for epoch in count():
        model.step()
        record.update(2)
        if len(record.losses) == updates:
            model.end()
            return
'''
    monkeypatch.setattr("distsim.frameworks.scripts.script", {"mine": script}.__getitem__)
    assert statements("mine") == 3  # model, for, step


@pytest.mark.real
@pytest.mark.thorough
@pytest.mark.usefixtures("hidden")
def test_the_chapter_shows_the_recorded_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.setenv("DISTSIM_RECORDED_GUESSES", "1")
    monkeypatch.chdir(CHAPTER.parent)
    names: dict[str, object] = {}
    wanted: Callable[[str], bool] = {
        "guess", "scripts", "devices", "measure", "samplers", "overhead", "free", "compare",
    }.__contains__  # fmt: skip
    for cell in nbformat.read(CHAPTER, as_version=4).cells:
        if wanted(cell.id):
            exec(compile(cell.source, cell.id, "exec"), names)
    told = capsys.readouterr().out
    assert "recorded on another machine: ['lightning_way', 'accelerate_way']" in told
    assert "Lightning is not installed" in told
    assert "Accelerate's batches" not in told
