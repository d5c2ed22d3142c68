"""`distsim figure`: a picture of one or more runs, for slides, reports and the README."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from distsim.cli.output import PATH, json_option, print_json, seconds, warn
from distsim.errors import InputError
from distsim.figures.catalogue import COUNTS, KINDS, WINDOW
from distsim.files import check_writable
from distsim.memory import OPTIMIZERS
from distsim.profile import Profile
from distsim.progress import Phase, bar
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace

LISTED = "\b\nKINDs:\n" + "\n".join(
    f"  {kind:14} {entry.shows} ({COUNTS[entry.files][2]})" for kind, entry in KINDS.items()
)
OPTION = {
    "start_seconds": "--start",
    "end_seconds": "--end",
    "step": "--step",
    "metric": "--metric",
    "optimizer": "--optimizer",
    "out": "--out",
}
CALLED = {"steps": "step", "path": "out"}  # by the figures' functions
ARGUMENT = re.compile(r"\w+\((?P<arguments>[\w, ]+)\)(?P<part>.*)")  # what a function's error was asked for


@click.command(epilog=LISTED)
@click.argument("kind", metavar="KIND")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@click.option(
    "-o", "--out", required=True, type=PATH,
    help="Where to: .svg or .png (drawn by an installed Chromium), or .html (interactive, opens offline).",
)  # fmt: skip
@click.option("--start", "start_seconds", metavar="TIME", help='Draw from here, such as "250 ms".')
@click.option("--end", "end_seconds", metavar="TIME", help='Draw until here, such as "1 s".')
@click.option("--step", type=click.IntRange(min=0), help="The step to draw (default: 0).")
@click.option(
    "--optimizer", type=click.Choice([*OPTIMIZERS]),
    help="Whose numbers are held beside parameters and gradients (default: adam).",
)  # fmt: skip
@click.option("--metric", help="The column of a sweep's table (default: step_seconds_median).")
@json_option
def figure(kind: str, files: tuple[Path, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Draw a figure of KIND of one or more FILEs, and say in a sentence what it shows.

    A FILE is a trace that simulate or measure saved (.npz, .json, .json.gz), or a scenario (.toml), which is simulated;
    for a heat-map it is the .csv of a sweep, and for a profile the file of distsim profile.
    """
    if kind not in KINDS:
        raise InputError.of("KIND", kind, "is not a kind of figure", f"take one of {', '.join(KINDS)}")
    entry = KINDS[kind]
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in entry.options:
            rule = f"is not for a figure of kind {kind}"
            raise InputError.of(OPTION[name], given[name], rule, "leave it out")
    least, most, words = COUNTS[entry.files]
    if not least <= len(files) <= most:
        raise InputError.of("FILE...", len(files), f"a figure of kind {kind} takes {words}", f"name {words}")
    for name in set(WINDOW) & set(given):
        given[name] = seconds(OPTION[name], given[name])
    check_writable(out)
    with bar(f"figure {kind}", shown=not as_json) as report, _told(options):
        from distsim.figures.export import check_suffix

        check_suffix(out)
        read = READERS.get(entry.files, _trace)
        contents: list[Any] = [read(file) for file in files]
        warnings: list[str] = []
        if entry.files == "pair":
            from distsim.experiment import of_traces

            warnings = of_traces(contents[0], contents[1], notes=[]).warnings
        report(Phase("drawing"))
        captioned = entry.of_files(contents, given)
        report(Phase(f"writing {out.name}"))
        captioned.save(out)
    warn(warnings)
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


def _trace(file: Path) -> Trace:
    """The trace in a file, or that of the scenario in it, which is simulated now."""
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


READERS: Mapping[str, Callable[[Path], Any]] = {"sweep": _rows, "profile": Profile.load}  # others read traces
