"""`distsim simulate`: the predicted run of a scenario."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from click.core import ParameterSource

from distsim.calibration import Calibration, cautions
from distsim.cli.footnotes import footnotes
from distsim.cli.memory_options import check_fits, in_words, optimizer_option
from distsim.cli.output import PATH, console, json_option, print_json, print_notes, seconds, trace_option, warn
from distsim.cli.summary_tables import summary_table
from distsim.errors import InputError
from distsim.files import check_writable
from distsim.memory import Held
from distsim.metrics import summary
from distsim.progress import Phase, bar
from distsim.scenario import Scenario
from distsim.simulation import simulate as run
from distsim.trace import Trace

rule_option = click.option(
    "--rule", metavar="FILE:CLASS", help="Use a rule of your own instead of the policy's, such as my_rule.py:MyRule."
)


@click.command()
@click.argument("file", type=PATH)
@click.option("--calibration", type=PATH, help="Use the links and overheads of this calibration file.")
@rule_option
@click.option("--memory", metavar="SIZE", help='Refuse a run whose workers hold more than a device, such as "80GB".')
@optimizer_option
@trace_option
@click.option("--start", metavar="TIME", help="Save the trace from here on, such as '250 ms'.")
@click.option("--end", metavar="TIME", help="Save the trace until here, such as '1 s'.")
@json_option
def simulate(
    file: Path, calibration: Path | None, rule: str | None, memory: str | None, optimizer: str, trace: Path | None,
    start: str | None, end: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Predict the run of a scenario FILE."""
    window = _window(start, end, trace)
    scenario = Scenario.load(file)
    kept = _fits(scenario, memory, optimizer)
    known = Calibration.load(calibration) if calibration else None
    if known:
        warn(cautions(known, scenario))
    if trace:
        check_writable(trace)
    with bar(f"simulate {scenario.name}", shown=not as_json) as report:
        report(Phase(f"{scenario.steps} steps of {scenario.cluster.workers} workers"))
        predicted = run(scenario, known, rule=rule)
        if trace:
            report(Phase("saving the trace"))
            (predicted if window is None else predicted.between(window[0], window[1] or _over(predicted))).save(trace)
        report(Phase("summing up"))
        found = summary(predicted)
    if as_json:
        print_json(found.as_dict() | ({} if kept is None else {"held_bytes": asdict(kept) | {"total": kept.total}}))
    else:
        console().print(summary_table(scenario.name, "predicted", found))
        fits = [] if kept is None else [f"the worker with most holds {in_words(kept)}, with {optimizer}"]
        print_notes([*footnotes(predicted), *fits])


def _fits(scenario: Scenario, memory: str | None, optimizer: str) -> Held | None:
    """What a worker holds at most, where --memory asks for it."""
    if memory is not None:
        return check_fits(scenario, memory, optimizer)
    if click.get_current_context().get_parameter_source("optimizer") is ParameterSource.COMMANDLINE:
        raise InputError.of("--optimizer", optimizer, "is about the memory that --memory limits", "add --memory 80GB")
    return None


def _window(start: str | None, end: str | None, trace: Path | None) -> tuple[float, float | None] | None:
    """The part of the run to save, until its end where `end` is missing; None for the whole run."""
    given = {option: text for option, text in (("--start", start), ("--end", end)) if text is not None}
    if given and trace is None:
        option, text = next(iter(given.items()))
        raise InputError.of(option, text, "is about the trace that --trace saves", "add --trace run.json")
    times = {option: seconds(option, text) for option, text in given.items()}
    first, last = times.get("--start", 0.0), times.get("--end")
    if last is not None and last <= first:
        raise InputError.of("--end", end, f"must be later than --start, {start or '0 s'}", "write a later time")
    return (first, last) if given else None


def _over(trace: Trace) -> float:
    """A moment after all that the trace tells."""
    return float(trace.spans.end_seconds.max(initial=trace.total_seconds)) + 1.0
