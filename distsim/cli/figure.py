"""`distsim figure`: a picture of one or more runs, for slides, reports and the README."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distsim.cli.output import json_option, print_json, warn
from distsim.errors import InputError
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace
from distsim.units import parse

if TYPE_CHECKING:
    from distsim.comparison import Comparison
    from distsim.figures import Captioned

MANY = 100


@dataclass(frozen=True)
class Kind:
    """One kind of figure: what it shows, of how many files, which options it takes, and how it is drawn."""

    shows: str
    draw: Callable[[Sequence[Any], Mapping[str, Any]], Captioned]
    least: int = 1
    most: int = 1
    options: frozenset[str] = field(default=frozenset())

    @property
    def files(self) -> str:
        """How many files it takes, in words."""
        if self.least == self.most:
            return "one FILE" if self.most == 1 else f"{self.most} FILEs"
        return f"{self.least} or more FILEs"


def _of_traces(name: str) -> Callable[[Sequence[Any], Mapping[str, Any]], Captioned]:
    """The figure of this name, given the traces one after the other and the options by name."""

    def draw(traces: Sequence[Any], options: Mapping[str, Any]) -> Captioned:
        from distsim import figures

        found: Captioned = getattr(figures, name)(*traces, **options)
        return found

    return draw


def _sequence(traces: Sequence[Trace], options: Mapping[str, Any]) -> Captioned:
    from distsim.figures import sequence

    step = options.get("step", 0)
    return sequence(traces[0], range(step, step + 1))


def _stragglers(traces: Sequence[Trace], _: Mapping[str, Any]) -> Captioned:
    from distsim.figures import stragglers
    from distsim.theory.stragglers import worker_times

    return stragglers(worker_times(traces[0].scenario.compute, traces[0].workers), traces[0])


def _comparison(traces: Sequence[Trace], _: Mapping[str, Any]) -> Captioned:
    from distsim.figures import comparison

    return comparison(_joined(traces))


def _steps(traces: Sequence[Trace], _: Mapping[str, Any]) -> Captioned:
    from distsim.figures import step_scatter

    _joined(traces)
    return step_scatter(*traces)


def _joined(traces: Sequence[Trace]) -> Comparison:
    """The predicted and the measured run of one scenario, with a warning where they seem to be swapped."""
    from distsim.experiment import of_traces

    predicted, measured = traces
    found = of_traces(predicted, measured, notes=[])
    warn(found.notes)
    return found.comparison


def _scaling(traces: Sequence[Trace], _: Mapping[str, Any]) -> Captioned:
    from distsim.figures import SpeedUps, scaling

    ways: dict[str, list[Trace]] = {}
    for trace in traces:
        way = f"{trace.scenario.policy.kind}, {trace.scenario.communication.kind}, {trace.producer}"
        ways.setdefault(way.replace("_", " "), []).append(trace)
    return scaling(*(SpeedUps.of_traces(way, found) for way, found in ways.items()))


def _heat_map(tables: Sequence[Any], options: Mapping[str, Any]) -> Captioned:
    from distsim.figures import heat_map

    return heat_map(tables[0], **options)


WINDOW, STEP = frozenset({"start_seconds", "end_seconds"}), frozenset({"step"})
KINDS = {
    "timeline": Kind("what each worker and server does when", _of_traces("timeline"), most=MANY, options=WINDOW),
    "critical-path": Kind("what the end of the run waited for", _of_traces("critical_path"), options=WINDOW),
    "sequence": Kind("who sends what to whom in one step", _sequence, options=STEP),
    "traffic": Kind("bytes from rank to rank and by link", _of_traces("traffic")),
    "utilization": Kind("how busy the links are over time", _of_traces("utilization")),
    "staleness": Kind("how stale applied gradients are", _of_traces("staleness"), most=MANY),
    "stragglers": Kind("step times and their order statistics", _stragglers),
    "pipeline": Kind("a pipeline's schedule, its bubbles and memory", _of_traces("pipeline"), options=STEP),
    "overlap": Kind("buckets behind backward and the exposed rest", _of_traces("overlap"), options=STEP),
    "comparison": Kind("predicted, then measured: errors and their causes", _comparison, least=2, most=2),
    "steps": Kind("each step predicted against measured", _steps, least=2, most=2),
    "scaling": Kind("speed-up over the run of one worker", _scaling, most=MANY),
    "heat-map": Kind("a sweep's table: two varied keys and one figure", _heat_map, options=frozenset({"metric"})),
}
LISTED = "\b\nKINDs:\n" + "\n".join(f"  {name:14} {kind.shows} ({kind.files})" for name, kind in KINDS.items())
OPTION = {"start_seconds": "--start", "end_seconds": "--end", "step": "--step", "metric": "--metric", "out": "--out"}
CALLED = {"steps": "step", "path": "out"}  # by the figures' functions
ARGUMENT = re.compile(r"\w+\((?P<arguments>[\w, ]+)\)(?P<part>.*)")  # what a function's error was asked for


@click.command(epilog=LISTED)
@click.argument("kind", metavar="KIND")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path),
    help="Where to: .svg or .png (drawn by an installed Chromium), or .html (interactive, opens offline).",
)  # fmt: skip
@click.option("--start", "start_seconds", metavar="TIME", help='Draw from here, such as "250 ms".')
@click.option("--end", "end_seconds", metavar="TIME", help='Draw until here, such as "1 s".')
@click.option("--step", type=click.IntRange(min=0), help="The step to draw (default: 0).")
@click.option("--metric", help="The column of a sweep's table (default: step_seconds_median).")
@json_option
def figure(kind: str, files: tuple[Path, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Draw a figure of KIND of one or more FILEs, and say in a sentence what it shows.

    A FILE is a trace that simulate or measure saved (.npz, .json, .json.gz), or a scenario (.toml), which is simulated;
    for a heat-map it is the .csv of a sweep.
    """
    wanted = _kind(kind)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in wanted.options:
            rule = f"is not for a figure of kind {kind}"
            raise InputError.of(OPTION[name], given[name], rule, "leave it out")
    if not wanted.least <= len(files) <= wanted.most:
        raise InputError.of("FILE...", len(files), f"a figure of kind {kind} takes {wanted.files}", "give as many")
    for name in WINDOW & set(given):
        given[name] = _seconds(OPTION[name], given[name])
    from distsim.figures.export import check_suffix

    with _told(options):
        check_suffix(out)
        captioned = wanted.draw([_read(kind, file) for file in files], given)
        captioned.save(out)
    if as_json:
        print_json({"kind": kind, "file": str(out), "summary": captioned.summary, "table": list(captioned.table)})
    else:
        click.echo(captioned.summary)


