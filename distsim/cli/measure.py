"""`distsim measure`: the real run of a scenario, under torchrun."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from distsim.cli.output import console, json_option, print_json, summary_table, trace_option
from distsim.cli.simulate import rule_option
from distsim.errors import RunError
from distsim.files import check_writable
from distsim.metrics import summary
from distsim.progress import bar
from distsim.runtime.emulation.report import describe
from distsim.runtime.measure import measure as run
from distsim.scenario import Scenario

emulate_option = click.option(
    "--emulate",
    is_flag=True,
    help="Impose the scenario's links: a host of its own for every worker and server, on this machine. "
    "Linux; needs iproute2, and root or user namespaces.",
)
deadline_option = click.option(
    "--deadline",
    type=click.FloatRange(min=1.0),
    metavar="SECONDS",
    help="End the real run after this long (default: estimated).",
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@emulate_option
@rule_option
@trace_option
@deadline_option
@json_option
def measure(
    file: Path, emulate: bool, rule: str | None, trace: Path | None, deadline: float | None, as_json: bool
) -> None:
    """Run a scenario FILE for real: one process per worker and server, with torch.distributed.

    Without --emulate the machine's own links carry the bytes, whatever the scenario says about bandwidth.
    """
    scenario = Scenario.load(file)
    if trace:
        check_writable(trace)
    try:
        with bar(scenario.name) as progress:
            measured = run(scenario, emulate=emulate, rule=rule, deadline_seconds=deadline, progress=progress)
    except RunError as error:
        if trace and error.trace is not None:
            error.trace.save(trace)
            raise RunError(f"{error}\nwhat was recorded until then: {trace}") from error
        raise
    if trace:
        measured.save(trace)
    found = summary(measured)
    if as_json:
        print_json(found.as_dict())
    else:
        console().print(summary_table(scenario.name, "measured", found))
        if emulate:
            console().print(Text(f"  {describe(measured.metadata['emulation'])}"), soft_wrap=True)
