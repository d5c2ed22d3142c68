"""The frame that all explorers share: controls at the left, what they lead to at the right.

An explorer is a pure function from parameters to a `Captioned` figure, and this view of it. Moving a control runs the
function anew; a combination that is impossible leaves the last figure and says why beside the controls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any, Generic, TypeVar

import ipywidgets as widgets

from distsim.errors import InputError
from distsim.explorers.controls import Control, labelled
from distsim.figures.captioned import Captioned, Row, shown
from distsim.figures.comparison import signed
from distsim.scenario import Scenario

Parameters = TypeVar("Parameters")

STYLE = """<style>
.distsim-explorer { font-size: 14px; line-height: 1.45; color: var(--jp-ui-font-color1, #222222); }
.distsim-explorer h3 { margin: 0 0 2px; font-size: 16px; }
.distsim-explorer .widget-html-content { line-height: 1.45; }
.distsim-explorer p { margin: 0 0 6px; }
.distsim-label { font-weight: 600; font-size: 13px; }
.distsim-message { background: #fff1e6; color: #222222; border-left: 5px solid #d55e00; padding: 6px 10px;
  font-size: 13px; }
.distsim-changed { background: #eef4f9; color: #222222; border-left: 5px solid #0072b2; padding: 6px 10px; }
.distsim-explorer table.distsim-table { border-collapse: collapse; margin: 4px 0; font-variant-numeric: tabular-nums; }
.distsim-explorer .distsim-table th, .distsim-explorer .distsim-table td {
  padding: 3px 12px 3px 0; text-align: right; border-bottom: 1px solid #d4d4d4; }
.distsim-explorer .distsim-table th:first-child { text-align: left; }
.distsim-explorer .distsim-table tbody th { font-weight: 400; }
.distsim-explorer pre { user-select: all; background: #f4f5f7; color: #222222; padding: 8px 10px; overflow-x: auto;
  font-size: 12px; line-height: 1.35; }
</style>"""


class Frame(widgets.VBox, Generic[Parameters]):  # type: ignore[misc] # ipywidgets has no types
    """The view of one explorer.

    title, question: what stands above. start: the parameters at first and after "reset". controls: the primary ones,
    at most three. more: the others, folded away. explore: parameters -> figure, sentence, table. scenarios:
    parameters -> the scenarios behind it, offered as files to copy. watched: the columns of the table that the
    sentence on what changed speaks of.

    `explore` and `scenarios` raise InputError for a combination that is impossible.
    """

    def __init__(
        self,
        title: str,
        question: str,
        start: Parameters,
        controls: Sequence[Control],
        more: Sequence[Control],
        explore: Callable[[Parameters], Captioned],
        scenarios: Callable[[Parameters], Sequence[Scenario]],
        watched: Sequence[str],
    ) -> None:
        if len(controls) > 3:
            raise InputError.of("Frame(controls)", len(controls), "must be at most three", "move the others to `more`")
        self._start, self._explore, self._scenarios, self._watched = start, explore, scenarios, watched
        self._all = [*controls, *more]
        self._resetting = False
        self.controls: dict[str, Any] = {
            control.field: control.widget(getattr(start, control.field)) for control in self._all
        }
        self.reset = widgets.Button(description="reset", tooltip="back to the first values", layout={"width": "90px"})
        self.message, self.changed, self.caption, self.files = (widgets.HTML() for _ in range(4))
        self.output = widgets.Output()
        self.parameters: Parameters = start
        self.shown: Captioned | None = None
        super().__init__(
            [widgets.HTML(STYLE + f"<h3>{escape(title)}</h3><p>{escape(question)}</p>"), self._panes(more)]
        )
        self.add_class("distsim-explorer")
        for widget in self.controls.values():
            widget.observe(self._moved, names="value")
        self.reset.on_click(self._reset)
        self._draw(start)

    def _panes(self, more: Sequence[Control]) -> widgets.Widget:
        folded = {control.field for control in more}
        placed = {control.field: labelled(control, self.controls[control.field]) for control in self._all}
        others = widgets.Accordion([widgets.VBox([placed[field] for field in placed if field in folded])])
        others.set_title(0, "more")
        file = widgets.Accordion([self.files])
        file.set_title(0, "the scenario files, to copy")
        primary = [placed[field] for field in placed if field not in folded]
        left = [*primary, self.message, *([others] if more else []), self.reset]
        right = [self.changed, self.output, self.caption, file]
        return widgets.Box(
            [
                widgets.VBox(left, layout={"flex": "0 0 300px", "min_width": "300px", "overflow": "visible"}),
                widgets.VBox(right, layout={"flex": "1 1 520px", "min_width": "0"}),
            ],
            layout={"display": "flex", "flex_flow": "row wrap", "width": "100%", "grid_gap": "12px"},
        )

    def _moved(self, _: Any) -> None:
        if not self._resetting:
            values = {field: widget.value for field, widget in self.controls.items()}
            self._draw(replace(self._start, **values))  # type: ignore[type-var] # a frozen dataclass, as all are

    def _reset(self, _: Any) -> None:
        self._resetting = True
        for field, widget in self.controls.items():
            widget.value = getattr(self._start, field)
        self._resetting = False
        self._draw(self._start)

    def _draw(self, parameters: Parameters) -> None:
        """Explores `parameters` and shows what came of it, or why nothing could."""
        self.changed.value = '<div class="distsim-changed" role="status">Simulating …</div>'
        try:
            captioned, scenarios = self._explore(parameters), self._scenarios(parameters)
        except InputError as error:
            self.message.value = f'<div class="distsim-message" role="alert">{escape(str(error))}</div>'
            self._say("The figure shows the last combination that is possible.")
            return
        self.message.value = ""
        self._say(self._difference(parameters, captioned))
        self.parameters, self.shown = parameters, captioned
        # Replaced as a whole: `clear_output` would empty the pane first and make the page jump.
        self.output.outputs = ({"output_type": "display_data", "data": captioned.bundle(), "metadata": {}},)
        self.caption.value = captioned.caption_html()
        self.files.value = "".join(f"<pre>{escape(scenario.dumps())}</pre>" for scenario in scenarios)

    def _say(self, sentence: str) -> None:
        self.changed.value = f'<div class="distsim-changed" role="status">{escape(sentence)}</div>'

    def _difference(self, parameters: Parameters, captioned: Captioned) -> str:
        """What changed: the controls, and what they did to the watched columns of the table."""
        if self.shown is None:
            return "Move a control: this line tells what it changed."
        moved = [
            f"{control.label} from {_worded(old)} to {_worded(new)}"
            for control in self._all
            if (old := getattr(self.parameters, control.field)) != (new := getattr(parameters, control.field))
        ]
        if not moved:
            return "Nothing changed."
        effects = _effects(self.shown.table, captioned.table, self._watched)
        return f"Changed {', '.join(moved)}: {'; '.join(effects) if effects else 'no number in the table changed'}."


def _worded(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value:g}"


def _effects(before: Sequence[Row], after: Sequence[Row], watched: Sequence[str]) -> list[str]:
    """A phrase for each row with a watched number that differs; the row's first column names it."""
    effects = []
    for old, new in zip(before, after, strict=False):
        changes = [
            f"{column} {shown(old[column])} → {shown(new[column])}{_difference(column, old[column], new[column])}"
            for column in watched
            if shown(old[column]) != shown(new[column])  # engines agree to rounding: what looks equal is equal
        ]
        if changes:
            effects.append(f"{next(iter(new.values()))}: {', '.join(changes)}")
    return effects


def _difference(column: str, old: Any, new: Any) -> str:
    """In brackets: points for a share in percent, nothing for a count, else percent of the old value."""
    if not isinstance(old, float) or not isinstance(new, float):
        return ""
    if column.endswith("(%)"):
        return f" ({signed(new - old, 'points')})"
    return f" ({signed(100.0 * (new - old) / old, '%')})" if old else ""
