"""The pictures of `lanes_and_loss` at one moment, as SVG: the lanes of a run's workers, and the losses of all runs.

All pictures have one axis of time, which shows one page of the runs. Places along it are percentages or, within a plot,
`UNITS`, so that a picture fits any width; heights are pixels. Names hang out of the picture at its left. The page's
script moves the elements that change; it reads all places from `content`, so that the layout is here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from distsim.arrays import Floats, Integers
from distsim.figures.loss_lines import Line
from distsim.figures.theme import APPLY, COMMUNICATION, COMPUTE, Look
from distsim.figures.timeline_bars import bars, row_of, rows
from distsim.figures.wording import counted, time_unit
from distsim.learning.curve import Curve
from distsim.trace import NO_VERSION, Trace

UNITS = 10_000  # of the whole axis
BLOCKS = 32  # bars are paths of a part of the axis, so that the browser passes over those out of sight
DRAWN: dict[Look, str] = {COMPUTE: "compute", COMMUNICATION: "communication", APPLY: "apply"}
HEAD, FOOT = 40, 44  # pixels above lanes or losses, and below losses
LANES, LEAST_ROW, MOST_ROW = 128, 4, 14  # pixels of all lanes of a run, and of a lane
LOSSES = 210  # pixels
NAMED_FROM = 11  # lanes of so many pixels have names
ROOM = 0.06  # above and below the losses, as a share of the plot
LOG_FROM = 10.0  # the largest loss over the least; beyond this ratio the axis is logarithmic
MANY_UPDATES = 120  # of a page; if there are more, their marks are short
TICKS = 6
SHAPES = ("M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z", "M-4.5,-4.5h9v9h-9z", "M0,-6l6,6l-6,6l-6,-6z",
          "M0,-5.5l5.5,9.5h-11z", "M-5,-1.7h3.3v-3.3h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3z")  # fmt: skip
ZOOMS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Clock:
    """The axis of time, in pages. zoom: how many pages the runs have."""

    end_seconds: float
    zoom: int = 1

    def page(self, seconds: float) -> tuple[float, float]:
        """The start and the end of the page with this moment, as shares of the axis."""
        number = min(math.floor(seconds / self.end_seconds * self.zoom), self.zoom - 1)
        return number / self.zoom, (number + 1) / self.zoom

    def place(self, seconds: float) -> float:
        """The place of a moment on its page, in percent."""
        start, end = self.page(seconds)
        return 100.0 * (seconds / self.end_seconds - start) / (end - start)

    def ticks(self, zoom: int) -> tuple[float, int]:
        """The step from tick to tick in the axis's unit, and its decimals."""
        rough = self.end_seconds * time_unit(self.end_seconds)[0] / zoom / TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(step for step in (1.0, 2.0, 5.0, 10.0) if step * power >= rough * (1 - 1e-9)) * power
        return step, max(-math.floor(math.log10(step) + 1e-9), 0)

    def content(self) -> dict[str, Any]:
        """The axis, as JSON."""
        scale, unit = time_unit(self.end_seconds)
        ticks = {zoom: self.ticks(zoom) for zoom in ZOOMS}
        return {"end": self.end_seconds, "zoom": self.zoom, "units": UNITS, "perSecond": scale, "unit": unit,
                "ticks": ticks}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Run:
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
    def ages_tenths(self) -> Integers:
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

    def age_at(self, seconds: float) -> float:
        """The mean staleness of all gradients so far, to a tenth."""
        updates = self.updates_at(seconds)
        return float(self.ages_tenths[updates - 1]) / 10 if updates else 0.0

    def loss_at(self, seconds: float) -> float:
        """The last loss so far."""
        updates, losses = self.losses
        return float(losses[max(int(np.searchsorted(updates, self.updates_at(seconds), side="right")) - 1, 0)])

    def told(self, seconds: float) -> str:
        """One line about this moment."""
        updates = self.updates_at(seconds)
        loss = number_text(self.loss_at(seconds))
        return f"{counted(updates, 'update')}, loss {loss}, staleness {self.age_at(seconds):.1f}"


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


