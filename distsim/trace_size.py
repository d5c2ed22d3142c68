"""How large the trace of a run gets. A run that does not fit into the machine's memory is refused before it starts.

A trace has a row for every span, update, gradient and transfer. The count assumes the most rows that the scenario
allows: every worker waits whenever it can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from distsim.errors import InputError
from distsim.groups import ALL_REDUCE, GroupExchange
from distsim.pipeline_stages import stages_of
from distsim.policies import Ddp, FlexRR, Pipeline, Programmed
from distsim.units import show

if TYPE_CHECKING:
    from distsim.scenario import Scenario

LARGEST_SCHEDULE = 10**7  # transfers of one all-reduce, each of which the story keeps as an object with its gates
BYTES_PER_ROW = 100  # of memory while a run is simulated, for each row that `rows` counts
BYTES_PER_EVENT = 2_000  # of memory while a row is written as a Chrome trace event
COMFORT = 0.8  # the share of the memory that a cure takes, for other programs run as well


def memory_bytes() -> int:
    """The memory of this machine."""
    import psutil

    return int(psutil.virtual_memory().total)


def largest_rows() -> int:
    """The rows of a run, and of its checkpoints and failures, that fit into the memory of this machine."""
    return memory_bytes() // BYTES_PER_ROW


def check_story(scenario: Scenario) -> None:
    """Raises InputError where a run that is played event by event, with every transfer, does not fit this machine."""
    try:
        check(scenario, derived=False)
    except ValueError as error:
        raise InputError(str(error)) from None


def check(scenario: Scenario, *, derived: bool = True) -> None:
    """Raises ValueError where the trace of `scenario` does not fit this machine. derived: see `rows`."""
    found, most = rows(scenario, derived=derived), largest_rows()
    if found > most:
        steps, workers = scenario.steps, scenario.cluster.workers
        raise ValueError(
            f"steps = {steps} on {workers} workers with policy.kind = {scenario.policy.kind!r} make a trace of about "
            f"{found / 1e6:.5g} million rows, {_memory(found)}. Cure: {_cure(scenario, found, int(COMFORT * most))}"
        )


def _memory(found: int) -> str:
    return f"{show(found * BYTES_PER_ROW, 'byte')} of memory, and this machine has {show(memory_bytes(), 'byte')}"


def _cure(scenario: Scenario, found: int, most: int) -> str:
    steps = scenario.steps * most // found
    round_number = steps - steps % 10 ** (len(str(steps)) - 1)
    return f"write steps = {round_number} or fewer" if round_number else "take fewer workers, or fewer pieces of a step"


def check_rows(table: str, found: int, start_seconds: float, end_of: Callable[[int], float]) -> None:
    """Raises InputError where the rows of a table, which are computed when they are read, do not fit this machine.

    start_seconds: of the part of the run that is read. end_of: the end of a part that has so many rows.
    """
    if found > largest_rows():
        part = f"{start_seconds:.4g}, {_rounded_down(end_of(int(COMFORT * largest_rows()))):.4g}"
        raise InputError.of(
            table, found, f"are too many rows: {_memory(found)}",
            f"read a part that fits: trace.transfers_between({part}), or trace.between",
        )  # fmt: skip


def check_events(found: int, start_seconds: float, end_of: Callable[[int], float]) -> None:
    """Raises InputError where so many rows, written as Chrome trace events, do not fit this machine.

    start_seconds, end_of: as for `check_rows`.
    """
    needed = found * BYTES_PER_EVENT
    if needed > memory_bytes():
        start, end = start_seconds, _rounded_down(end_of(int(COMFORT * memory_bytes()) // BYTES_PER_EVENT))
        raise InputError.of(
            "trace events", found, f"take {show(needed, 'byte')} of memory, and this machine has "
            f"{show(memory_bytes(), 'byte')}",
            f"save columns (.npz), or a part that fits: trace.between({start:.4g}, {end:.4g}), on the command line "
            f'--start "{show(start, "second", 4)}" --end "{show(end, "second", 4)}"',
        )  # fmt: skip


def _rounded_down(seconds: float) -> float:
    """Four digits, which are what a message shows; 0 and below stay."""
    if seconds <= 0.0:
        return seconds
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 3)
    return math.floor(seconds / unit) * unit


def check_schedule(scenario: Scenario, exchange: GroupExchange) -> None:
    """Raises InputError where the schedule of one all-reduce, or other exchange, would fit no memory."""
    found = transfers(scenario, exchange)
    if found > LARGEST_SCHEDULE:
        smaller = [
            f'"{row.kind}"'
            for row in scenario.possible_collectives
            if not (row.needs_nodes or row.has_servers) and row.transfers(scenario.topology) <= LARGEST_SCHEDULE
        ]
        raise InputError.of(
            f"cluster.workers with communication.kind = {scenario.communication.kind!r}", scenario.cluster.workers,
            f"make {found:.2g} transfers in one {exchange.kind.replace('_', '-')}; at most {LARGEST_SCHEDULE:.0e} are "
            "possible", f"take fewer workers{', or kind = ' * bool(smaller)}{' or '.join(smaller)}",
        )  # fmt: skip


def rows(scenario: Scenario, *, derived: bool = True) -> int:
    """The most rows that the trace of `scenario` can have, without the rows of its failures.

    derived: whether the transfers of all-reduces among workers follow from a few numbers and are not kept as rows.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("backup_server"))
    >>> tables = (trace.spans, trace.updates, trace.contributions, trace.transfers)
    >>> sum(map(len, tables)) <= rows(trace.scenario) == 5 * 50 * 10
    True
    """
    steps, workers, policy = scenario.steps, scenario.cluster.workers, scenario.policy
    if isinstance(policy, Pipeline):
        stages = stages_of(policy, scenario.workload, workers)
        pieces = workers * stages.pieces  # each computed, waited for, and sent on by one span and another
        calls = sum(_all_reduce_rows(scenario, False, one.exchange) for one in stages.calls)
        return steps * (pieces * (1 + stages.sums_of_a_piece + 1 + 3) + calls + 3 * workers + 1)
    if isinstance(policy, Ddp):
        buckets = len(policy.buckets(scenario.workload.layer_bytes))
        return steps * workers * 3 + policy.updates(steps, workers) * buckets * _all_reduce_rows(scenario, derived)
    if isinstance(policy, Programmed):
        program = policy.program(scenario.workload, workers)
        exchanges = sum(_all_reduce_rows(scenario, derived, one.called) for one in program.exchanges)
        return steps * (workers * len(program.computations) + exchanges + workers + 1)
    if not scenario.server_decides:
        return steps * workers * 2 + policy.updates(steps, workers) * _all_reduce_rows(scenario, derived)
    # A step with a server: push and pull are three and four rows each, a gradient and its update one.
    per_server = 3 + 4 + 1 + 1
    pieces = policy.items * 4 if isinstance(policy, FlexRR) else 1
    return steps * workers * (pieces + per_server * len(scenario.servers))


def _all_reduce_rows(scenario: Scenario, derived: bool, exchange: GroupExchange = ALL_REDUCE) -> int:
    """Workers wait and communicate, transfers travel, and servers send and receive; then there is an update."""
    sent = transfers(scenario, exchange)
    kept = 2 * sent if scenario.servers else 0 if derived else sent
    return 2 * scenario.cluster.workers + kept + 1


def transfers(scenario: Scenario, exchange: GroupExchange = ALL_REDUCE) -> int:
    """How many transfers one all-reduce, or other exchange, of `scenario` has, without making its schedule."""
    topology = replace(scenario.topology, groups=exchange.groups)
    return scenario.communication.collective(exchange.kind).transfers(topology)
