"""`distsim calibrate`: this machine's latency, bandwidth, overheads and compute times, for predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from distsim.calibration import Calibration, CalibrationPlan, MachineCalibration
from distsim.calibration.links import bytes_per_second
from distsim.calibration.machine import Fit
from distsim.calibration.operations import OF_MODELS
from distsim.cli.before_start import agree_to_seconds, warn_of_crowds, yes_option
from distsim.cli.measure import emulate_option
from distsim.cli.output import NOT_APPLICABLE, PATH, console, json_option, print_json, warn, wide_table
from distsim.cores import in_words
from distsim.errors import InputError
from distsim.files import check_writable, write_text
from distsim.progress import Phase, bar
from distsim.runtime.calibrate import calibrate as run
from distsim.runtime.calibrate import expected_of
from distsim.runtime.measure import check_machine
from distsim.units import SiUnit, cure, parse, show

DEFAULT = CalibrationPlan()
MOST_DIGITS = 9
RULE = f"must be whole numbers with commas between, each of at most {MOST_DIGITS} digits"
EMULATED = {"bandwidth": "1 Gbit/s", "latency": "0 s"}


def _numbers(_context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) <= MOST_DIGITS for part in parts):
        raise InputError.of(f"--{option.name}", text, RULE, "write 1,2,4")
    return tuple(map(int, parts))


def _sizes(_context: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        return tuple(parse(part.strip(), "byte") for part in text.split(","))
    except ValueError as error:
        raise InputError.of(f"--{option.name}", text, str(error), cure(error, "write '64 KiB,1 MiB,4 MiB'")) from None


def _pause(_context: click.Context, option: click.Parameter, text: str) -> float:
    try:
        return parse(text, "second")
    except ValueError as error:
        raise InputError.of(f"--{option.name}", text, str(error), cure(error, "write '20 ms'")) from None


@click.command()
@emulate_option
@click.option("--bandwidth", help=f"Bandwidth of every emulated NIC.  [default: {EMULATED['bandwidth']}]")
@click.option("--latency", help=f"Latency between two emulated NICs.  [default: {EMULATED['latency']}]")
@click.option("--out", type=PATH, help="Write the calibration file, for --calibration.")
@click.option("--workers", default=",".join(map(str, DEFAULT.workers)), show_default=True, callback=_numbers,
              metavar="N,N,…", help="Numbers of workers to measure all exchanges with.")  # fmt: skip
@click.option("--busy", default="", callback=_numbers, metavar="N,N,…",
              help="More numbers of workers, for compute only, with all workers busy.")  # fmt: skip
@click.option("--sizes", default="16 KiB,64 KiB,256 KiB,1 MiB,4 MiB", show_default=True,
              callback=_sizes, metavar="SIZE,SIZE,…", help="Sizes of the measured exchanges.")  # fmt: skip
@click.option("--model", "models", type=click.Choice(["mlp", "cnn", "transformer"]), multiple=True,
              default=DEFAULT.models, show_default=True,
              help="A model to measure compute with; repeatable.")  # fmt: skip
@click.option("--batch", type=click.IntRange(min=2), default=DEFAULT.batch, show_default=True,
              help="The largest batch of the models; a half and a quarter of this batch are measured too.")  # fmt: skip
@click.option("--pause", default="20 ms", show_default=True, callback=_pause,
              help="How long workers sleep before each exchange and in each step of a model.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(min=2), default=DEFAULT.repeats, show_default=True,
              help="Number of measurements of each size; a model's are made in short runs all along the calibration, "
              "and the run at the lower quartile counts.")  # fmt: skip
@click.option("--html", type=PATH, help="Write a page with measured times and fits.")
@yes_option
@json_option
def calibrate(
    emulate: bool, bandwidth: str | None, latency: str | None, out: Path | None, html: Path | None, yes: bool,
    as_json: bool, **plan: Any,
) -> None:  # fmt: skip
    """Measure the times of exchanges, messages and compute on this machine, and fit latency and bandwidth.

    Real runs measure the all-reduce of the backend and of the ring schedule, the parameter server's gather and
    broadcast, single messages, the server's own work, and a model's forward and backward with all ranks busy, without
    and with DDP. The calibration file serves predictions of other sizes, numbers of workers and policies:

    \b
        distsim calibrate --out machine.json
        distsim simulate run.toml --calibration machine.json

    With --emulate the links between the ranks are shaped to --bandwidth and --latency.
    """
    plan["bandwidth"], plan["latency"] = _links(bandwidth, latency, emulate=emulate)
    chosen = CalibrationPlan(**plan)
    for path in (out, html):
        if path:
            check_writable(path)
    check_machine(None)
    with bar("calibrate", shown=not as_json) as progress:
        progress(Phase("planning"))
        seconds = expected_of(chosen)
    warn_of_crowds(max(chosen.workers) + 1, *chosen.busy)
    agree_to_seconds(
        "calibration with workers", [*chosen.workers], seconds, "take fewer --repeats, --sizes or --workers", yes=yes
    )
    with bar("calibrate", shown=not as_json) as progress:
        machine = run(chosen, expected=seconds, progress=progress)
    found = Calibration(machine=machine)
    warn(machine.warnings())
    if out:
        found.save(out)
    if html:
        from distsim.figures.calibration import page

        write_text(html, page(machine))
    if as_json:
        print_json(found.as_dict())
        return
    console().print(_table(machine))
    for name, path in (("calibration", out), ("figure", html)):
        if path:
            click.echo(f"{name}: {path}")


def _links(bandwidth: str | None, latency: str | None, *, emulate: bool) -> tuple[float | None, float]:
    """The bandwidth (bytes/s) and latency (seconds) of the emulated links; None and 0 without --emulate."""
    given = {key: text for key, text in (("bandwidth", bandwidth), ("latency", latency)) if text is not None}
    if not emulate:
        for key, text in given.items():
            raise InputError.of(f"--{key}", text, "needs emulated links", "add --emulate, or leave it out")
        return None, 0.0
    return _quantity("bandwidth", given, "byte/second"), _quantity("latency", given, "second")


def _quantity(key: str, given: dict[str, str], unit: SiUnit) -> float:
    text = (EMULATED | given)[key]
    try:
        value = parse(text, unit)
    except ValueError as error:
        raise InputError.of(f"--{key}", text, str(error), cure(error, f"write '{EMULATED[key]}'")) from None
    if value < 0 or (value == 0 and unit != "second"):
        raise InputError.of(f"--{key}", text, "is not a possible value for a link", f"write '{EMULATED[key]}'")
    return value


def _table(machine: MachineCalibration) -> Table:
    links = f", {machine.links}" if machine.emulated else ""
    title = f"this machine, {in_words(machine.cores)}{links}"
    columns = ("", "workers", "latency (us)", "bandwidth (MB/s)", "R²", "miss")
    fits = wide_table(title, *columns, caption_justify="left")
    turns = {"the backend's all-reduce": machine.turn_seconds, "a schedule": machine.schedule_turn_seconds}
    told = " and ".join(f"{show(seconds, 'second')} longer in {what}" for what, seconds in turns.items() if seconds)
    turn = f" Where a worker computes on each core, a message takes {told}." if told else ""
    if handed := machine.hand_over_seconds:
        turn += f" Handing an exchange to another thread, and back, takes {show(handed, 'second')}."
    if machine.wake_seconds:
        turn += f" A worker that waited for a gather begins to compute {show(machine.wake_seconds, 'second')} after it"
        shared = machine.shared_wake_seconds
        apart = shared and shared != machine.wake_seconds
        turn += f", or {show(shared, 'second')} where several workers share a core." if apart else "."
    fits.caption = Text(
        "latency: the time of a message without bytes. [95 % intervals]. miss: the largest relative error of the "
        f"fitted line. core time: what a rank's own threads work for an exchange, on all cores together.{turn}"
    )
    for fit in machine.fits:
        fits.add_row(*(Text(cell) for cell in _row(fit)), style="yellow" if fit.line.poor else None)
    for fit in machine.work:
        _, *cells = _row(fit)
        fits.add_row(*map(Text, (f"{fit.title}, core time", *cells)), style="yellow" if fit.line.poor else None)
    return fits


def _row(fit: Fit) -> tuple[str, ...]:
    line = fit.line
    if fit.operation in OF_MODELS:
        unit = f"{_with_interval(line.unit_seconds, line.unit_interval, 1e6)} us/{OF_MODELS[fit.operation]}"
    elif line.unit_seconds:
        fastest, slowest = (bytes_per_second(bound) for bound in line.unit_interval)
        unit = _with_interval(1 / line.unit_seconds, (slowest, fastest), 1e-6)
    else:
        unit = NOT_APPLICABLE
    return (
        fit.title, ",".join(map(str, fit.workers)), _with_interval(line.fixed_seconds, line.fixed_interval, 1e6),
        unit, f"{line.r_squared:.2f}", f"{100 * line.largest_miss:.0f} %",
    )  # fmt: skip


def _with_interval(value: float, bounds: tuple[float, float], scale: float) -> str:
    value, low, high = (float(f"{number * scale:.3g}") for number in (value, *bounds))
    return f"{value:g} [{low:g}, {high:g}]"
