"""`distsim doctor`: checks of this machine, with a cure for each check that fails."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.table import Table
from rich.text import Text

from distsim.cli.output import console, json_option, print_json
from distsim.doctor import examine
from distsim.progress import Phase, bar


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check this machine: versions, cores, gloo, namespaces, GPU, Jupyter, each with its cure.

    The command installs and changes nothing. Its exit code is 0 whatever the checks find.
    """
    with bar("doctor", shown=not as_json) as report:
        report(Phase("examining this machine"))
        checks = examine()
    if as_json:
        print_json([asdict(check) for check in checks])
        return
    table = Table(title="distsim doctor", title_justify="left")
    for column in ("check", "", "found", "needed for", "cure"):
        table.add_column(column)
    for check in checks:
        mark = Text("ok", style="green") if check.ok else Text("no", style="yellow")
        table.add_row(check.name, mark, check.found, check.needed_for, check.cure)
    console().print(table)
