"""The picture of the lanes of one run's workers and servers at one moment, as SVG, for `lanes_and_loss`.

Heights are pixels; places along the axis are those of `PagedAxis`. Names hang out of the picture at its left. The
page's script moves the elements that change; it reads what it needs from `content`, so that the layout is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from distsim.arrays import Floats, Integers
from distsim.figures.paged_axis import UNITS, PagedAxis
from distsim.figures.run_with_loss import RunWithLoss
from distsim.figures.theme import APPLY, COMMUNICATION, COMPUTE, Look
from distsim.figures.timeline_bars import bars, row_of, rows
from distsim.figures.wording import counted

BLOCKS = 32  # bars are paths of a part of the axis, so that the browser passes over those out of sight
DRAWN: dict[Look, str] = {COMPUTE: "compute", COMMUNICATION: "communication", APPLY: "apply"}
HEAD = 40  # pixels above the lanes
LANES, LEAST_ROW, MOST_ROW = 128, 4, 14  # pixels of all lanes of a run, and of a lane
NAMED_FROM = 11  # lanes of so many pixels have names
MANY_UPDATES = 120  # of a page; if there are more, their marks are short


@dataclass(frozen=True, eq=False)
class LanesScene:
    """The lanes of a run: a row for each worker and two for each server."""

    run: RunWithLoss
    axis: PagedAxis
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
            "staleness": run.staleness_tenths.tolist(),
            "evaluated": run.losses[0].tolist(),
            "losses": run.losses[1].tolist(),
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
            f'{run.mark("0", 12)}<text class="name" x="12" y="17">{escape(run.name)}</text>'
            f'<text class="told" x="0" y="34">{escape(run.told(seconds))}</text>'
            f'<rect class="ground" y="{HEAD}" width="100%" height="{self.lanes_pixels}"/>'
            f"{self._plot(seconds)}{self._names()}"
            f"{self.axis.over(seconds, HEAD, self.lanes_pixels)}</svg>"
        )

    def _plot(self, seconds: float) -> str:
        return (
            f'<svg class="plot" y="{HEAD}" width="100%" height="{self.lanes_pixels}" preserveAspectRatio="none" '
            f'viewBox="{self.axis.view(seconds, self.lanes_pixels)}">{"".join(self._bars())}{self._updates()}</svg>'
        )

    def _bars(self) -> list[str]:
        found = []
        for look, own in bars(self.run.trace, 0.0, self.axis.end_seconds).items():
            if look not in DRAWN:
                continue
            left, right = self._units(own.start_seconds), self._units(own.end_seconds)
            top = np.round((own.middle - own.height / 2 + 0.5) * self.row_pixels).astype(np.int64)
            tall = np.maximum(np.round(own.height * self.row_pixels), 1.0).astype(np.int64)
            order = np.lexsort((left, top))
            order = order[right[order] > left[order]]
            # A measured run's first spans may begin a moment before the start of the clock.
            blocks = np.clip(left[order] * BLOCKS // UNITS, 0, BLOCKS - 1)
            for block in range(BLOCKS):
                path, before = [], (0, 0)
                for one in order[blocks == block]:
                    width = right[one] - left[one]
                    path.append(f"m{left[one] - before[0]},{top[one] - before[1]}h{width}v{tall[one]}h-{width}z")
                    before = left[one], top[one]
                found += [f'<path class="{DRAWN[look]}" d="{"".join(path)}"/>'] if path else []
        return found

    def _updates(self) -> str:
        """A line at each update; a short mark where there are many."""
        times = self._units(self.run.updates_seconds)
        tall = self.lanes_pixels if len(times) <= MANY_UPDATES * self.axis.zoom else 3
        return f'<path class="update" d="{"".join(f"M{time},0v{tall}" for time in times)}"/>'

    def _units(self, seconds: Floats) -> Integers:
        return np.round(seconds / self.axis.end_seconds * UNITS).astype(np.int64)

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
