"""`distsim compare`: predicted and measured, side by side, with the causes of the difference."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from distsim.calibration import Calibration, cautions
from distsim.cli.before_start import agree_to_runs, with_own_models, yes_option
from distsim.cli.footnotes import footnotes, of_step
from distsim.cli.measure import deadline_option, emulate_option
from distsim.cli.output import PATH, console, json_option, print_json, print_notes, warn
from distsim.cli.simulate import rule_option
from distsim.cli.summary_tables import causes_line, comparison_table
from distsim.comparison import verdict
from distsim.errors import InputError
from distsim.experiment import Experiment, of_traces, predict_and_emulate, predict_and_measure
from distsim.files import check_writable, write_text
from distsim.metrics import regime_words
from distsim.progress import Phase, bar
from distsim.scenario import Scenario
from distsim.simulation import check_simulated
from distsim.trace import Trace


@click.command()
@click.argument("files", nargs=-1, type=PATH)
@emulate_option
@rule_option
@click.option("--calibration", type=PATH, help="Use the links of this calibration file instead of calibrating first.")
@click.option("--predicted", type=PATH, help="A saved trace to use as the prediction.")
@click.option("--measured", type=PATH, help="A saved trace to use as the measurement.")
@click.option("--html", type=PATH, help="Write a self-contained page with both timelines.")
@deadline_option
@yes_option
@json_option
def compare(
    files: tuple[Path, ...],
    emulate: bool,
    rule: str | None,
    calibration: Path | None,
    predicted: Path | None,
    measured: Path | None,
    html: Path | None,
    deadline: float | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Predict and really run each scenario FILE, then report prediction, measurement and error.

    An error is predicted - measured, in percent of the measurement, in percentage points or as a count: negative where
    the prediction is too low. Only the median over the steps is of absolute errors. With --json, `error_pct` holds
    `step_median` (absolute), `total` and `staleness` (signed, in percent), `causes` (signed, in mean worker-seconds;
    they add up to the error of the total), and `unmatched` (steps that only one of the runs has).

    The real run uses this machine's own links. A short calibration of the same collective comes first, and replaces
    the scenario's bandwidth and latency in the prediction. With --emulate the scenario's links are imposed, and the
    prediction uses them; where the kernel cannot impose the latency, the prediction uses the measured latency.
    --calibration FILE replaces both; with --emulate, FILE must have been made with --emulate on the same links. With
    --predicted and --measured two saved traces are compared instead.
    """
    _check_inputs(files, predicted, measured)
    _check_emulation(emulate, files)
    if html:
        check_writable(html)
    for option, value in (("--calibration", calibration), ("--rule", rule)):
        if value and not files:
            raise InputError.of(
                option, str(value), "changes nothing about saved traces", "leave it out, or name scenario files"
            )
    if predicted and measured:
        compared = [_saved(predicted, measured)]
    else:
        known = Calibration.load(calibration) if calibration else None
        scenarios = [Scenario.load(file) for file in files]
        for scenario in scenarios:
            check_simulated(scenario)
        scenarios = with_own_models(scenarios, shown=not as_json)
        warned = [told for scenario in scenarios for told in cautions(known, scenario, emulated=emulate)]
        warn(dict.fromkeys(warned))
        agree_to_runs(scenarios, yes=yes, emulate=emulate, deadline=deadline, shown=not as_json)
        run = predict_and_emulate if emulate else predict_and_measure
        compared = []
        for number, scenario in enumerate(scenarios, start=1):
            which = f", {number} of {len(scenarios)}" if len(scenarios) > 1 else ""
            with bar(f"compare {scenario.name}{which}", shown=not as_json) as report:
                compared.append(run(scenario, known, rule=rule, deadline_seconds=deadline, progress=report))
    warn(dict.fromkeys(told for one in compared for told in one.warnings))
    if html:
        with bar("compare", shown=not as_json) as report:
            report(Phase(f"drawing {html.name}"))
            from distsim.figures.report import html as page

            notes = [[*of_step(c.measured.scenario.policy), *_regime(c), *c.warnings, *c.notes] for c in compared]
            write_text(
                html, page([(c.comparison, c.predicted, c.measured, n) for c, n in zip(compared, notes, strict=True)])
            )
    if as_json:
        print_json([c.comparison.as_dict() for c in compared])
        return
    for one in compared:
        _print(one)
    told = verdict([one.comparison for one in compared])
    console().print(Text(told), soft_wrap=True)
    console().print(Text(_next(html)), soft_wrap=True)


def _saved(predicted: Path, measured: Path) -> Experiment:
    notes = [f"prediction: {predicted}", f"measurement: {measured}"]
    return of_traces(Trace.load(predicted), Trace.load(measured), notes)


def _check_inputs(files: tuple[Path, ...], predicted: Path | None, measured: Path | None) -> None:
    if bool(predicted) != bool(measured):
        given, other = ("--predicted", "--measured") if predicted else ("--measured", "--predicted")
        raise InputError.of(given, str(predicted or measured), f"needs {other} too", "name both traces")
    if bool(files) == bool(predicted):
        rule = "and saved traces exclude each other" if files else "and no saved traces: nothing to compare"
        raise InputError.of(
            "scenario files", [str(file) for file in files], rule, "name scenario files, or --predicted and --measured"
        )


def _check_emulation(emulate: bool, files: tuple[Path, ...]) -> None:
    if emulate and not files:
        raise InputError.of("--emulate", emulate, "changes nothing about saved traces", "leave it out")


def _next(html: Path | None) -> str:
    """What to do next, as the last line."""
    if html:
        return f"Next: open {html} in a browser: the timelines of both runs, and the causes of the errors."
    return "Next: add --html report.html to this command: it draws both timelines, and the causes of the errors."


def _print(compared: Experiment) -> None:
    console().print(comparison_table(compared.comparison))
    print_notes(footnotes(compared.predicted, compared.measured))
    print_notes([causes_line(compared.comparison), *_regime(compared), *compared.notes])
    console().print()


def _regime(compared: Experiment) -> list[str]:
    """The sentence on what the predicted time consists of, if it is any."""
    shares = compared.comparison.regime
    return [regime_words(shares)] if shares else []
