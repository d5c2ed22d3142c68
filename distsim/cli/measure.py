"""`distsim measure`: the real run of a scenario, under torchrun."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from distsim.cli.before_start import agree_to_runs, with_own_models, yes_option
from distsim.cli.footnotes import footnotes
from distsim.cli.node_options import done_here, node_of, node_options
from distsim.cli.output import PATH, console, json_option, print_json, print_notes, trace_option
from distsim.cli.simulate import rule_option
from distsim.cli.summary_tables import summary_table
from distsim.errors import InputError, RunError
from distsim.files import check_writable
from distsim.metrics import summary
from distsim.progress import bar
from distsim.runtime import other_work
from distsim.runtime.emulation.report import describe
from distsim.runtime.launch.launcher import INTERRUPTS
from distsim.runtime.launch.node import Node, shares
from distsim.runtime.measure import measure as run
from distsim.runtime.measure import measure_on_node
from distsim.runtime.roles import roles
from distsim.scenario import Scenario

emulate_option = click.option(
    "--emulate",
    is_flag=True,
    help="Run on emulated links: every worker and server becomes a host of its own on this machine. "
    "Needs Linux, iproute2, and root or user namespaces.",
)
deadline_option = click.option(
    "--deadline",
    type=click.FloatRange(min=1.0),
    metavar="SECONDS",
    help="End the real run after this time (default: estimated).",
)


@click.command()
@click.argument("file", type=PATH)
@emulate_option
@rule_option
@trace_option
@deadline_option
@yes_option
@node_options
@json_option
def measure(
    file: Path,
    emulate: bool,
    rule: str | None,
    trace: Path | None,
    deadline: float | None,
    yes: bool,
    nnodes: int,
    node_rank: int | None,
    rdzv_endpoint: str | None,
    as_json: bool,
) -> None:
    """Run a scenario FILE for real: one process per worker and server, with torch.distributed.

    Without --emulate the machine's own links carry the bytes; the scenario's bandwidth and latency are not used.
    With --nnodes the ranks are divided among that many machines, in order.
    """
    scenario = Scenario.load(file)
    node = node_of(nnodes, node_rank, rdzv_endpoint)
    if node and emulate:
        raise InputError.of("--emulate", True, "runs on one machine, and --nnodes on several", "leave one of them out")
    if node and not node.gathers:
        trace = None  # node 0 writes the trace; the other nodes may share its folder
    if trace:
        check_writable(trace)
    here = len(shares(scenario, len(roles(scenario)), node.nodes)[node.number]) if node else 0
    (scenario,) = with_own_models([scenario], shown=not as_json)
    agree_to_runs([scenario], yes=yes, emulate=emulate, deadline=deadline, shown=not as_json, processes=here)
    try:
        with bar(f"measure {scenario.name}", shown=not as_json) as progress:
            if node:
                measured = measure_on_node(scenario, node, rule=rule, deadline_seconds=deadline, progress=progress)
            else:
                measured = run(scenario, emulate=emulate, rule=rule, deadline_seconds=deadline, progress=progress)
    except (RunError, *INTERRUPTS) as error:
        found = getattr(error, "trace", None)
        if trace is None or found is None:
            raise
        found.save(trace)
        saved = f"what was recorded until then: {trace}"
        if isinstance(error, RunError):
            raise RunError(f"{error}\n{saved}") from error
        click.echo(saved, err=True)
        raise
    if measured is None:
        assert node is not None
        _tell_done(node, shares(scenario, len(roles(scenario)), node.nodes)[node.number], as_json)
        return
    if trace:
        measured.save(trace)
    found = summary(measured)
    if as_json:
        print_json(found.as_dict())
    else:
        console().print(summary_table(scenario.name, "measured", found))
        emulation = [describe(measured.metadata["emulation"])] if emulate else []
        print_notes([*footnotes(measured), *emulation, *other_work.notes(measured.metadata)])


def _tell_done(node: Node, ranks: Sequence[int], as_json: bool) -> None:
    """Tells the end of the run on a machine that does not get the trace."""
    if as_json:
        print_json({"node": node.number, "nodes": node.nodes, "ranks": list(ranks)})
    else:
        click.echo(done_here(node, ranks))
