"""Batch size and learning rate: which rates suit a batch size, and what does a large batch lose? (Goyal et al. 2017)

A perceptron learns scikit-learn's digits by plain SGD, once for each batch size, rate and seed. One process with
batches of N x b samples learns like N workers with batches of b samples each. All runs were learned beforehand, see
`distsim.explorers.learned_runs`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Pick, Slider
from distsim.explorers.explorer import Explorer
from distsim.explorers.learned_runs import BATCHES, SEEDS, learned, rates
from distsim.figures import batch_grid
from distsim.figures.captioned import Captioned, Row
from distsim.learning.batches import seeds
from distsim.scenario import Scenario
from distsim.workload import TRAINING_SAMPLES

if TYPE_CHECKING:
    from distsim.learning.curve import Curve

BATCH, BEST, ACCURACY, LOSS = "batch", "best rate", "test accuracy at that rate (%)", "loss at that rate"
DIVERGED, UPDATES = "rates that diverge", "updates"
OF_A_WORKER = 8  # samples
SAMPLES = TRAINING_SAMPLES["mlp"]


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    epochs: how often each sample is seen. largest: the largest batch; batches grow fourfold from 8 samples.
    highest: the highest learning rate; each lower rate is a quarter of the next. quantity: compared at the end of the
    runs. runs: of each cell, with different seeds.
    """

    epochs: int = 3
    largest: int = 128
    highest: float = 1.28
    quantity: Literal["accuracy", "loss"] = "accuracy"
    runs: int = 1
    rates: int = 4

    @property
    def cells(self) -> list[tuple[int, float]]:
        """(samples of an update, learning rate), batch by batch.

        >>> len(Parameters().cells), Parameters(rates=2).cells[:3]
        (12, [(8, 0.32), (8, 1.28), (32, 0.32)])
        """
        batches = [batch for batch in BATCHES if batch <= self.largest]
        return [(batch, rate) for batch in batches for rate in rates(self.highest, self.rates)]


def scenarios(parameters: Parameters) -> tuple[Scenario]:
    """The scenario of the largest batch, by workers with 8 samples each.

    >>> scenarios(Parameters())[0].cluster.workers
    16
    """
    batch = parameters.largest
    table = {
        "name": f"batch-of-{batch}",
        "steps": parameters.epochs * -(-SAMPLES // batch),
        "seed": seeds(1)[0],
        "cluster": {"workers": batch // OF_A_WORKER, "bandwidth": "10 Gbit/s", "latency": "50 us"},
        "compute": {"mean": "1 ms"},
        "workload": {"model": "mlp", "batch": OF_A_WORKER},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "ring"},
    }
    return (Scenario.of(table),)


def explore(parameters: Parameters) -> Captioned:
    """The final accuracy or loss of each batch size at each rate.

    >>> [row[BEST] for row in explore(Parameters(epochs=1, largest=32, rates=2)).table]
    [0.32, 0.32]
    """
    curves = {
        (batch, rate): [learned(batch, rate, parameters.epochs, number) for number in range(parameters.runs)]
        for batch, rate in parameters.cells
    }
    shown = batch_grid(curves, parameters.quantity)
    return replace(shown, table=_table(curves, parameters))


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> [row["batch"] for row in view.shown.table]
    ['8 samples', '32 samples', '128 samples']
    """
    return Explorer(
        title=EXPLORERS["batch_size"].title,
        question="A perceptron of 64 hidden units learned scikit-learn's digits by plain SGD without warm-up. The runs "
        "are stored with distsim, so you see their results at once.",
        start=Parameters(),
        controls=[
            Choice("epochs", "epochs", "", (1, 2, 3, 5, 10)),
            Choice("largest", "largest batch", "samples", (32, 128, 512)),
            Choice("highest", "highest learning rate", "", (0.08, 0.32, 1.28, 5.12)),
        ],
        more=[
            Pick("quantity", "number in each cell", ("accuracy", "loss")),
            Slider("rates", "learning rates", "", 2, 5),
            Slider("runs", "runs of each cell, with different seeds", "", 1, SEEDS),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(BEST, ACCURACY, LOSS, DIVERGED),
        real=lambda _: None,  # a scenario holds no learning rate
    )


def _table(curves: Mapping[tuple[int, float], Sequence[Curve]], parameters: Parameters) -> list[Row]:
    """For each batch, the best rate and the means of its runs; None where a run diverges at every rate."""
    rows: list[Row] = []
    for batch in sorted({batch for batch, _ in curves}):
        ends = {
            rate: (float(np.mean([curve.accuracy[-1] for curve in found])), _end_loss(found))
            for (of, rate), found in curves.items()
            if of == batch
        }
        kept = {rate: end for rate, end in ends.items() if end[1] < math.inf}
        best = min(
            kept, key=lambda rate: -kept[rate][0] if parameters.quantity == "accuracy" else kept[rate][1], default=None
        )
        accuracy, loss = (None, None) if best is None else kept[best]
        rows.append(
            {
                BATCH: f"{batch} samples",
                BEST: best,
                ACCURACY: None if accuracy is None else 100.0 * accuracy,
                LOSS: loss,
                DIVERGED: len(ends) - len(kept),
                UPDATES: parameters.epochs * -(-SAMPLES // batch),
            }
        )
    return rows


def _end_loss(found: Sequence[Curve]) -> float:
    """The mean final loss; infinite where the loss of a run ends above its start, or is not finite."""
    if all(curve.loss[-1] <= curve.loss[0] for curve in found):  # False for NaN
        return float(np.mean([curve.loss[-1] for curve in found]))
    return math.inf
