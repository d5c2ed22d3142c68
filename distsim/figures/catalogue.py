"""The table of all figures: `distsim.figures`, `distsim figure`, the tests and the page of figures read this table.

To add a figure, write a module that has the name of its function, and add a row here. The imports at the end are for
type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from distsim.units import show

Files = Literal["none", "trace", "traces", "pair", "sweep", "profile"]
MANY = 100
# The least and the most files that `distsim figure` takes, in numbers and words. A pair: prediction and measurement.
COUNTS: dict[Files, tuple[int, int, str]] = {
    "trace": (1, 1, "one FILE"),
    "traces": (1, MANY, "1 or more FILEs"),
    "pair": (2, 2, "2 FILEs"),
    "sweep": (1, 1, "one FILE"),
    "profile": (1, 1, "one FILE"),
}
WINDOW = ("start_seconds", "end_seconds")


@dataclass(frozen=True)
class Entry:
    """One figure.

    name: of its function and of its module. shows: the content of the figure, in a phrase. files: the input of
    `distsim figure`; "none" where the command does not draw the figure. options: of the command, with the names of the
    function's arguments. called: the KIND on the command line, if not `name`. classes: the module's public classes.
    """

    name: str
    shows: str
    files: Files = "none"
    options: tuple[str, ...] = ()
    called: str = ""
    classes: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The KIND of the figure on the command line."""
        return self.called or self.name.replace("_", "-")

    def of_files(self, contents: Sequence[Any], options: Mapping[str, Any]) -> Captioned:
        """The figure of the contents of files: traces, the rows of a sweep, or a profile.

        If the figure's function takes other arguments than the contents, the module's own `of_files` draws the figure.
        The sentence of a figure of a part of a run says so.
        """
        module = import_module(f"distsim.figures.{self.name}")
        found: Captioned = getattr(module, "of_files", getattr(module, self.name))(*contents, **options)
        parts = dict.fromkeys(getattr(content, "part_seconds", None) for content in contents)
        said = [
            f"A part of the run, from {show(part[0], 'second')} to {show(part[1], 'second')}." for part in parts if part
        ]
        return replace(found, summary=" ".join([*said, found.summary])) if said else found


FIGURES = (
    Entry("timeline", "what each worker and server does, and when", "traces", WINDOW),
    Entry("critical_path", "the chain of spans that the end of a run waited for", "trace", WINDOW),
    Entry("sequence", "each message of a step, from sender to receiver", "trace", ("step",)),
    Entry("traffic", "bytes from rank to rank and by link", "trace"),
    Entry("utilization", "how busy the links are over time", "trace"),
    Entry("ring_against_server", "bytes of the busiest link by number of workers, for a ring and for one server"),
    Entry("collective", "a schedule's chunks round by round, and the fault of a wrong schedule"),
    Entry(
        "chunks_on_links",
        "chunks that move, sums that grow and bytes of each NIC, of calls side by side, as a film",
    ),
    Entry("memory", "the bytes that workers hold over time, by kind", "trace", ("optimizer", *WINDOW)),
    Entry("staleness", "how stale the applied gradients are", "traces"),
    Entry("stragglers", "step times and their order statistics", "trace"),
    Entry("pipeline", "a pipeline's schedule, its bubbles and its memory", "trace", ("step",)),
    Entry("overlap", "gradient buckets sent during backward, and the exposed rest", "trace", ("step",)),
    Entry("checkpoints", "goodput by the interval between checkpoints: formula, best interval and runs"),
    Entry("loss", "loss against time, updates and samples"),
    Entry("race", "median loss of several policies against the clock, their floors, and where one overtakes another"),
    Entry("lanes_and_loss", "the lanes of workers above the losses of their runs, with one cursor, as a film"),
    Entry("batch_grid", "accuracy or loss in the end, by batch size and learning rate"),
    Entry("noise_scale", "updates to a target loss by batch size, and the curve of the noise scale"),
    Entry("trials", "which worker trains which trial of a search, and when, of searches one above the other"),
    Entry("scaling", "speed-up and efficiency by number of workers", "traces", classes=("SpeedUps",)),
    Entry("step_times", "step time by number of workers"),
    Entry("exchange_times", "time of an exchange by its bytes"),
    Entry("heat_map", "a sweep's table: two varied keys and one metric", "sweep", ("metric",)),
    Entry("profile", "a model's layers in one step, forward and backward, and their bytes", "profile"),
    Entry("plan", "the ways of a plan: time against memory, and the frontier"),
    Entry("decision", "whether to distribute a training, and how, by its memory and its time", classes=("Job",)),
    Entry("comparison", "a prediction and its measurement: errors and their causes", "pair"),
    Entry("step_scatter", "the time of each step, predicted against measured", "pair", called="steps"),
    Entry("prediction_errors", "predictions of several runs beside the measurements"),
    Entry("guess_formula_simulation_measurement", "one quantity guessed, by formula, simulated and measured"),
    Entry("guesses", "guesses of several quantities as multiples of the measurements"),
)
KINDS = {entry.kind: entry for entry in FIGURES if entry.files != "none"}
MODULES = {"Animation": "animation", "Captioned": "captioned"} | {
    public: entry.name for entry in FIGURES for public in (entry.name, *entry.classes)
}


