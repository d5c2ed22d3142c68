"""What changed, in one sentence: the moved controls, and the changes in the numbers of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from distsim.figures.captioned import Row, shown
from distsim.figures.wording import signed

Move = tuple[str, Any, Any]  # label, value before, value after


def sentence(moves: Iterable[Move], before: Sequence[Row], after: Sequence[Row], watched: Sequence[str]) -> str:
    """How the moved controls changed the `watched` columns of a table.

    >>> sentence([("backups", 1, 2)], [{"run": "a", "total (s)": 2.0}], [{"run": "a", "total (s)": 1.5}], ["total (s)"])
    'Changed backups from 1 to 2: a: total (s) 2 → 1.5 (-25 %).'
    """
    moved = [f"{label} from {_worded(old)} to {_worded(new)}" for label, old, new in moves if old != new]
    if not moved:
        return "Nothing changed."
    effects = _effects(before, after, watched)
    return f"Changed {', '.join(moved)}: {'; '.join(effects) if effects else 'no number in the table changed'}."


def _worded(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (value or "nothing") if isinstance(value, str) else f"{value:g}"


def _effects(before: Sequence[Row], after: Sequence[Row], watched: Sequence[str]) -> list[str]:
    """A phrase for each row with a watched number that differs; the row's first column names it."""
    effects = []
    for old, new in zip(before, after, strict=False):
        changes = [
            f"{column} {shown(old[column])} → {shown(new[column])}{_difference(column, old[column], new[column])}"
            for column in watched
            if shown(old[column]) != shown(new[column])  # engines differ in rounding: compare as printed
        ]
        if changes:
            effects.append(f"{next(iter(new.values()))}: {', '.join(changes)}")
    return effects


def _difference(column: str, old: Any, new: Any) -> str:
    """The change in brackets: points for a share in percent, nothing for a count, else percent of the old value."""
    if not isinstance(old, float) or not isinstance(new, float):
        return ""
    if column.endswith("(%)"):
        return f" ({signed(new - old, 'points')})"
    return f" ({signed(100.0 * (new - old) / old, '%')})" if old else ""
