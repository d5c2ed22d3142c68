"""The explorers of the site, which move without Python: `make site` computes a figure for every setting beforehand.

A setting is a combination of the stops of the controls that `EXPLORERS` names for the site. Each setting shows the
figure, the sentence and the table of the live explorer, or the reason that the live explorer gives for having none.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from html import escape
from itertools import product
from math import prod
from typing import Any

from distsim.course.site.packing import packed, plain
from distsim.errors import InputError
from distsim.explorers.catalogue import EXPLORERS, Entry, Move
from distsim.explorers.controls import Choice, Control, Pick, Slider, with_unit
from distsim.figures.captioned import PLOTLY_MIME, table_html
from distsim.figures.wording import counted
from distsim.progress import progress

LEAD = "Guess before you move a control. The sentence above the figure tells the result."
MOVING = "distsim-moving"  # the class of the element that holds an explorer


@dataclass(frozen=True)
class Mover:
    """A control of the page. stops: its values, from the first. start: the place of the first value shown."""

    control: Slider | Choice | Pick
    stops: tuple[Any, ...]
    start: int

    def text(self, stop: Any) -> str:
        """A stop with its unit.

        >>> mover = Moving.of(EXPLORERS["backup_workers"]).movers[0]
        >>> mover.text(1), mover.text(2)
        ('1 worker', '2 workers')
        """
        if isinstance(self.control, Pick):
            return str(stop)
        return with_unit(stop, self.control.unit)


@dataclass(frozen=True)
class Moving:
    """An explorer of the site.

    movers: the controls that choose a setting. frames: the control that leads through the frames of the setting's
    figure, if the figure is animated. others: the labels of the controls that only the live explorer has.
    """

    entry: Entry
    movers: tuple[Mover, ...]
    frames: Mover | None
    others: tuple[str, ...]
    runs_for_real: bool

    @classmethod
    def of(cls, entry: Entry) -> Moving:
        """Raises ValueError where a stop is not a value of the live control, or the first value is not a stop."""
        view = entry.open()
        controls = {control.field: control for control in view.settings}
        movers = tuple(_mover(controls[move.field], move, getattr(entry.start(), move.field)) for move in entry.moves)
        frames = _mover(controls[entry.frames], Move(entry.frames), 0) if entry.frames else None
        fields = [*(move.field for move in entry.moves), entry.frames]
        others = tuple(control.label for control in view.settings if control.field not in fields)
        return cls(entry, movers, frames, others, view.runs_for_real)

    def settings(self) -> list[dict[str, Any]]:
        """The values of the fields in each setting; the last control changes fastest.

        >>> found = Moving.of(EXPLORERS["pipeline"]).settings()
        >>> found[0], len(found)
        ({'micro_batches': 1, 'stages': 1, 'schedule': 'gpipe'}, 96)
        """
        fields = [mover.control.field for mover in self.movers]
        return [dict(zip(fields, stops, strict=True)) for stops in product(*(mover.stops for mover in self.movers))]

    def html(self, found: Sequence[Mapping[str, Any]]) -> str:
        """The element of the page. found: for each setting, the result of `explored`."""
        first = 0
        for mover in self.movers:
            first = first * len(mover.stops) + mover.start
        controls = "".join(_control_html(mover) for mover in self.movers)
        controls += "" if self.frames is None else _control_html(self.frames, "distsim-frames")
        title = escape(self.entry.title, quote=True)
        return (
            f'<p class="distsim-lead">{LEAD}</p><div class="{MOVING}" role="group" aria-label="{title}">'
            f'<div class="distsim-movers">{controls}<button type="button" disabled>first values</button></div>'
            f'<p class="distsim-summary" role="status">{escape(found[first]["sentence"])}</p>'
            '<div class="distsim-figure" role="figure" tabindex="0"></div>'
            f'<div class="distsim-numbers">{found[first]["table"]}</div>'
            f'<script type="application/octet-stream">{packed(found)}</script></div>'
            f'<p class="distsim-note">{self._note()}</p>'
        )

    def _note(self) -> str:
        """The abilities of the live explorer that this page lacks."""
        count = prod(len(mover.stops) for mover in self.movers)
        shows, real = "shows the scenario of each figure", "runs the scenario for real on your machine"
        able = f"{shows}, and {real}" if self.runs_for_real else f"and {shows}"
        return (
            f"The code of the live explorer computed the {count} settings of this page. The live explorer takes the "
            f"values between them, has {counted(len(self.others), 'more control')} ({escape('; '.join(self.others))}), "
            f"{able}. <code>distsim course --app</code> opens it."
        )


def explored(entry: Entry, values: Mapping[str, Any]) -> dict[str, Any]:
    """One setting: its figure as plotly's JSON, its sentence and its table as HTML; or the reason why it is refused."""
    try:
        found = entry.explore(values)
    except InputError as error:
        return {"refused": str(error)}
    figure = plain(found.bundle()[PLOTLY_MIME])
    if entry.frames:
        figure["layout"].pop("sliders")  # the page has a slider of its own, for the keyboard too
    return {
        "figure": figure,
        "sentence": found.summary,
        "table": table_html(found.table),
    }


def pages(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The name and the HTML of each explorer. All settings are computed on all cores, in processes of their own."""
    explorers = [Moving.of(EXPLORERS[name]) for name in names]
    work = [(one.entry.name, values) for one in explorers for values in one.settings()]
    if not work:
        return
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        found = progress(pool.map(_explored, work), "computing the explorers", len(work))
        for one in explorers:
            yield one.entry.name, one.html([next(found) for _ in one.settings()])


def _explored(work: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    name, values = work
    return explored(EXPLORERS[name], values)


def _mover(control: Control, move: Move, start: Any) -> Mover:
    if not isinstance(control, (Slider, Choice, Pick)):
        raise ValueError(f"{move.field} is no slider, choice or pick")
    every = tuple(control.values)
    stops = move.stops or every
    if not set(stops) <= set(every) or start not in stops:
        raise ValueError(f"the stops {stops} of {move.field} are not values of its control, or leave out {start}")
    return Mover(control, tuple(stops), stops.index(start))


def _control_html(mover: Mover, kind: str = "") -> str:
    """The browser's own slider or list, under its label. The value of a slider is the place of the stop.

    kind: the class of the slider.
    """
    control, name = mover.control, f"move-{mover.control.field}"
    texts = [mover.text(stop) for stop in mover.stops]
    label = f'<label for="{name}">{escape(control.label)}</label>'
    if isinstance(control, Pick):
        options = "".join(
            f'<option value="{place}"{" selected" if place == mover.start else ""}>{escape(text)}</option>'
            for place, text in enumerate(texts)
        )
        return f'<div>{label}<select id="{name}" autocomplete="off" disabled>{options}</select></div>'
    now = escape(texts[mover.start], quote=True)
    return (
        f'<div data-stops="{escape(json.dumps(texts), quote=True)}">{label} '
        f'<output for="{name}">{now}</output>'
        f'<input type="range" id="{name}" class="{kind}" min="0" max="{len(texts) - 1}" '
        f'value="{mover.start}" aria-valuetext="{now}" autocomplete="off" disabled></div>'
    )
