"""A run and its loss, as `lanes_and_loss` tells of them at any moment: updates, loss and staleness so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distsim.arrays import Floats, Integers
from distsim.figures.loss_lines import Line
from distsim.figures.wording import counted
from distsim.learning.curve import Curve
from distsim.trace import NO_VERSION, Trace

SHAPES = ("M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z", "M-4.5,-4.5h9v9h-9z", "M0,-6l6,6l-6,6l-6,-6z",
          "M0,-5.5l5.5,9.5h-11z", "M-5,-1.7h3.3v-3.3h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3z")  # fmt: skip


@dataclass(frozen=True, eq=False)
class RunWithLoss:
    """One run of the race. number: its place among the runs, which gives its colour and its mark."""

    number: int
    name: str
    trace: Trace
    curve: Curve
    line: Line

    @cached_property
    def updates_seconds(self) -> Floats:
        """When each update was complete, on all servers, in the precision of the page."""
        updates = self.trace.updates
        times = np.zeros(int(updates.version.max(initial=0)))
        np.maximum.at(times, updates.version - 1, updates.time_seconds)
        return np.array([on_page(time) for time in np.sort(times)])

    @cached_property
    def staleness_tenths(self) -> Integers:
        """After each update, the mean staleness of all gradients in it and in those before, in tenths of an update."""
        used = self.trace.contributions
        used = used.where(used.applied & (used.version != NO_VERSION))
        sums, counts = (
            np.bincount(used.version - 1, weights, minlength=len(self.updates_seconds))
            for weights in (used.staleness.astype(np.float64), None)
        )
        means = np.cumsum(sums) / np.maximum(np.cumsum(counts), 1.0)
        return np.asarray(np.floor(10.0 * means + 0.5).astype(np.int64))

    @cached_property
    def losses(self) -> tuple[Integers, Floats]:
        """The number of updates before each loss, and the loss, in the precision of the page."""
        updates = self.curve.update[: len(self.line.loss)]
        return updates, np.array([float(f"{loss:.5g}") for loss in self.line.loss])

    def updates_at(self, seconds: float) -> int:
        """The number of updates so far."""
        return int(np.searchsorted(self.updates_seconds, seconds, side="right"))

    def staleness_at(self, seconds: float) -> float:
        """The mean staleness of all gradients so far, to a tenth."""
        updates = self.updates_at(seconds)
        return float(self.staleness_tenths[updates - 1]) / 10 if updates else 0.0

    def loss_at(self, seconds: float) -> float:
        """The last loss so far."""
        updates, losses = self.losses
        return float(losses[max(int(np.searchsorted(updates, self.updates_at(seconds), side="right")) - 1, 0)])

    def told(self, seconds: float) -> str:
        """One line about this moment."""
        updates = self.updates_at(seconds)
        loss = number_text(self.loss_at(seconds))
        return f"{counted(updates, 'update')}, loss {loss}, staleness {self.staleness_at(seconds):.1f}"

    def mark(self, x: str, y: float) -> str:
        """The mark of the run, as SVG."""
        shape = SHAPES[self.number % len(SHAPES)]
        return (
            f'<svg class="mark run-{self.number}" x="{x}" y="{y:.2f}"><path class="r{self.number}" d="{shape}"/></svg>'
        )


def on_page(seconds: float) -> float:
    """A moment in the precision of the page, which keeps the page small."""
    return float(f"{seconds:.8g}")


def number_text(value: float) -> str:
    """Three digits, as the script writes them.

    >>> number_text(0.004567), number_text(123.4), number_text(2e-8)
    ('0.00457', '123', '2e-8')
    """
    rounded = float(f"{value:.3g}")
    if rounded and not 1e-6 <= abs(rounded) < 1e21:
        mantissa, _, power = np.format_float_scientific(rounded, trim="-").partition("e")
        return f"{mantissa}e{int(power):+d}"
    return np.format_float_positional(rounded, trim="-")