def markdown() -> str:
    """The table of figures, for the documentation.

    >>> markdown().splitlines()[2]
    '| `timeline` | `timeline` | what each worker and server does, and when |'
    """
    rows = [
        (
            ", ".join(f"`{public}`" for public in (entry.name, *entry.classes)),
            f"`{entry.kind}`" if entry.kind in KINDS else "",
            entry.shows,
        )
        for entry in FIGURES
    ]
    head = ("in `distsim.figures`", "`distsim figure`", "shows")
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * 3, *rows)).replace("|  |", "| |")


if TYPE_CHECKING:
    from distsim.figures.animation import Animation as Animation
    from distsim.figures.batch_grid import batch_grid as batch_grid
    from distsim.figures.captioned import Captioned as Captioned
    from distsim.figures.checkpoints import checkpoints as checkpoints
    from distsim.figures.chunks_on_links import chunks_on_links as chunks_on_links
    from distsim.figures.collective import collective as collective
    from distsim.figures.comparison import comparison as comparison
    from distsim.figures.critical_path import critical_path as critical_path
    from distsim.figures.decision import Job as Job
    from distsim.figures.decision import decision as decision
    from distsim.figures.exchange_times import exchange_times as exchange_times
    from distsim.figures.guess_formula_simulation_measurement import (
        guess_formula_simulation_measurement as guess_formula_simulation_measurement,
    )
    from distsim.figures.guesses import guesses as guesses
    from distsim.figures.heat_map import heat_map as heat_map
    from distsim.figures.lanes_and_loss import lanes_and_loss as lanes_and_loss
    from distsim.figures.loss import loss as loss
    from distsim.figures.memory import memory as memory
    from distsim.figures.noise_scale import noise_scale as noise_scale
    from distsim.figures.overlap import overlap as overlap
    from distsim.figures.pipeline import pipeline as pipeline
    from distsim.figures.plan import plan as plan
    from distsim.figures.prediction_errors import prediction_errors as prediction_errors
    from distsim.figures.profile import profile as profile
    from distsim.figures.race import race as race
    from distsim.figures.ring_against_server import ring_against_server as ring_against_server
    from distsim.figures.scaling import SpeedUps as SpeedUps
    from distsim.figures.scaling import scaling as scaling
    from distsim.figures.sequence import sequence as sequence
    from distsim.figures.staleness import staleness as staleness
    from distsim.figures.step_scatter import step_scatter as step_scatter
    from distsim.figures.step_times import step_times as step_times
    from distsim.figures.stragglers import stragglers as stragglers
    from distsim.figures.timeline import timeline as timeline
    from distsim.figures.traffic import traffic as traffic
    from distsim.figures.trials import trials as trials
    from distsim.figures.utilization import utilization as utilization
