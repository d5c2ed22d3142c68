"""`distsim simulate`: the predicted run of a scenario."""

from __future__ import annotations

from pathlib import Path

import click

from distsim.calibration import Calibration, far_beyond, lacking
from distsim.cli.footnotes import footnotes
from distsim.cli.output import PATH, console, json_option, print_json, print_notes, trace_option, warn
from distsim.cli.summary_tables import summary_table
from distsim.files import check_writable
from distsim.metrics import summary
from distsim.progress import Phase, bar
from distsim.scenario import Scenario
from distsim.simulation import simulate as run

rule_option = click.option(
    "--rule", metavar="FILE:CLASS", help="Use a rule of your own instead of the policy's, such as my_rule.py:MyRule."
)


@click.command()
@click.argument("file", type=PATH)
@click.option("--calibration", type=PATH, help="Use the links and overheads of this calibration file.")
@rule_option
@trace_option
@json_option
def simulate(file: Path, calibration: Path | None, rule: str | None, trace: Path | None, as_json: bool) -> None:
    """Predict the run of a scenario FILE."""
    scenario = Scenario.load(file)
    known = Calibration.load(calibration) if calibration else None
    if known:
        warn([*far_beyond(known, scenario), *lacking(known, scenario)])
    if trace:
        check_writable(trace)
    with bar(f"simulate {scenario.name}", shown=not as_json) as report:
        report(Phase(f"{scenario.steps} steps of {scenario.cluster.workers} workers"))
        predicted = run(scenario, known, rule=rule)
        if trace:
            report(Phase("saving the trace"))
            predicted.save(trace)
        report(Phase("summing up"))
        found = summary(predicted)
    if as_json:
        print_json(found.as_dict())
    else:
        console().print(summary_table(scenario.name, "predicted", found))
        print_notes(footnotes(predicted))
