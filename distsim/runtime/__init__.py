"""Real runs over torch.distributed: the same scenarios and schedules as in the simulator, with a process per rank.

Modules for callers, none of which imports torch:

measure        scenarios in, measured traces out
collective     one schedule in, its real transfers out
calibrate      many small runs, for `distsim calibrate`
limits, roles, schedule_table: the scenarios without a real run, the role of each rank, and the JSON form of a schedule

Packages, each of which imports only from packages below it:

ranks          the work of each rank: workers, servers, all-reduce peers, DDP, pipelines, FlexRR, failures on purpose
profiling      a model of the user's own: loading, checking and timing it
devices        CPU or GPU for each rank, and the times of its work
transport      messages and all-reduces; its module `backend` alone calls torch.distributed
launch         starting, watching and ending the processes, and diagnosing failures
recording      the records of ranks, and the trace that is merged from them
emulation      a cluster of network namespaces with shaped links, on one Linux machine

A run passes through them like this: `launch` starts torchrun (on an emulated network, if asked), every rank enters its
context and finds its job, `ranks` runs its role over `transport` and writes into `recording`, and the launching
process merges the records into a trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distsim.runtime.collective import RealCollective as RealCollective
    from distsim.runtime.collective import run_schedule as run_schedule
    from distsim.runtime.collective import run_schedules as run_schedules

__all__ = ["RealCollective", "run_schedule", "run_schedules"]


def __getattr__(name: str) -> object:
    """Loads a public name at its first use: every rank imports this package before it enters its context."""
    if name not in __all__:
        raise AttributeError(f"module 'distsim.runtime' has no attribute {name!r}")
    from distsim.runtime import collective

    return getattr(collective, name)
