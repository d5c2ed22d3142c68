"""`distsim profile`: what the layers of a model of your own weigh, and when their gradients are there."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path

import click
from rich.table import Table

from distsim.cli.output import PATH, console, json_option, print_json, print_notes, table, warn
from distsim.extras import need
from distsim.files import check_writable
from distsim.profile import Profile, Quartiles
from distsim.profiler_trace import UNKNOWN, read_profiler_trace
from distsim.progress import bar
from distsim.units import alike, show
from distsim.validated_table import LARGEST_COUNT

MOST_STEPS = 100_000
MOST_WORKERS = 1024
NO_PEAK = "; the trace tells no memory: record it with profile_memory=True"


@click.command()
@click.argument("model", metavar="[FILE:FUNCTION]", required=False)
@click.option("--trace", type=PATH, help="Measure nothing: read the profile from this trace of torch.profiler.")
@click.option("--batch", type=click.IntRange(1, LARGEST_COUNT), metavar="N",
              help="Repeat or cut the model's own batch to N samples. With --trace: a step's samples.")  # fmt: skip
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True,
              help="Where the model computes: on one thread of the CPU, or on the first GPU.")  # fmt: skip
@click.option("--steps", type=click.IntRange(1, MOST_STEPS), default=20, show_default=True,
              help="Number of timed steps, after a warm-up.")  # fmt: skip
@click.option("--busy", type=click.IntRange(1, MOST_WORKERS), metavar="N",
              help="How many workers then compute on a core each, for the pace of busy cores; 1: measure none.  "
                   "[default: one a core, at most 4]")  # fmt: skip
@click.option("--out", type=PATH, help="Write the profile, for a scenario's [workload] profile.")
@json_option
def profile(
    model: str | None, trace: Path | None, batch: int | None, device: str, steps: int, busy: int | None,
    out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure the profile of a model of your own: bytes and times of its layers.

    FUNCTION takes no arguments and returns (module, batch): a torch.nn.Module, and a tuple of tensors for which the
    module returns the loss. A layer is a parameter that gets a gradient. Forward is its share of a forward pass; ready
    is the time from the start of backward until its gradient is there. Spread is half the distance between the
    quartiles over the steps, in percent. On a CPU, short runs of one worker, of a worker for each core and of four
    workers on two cores then tell how much slower the model computes beside busy cores and on shared cores. With
    --trace, all but that is read from a trace that torch.profiler recorded elsewhere, such as on a cluster.

    \b
        distsim profile my_model.py:build --out profile.json
        distsim profile --trace trace.json --batch 32 --out profile.json
        distsim figure profile profile.json -o profile.html
    """
    if out:
        check_writable(out)
    if trace is not None:
        found = _read(trace, batch, model)
    elif model is not None:
        found = measured_profile(model, batch, device, steps, busy, shown=not as_json)
    else:
        raise click.UsageError("Missing argument 'FILE:FUNCTION', or --trace.")
    if out:
        found.save(out)
    if as_json:
        print_json(found.as_dict())
        return
    console().print(_table(found))
    print_notes(_notes(found))
    warn(found.warnings())
    click.echo(f'Next: write profile = "{out.name}" in [workload] of a scenario, and simulate it.' if out
               else "Next: add --out profile.json, and write its name in [workload] of a scenario.")  # fmt: skip


def _read(trace: Path, batch: int | None, model: str | None) -> Profile:
    if model is not None:
        raise click.UsageError("--trace is the model's trace: leave FILE:FUNCTION out.")
    if batch is None:
        raise click.UsageError("--trace does not tell the samples of a step: add --batch 32.")
    return read_profiler_trace(trace, batch)


def measured_profile(
    model: str, batch: int | None, device: str, steps: int, busy: int | None, *, shown: bool
) -> Profile:
    """Measures the model of FILE:FUNCTION; the arguments are the command's options. shown: whether a bar is."""
    need("torch", "distsim profile")
    # What the model's own code prints must not mix with the result.
    with bar(f"profile {Path(model).name}", shown=shown) as report, redirect_stdout(sys.stderr):
        from distsim.runtime.busy_profile import with_busy_cores
        from distsim.runtime.profiling.profile import profile as measured

        found = measured(model, batch=batch, device=device, steps=steps, report=report)
        return with_busy_cores(found, model, workers=busy, steps=steps, report=report)


def _notes(found: Profile) -> list[str]:
    torch = "" if found.torch == UNKNOWN else f", torch {found.torch}"
    memory = f"; tensors hold at most {show(found.peak_bytes, 'byte')}" if found.peak_bytes else NO_PEAK
    cores = found.core_seconds
    notes = [
        f"batch of {found.batch} on {found.device}{torch}, median of {found.steps} steps{memory}",
        f"core-seconds: forward {show(cores.forward, 'second')}, backward {show(cores.backward, 'second')}, "
        f"optimizer {show(cores.optimizer, 'second')}",
    ]
    if found.ddp_seconds is not None:
        seconds = show(found.ddp_seconds, "second")
        notes.append(f"a step of one worker under DDP, for predictions of DDP and sharded training: {seconds}")
    if found.busy is not None:
        pace, shared = 100 * found.busy.pace, found.busy.shared_pace
        notes.append(f"{found.busy.workers} workers at once: each core has {pace:.0f} % of the pace of one alone")
        if shared is not None:
            notes.append(f"workers that share cores: each core has {100 * shared:.0f} % of the pace of one alone")
    return notes


def _table(found: Profile) -> Table:
    rows = table(f"profile of {found.model}", "layer, by its gradient", "bytes", "forward", "ready", "spread")
    layers = found.layers
    forward = alike([*(layer.forward_seconds for layer in layers), found.forward_seconds], "second")
    ready = alike([*(layer.ready_seconds for layer in layers), found.backward_seconds], "second")
    for number, layer in enumerate(layers):
        size, spread = show(layer.bytes, "byte"), _spread(layer.ready_seconds, layer.ready_quartiles)
        rows.add_row(layer.name, size, forward[number], ready[number], spread, end_section=number + 1 == len(layers))
    last = _spread(found.backward_seconds, layers[-1].ready_quartiles)
    rows.add_row("all layers", show(found.gradient_bytes, "byte"), forward[-1], ready[-1], last)
    optimizer = show(found.optimizer_seconds, "second")
    rows.add_row("optimizer", "", "", optimizer, _spread(found.optimizer_seconds, found.optimizer_quartiles))
    rows.add_row("whole step", "", "", show(found.step_seconds, "second"), "")
    return rows


def _spread(middle: float, quartiles: Quartiles) -> str:
    """Half the distance between the quartiles, in percent of the median."""
    return f"{50.0 * (quartiles[1] - quartiles[0]) / middle:.0f} %" if middle else ""