@contextmanager
def _told(options: Mapping[str, Any]) -> Iterator[None]:
    """Errors of figures in the words of the command: its options and FILEs, and values as they were given."""
    try:
        yield
    except InputError as error:
        found = ARGUMENT.fullmatch(error.asked)
        if found is None:
            raise
        names = [CALLED.get(name, name) for name in found["arguments"].split(", ")]
        given = [name for name in names if options.get(name) is not None]
        asked = ", ".join(OPTION[name] for name in given or names if name in OPTION) or f"FILE{found['part']}"
        values = [options[name] for name in given] or [error.value]
        raise InputError.of(asked, values[0] if len(values) == 1 else values, error.rule, error.cure) from None


def _seconds(option: str, text: str) -> float:
    try:
        return parse(text, "second")
    except ValueError as error:
        raise InputError.of(option, text, str(error), 'write such as "250 ms"') from None


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise InputError.of("KIND", name, "is not a kind of figure", f"take one of {', '.join(KINDS)}")
    return KINDS[name]


def _read(kind: str, file: Path) -> Any:
    """A trace, one that is simulated now, or the rows of a sweep."""
    if kind == "heat-map":
        return _rows(file)
    return simulate(Scenario.load(file)) if file.suffix == ".toml" else Trace.load(file)


def _rows(file: Path) -> list[dict[str, str]]:
    if file.suffix != ".csv":
        raise InputError.of(
            "FILE", str(file), "must be the .csv of a sweep", "write it by distsim sweep --out sweep.csv"
        )
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))
    except (OSError, UnicodeError, csv.Error) as error:
        raise InputError.of("FILE", str(file), f"cannot be read ({error})", "name the .csv of a sweep") from None
