"""The runs of the batch-size explorer, learned beforehand: loss and accuracy after each epoch.

`python -m distsim.explorers.learned_runs` learns them anew, in about a minute on a quiet core, and writes them beside
this file. It needs torch. Reading them needs no torch, and a control of the explorer answers at once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from distsim.files import write_text
from distsim.learning.batches import seeds
from distsim.learning.curve import Curve
from distsim.progress import progress

FILE = Path(__file__).with_suffix(".json")
BATCHES = (8, 32, 128, 512)  # samples of an update
HIGHEST, LADDER = 5.12, 8  # the highest learning rate; each lower rate is a quarter of the next
SEEDS, EPOCHS = 5, 10
DIGITS = 6  # of a loss or an accuracy

Ends = Mapping[str, list[list[float | None]]]  # "loss" and "accuracy": for each seed, before and after each epoch


def rates(highest: float, count: int) -> list[float]:
    """Learning rates from the lowest to the highest.

    >>> rates(1.28, 3)
    [0.08, 0.32, 1.28]
    """
    return [round(highest / 4.0**power, 9) for power in reversed(range(count))]


def learned(batch: int, rate: float, epochs: int, number: int) -> Curve:
    """The run with these samples per update, at this rate: its start, and its end after so many epochs.

    number: of the seed, from 0. Loss and accuracy are NaN where they are not finite. Raises KeyError for a cell that
    was not learned.

    >>> run = learned(32, 0.32, epochs=3, number=0)
    >>> run.loss[-1] < 0.2 * run.loss[0], run.accuracy[-1] > 0.9
    (np.True_, np.True_)
    """
    ends = _table()[_key(batch, rate)]
    columns = {
        name: np.array([math.nan if value is None else value for value in (of[number][0], of[number][epochs])])
        for name, of in ends.items()
    }
    nothing, updates = np.empty(0), np.array([0, epochs])
    return Curve(
        update=updates, samples=updates, seconds=updates.astype(float), **columns,
        batch_loss=nothing, update_samples=np.empty(0, dtype=np.int64), parameters=nothing,
    )  # fmt: skip


@cache
def _table() -> Mapping[str, Ends]:
    found: Mapping[str, Ends] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def _key(batch: int, rate: float) -> str:
    return f"{batch} samples at {rate:g}"


def learn(batch: int, rate: float, count: int = SEEDS, epochs: int = EPOCHS) -> Ends:
    """Learns a cell with so many seeds. Needs torch."""
    from distsim.learning.delays import plain
    from distsim.learning.experiments.batch_size import updates_per_epoch
    from distsim.learning.optimizers import Sgd
    from distsim.learning.replay import replay
    from distsim.learning.torch_model import TorchModel

    objective = TorchModel.of("mlp")
    updates = epochs * updates_per_epoch(objective.samples, batch)
    curves = [replay(plain(updates, batch, seed), objective, Sgd(rate), points=epochs) for seed in seeds(count)]
    assert all(len(curve.loss) == epochs + 1 for curve in curves), "an evaluation after each epoch"
    return {
        name: [[_written(value) for value in getattr(curve, name)] for curve in curves] for name in ("loss", "accuracy")
    }


def _written(value: Any) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def main() -> None:
    """Learns all cells, and writes the file."""
    cells = list(product(BATCHES, rates(HIGHEST, LADDER)))
    lines = [
        f"{json.dumps(_key(batch, rate))}: {json.dumps(learn(batch, rate))}"
        for batch, rate in progress(cells, "learning")
    ]
    write_text(FILE, "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
