"""The axis of time of `lanes_and_loss`: all pictures of the figure show one page of it, with one cursor.

Places along the axis are percentages or, within a plot, `UNITS`, so that a picture fits any width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from distsim.figures.wording import time_unit

UNITS = 10_000  # of the whole axis
ZOOMS = (1, 2, 4, 8, 16, 32)
TICKS = 6


@dataclass(frozen=True)
class PagedAxis:
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

    def view(self, seconds: float, pixels: int) -> str:
        """The `viewBox` of a plot of this height that shows the page with this moment."""
        start, end = self.page(seconds)
        return f"{start * UNITS:g} 0 {(end - start) * UNITS:g} {pixels}"

    def over(self, seconds: float, top: int, pixels: int, more: str = "") -> str:
        """What moves in every frame over a plot at `top`: a veil over the future, the cursor, and `more`."""
        place = self.place(seconds)
        return (
            f'<g class="over"><svg y="{top}" width="100%" height="{pixels}"><rect class="future" x="{place:.3f}%" '
            f'width="100%" height="{pixels}"/></svg>'
            f'<line class="cursor" x1="{place:.3f}%" x2="{place:.3f}%" y1="{top - 4}" y2="{top + pixels + 6}"/>'
            f'<svg class="marks" y="{top}">{more}</svg></g>'
        )

    def content(self) -> dict[str, Any]:
        """The axis, as JSON."""
        scale, unit = time_unit(self.end_seconds)
        ticks = {zoom: self.ticks(zoom) for zoom in ZOOMS}
        return {"end": self.end_seconds, "zoom": self.zoom, "units": UNITS, "perSecond": scale, "unit": unit,
                "ticks": ticks}  # fmt: skip
