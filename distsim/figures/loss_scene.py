"""The picture of the losses of all runs at one moment, as SVG, for `lanes_and_loss`.

Heights are pixels; places along the axis are those of `PagedAxis`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from distsim.figures.paged_axis import UNITS, PagedAxis
from distsim.figures.run_with_loss import RunWithLoss, number_text
from distsim.figures.wording import counted, time_unit

HEAD, LOSSES, FOOT = 40, 210, 44  # pixels above the losses, of the losses, and below
ROOM = 0.06  # above and below the losses, as a share of the plot
LOG_FROM = 10.0  # the largest loss over the least; beyond this ratio the axis is logarithmic


@dataclass(frozen=True, eq=False)
class LossScene:
    """The losses of all runs. target: the loss that all reach, if any."""

    runs: Sequence[RunWithLoss]
    axis: PagedAxis
    target: float | None

    height = HEAD + LOSSES + FOOT

    @cached_property
    def span(self) -> tuple[float, float, bool]:
        """The lowest and the highest loss of the axis, and whether it is logarithmic."""
        every = np.concatenate([run.losses[1] for run in self.runs])
        low, high = float(every.min()), float(every.max())
        logarithmic = low > 0.0 and high / low > LOG_FROM
        if logarithmic:
            room = (high / low) ** ROOM
            return low / room, high * room, True
        room = ROOM * ((high - low) or abs(high) or 1.0)
        return low - room, high + room, False

    def y(self, loss: Any) -> Any:
        """The place of a loss in the plot, in pixels from its top; `loss` may be an array."""
        low, high, logarithmic = self.span
        share = np.log(loss / low) / math.log(high / low) if logarithmic else (loss - low) / (high - low)
        return LOSSES * (1.0 - share)

    def content(self) -> dict[str, Any]:
        """The axis of losses, as JSON."""
        low, high, logarithmic = self.span
        return {"low": low, "high": high, "logarithmic": logarithmic, "top": HEAD, "pixels": LOSSES}

    def svg(self, seconds: float, place: str = 'width="100%"') -> str:
        """The picture at this moment. place: attributes that place it in another picture."""
        dots = "".join(self._dot(run, seconds) for run in self.runs)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {place} class="distsim-lanes losses" height="{self.height}" '
            f'role="img" aria-label="losses of {counted(len(self.runs), "run")}">'
            f'<text class="name" x="0" y="17">loss over all samples</text>'
            f'<text class="told" x="0" y="34">{escape(leader(self.runs, seconds))}</text>'
            f'<svg class="ticks" y="{HEAD}" width="100%" height="{LOSSES}">{self._ticks(seconds)}</svg>'
            f"{self._levels()}{self._plot(seconds)}"
            f'<text class="axis" x="100%" y="{HEAD + LOSSES + 36}">time ({time_unit(self.axis.end_seconds)[1]})</text>'
            f"{self.axis.over(seconds, HEAD, LOSSES, dots + self._target())}</svg>"
        )

    def _dot(self, run: RunWithLoss, seconds: float) -> str:
        """The mark of a run, at its loss."""
        return run.mark(f"{self.axis.place(seconds):.3f}%", float(self.y(run.loss_at(seconds))))

    def _ticks(self, seconds: float) -> str:
        (start, end), (step, decimals) = self.axis.page(seconds), self.axis.ticks(self.axis.zoom)
        whole = self.axis.end_seconds * time_unit(self.axis.end_seconds)[0]
        first, last = math.ceil(start * whole / step - 1e-9), math.floor(end * whole / step + 1e-9)
        found = []
        for number in range(first, last + 1):
            x = f"{100 * (number * step / whole - start) / (end - start):.3f}%"
            found.append(
                f'<line x1="{x}" x2="{x}" y1="0" y2="{LOSSES}"/>'
                f'<text x="{x}" y="{LOSSES + 17}">{number * step:.{decimals}f}</text>'
            )
        return "".join(found)

    def _levels(self) -> str:
        """Lines across the plot with their losses, and the target."""
        found = [
            f'<line class="level" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="lane" x="-6" y="{y + 4:.1f}">{number_text(level)}</text>'
            for level in self._round_losses()
            for y in [HEAD + float(self.y(level))]
        ]
        if self.target is not None:
            y = HEAD + float(self.y(self.target))
            found.append(f'<line class="target" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        return "".join(found)

    def _target(self) -> str:
        """The name of the target's line, above the veil."""
        if self.target is None:
            return ""
        y = float(self.y(self.target)) - 5
        who = "all" if all(run.line.whole for run in self.runs) else "others"
        return f'<text class="target" x="100%" y="{y:.1f}">{who} reach {number_text(self.target)}</text>'

    def _round_losses(self) -> list[float]:
        low, high, logarithmic = self.span
        if logarithmic:
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            many = high / low > 10.0**3.5
            every = [factor * 10.0**power for power in powers for factor in ((1,) if many else (1, 2, 5))]
        else:
            rough = (high - low) / 4
            power = 10.0 ** math.floor(math.log10(rough))
            step = next(step for step in (1.0, 2.0, 5.0, 10.0) if step * power >= rough) * power
            every = [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
        return [level for level in every if low <= level <= high]

    def _plot(self, seconds: float) -> str:
        lines = []
        for run in self.runs:
            updates, losses = run.losses
            x = np.concatenate([[0.0], run.updates_seconds])[updates] / self.axis.end_seconds * UNITS
            y = self.y(losses)
            stairs = "".join(f"H{one:.0f}V{other:.1f}" for one, other in zip(x, y, strict=True))
            path = f"M{x[0]:.0f},{y[0]:.1f}{stairs}"
            lines.append(f'<path class="loss run-{run.number} r{run.number}" d="{path}"/>')
        return (
            f'<svg class="plot" y="{HEAD}" width="100%" height="{LOSSES}" preserveAspectRatio="none" '
            f'viewBox="{self.axis.view(seconds, LOSSES)}">{"".join(lines)}</svg>'
        )


def leader(runs: Sequence[RunWithLoss], seconds: float) -> str:
    """One line about who has the lowest loss at this moment; empty for one run."""
    if len(runs) == 1:
        return ""
    losses = [run.loss_at(seconds) for run in runs]
    first = [run.name for run, loss in zip(runs, losses, strict=True) if loss == min(losses)]
    return f"{first[0]} has the lowest loss: {number_text(min(losses))}" if len(first) == 1 else "no run leads"
