"""The result of a replay: loss and accuracy against updates, samples and seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distsim.learning.objective import Numbers

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("update", "samples", "seconds", "loss", "accuracy")


@dataclass(frozen=True, eq=False)
class Curve:
    """Columns of one length: a row for each evaluated update, from update 0 (the start) to the last.

    samples: the number of samples whose gradients were applied. seconds: on the trace's clock. loss: the mean over
    all samples to learn from. accuracy: on the test samples, NaN where nothing is classified.

    For every update: batch_loss, the mean loss of its gradients' batches; update_samples, its effective batch.
    parameters: the final parameters.
    """

    update: NDArray[np.int64]
    samples: NDArray[np.int64]
    seconds: NDArray[np.float64]
    loss: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    batch_loss: NDArray[np.float64]
    update_samples: NDArray[np.int64]
    parameters: Numbers

    @property
    def effective_batch(self) -> float:
        """The mean number of samples of an update: N x b where all workers' gradients make one."""
        return float(self.update_samples.mean())

    def seconds_to(self, loss: float) -> float:
        """The time at which the loss was first at or below `loss`; infinite where it never was."""
        return self._first(loss, self.seconds)

    def updates_to(self, loss: float) -> float:
        """The number of updates after which the loss was first at or below `loss`; infinite where it never was."""
        return self._first(loss, self.update)

    def _first(self, loss: float, column: NDArray[Any]) -> float:
        reached = np.flatnonzero(self.loss <= loss)
        return float(column[reached[0]]) if len(reached) else math.inf

    def loss_at(self, seconds: float) -> float:
        """The last loss evaluated up to this time."""
        return float(self.loss[np.searchsorted(self.seconds, seconds, side="right") - 1])

    def to_pandas(self) -> pd.DataFrame:
        """The columns as a data frame."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in COLUMNS})