@dataclass(frozen=True, eq=False)
class LanesScene:
    """The lanes of a run: a row for each worker and two for each server."""

    run: Run
    clock: Clock
    moments_seconds: Sequence[float] = ()  # to which steps go

    @property
    def row_pixels(self) -> int:
        """The height of a row."""
        return int(np.clip(LANES // rows(self.run.trace), LEAST_ROW, MOST_ROW))

    @property
    def lanes_pixels(self) -> int:
        """The height of all rows."""
        return self.row_pixels * rows(self.run.trace)

    @property
    def height(self) -> int:
        """The height of the picture."""
        return HEAD + self.lanes_pixels + 6

    def content(self) -> dict[str, Any]:
        """What the script needs, as JSON."""
        run = self.run
        return {
            "name": run.name,
            "updates": run.updates_seconds.tolist(),
            "ages": self.run.ages_tenths.tolist(),
            "evaluated": self.run.losses[0].tolist(),
            "losses": self.run.losses[1].tolist(),
            "moments": [float(one) for one in self.moments_seconds],
        }

    def svg(self, seconds: float, place: str = 'width="100%"') -> str:
        """The picture at this moment. place: attributes that place it in another picture."""
        run = self.run
        workers, servers = run.trace.workers, run.trace.servers
        ranks = counted(workers, "worker") + (f" and {counted(servers, 'server')}" if servers else "")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {place} class="distsim-lanes run-{run.number}" '
            f'height="{self.height}" role="img" aria-label="{escape(run.name)}: lanes of {ranks}">'
            f'{_mark(run.number, "0", 12)}<text class="name" x="12" y="17">{escape(run.name)}</text>'
            f'<text class="told" x="0" y="34">{escape(run.told(seconds))}</text>'
            f'<rect class="ground" y="{HEAD}" width="100%" height="{self.lanes_pixels}"/>'
            f"{self._plot(seconds)}{self._names()}"
            f"{over(self.clock.place(seconds), HEAD, self.lanes_pixels)}</svg>"
        )

    def _plot(self, seconds: float) -> str:
        return (
            f'<svg class="plot" y="{HEAD}" width="100%" height="{self.lanes_pixels}" preserveAspectRatio="none" '
            f'viewBox="{view(self.clock, seconds, self.lanes_pixels)}">{"".join(self._bars())}{self._updates()}</svg>'
        )

    def _bars(self) -> list[str]:
        found = []
        for look, own in bars(self.run.trace, 0.0, self.clock.end_seconds).items():
            if look not in DRAWN:
                continue
            left, right = self._units(own.start_seconds), self._units(own.end_seconds)
            top = np.round((own.middle - own.height / 2 + 0.5) * self.row_pixels).astype(np.int64)
            tall = np.maximum(np.round(own.height * self.row_pixels), 1.0).astype(np.int64)
            order = np.lexsort((left, top))
            order = order[right[order] > left[order]]
            for block in range(BLOCKS):
                path, before = [], (0, 0)
                for one in order[left[order] * BLOCKS // (UNITS + 1) == block]:
                    width = right[one] - left[one]
                    path.append(f"m{left[one] - before[0]},{top[one] - before[1]}h{width}v{tall[one]}h-{width}z")
                    before = left[one], top[one]
                found += [f'<path class="{DRAWN[look]}" d="{"".join(path)}"/>'] if path else []
        return found

    def _updates(self) -> str:
        """A line at each update; a short mark where there are many."""
        times = self._units(self.run.updates_seconds)
        tall = self.lanes_pixels if len(times) <= MANY_UPDATES * self.clock.zoom else 3
        return f'<path class="update" d="{"".join(f"M{time},0v{tall}" for time in times)}"/>'

    def _units(self, seconds: Floats) -> Integers:
        return np.round(seconds / self.clock.end_seconds * UNITS).astype(np.int64)

    def _names(self) -> str:
        trace, row = self.run.trace, self.row_pixels
        if row < NAMED_FROM:
            middle = HEAD + trace.workers * row / 2 + 4
            lane = f'<text class="lane" x="-6" y="{middle:.0f}">workers</text>'
            name, lowest = "servers" if trace.servers > 1 else "server", HEAD + self.lanes_pixels - row + 4
            servers = f'<text class="lane" x="-6" y="{lowest}">{name}</text>'
            return lane + (servers if trace.servers else "")
        return "".join(
            f'<text class="lane" x="-6" y="{y:.1f}">{trace.lane(rank)}</text>'
            for rank in range(trace.workers + trace.servers)
            for y in [HEAD + (row_of(trace, rank) + 0.5) * row + 4]
        )


@dataclass(frozen=True, eq=False)
class LossScene:
    """The losses of all runs. target: the loss that all reach, if any."""

    runs: Sequence[Run]
    clock: Clock
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
            f'<text class="axis" x="100%" y="{HEAD + LOSSES + 36}">time ({time_unit(self.clock.end_seconds)[1]})</text>'
            f"{over(self.clock.place(seconds), HEAD, LOSSES, dots + self._target())}</svg>"
        )

    def _dot(self, run: Run, seconds: float) -> str:
        """The mark of a run, at its loss."""
        return _mark(run.number, f"{self.clock.place(seconds):.3f}%", float(self.y(run.loss_at(seconds))))

    def _ticks(self, seconds: float) -> str:
        (start, end), (step, decimals) = self.clock.page(seconds), self.clock.ticks(self.clock.zoom)
        whole = self.clock.end_seconds * time_unit(self.clock.end_seconds)[0]
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
            x = np.concatenate([[0.0], run.updates_seconds])[updates] / self.clock.end_seconds * UNITS
            y = self.y(losses)
            stairs = "".join(f"H{one:.0f}V{other:.1f}" for one, other in zip(x, y, strict=True))
            path = f"M{x[0]:.0f},{y[0]:.1f}{stairs}"
            lines.append(f'<path class="loss run-{run.number} r{run.number}" d="{path}"/>')
        return (
            f'<svg class="plot" y="{HEAD}" width="100%" height="{LOSSES}" preserveAspectRatio="none" '
            f'viewBox="{view(self.clock, seconds, LOSSES)}">{"".join(lines)}</svg>'
        )


def leader(runs: Sequence[Run], seconds: float) -> str:
    """One line about who has the lowest loss at this moment."""
    losses = [run.loss_at(seconds) for run in runs]
    lowest = min(losses)
    first = [run.name for run, loss in zip(runs, losses, strict=True) if loss == lowest]
    if len(first) > 1:
        return "no run leads"
    return f"{first[0]} has the lowest loss: {number_text(lowest)}" if len(runs) > 1 else f"{number_text(lowest)}"


def view(clock: Clock, seconds: float, pixels: int) -> str:
    """The `viewBox` of a plot that shows the page with this moment."""
    start, end = clock.page(seconds)
    return f"{start * UNITS:g} 0 {(end - start) * UNITS:g} {pixels}"


def over(place: float, top: int, pixels: int, more: str = "") -> str:
    """What moves in every frame: a veil over the future, and the cursor, `place` percent along the axis."""
    return (
        f'<g class="over"><svg y="{top}" width="100%" height="{pixels}"><rect class="future" x="{place:.3f}%" '
        f'width="100%" height="{pixels}"/></svg>'
        f'<line class="cursor" x1="{place:.3f}%" x2="{place:.3f}%" y1="{top - 4}" y2="{top + pixels + 6}"/>'
        f'<svg class="marks" y="{top}">{more}</svg></g>'
    )


def _mark(number: int, x: str, y: float) -> str:
    """The mark of a run."""
    shape = SHAPES[number % len(SHAPES)]
    return f'<svg class="mark run-{number}" x="{x}" y="{y:.2f}"><path class="r{number}" d="{shape}"/></svg>'
