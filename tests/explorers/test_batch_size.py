"""The explorer of batch size: what it learns, its table and sentence, progress, cancelling, what it remembers."""

from __future__ import annotations

from typing import Any

import pytest

from distsim.errors import InputError
from distsim.explorers import batch_size
from distsim.explorers.batch_size import Parameters, explore, explorer, scenarios
from distsim.learning.batches import seeds
from distsim.learning.experiments.batch_size import grid
from distsim.progress import Phase

pytest.importorskip("torch")
pytest.importorskip("sklearn")

QUICK = Parameters(epochs=1, largest=32, rates=2)
BEST, ACCURACY, LOSS = "best rate", "test accuracy at it (%)", "loss at it"


def test_each_cell_is_what_the_experiment_learns() -> None:
    shown = explore(QUICK)
    learned = grid("mlp", [8, 32], [0.32, 1.28], seeds(1), epochs=1)
    (cells,) = [drawn for drawn in shown.figure.data if drawn.type == "heatmap"]
    for batch, row in zip((8, 32), shown.table, strict=True):
        accuracies = {rate: learned[batch, rate][0].accuracy[-1] for rate in (0.32, 1.28)}
        best = max(accuracies, key=accuracies.__getitem__)
        assert row[BEST] == best
        assert row[ACCURACY] == pytest.approx(100 * accuracies[best])
        assert row[LOSS] == pytest.approx(learned[batch, best][0].loss[-1])
        assert any(value == pytest.approx(row[ACCURACY]) for line in cells.z for value in line)
        assert f"{row[ACCURACY]:.3g} % with batches of {batch} (at a rate of {row[BEST]:g})" in shown.summary


def test_rates_at_which_runs_diverge_are_not_the_best() -> None:
    shown = explore(Parameters(epochs=1, largest=32, rates=2, highest=5.12, quantity="loss"))
    for row in shown.table:
        assert row["rates that diverge"] >= 1
        assert row[BEST] in (None, 1.28)
        assert (row[LOSS] is None) is (row[BEST] is None)


def test_it_tells_how_far_it_is_and_ends_when_it_is_told_to() -> None:
    told: list[tuple[int, int]] = []

    def report(phase: Phase) -> None:
        told.append((phase.done, phase.of))
        if phase.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explore(QUICK, report)
    assert told == [(0, 4), (1, 4), (2, 4)]


def test_what_was_learned_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    explore(QUICK)
    before = batch_size._learned.cache_info()
    explore(Parameters(epochs=1, largest=32, rates=3))
    after = batch_size._learned.cache_info()
    assert after.hits - before.hits == 4
    assert after.misses - before.misses <= 2
    monkeypatch.setattr("distsim.extras.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r'pip install "distsim-course\[labs\]"'):
        explore(QUICK)


def test_the_scenario_has_as_many_samples_in_an_update() -> None:
    for largest in (32, 128, 512):
        (scenario,) = scenarios(Parameters(largest=largest, epochs=2))
        assert scenario.cluster.workers * scenario.workload.batch == largest
        assert scenario.steps == 2 * -(-1437 // largest)


def test_a_cancelled_exploration_leaves_the_last_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    view = explorer()
    assert view.settled(120.0)
    kept = view.shown
    learn = batch_size._learned

    def cancelled(*cell: Any) -> Any:
        view.progress.button.click()
        return learn(*cell)

    monkeypatch.setattr(batch_size, "_learned", cancelled)
    view.controls["quantity"].value = "loss"
    assert view.settled(120.0)
    assert "Cancelled" in view.changed.value
    assert view.shown is kept


def test_the_sentence_on_change_speaks_of_each_batch() -> None:
    view = explorer()
    view.controls["epochs"].value = 1
    assert view.settled(120.0)
    view.controls["runs"].value = 2
    assert view.settled(120.0)
    assert "runs of each, with other seeds from 1 to 2: 8 samples: test accuracy at it (%)" in view.changed.value
