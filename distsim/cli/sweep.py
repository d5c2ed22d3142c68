"""`distsim sweep`: many scenarios, one table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from distsim.calibration import Calibration, cautions
from distsim.cli.before_start import agree, yes_option
from distsim.cli.dask_cluster import pool_or_cluster, scheduler_option
from distsim.cli.footnotes import of_step
from distsim.cli.output import NOT_APPLICABLE, PATH, console, json_option, print_json, print_notes, warn, wide_table
from distsim.errors import InputError
from distsim.extras import need
from distsim.files import check_writable, replaced, write_text
from distsim.metrics import METRICS, Metric
from distsim.progress import bar
from distsim.scenario import Scenario
from distsim.sweep import check_size, combinations, parse_values, reason, without_effect
from distsim.sweep import sweep as run

SUFFIXES = (".csv", ".parquet")
LOCAL_STEPS = frozenset({"policy.period", "policy.accumulate"})
MOST_REASONS = 10
SHOWN_ROWS = 200  # of a longer table: its first and its last rows
MOST_WARNINGS = 5  # of a calibration
MANY_RUNS = 5000  # more are asked for
MOST_PROCESSES = 256

GOES_ON = "and repeat the command, which goes on where it stopped with --out"


@click.command()
@click.argument("file", type=PATH)
@click.option(
    "--vary",
    multiple=True,
    required=True,
    metavar="KEY=VALUES",
    help="A key and its values, such as policy.backups=0:4; repeat for a grid.",
)
@click.option("--calibration", type=PATH, help="Use the links and overheads of this calibration file.")
@scheduler_option
@click.option(
    "--workers", type=click.IntRange(1, MOST_PROCESSES), help="Processes on this machine (default: one per core)."
)
@click.option(
    "--out", type=PATH, help="Write the table: .csv or .parquet. After an interrupt, the same command continues."
)
@yes_option
@json_option
def sweep(
    file: Path,
    vary: tuple[str, ...],
    calibration: Path | None,
    scheduler: str | None,
    workers: int | None,
    out: Path | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Simulate a scenario FILE for every combination of varied values."""
    scenario = Scenario.load(file)
    varied = dict(parse_values(text) for text in vary)
    runs = check_size(varied)
    known = Calibration.load(calibration) if calibration else None
    journal = _journal(out)
    if known:
        warn(_warnings(known, scenario, varied))
    if runs > MANY_RUNS:
        counts = f"makes {runs} runs"
        agree("--vary", " ".join(vary), counts, "take wider steps, as in cluster.workers=1:1000:100", yes=yes)
    with (
        bar(f"sweep {scenario.name}", shown=not as_json) as progress,
        pool_or_cluster(scheduler, workers, runs, GOES_ON) as (executor, most),
    ):
        rows = run(scenario, varied, known, executor=executor, together=most, journal=journal, progress=progress)
    warn(f"varying {key} changed nothing in this scenario" for key in without_effect(rows, varied))
    if out and journal:
        _write(rows, out)
        journal.unlink(missing_ok=True)
    if as_json:
        print_json(rows)
    else:
        console().print(_table(scenario.name, rows, list(varied)))
        print_notes([*_left_out(rows), *_of_step(scenario, varied), *_reasons(rows)])


def _warnings(known: Calibration, scenario: Scenario, varied: Mapping[str, Sequence[Any]]) -> list[str]:
    """What predictions by the calibration lack, each sentence once."""
    possible = [one for _, one in combinations(scenario, varied, known) if isinstance(one, Scenario)]
    found = list(dict.fromkeys(told for one in possible for told in cautions(known, one)))
    more = len(found) - MOST_WARNINGS
    return found[:MOST_WARNINGS] + ([f"and {more} more warnings of this kind"] if more > 0 else [])


def _journal(out: Path | None) -> Path | None:
    if out is None:
        return None
    if out.suffix not in SUFFIXES:
        raise InputError.of("--out", str(out), f"must end in {' or '.join(SUFFIXES)}", "rename it, such as sweep.csv")
    if out.suffix != ".csv":
        need("pyarrow", f"--out {out}")
    check_writable(out)
    return out.with_name(f"{out.name}.journal")


def _write(rows: Sequence[dict[str, Any]], out: Path) -> None:
    if out.suffix == ".csv":
        write_text(out, _csv(rows))
        return
    import pyarrow as pa
    from pyarrow import parquet

    with replaced(out) as stream:
        parquet.write_table(pa.table(_columns(rows)), stream)


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The table by column. A Parquet column has values of one kind: other columns are written as text."""
    columns = {column: [row[column] for row in rows] for column in rows[0]}
    for column, values in columns.items():
        kinds = {type(value) for value in values if value is not None}
        if (len(kinds) > 1 and kinds != {int, float}) or kinds & {dict, list}:
            columns[column] = [None if value is None else str(value) for value in values]
    return columns


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    """The table with a row of column names; a value that does not apply is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, dict.fromkeys(column for row in rows for column in row), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {column: "" if isinstance(value, float) and isnan(value) else value for column, value in row.items()}
        for row in rows
    )
    return text.getvalue()


def _table(name: str, rows: Sequence[dict[str, Any]], varied: list[str]) -> Table:
    shown = [metric for metric in METRICS if metric.heading and _applies(metric, rows)]
    keys = [key.replace(".", ".\n") for key in varied]
    table = wide_table(name, *keys, *(metric.heading for metric in shown if metric.heading))
    left_out = range(SHOWN_ROWS // 2, len(rows) - SHOWN_ROWS // 2)
    for number, row in enumerate(rows):
        if number in left_out:
            if number == left_out[0]:
                table.add_row(*["…"] * len(table.columns), style="dim")
            continue
        values = [str(row[key]) for key in varied]
        if row["error"] is not None:
            table.add_row(*values, "impossible", style="dim")
            continue
        table.add_row(*values, *(_shown(row[metric.column], metric.unit.scale) for metric in shown))
    return table


def _left_out(rows: Sequence[dict[str, Any]]) -> list[str]:
    more = len(rows) - SHOWN_ROWS
    return [f"{more:,} rows in the middle are left out here: --out and --json have all"] if more > 0 else []


def _applies(metric: Metric, rows: Sequence[dict[str, Any]]) -> bool:
    """Whether the metric says something about any of the runs."""
    return metric.applies is None or any(row[metric.column] is not None for row in rows)


def _of_step(scenario: Scenario, varied: Iterable[str]) -> list[str]:
    keys = LOCAL_STEPS.intersection(varied)
    return [f"step: from one update to the next; {key} says after how many local steps" for key in keys] or of_step(
        scenario.policy
    )


def _reasons(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Why rows are impossible: each reason once, with the first row that has it."""
    first: dict[str, str] = {}
    for row in rows:
        if row["error"] is not None:
            first.setdefault(reason(row), row["error"])
    more = len(first) - MOST_REASONS
    rest = [f"and {more} more reasons, which --json and --out tell"] if more > 0 else []
    return [f"impossible: {error}" for error in list(first.values())[:MOST_REASONS]] + rest


def _shown(value: Any, scale: float) -> str:
    return NOT_APPLICABLE if value is None else f"{value * scale:.4g}"
