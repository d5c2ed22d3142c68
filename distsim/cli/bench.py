"""`distsim bench`: every speed figure beside SimPy's own speed."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich import box
from rich.table import Table
from rich.text import Text

from distsim.cli.output import console, json_option, print_json
from distsim.errors import InputError
from distsim.progress import Phase, bar
from distsim.speed.figure import QUICK_ROUNDS, ROUNDS, Figure, Result
from distsim.units import show

FIGURE_SECONDS = 4.0  # of one figure, on the average


@click.command()
@click.option("--only", multiple=True, metavar="TEXT", help="Only figures whose group or name holds TEXT; repeatable.")
@click.option("--quick", is_flag=True, help="One round each instead of the best of several: noisier.")
@json_option
def bench(only: tuple[str, ...], quick: bool, as_json: bool) -> None:
    """Measure how fast the simulator is, each figure beside its bound.

    Times are processor seconds, the best of some repeats after a first run. The floor is measured alternately with
    each figure: how many timeouts per second SimPy does here with 100 processes that do nothing else. The bounds are
    for a machine with a floor of 1.4 million, so times are scaled before they are compared:

    \b
        scaled = best time x best floor / 1.4 million

    Ratios and memory are not scaled. SimGrid: the time that SimGrid takes for the same, in C++. Pays: how many times
    as long the next slower engine takes for the same scenario, here and now. The exit code is 0 also where a bound is
    missed. The command takes a few minutes.
    """
    figures = _chosen(only)
    rounds = QUICK_ROUNDS if quick else ROUNDS
    results: list[Result] = []
    with bar("bench", shown=not as_json) as report:
        for number, figure in enumerate(figures):
            name = f"{figure.group}: {figure.name}, figure"
            report(Phase(f"{name} {number + 1} of {len(figures)}", number, len(figures), len(figures) * FIGURE_SECONDS))
            results.append(figure.measure(rounds))
    if as_json:
        print_json([result.as_dict() for result in results])
        return
    out = console()
    for group in dict.fromkeys(result.group for result in results):
        out.print(_table(group, [result for result in results if result.group == group]))
    out.print(f"{sum(result.met for result in results)} of {len(results)} bounds met.")


def _chosen(only: Sequence[str]) -> list[Figure]:
    from distsim.speed.catalogue import FIGURES

    found = [
        figure
        for figure in FIGURES
        if not only or any(text.lower() in f"{figure.group}: {figure.name}".lower() for text in only)
    ]
    if not found:
        raise InputError.of("--only", ", ".join(only), "is part of no figure's name", "run without it to see them all")
    return found


def _table(group: str, results: Sequence[Result]) -> Table:
    """One group; all groups have columns of the same width."""
    table = Table(
        title=Text(group), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
        pad_edge=False, collapse_padding=True,
    )  # fmt: skip
    table.add_column("figure", min_width=31, max_width=31)
    for column, width in (
        ("best", 8),
        ("of", 5),
        ("floor", 7),
        ("scaled", 8),
        ("bound", 8),
        ("", 6),
        ("SimGrid", 7),
        ("pays", 11),
    ):
        table.add_column(column, justify="right", min_width=width, no_wrap=True)
    for result in results:
        mark = Text("met", style="green") if result.met else Text("MISSED", style="bold red")
        table.add_row(
            result.figure, _shown(result, result.measured), str(result.repeats),
            "" if result.floor is None else f"{result.floor / 1e6:.2f} M",
            _shown(result, result.value) if result.unit == "seconds" else "",
            _shown(result, result.bound), mark,
            "" if result.simgrid_seconds is None else show(result.simgrid_seconds, "second"),
            "" if result.times_faster is None else f"{result.times_faster:.0f} × {result.slower_engine}",
        )  # fmt: skip
    return table


def _shown(result: Result, value: float) -> str:
    match result.unit:
        case "seconds":
            return show(value, "second")
        case "bytes":
            return f"{value / 2**20:.0f} MiB"
        case "times":
            return f"{value:.1f} ×"
