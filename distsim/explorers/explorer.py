"""The frame that all explorers share: the finding in a sentence, the figure under it, the controls beside it.

An explorer is a pure function from parameters to a `Captioned` figure, and this view of the figure. Moving a control
runs the function again; several quick moves run it once. An impossible combination keeps the last figure, and a message
gives the reason. On a small screen the controls stand under the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any, Generic, TypeVar

import ipywidgets as widgets

from distsim.calibration import Calibration
from distsim.errors import InputError
from distsim.explorers.change_summary import sentence
from distsim.explorers.controls import Control
from distsim.explorers.inputs import Status, folded
from distsim.explorers.picture import Picture
from distsim.explorers.quick_moves import QuickMoves
from distsim.explorers.real_run_panel import RealRunPanel
from distsim.explorers.style_sheet import SHEET, scrolling
from distsim.figures.captioned import Captioned, Row, table_html
from distsim.scenario import Scenario

Parameters = TypeVar("Parameters")
REFUSED = "distsim-refused"  # the class of the panes while the controls have a combination that is refused


class Explorer(widgets.VBox, Generic[Parameters]):  # type: ignore[misc] # ipywidgets has no types
    """The view of one explorer.

    title, question: the text at the top. start: the parameters at first and after "reset". controls: the primary
    controls, at most three. more: the other controls, folded away. explore: parameters -> figure, sentence, table.
    scenarios: parameters -> the scenarios behind the figure, offered as files to copy. watched: the columns of the
    table whose changes the line above the figure tells.

    real: parameters -> the scenario that "run it for real" measures, or None for no real run. Default: the last of
    `scenarios`.
    calibration: parameters -> the calibration for the prediction of that run. Default: measured right before the run.
    rows: the rows, by their first column, whose changes the line tells. None: all rows.

    `explore`, `scenarios` and `calibration` raise InputError for an impossible combination.
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
        *,
        real: Callable[[Parameters], Scenario | None] | None = None,
        calibration: Callable[[Parameters], Calibration | None] | None = None,
        rows: Sequence[str] | None = None,
    ) -> None:
        if len(controls) > 3:
            raise InputError.of(
                "Explorer(controls)", len(controls), "must be at most three", "move the others to `more`"
            )
        self._start, self._explore, self._scenarios, self._watched = start, explore, scenarios, watched
        self._real, self._calibration, self._rows = real, calibration, rows
        self._all = [*controls, *more]
        self._resetting = False
        self.controls: dict[str, Any] = {
            control.field: control.widget(getattr(start, control.field)) for control in self._all
        }
        self.reset = widgets.Button(description="reset", tooltip="back to the first values", layout={"width": "90px"})
        self.message, self.answer, self.caption, self.files = (widgets.HTML() for _ in range(4))
        self.changed, self.picture = Status(), Picture()
        self.quick_moves = QuickMoves(self._draw_moved)
        self.real_run = RealRunPanel(self.quick_moves.flush)
        self.parameters: Parameters = start
        self.shown: Captioned | None = None
        self.panes = self._panes(more)
        super().__init__([widgets.HTML(SHEET + f"<h3>{escape(title)}</h3><p>{escape(question)}</p>"), self.panes])
        self.add_class("distsim-explorer")
        for widget in self.controls.values():
            widget.observe(self._moved, names="value")
        self.reset.on_click(self._reset)
        self._draw(start)

    @property
    def settings(self) -> Sequence[Control]:
        """All controls, the primary controls first."""
        return self._all

    @property
    def runs_for_real(self) -> bool:
        """Whether the scenario of the first values can be measured on this machine."""
        if self._real is not None:
            return self._real(self._start) is not None
        return len(self._scenarios(self._start)) > 0

    def _panes(self, more: Sequence[Control]) -> widgets.Widget:
        """The result and the controls. On a wide screen the style sheet sets the controls to the left."""
        others = [self.controls[control.field] for control in more]
        primary = [widget for widget in self.controls.values() if widget not in others]
        fold = [folded("more controls", widgets.VBox(others))] if others else []
        controls = [*primary, self.message, *fold, self.reset, self.real_run.controls]
        files = folded("the scenario files, to copy", self.files)
        result = [self.answer, self.changed, self.picture, self.real_run.result, self.caption]
        panes = widgets.Box([widgets.VBox(result), widgets.VBox(controls), files])
        panes.add_class("distsim-panes")
        return panes

    def _moved(self, _: Any) -> None:
        if not self._resetting:
            self.quick_moves.moved()

    def _draw_moved(self) -> None:
        values = {field: widget.value for field, widget in self.controls.items()}
        self._draw(replace(self._start, **values))  # type: ignore[type-var] # a frozen dataclass, as all are

    def _reset(self, _: Any) -> None:
        self.quick_moves.drop()
        self._resetting = True
        for field, widget in self.controls.items():
            widget.value = getattr(self._start, field)
        self._resetting = False
        self._draw(self._start)

    def _draw(self, parameters: Parameters) -> None:
        """Explores `parameters`, and shows the result, or the reason for having none."""
        try:
            captioned, scenarios = self._explore(parameters), self._scenarios(parameters)
            calibration = None if self._calibration is None else self._calibration(parameters)
        except InputError as error:
            self._refuse(error)
        else:
            self._show(parameters, captioned, scenarios, calibration)

    def _show(
        self,
        parameters: Parameters,
        captioned: Captioned,
        scenarios: Sequence[Scenario],
        calibration: Calibration | None,
    ) -> None:
        self.message.value = ""
        self.panes.remove_class(REFUSED)
        self.picture.show(captioned)  # first: the browser draws while the rest is on its way
        self._say(self._difference(parameters, captioned))
        self.parameters, self.shown = parameters, captioned
        self.answer.value = f'<p class="distsim-summary">{escape(captioned.summary)}</p>'
        self.caption.value = scrolling(table_html(captioned.table), "results")
        texts = (f"<pre>{escape(scenario.dumps())}</pre>" for scenario in scenarios)
        self.files.value = "".join(scrolling(text, "scenario file") for text in texts)
        last = scenarios[-1] if scenarios else None
        self.real_run.about(last if self._real is None else self._real(parameters), last, calibration)

    def _refuse(self, error: InputError) -> None:
        """Keeps the last result, dimmed, and shows the reason."""
        self.message.value = f'<div class="distsim-message" role="alert">{escape(str(error))}</div>'
        self.panes.add_class(REFUSED)
        self.real_run.refuse()
        self._say("The figure shows the last combination that is possible.")

    def _say(self, text: str) -> None:
        self.changed.value = f'<div class="distsim-changed">{escape(text)}</div>'

    def _difference(self, parameters: Parameters, captioned: Captioned) -> str:
        """The sentence on the moved controls and on the changes in the watched columns of the table."""
        if self.shown is None:
            return "Move a control: this line tells what it changed."
        moves = [
            (control.label, getattr(self.parameters, control.field), getattr(parameters, control.field))
            for control in self._all
        ]
        return sentence(moves, self._told(self.shown.table), self._told(captioned.table), self._watched)

    def _told(self, table: Sequence[Row]) -> Sequence[Row]:
        """The rows whose changes the line tells."""
        return [row for row in table if self._rows is None or next(iter(row.values())) in self._rows]
