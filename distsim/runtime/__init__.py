"""Real runs over torch.distributed. This process needs no torch: only the ranks that it launches import it.

measure     the door: scenarios in, measured traces out
collective  another door: one schedule in, what its transfers really took out
launch      starts the ranks through torchrun, watches them, always ends them; with
            agent (torchrun itself), processes (ending them), output (what they print), diagnosis (what went wrong)
seat        what each rank has: a lifeline, a status slot, a stack dump, a record of its failure
rank        the entry point of each rank; session: rendezvous, start of the clock, then its story (roles, stories):
peers       compute -> all_reduce (synchronous, local SGD)
ddp         forward -> backward, while a stream all-reduces buckets; with layers, whose backward takes the drawn time
pipeline    receive -> compute -> send, for each micro-batch, then flush
worker      compute -> push -> wait -> pull
server      receive -> decide -> apply -> answer; with inbox, senders, messages, way, shared, parameters;
            learner: a server with a model
flexrr      a worker that helps others; foreman: who does what, by notes; sums: what helpers send
elastic     failures on purpose, checkpoints, restarts; journal, partial_trace: what a run that failed leaves
emulation   a cluster of network namespaces with shaped links
limits      what cannot be run for real; calibrate: many small runs, for `distsim calibrate`
node        one machine among several; offset, ping_pong: their clocks; gathering: introductions, and records to node 0
computation what a worker computes in a step: next to nothing, or a real forward and backward
device      where a rank works: on a GPU of its own, with sums by NCCL, or on the CPU; stopwatch: when work was done
all_reduce  sums by the backend, or by a schedule (schedules) over point-to-point messages, which traffic counts
recorder    what each rank saw and when; merge makes the trace of it, a module for each kind of story
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distsim.runtime.collective import RealCollective as RealCollective
    from distsim.runtime.collective import run_schedule as run_schedule
    from distsim.runtime.collective import run_schedules as run_schedules

__all__ = ["RealCollective", "run_schedule", "run_schedules"]


def __getattr__(name: str) -> object:
    """Loads a public name at its first use: ranks import this package before they take their seats."""
    if name not in __all__:
        raise AttributeError(f"module 'distsim.runtime' has no attribute {name!r}")
    from distsim.runtime import collective

    return getattr(collective, name)
