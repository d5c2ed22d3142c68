"""How each explorer is driven by keyboard alone, and what its figure then draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.explorer import Explorer

# What a figure draws, as text.
DATA = """plot => JSON.stringify([plot.data.map(trace => [trace.name, trace.x, trace.y, trace.z]),
    (plot.layout.sliders || []).map(slider => slider.active)])"""
PLACE = """element => {
    const active = document.activeElement;
    if (element === active) return "here";
    return active.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING ? "before" : "after";
}"""
MOST_TABS = 20

Move = tuple[str, str]  # the beginning of a control's label, a key


@dataclass(frozen=True)
class Drive:
    """How one explorer is driven. move: what changes its figure, and what is said of that.

    impossible: moves that lead to a combination which is refused with `refusal`, and one that leads out of it.
    """

    move: Move
    says: str
    impossible: tuple[Move, ...] = ()
    refusal: str = ""
    cure: Move = ("", "")


# Explorers with combinations that are refused.
_WITH_IMPOSSIBLE = {
    "backup_workers": Drive(
        ("backups (0", "ArrowRight"), "backups from 1 to 2", (("backups (0", "ArrowRight"),) * 3,
        "must be fewer than the 5 workers", ("backups (0", "ArrowLeft"),
    ),
    "ring_or_server": Drive(
        ("servers (1", "ArrowRight"), "servers from 1 to 2",
        (("servers run on", "Space"), *(("servers (1", "ArrowRight"),) * 5),
        "must be at most the 6 workers", ("workers, up to", "ArrowRight"),
    ),
    "failures": Drive(
        ("useful work between", "ArrowRight"), "useful work between checkpoints from 60 to 90",
        (("useful work between", "ArrowRight"),) * 5, "hardly lets a run get from one checkpoint to the next",
        ("useful work between", "ArrowLeft"),
    ),
    "race": Drive(
        ("learning rate", "ArrowRight"), "learning rate from 0.15 to 0.2",
        (("gradients an update waits", "ArrowRight"),) * 5, "must be at most the 8 workers",
        ("gradients an update waits", "ArrowLeft"),
    ),
    "your_cluster": Drive(
        ("workers (1", "ArrowRight"), "workers from 4 to 5",
        (("calibration file", "x"), ("calibration file", "Enter"), ("calibration file", "Backspace")),
        "cannot be read (No such file", ("calibration file", "Enter"),
    ),
}  # fmt: skip


def drive_of(name: str) -> Drive:
    """How the explorer of this name is driven: with nothing impossible, by its primary control alone."""
    if name in _WITH_IMPOSSIBLE:
        return _WITH_IMPOSSIBLE[name]
    entry = EXPLORERS[name]
    heading = entry.open().controls[entry.moves[0].field].heading
    return Drive((heading, "ArrowRight"), f"Changed {heading.split(' (')[0]} from ")


def values(view: Explorer[Any], field: str) -> tuple[Any, ...]:
    """All values of a control, in order; nothing for a line of text.

    >>> values(EXPLORERS["pipeline"].open(), "micro_batches")
    (1, 2, 4, 8, 16, 32)
    """
    return next(control.values for control in view.settings if control.field == field)


def control(explorer: Any, label: str) -> Any:
    """What takes the keys of the control with this beginning of a name."""
    heading = explorer.page.locator(".distsim-label", has_text=label)
    return explorer.locator(".distsim-control", has=heading).locator("input, select")


def press(page: Any, explorer: Any, move: Move) -> None:
    """Goes to the control by Tab, and presses the key."""
    label, key = move
    tab_to(page, control(explorer, label))
    page.keyboard.press(key)


def tab_to(page: Any, target: Any) -> None:
    """Tab, or Shift+Tab where the target stands before what has the focus."""
    for _ in range(MOST_TABS):
        where = target.evaluate(PLACE)
        if where == "here":
            return
        page.keyboard.press("Shift+Tab" if where == "before" else "Tab")
    pytest.fail("Tab does not lead to a control")
