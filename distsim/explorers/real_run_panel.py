"""The part of an explorer that runs its scenario for real: a button, progress, cancel, and the comparison."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from distsim.calibration import Calibration
from distsim.experiment import Experiment
from distsim.explorers.background_work import Background, CancelledError
from distsim.explorers.inputs import Status
from distsim.explorers.picture import Picture
from distsim.explorers.progress_bar import ProgressBar
from distsim.explorers.real_run import obstacle, run_for_real
from distsim.explorers.style_sheet import scrolling
from distsim.figures.captioned import shown, table_html
from distsim.figures.comparison import comparison
from distsim.figures.wording import counted
from distsim.scenario import Scenario


class RealRunPanel:
    """Measures the scenario that the explorer shows, in the background, and sets the prediction beside it.

    controls: the button, and under it the phases of the run and then its finding. result: the comparison, for the place
    under the explorer's figure. Where the machine cannot run the scenario, the button is disabled and a line says why.

    settle: called before a run starts, to draw moves of the controls that wait; it may call `about`.
    """

    def __init__(self, settle: Callable[[], object]) -> None:
        self._settle = settle
        self.button = widgets.Button(
            description="Run it for real", tooltip="measure this scenario on this machine", button_style="primary",
            layout={"width": "150px"},
        )  # fmt: skip
        self.button.on_click(self._clicked)
        self.progress = ProgressBar("running for real", self._cancel)
        self.why, self.title, self.caption = (widgets.HTML() for _ in range(3))
        self.heading, self.picture = Status(), Picture()
        self.controls = widgets.VBox([self.button, self.why, self.progress, self.heading])
        self.result = widgets.VBox([self.title, self.picture, self.caption], layout={"display": "none"})
        self.result.add_class("distsim-measured")  # stays as it is while the controls have a refused combination
        self.background = Background(self.progress.tell)
        self.found: Experiment | None = None
        self.scenario: Scenario | None = None
        self.drawn: Scenario | None = None
        self.calibration: Calibration | None = None
        self._refused = False
        self._ran_with: Calibration | None = None
        self._ran_beside: Scenario | None = None

    def about(self, scenario: Scenario | None, drawn: Scenario | None, calibration: Calibration | None = None) -> None:
        """From now on the button runs `scenario`; None hides the button.

        drawn: the scenario of the explorer's figure. calibration: used for the prediction. None: measured right before
        the run.
        """
        self.scenario, self.drawn, self.calibration, self._refused = scenario, drawn, calibration, False
        self.controls.layout.display = "none" if scenario is None else "flex"
        self._offer()
        if self.found is not None:
            self._head(self.found, comparison(self.found.comparison).summary)

    def refuse(self) -> None:
        """The controls have no possible combination: until the next `about`, the button is disabled."""
        self._refused = True
        self._offer()

    def _offer(self) -> None:
        if self.scenario is None or self.background.busy:
            return
        why = "this combination is impossible" if self._refused else obstacle(self.scenario)
        self.button.disabled = why is not None
        self.why.value = "" if why is None else f'<p class="distsim-why">Not here: {escape(why)}.</p>'

    def _clicked(self, _: object) -> None:
        if self.background.busy:
            return
        self._settle()
        scenario, drawn, calibration = self.scenario, self.drawn, self.calibration
        if scenario is None or self.button.disabled:
            return
        self.button.disabled = True
        self.why.value = ""
        self.progress.begin()
        self.background.start(
            lambda report: run_for_real(scenario, report, calibration),
            lambda found: self._ended(found, drawn, calibration),
            self._failed,
        )

    def _cancel(self) -> None:
        self.background.cancel()

    def _ended(self, found: Experiment, drawn: Scenario | None, calibration: Calibration | None) -> None:
        self.found, self._ran_beside, self._ran_with = found, drawn, calibration
        self.progress.end()
        captioned = comparison(found.comparison)
        self._head(found, captioned.summary)
        self.title.value = '<h4 class="distsim-real">The real run and its prediction, on the same links</h4>'
        self.result.layout.display = "flex"
        self.picture.show(captioned)
        notes = "".join(f"<li>{escape(note)}</li>" for note in [*found.warnings, *found.notes])
        self.caption.value = f"{scrolling(table_html(captioned.table), 'predicted and measured')}<ul>{notes}</ul>"
        self._offer()

    def _failed(self, error: Exception) -> None:
        self.progress.end()
        self._offer()
        if not isinstance(error, CancelledError):
            text = f"The real run failed: {error}" if str(error) else f"The real run failed: {type(error).__name__}"
            self.why.value = f'<div class="distsim-message" role="alert">{escape(text)}</div>'
        else:
            self.why.value = '<p class="distsim-why" role="status">Cancelled; nothing is left of the run.</p>'

    def _head(self, found: Experiment, summary: str) -> None:
        """The scenario that was run, its steps and links where the figure has others, moves since, and the finding."""
        ran = found.measured.scenario
        same = (ran, self._ran_with) == (self.scenario, self.calibration)
        since = "" if same else " The controls have been moved since."
        links = "" if self._ran_with is not None else other_links(ran, found)
        workers = counted(ran.cluster.workers, "worker")
        steps = "" if self._ran_beside is None else other_steps(ran, self._ran_beside)
        self.heading.value = (
            f'<h4 class="distsim-real">Run for real: {escape(ran.name)}, {workers}{steps}.{since}</h4>'
            f"{links}<p>{escape(summary)}</p>"
        )


def other_steps(ran: Scenario, drawn: Scenario) -> str:
    """The steps of the real run, where the explorer's figure has another number of steps; else nothing.

    >>> from distsim.examples import example
    >>> drawn = example("synchronous_ring")
    >>> other_steps(drawn.replacing({"steps": 16}), drawn.replacing({"steps": 48})), other_steps(drawn, drawn)
    (', 16 steps (the figure has 48)', '')
    """
    return "" if ran.steps == drawn.steps else f", {counted(ran.steps, 'step')} (the figure has {drawn.steps})"


def other_links(scenario: Scenario, found: Experiment) -> str:
    """A sentence where the real run had other links than the scenario, on which the figure is drawn; else nothing."""
    drawn, used = scenario.cluster, found.predicted.scenario.cluster
    had = [(each.bandwidth_bytes_per_second, each.latency_seconds) for each in (drawn, used)]
    if had[0] == had[1]:
        return ""
    figure, run = (
        f"{8e-9 * bandwidth:.3g} Gbit/s and {shown(round(1e6 * latency, 1))} us" for bandwidth, latency in had
    )
    links = f"the real run had {run}, and the figure has {figure}"
    return f'<p class="distsim-links"><b>Other links than in the figure:</b> {links}.</p>'
