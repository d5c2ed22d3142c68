"""Controls of an explorer. Each has a label, a unit and bounds, and sets one field of the explorer's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from distsim.explorers.inputs import Check, FloatRange, IntRange, Line, List, Steps


@dataclass(frozen=True)
class Slider:
    """A number between `low` and `high` in steps of `step`; whole numbers where `step` is an int."""

    field: str
    label: str
    unit: str
    low: float
    high: float
    step: float = 1

    @property
    def heading(self) -> str:
        """The text over the slider: label, unit, bounds.

        >>> Slider("workers", "workers", "", 2, 64).heading
        'workers (2 to 64)'
        """
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.label} ({self.low:g} to {self.high:g}{unit})"

    def widget(self, value: Any) -> widgets.Widget:
        """The slider at `value`. The slider reports when the user releases it."""
        kind = IntRange if isinstance(self.step, int) else FloatRange
        bounds = {"min": self.low, "max": self.high, "step": self.step}
        return kind(value=value, heading=self.heading, unit=self.unit, continuous_update=False, **bounds)


@dataclass(frozen=True)
class Choice:
    """One of a few values, in order. The widget shows `unit` after each value."""

    field: str
    label: str
    unit: str
    values: tuple[float, ...]

    @property
    def heading(self) -> str:
        """The text over the choice: label, unit, bounds."""
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.label} ({min(self.values):g} to {max(self.values):g}{unit})"

    def widget(self, value: Any) -> widgets.Widget:
        """A slider that stops at each value."""
        options = [(f"{option:g} {self.unit}".strip(), option) for option in self.values]
        return Steps(options=options, value=value, heading=self.heading, continuous_update=False)


@dataclass(frozen=True)
class Switch:
    """Yes or no."""

    field: str
    label: str

    @property
    def heading(self) -> str:
        """The text beside the box."""
        return self.label

    def widget(self, value: Any) -> widgets.Widget:
        """The checkbox."""
        return Check(value=value, heading=self.heading)


@dataclass(frozen=True)
class Pick:
    """One of a few words."""

    field: str
    label: str
    values: tuple[str, ...]

    @property
    def heading(self) -> str:
        """The text over the list."""
        return f"{self.label} (one of {len(self.values)})"

    def widget(self, value: Any) -> widgets.Widget:
        """A list that opens."""
        return List(options=self.values, value=value, heading=self.heading)


@dataclass(frozen=True)
class Text:
    """A line of text. hint: what to write, and the meaning of an empty line."""

    field: str
    label: str
    hint: str

    @property
    def heading(self) -> str:
        """The text over the line.

        >>> Text("calibration", "calibration file", "a path").heading
        'calibration file (a path)'
        """
        return f"{self.label} ({self.hint})"

    def widget(self, value: Any) -> widgets.Widget:
        """The line. It reports when the user presses Enter or leaves the line."""
        return Line(value=value, heading=self.heading, continuous_update=False)


Control = Slider | Choice | Switch | Pick | Text
