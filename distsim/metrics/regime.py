"""The regime of a prediction: what the workers' time consists of, and so what the prediction relies on.

slept       the drawn time of steps, in which a real worker sleeps: predicted best
computed    forward and backward of a model, at the pace of a worker that has a core of its own
shared      what computing takes longer because ranks share cores
exchanged   communication that no compute hides
waited      the rest: waiting for other workers and for servers
"""

from __future__ import annotations

import numpy as np

from distsim.metrics.worker_time import worker_seconds
from distsim.trace import COMPUTE_KINDS, Trace

REGIMES = ("slept", "computed", "shared", "exchanged", "waited")


def regime(trace: Trace) -> dict[str, float] | None:
    """The shares of a simulated run's time, the mean over workers; they add up to 1. None where a run takes no time.

    >>> from distsim import example, simulate
    >>> {name: round(share, 2) for name, share in (regime(simulate(example("synchronous_ring"))) or {}).items()}
    {'slept': 0.69, 'computed': 0.0, 'shared': 0.0, 'exchanged': 0.08, 'waited': 0.24}
    """
    trace.check_whole("regime(trace)")
    if trace.total_seconds <= 0.0:
        return None
    parts = {name: float(seconds.mean()) for name, seconds in worker_seconds(trace).items()}
    work = trace.spans.of_kind(*COMPUTE_KINDS)
    steps = len(np.unique(np.stack([work.worker, work.step]), axis=1).T) / trace.workers
    cores = (trace.metadata.get("calibration") or {}).get("cores") or {}
    if cores or trace.scenario.workload.profile is not None:
        working = max(parts["compute"] - _drawn(trace), 0.0)
    else:
        working = min(trace.scenario.compute.added_seconds * steps, parts["compute"])
    computed = min(cores["step_seconds"] * steps, working) if cores else working
    seconds = {
        "slept": parts["compute"] - working, "computed": computed, "shared": working - computed,
        "exchanged": parts["communication"], "waited": parts["waiting"],
    }  # fmt: skip
    return {name: seconds[name] / trace.total_seconds for name in REGIMES}


def _drawn(trace: Trace) -> float:
    """The drawn seconds of all computed steps, the mean over workers."""
    work, times = trace.spans.of_kind(*COMPUTE_KINDS), trace.scenario.compute_times()
    pairs = np.unique(np.stack([work.worker, work.step]), axis=1).T
    return sum(times(int(worker), int(step)) for worker, step in pairs) / trace.workers


def regime_words(shares: dict[str, float]) -> str:
    """One sentence for a report.

    >>> regime_words({"slept": 0.5, "computed": 0.25, "shared": 0.125, "exchanged": 0.125, "waited": 0.0})
    'of the predicted time, workers sleep 50 %, compute 25 %, lack a core 12 %, exchange 12 % and wait 0 %'
    """
    words = ("sleep", "compute", "lack a core", "exchange", "wait")
    told = [f"{word} {100 * shares[name]:.0f} %" for word, name in zip(words, REGIMES, strict=True)]
    return f"of the predicted time, workers {', '.join(told[:-1])} and {told[-1]}"
