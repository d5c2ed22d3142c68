"""Controls of an explorer. Each has a label, a unit and bounds, and sets one field of the explorer's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from distsim.explorers.inputs import Check, FloatRange, IntRange, Line, List, Steps

DECIMALS = 9  # of a slider's values, whose steps would add up their rounding


def with_unit(value: float, unit: str) -> str:
    """A value as a control shows and announces it.

    >>> with_unit(2.0, "days"), with_unit(1.0, "days"), with_unit(1.0, "Gbit/s"), with_unit(1, "")
    ('2 days', '1 day', '1 Gbit/s', '1')
    """
    return f"{value:g} {unit_of(value, unit)}".strip()


def unit_of(value: float, unit: str) -> str:
    """The unit after a value: after 1, a noun is in the singular. A symbol such as us or Gbit/s has no plural.

    >>> unit_of(1, "samples"), unit_of(1, "times as long"), unit_of(1, "us"), unit_of(1, "Gbit/s")
    ('sample', 'time as long', 'us', 'Gbit/s')
    """
    noun, space, rest = unit.partition(" ")
    singular = value == 1 and noun.isalpha() and len(noun) > len("us")
    return f"{noun.removesuffix('s') if singular else noun}{space}{rest}"


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

    @property
    def values(self) -> tuple[float, ...]:
        """All values, from the least to the largest.

        >>> Slider("cv", "spread", "", 0.0, 0.3, 0.1).values
        (0.0, 0.1, 0.2, 0.3)
        """
        count, kind = round((self.high - self.low) / self.step), type(self.step)
        return tuple(kind(round(self.low + place * self.step, DECIMALS)) for place in range(count + 1))

    def widget(self, value: Any) -> widgets.Widget:
        """The slider at `value`. The slider reports when the user releases it."""
        kind = IntRange if isinstance(self.step, int) else FloatRange
        bounds = {"min": self.low, "max": self.high, "step": self.step}
        units = {"unit": self.unit, "unit_of_one": unit_of(1, self.unit)}
        return kind(value=value, heading=self.heading, continuous_update=False, **units, **bounds)


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
        options = [(with_unit(option, self.unit), option) for option in self.values]
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

    @property
    def values(self) -> tuple[bool, ...]:
        """Both values."""
        return (False, True)

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

    @property
    def values(self) -> tuple[str, ...]:
        """Empty: any text may be written."""
        return ()

    def widget(self, value: Any) -> widgets.Widget:
        """The line. It reports when the user presses Enter or leaves the line."""
        return Line(value=value, heading=self.heading, continuous_update=False)


Control = Slider | Choice | Switch | Pick | Text
