"""`distsim validate`: agreement with results that others computed."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from distsim.cli.output import NOT_APPLICABLE, console, json_option, print_json
from distsim.simgrid import validate as validate_simgrid


@click.command()
@click.option(
    "--simgrid",
    "cases",
    type=click.Path(path_type=Path),
    required=True,
    help="A JSON file of SimGrid's results, case by case.",
)
@json_option
def validate(cases: Path, as_json: bool) -> None:
    """Recompute known results and print the largest difference per algorithm."""
    found = validate_simgrid(cases)
    if as_json:
        print_json(found)
        return
    table = Table(title=f"SimGrid: {cases.name}", title_justify="left")
    for column in ("algorithm", "cases", "skipped", "largest relative error"):
        table.add_column(column, justify="left" if column == "algorithm" else "right")
    for name, row in found["algorithms"].items():
        error = row["max_relative_error"]
        table.add_row(name, str(row["cases"]), str(row["skipped"]), NOT_APPLICABLE if error is None else f"{error:.1e}")
    console().print(table)
