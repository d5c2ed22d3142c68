"""Real runs over torch.distributed: the same scenarios and schedules as in the simulator, with a process per rank.

Doors for callers, none of which imports torch:

measure        scenarios in, measured traces out
collective     one schedule in, the transfers that it really took out
calibrate      many small runs, for `distsim calibrate`
limits, roles, schedule_table: what cannot be run for real, what each rank is, and how a schedule reaches the ranks

Rooms, each of which imports only from those below it:

ranks          what each rank does: workers, servers, all-reduce peers, DDP, pipelines, FlexRR, failures on purpose
devices        where a rank works: CPU or GPU, and when its work was done
transport      how numbers travel; its module `backend` alone calls torch.distributed
launch         starting, watching and ending the processes, and saying what went wrong
recording      what ranks record, and the trace that is merged from it
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
