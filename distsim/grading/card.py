"""Cards: how a notebook shows the result of a check, and the sum of all checks.

The value of a check is a number, the points: nbgrader and nbval read its text. A notebook shows the value's HTML, which
is the card. Styles stand in the elements and name no text colour, because a saved card must look right in a light and
in a dark page, on the site, and in a notebook that JupyterLab does not trust.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from distsim.grading.lab import TASKS
from distsim.grading.result import Result, shown

# Colours of a card's edge; each has a contrast of 3 or more on white and on black.
RIGHT, PARTLY, LOST, OPEN = "#009e73", "#b87a00", "#d55e00", "#8c8c8c"
BOX = "border: 1px solid #8c8c8c; border-left: 6px solid {colour}; padding: 6px 12px; margin: 4px 0; max-width: 760px"
MARK = "font-weight: bold; display: inline-block; width: 1.4em"
TERM = "display: inline-block; width: 6em; vertical-align: top"
VALUE = "display: inline-block; max-width: 600px; white-space: pre-wrap; vertical-align: top"
HINT = "hint"  # a reason in our own words; the other reasons are values


class Points(float):
    """The points of a check. Its text is the number; in a notebook it shows as a card.

    lines: what the card says, for a console: `print(chapter.check("share", share).lines)`.

    >>> Points(2, "sums: 2 of 2 points", "<div></div>")
    2.0
    """

    lines: str
    _html: str

    def __new__(cls, points: float, lines: str, html: str) -> Points:
        """A number with its card."""
        made = super().__new__(cls, points)
        made.lines, made._html = lines, html
        return made

    def __reduce__(self) -> tuple[type[Points], tuple[float, str, str]]:
        return Points, (float(self), self.lines, self._html)

    def _repr_html_(self) -> str:
        return self._html


@dataclass(frozen=True)
class Total:
    """The sum of the points of a chapter or a lab. done: the checks that ran; maxima: of all checks, by name.

    >>> Total("Chapter 02", {"sums": Result("sums", 2.0, 2.0)}, {"sums": 2.0, "shares": 3.0})
    2 of 5 points
    """

    title: str
    done: Mapping[str, Result]
    maxima: Mapping[str, float]

    @property
    def points(self) -> float:
        """The points of all checks that ran."""
        return round(sum(result.points for result in self.done.values()), 2)

    @property
    def maximum(self) -> float:
        """The most points that all checks give together."""
        return sum(self.maxima.values())

    def __repr__(self) -> str:
        return f"{shown(self.points)} of {_counted(self.maximum)}"

    def line(self) -> str:
        """The sum in one line, for the foot of a card."""
        return f"{self.title} so far: {self!r}"

    def _repr_html_(self) -> str:
        head = f"{self.title}: {self!r}"
        rows = [self._row(name, most) for name, most in self.maxima.items()]
        colour = RIGHT if self.points >= self.maximum else PARTLY if self.points else OPEN
        return _box(colour, head, [f"<b>{escape(head)}</b>", *rows])

    def _row(self, name: str, most: float) -> str:
        result = self.done.get(name)
        if result is None:
            return f"{_mark('○')}{_title(name)}: not checked yet, {_counted(most)}"
        return f"{_mark(_sign(result)[0])}{_title(name)}: {_score(result)}"


def card(result: Result, total: Total, because: str = "") -> Points:
    """The points of a result, shown as a card. because: a sentence for a result with all points."""
    lines, parts = result.text(), [_reason(name, text) for name, text in result.reasons.items()]
    if result.how and HINT in result.reasons:
        parts.append(f'<details><summary style="cursor: pointer">how</summary>{_prose(result.how)}</details>')
    if because and result.full:
        lines, parts = f"{lines}\n  {because}", [_prose(because)]
    return Points(result.points, lines, _of(result, [*parts, escape(total.line())]))


def broken(result: Result, total: Total, source: str) -> Points:
    """The card of a check that failed because tasks.py cannot be imported. source: the faulty line; "" if unknown."""
    parts = [f"<code>{TASKS}</code> cannot be imported, so no check can run:", _value(result.import_fault)]
    if source:
        parts.append(f'<pre style="margin: 4px 0; padding-left: 1.4em">{escape(source)}</pre>')
    parts += ["Mend this, save the file, and run the checks again.", escape(total.line())]
    return Points(result.points, result.text(), _of(result, parts))


def pointer(result: Result, total: Total, told: str) -> Points:
    """The card of a check that failed for the reason that the card of the check `told` says."""
    lines = f"{result.check}: {_score(result)}\n  {TASKS} cannot be imported; {told} says why"
    said = f"Not run: <code>{TASKS}</code> cannot be imported. The card of <b>{_title(told)}</b> says why."
    return Points(result.points, lines, _of(result, [said, escape(total.line())]))


def _of(result: Result, parts: Iterable[str]) -> str:
    label = f"Check {result.check.replace('_', ' ')}: {_score(result)}"
    sign, colour = _sign(result)
    return _box(colour, label, [f"{_mark(sign)}<b>{_title(result.check)}</b>: {_score(result)}", *parts])


def _box(colour: str, label: str, parts: Iterable[str]) -> str:
    rows = "".join(f"<div>{part}</div>" for part in parts)
    style = BOX.format(colour=colour)
    return f'<div class="distsim-card" role="group" aria-label="{escape(label)}" style="{style}">{rows}</div>'


def _score(result: Result) -> str:
    return f"{shown(result.points)} of {_counted(result.maximum)}"


def _counted(points: float) -> str:
    return f"{shown(points)} point{'' if points == 1 else 's'}"


def _title(name: str) -> str:
    return escape(name.replace("_", " "))


def _sign(result: Result) -> tuple[str, str]:
    """A sign and a colour for a result."""
    if result.full:
        return "✓", RIGHT
    if result.points:
        return "◐", PARTLY
    return ("○", OPEN) if result.open else ("✗", LOST)


def _mark(sign: str) -> str:
    """A sign that repeats the words beside it, so a screen reader skips it."""
    return f'<span aria-hidden="true" style="{MARK}">{sign}</span>'


def _reason(name: str, text: str) -> str:
    told = _prose(text) if name == HINT else _value(text)
    return f'<span style="{TERM}">{escape(name)}:</span> <span style="{VALUE}">{told}</span>'


def _value(text: str) -> str:
    """Text that may come from a student. MathJax leaves code alone, so a dollar sign stays one."""
    return f'<code style="white-space: pre-wrap">{escape(text)}</code>'


def _prose(text: str) -> str:
    """A sentence of ours; words in backticks are code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
