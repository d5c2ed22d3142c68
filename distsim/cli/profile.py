"""`distsim profile`: what the layers of a model of your own weigh, and when their gradients are there."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path

import click
from rich.table import Table

from distsim.cli.output import PATH, console, json_option, print_json, print_notes, table
from distsim.extras import need
from distsim.files import check_writable
from distsim.profile import Profile, Quartiles
from distsim.progress import bar
from distsim.units import alike, show
from distsim.validated_table import LARGEST_COUNT

MOST_STEPS = 100_000


@click.command()
@click.argument("model", metavar="FILE:FUNCTION")
@click.option("--batch", type=click.IntRange(1, LARGEST_COUNT), metavar="N",
              help="Repeat or cut the model's own batch to N samples.")  # fmt: skip
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True,
              help="Where the model computes: on one thread of the CPU, or on the first GPU.")  # fmt: skip
@click.option("--steps", type=click.IntRange(1, MOST_STEPS), default=20, show_default=True,
              help="Number of timed steps, after a warm-up.")  # fmt: skip
@click.option("--out", type=PATH, help="Write the profile, for a scenario's [workload] profile.")
@json_option
def profile(model: str, batch: int | None, device: str, steps: int, out: Path | None, as_json: bool) -> None:
    """Measure the profile of a model of your own: bytes and times of its layers.

    FUNCTION takes no arguments and returns (module, batch): a torch.nn.Module, and a tuple of tensors for which the
    module returns the loss. A layer is a parameter that gets a gradient. Forward is its share of a forward pass; ready
    is the time from the start of backward until its gradient is there. Spread is half the distance between the
    quartiles over the steps, in percent.

    \b
        distsim profile my_model.py:build --out profile.json
        distsim figure profile profile.json -o profile.html
    """
    if out:
        check_writable(out)
    need("torch", "distsim profile")
    # What the model's own code prints must not mix with the result.
    with bar(f"profile {Path(model).name}", shown=not as_json) as report, redirect_stdout(sys.stderr):
        from distsim.runtime.profiling.profile import profile as measured

        found = measured(model, batch=batch, device=device, steps=steps, report=report)
    if out:
        found.save(out)
    if as_json:
        print_json(found.as_dict())
        return
    console().print(_table(found))
    print_notes([
        f"batch of {found.batch} on {found.device}, torch {found.torch}, median of {found.steps} steps; "
        f"at most {show(found.peak_bytes, 'byte')} of memory",
        f"core-seconds: forward {show(found.core_seconds.forward, 'second')}, backward "
        f"{show(found.core_seconds.backward, 'second')}, optimizer {show(found.core_seconds.optimizer, 'second')}",
    ])  # fmt: skip
    click.echo(f'Next: write profile = "{out.name}" in [workload] of a scenario, and simulate it.' if out
               else "Next: add --out profile.json, and write its name in [workload] of a scenario.")  # fmt: skip


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
    rows.add_row("optimizer (SGD)", "", "", optimizer, _spread(found.optimizer_seconds, found.optimizer_quartiles))
    rows.add_row("whole step", "", "", show(found.step_seconds, "second"), "")
    return rows


def _spread(middle: float, quartiles: Quartiles) -> str:
    """Half the distance between the quartiles, in percent of the median."""
    return f"{50.0 * (quartiles[1] - quartiles[0]) / middle:.0f} %" if middle else ""
