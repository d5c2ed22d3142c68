"""The explorer of batch size: what it learns, its table and sentence."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from distsim.explorers.batch_size import Parameters, explore, explorer, scenarios
from distsim.explorers.learned_runs import learn, learned
from distsim.learning.batches import seeds
from distsim.learning.experiments.batch_size import grid

pytest.importorskip("torch")
pytest.importorskip("sklearn")

QUICK = Parameters(epochs=1, largest=32, rates=2)
BEST, ACCURACY, LOSS = "best rate", "test accuracy at that rate (%)", "loss at that rate"


def test_each_cell_is_what_the_experiment_learns() -> None:
    shown = explore(QUICK)
    runs = grid("mlp", [8, 32], [0.32, 1.28], seeds(1), epochs=1)
    (cells,) = [drawn for drawn in shown.figure.data if drawn.type == "heatmap"]
    for batch, row in zip((8, 32), shown.table, strict=True):
        accuracies = {rate: runs[batch, rate][0].accuracy[-1] for rate in (0.32, 1.28)}
        best = max(accuracies, key=accuracies.__getitem__)
        assert row[BEST] == best
        assert row[ACCURACY] == pytest.approx(100 * accuracies[best], abs=1.0)
        assert row[LOSS] == pytest.approx(runs[batch, best][0].loss[-1], rel=0.02)
        assert any(value == pytest.approx(row[ACCURACY]) for line in cells.z for value in line)
        assert f"{row[ACCURACY]:.3g} % with batches of {batch} (at a rate of {row[BEST]:g})" in shown.summary


def test_rates_at_which_runs_diverge_are_not_the_best() -> None:
    shown = explore(Parameters(epochs=1, largest=32, rates=2, highest=5.12, quantity="loss"))
    for row in shown.table:
        assert row["rates that diverge"] >= 1
        assert row[BEST] in (None, 1.28)
        assert (row[LOSS] is None) is (row[BEST] is None)


def test_every_setting_of_the_controls_was_learned() -> None:
    view = explorer()
    values = {
        field: [option[1] if isinstance(option, tuple) else option for option in control.options]
        if hasattr(control, "options")
        else list(range(control.min, control.max + 1))
        for field, control in view.controls.items()
    }
    cells = {
        cell
        for largest, highest, count in itertools.product(values["largest"], values["highest"], values["rates"])
        for cell in Parameters(largest=largest, highest=highest, rates=count).cells
    }
    for (batch, rate), epochs in itertools.product(cells, values["epochs"]):
        run = learned(batch, rate, epochs, max(values["runs"]) - 1)
        assert run.loss[0] == pytest.approx(2.3, abs=0.2)  # ten digits: ln 10
        assert 0.0 <= run.accuracy[0] < 0.3


WITHOUT_TORCH = """
import builtins, sys

whole = builtins.__import__

def without_torch(name, *arguments, **named):
    if name.partition(".")[0] == "torch":
        raise RuntimeError("torch is imported")
    return whole(name, *arguments, **named)

builtins.__import__ = without_torch
sys.modules["torch"] = None  # also for importlib.import_module
from distsim.explorers.batch_size import explorer
view = explorer()
view.controls["epochs"].value = 1
print([row["batch"] for row in view.shown.table])
"""


def test_it_needs_no_torch() -> None:
    """In a process that has imported nothing."""
    told = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], check=False, capture_output=True, text=True)
    assert (told.stderr, told.stdout) == ("", "['8 samples', '32 samples', '128 samples']\n")


@pytest.mark.more
@pytest.mark.parametrize(("batch", "rate"), [(32, 0.08), (32, 0.32), (512, 0.08), (512, 1.28)])
def test_the_stored_runs_are_learned_again(batch: int, rate: float) -> None:
    """Not batches of 32 at a rate of 1.28: a start that differs by 1e-6 then ends with up to 2.8 times the loss, so
    another processor's rounding is enough.
    """
    again = learn(batch, rate, count=2, epochs=3)
    for number, (losses, accuracies) in enumerate(zip(again["loss"], again["accuracy"], strict=True)):
        for epochs in (1, 2, 3):
            stored = learned(batch, rate, epochs, number)
            assert stored.loss.tolist() == pytest.approx([losses[0], losses[epochs]], rel=0.02)
            assert stored.accuracy.tolist() == pytest.approx([accuracies[0], accuracies[epochs]], abs=0.02)


def test_the_scenario_has_as_many_samples_in_an_update() -> None:
    for largest in (32, 128, 512):
        (scenario,) = scenarios(Parameters(largest=largest, epochs=2))
        assert scenario.cluster.workers * scenario.workload.batch == largest
        assert scenario.steps == 2 * -(-1437 // largest)


def test_the_sentence_on_change_speaks_of_each_batch() -> None:
    view = explorer()
    view.controls["epochs"].value = 1
    view.controls["runs"].value = 2
    assert (
        "runs of each cell, with different seeds from 1 to 2: 8 samples: test accuracy at that rate (%)"
        in view.changed.value
    )
