"""What a trace says in numbers: step time, waiting, communication, staleness, bytes. One meaning for every producer.

A worker's time from 0 to the last update is cut into three: compute; communication that no compute hides
("exposed"); and waiting, which is the rest. The three shares of a worker add up to 1. In a run with failures the rest
holds checkpoints, work that a failure undid, and restarts too: `paused_seconds` tells how much of it they are.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from distsim.arrays import Floats, Integers
from distsim.link_traffic import bytes_by_link, ended, hosts, why_none
from distsim.trace import COMMUNICATION_KINDS, COMPUTE_KINDS, PAUSE_KINDS, SpanKind, Spans, Trace, Transfers

PARTS = ("compute", "communication", "waiting")


@dataclass(frozen=True)
class StepSeconds:
    """Seconds per step: the time from one update to the next, or, without a global step, from compute to compute."""

    median: float
    mean: float
    p90: float


@dataclass(frozen=True)
class Summary:
    """The figures of one run. None: does not apply, or the trace does not hold it.

    total_seconds: the time of the last update. idle_share, exposed_communication_share: of the workers' time until
    then. bytes_per_link_max: over the up-links and down-links of all NICs, bytes of transfers that had ended by then;
    None where the run's transfers were not observed (a backend's own all-reduce). failures, goodput, and
    paused_shares (what of the idle share each of `PAUSE_KINDS` is, by its text): of a scenario that has failures.
    """

    step_seconds: StepSeconds | None
    total_seconds: float
    updates: int
    dropped_gradients: int
    mean_staleness: float | None
    idle_share: float | None
    exposed_communication_share: float | None
    bytes_per_link_max: float | None
    failures: int | None = None
    goodput: float | None = None
    paused_shares: dict[str, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `distsim simulate --json` prints them; of failures only where there may be some."""
        table = asdict(self)
        if self.failures is None:
            del table["failures"], table["goodput"], table["paused_shares"]
        return table


def summary(trace: Trace) -> Summary:
    """The figures of `trace`.

    >>> from distsim import example, simulate
    >>> found = summary(simulate(example("synchronous_ring")))
    >>> found.updates, found.dropped_gradients, found.mean_staleness
    (50, 0, 0.0)
    """
    steps = step_durations(trace).seconds
    shares = _shares(trace)
    return Summary(
        step_seconds=StepSeconds(float(np.median(steps)), float(steps.mean()), float(np.quantile(steps, 0.9)))
        if len(steps)
        else None,
        total_seconds=trace.total_seconds,
        updates=len(np.unique(trace.updates.version)),
        dropped_gradients=dropped_gradients(trace),
        mean_staleness=mean_staleness(trace),
        idle_share=shares.get("waiting"),
        exposed_communication_share=shares.get("communication"),
        bytes_per_link_max=_bytes_per_link_max(trace),
        failures=_failures(trace),
        goodput=goodput(trace) if _may_fail(trace) and trace.total_seconds > 0.0 else None,
        paused_shares=_paused_shares(trace) if _may_fail(trace) and trace.total_seconds > 0.0 else None,
    )


def dropped_gradients(trace: Trace) -> int:
    """How many gradients arrived and went into no update; those that were cancelled never arrived.

    >>> from distsim import example, simulate
    >>> dropped_gradients(simulate(example("synchronous_ring")))
    0
    """
    return int((~trace.contributions.applied & ~trace.contributions.cancelled).sum())


def _may_fail(trace: Trace) -> bool:
    return bool(trace.metadata.get("scenario", {}).get("failures"))


def _failures(trace: Trace) -> int | None:
    """How often all workers had to start again."""
    if not _may_fail(trace):
        return None
    restarts = trace.spans.of_kind(SpanKind.RESTART)
    return int(np.bincount(restarts.worker).max()) if len(restarts) else 0


@dataclass(frozen=True)
class StepDurations:
    """Seconds of each step, with the key by which predicted and measured steps are joined.

    worker: -1 for a global step. number: the version made, or the worker's own count of steps. Same shape, all three.
    """

    worker: Integers
    number: Integers
    seconds: Floats


def step_durations(trace: Trace) -> StepDurations:
    """The duration of each step: from one update to the next, the first from 0; or compute start to compute start.

    Only steps that ended by the last update count.
    """
    if trace.scenario.policy.has_global_step:
        updates = trace.updates.where(np.lexsort((trace.updates.time_seconds, trace.updates.version)))
        versions, first = np.unique(updates.version, return_index=True)
        last = np.maximum.reduceat(updates.time_seconds, first) if len(first) else updates.time_seconds
        return StepDurations(np.full(len(versions), -1), versions, np.diff(last, prepend=0.0))
    return _from_compute_to_compute(trace)


def _from_compute_to_compute(trace: Trace) -> StepDurations:
    """A worker's time from the start of one compute to the start of the next, where both lie before the end."""
    compute = trace.spans.of_kind(*COMPUTE_KINDS)
    compute = compute.where(compute.start_seconds <= trace.total_seconds)
    compute = compute.where(np.lexsort((compute.start_seconds, compute.worker)))
    # A step may be computed in several pieces: its first one starts it.
    first = np.ones(len(compute), dtype=bool)
    first[1:] = (np.diff(compute.worker) != 0) | (np.diff(compute.step) != 0)
    starts = compute.where(first)
    follows = np.flatnonzero(np.diff(starts.worker) == 0)
    return StepDurations(
        starts.worker[follows].astype(np.int64), starts.step[follows], np.diff(starts.start_seconds)[follows]
    )


def worker_seconds(trace: Trace) -> dict[str, Floats]:
    """Each worker's seconds until the last update by part (`PARTS`), shape (workers,); the parts add up to the total.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("backup_server"))
    >>> parts = worker_seconds(trace)
    >>> bool(np.allclose(sum(parts.values()), trace.total_seconds))
    True
    """
    total = trace.total_seconds
    compute = trace.spans.of_kind(*COMPUTE_KINDS)
    busy = trace.spans.of_kind(*COMPUTE_KINDS, *COMMUNICATION_KINDS)
    computing, working = _covered(compute, trace.workers, total), _covered(busy, trace.workers, total)
    # What is the same by its meaning may differ by a rounding.
    exposed, waiting = np.maximum(working - computing, 0.0), np.maximum(total - working, 0.0)
    return {"compute": computing, "communication": exposed, "waiting": waiting}


def paused_seconds(trace: Trace) -> dict[SpanKind, Floats]:
    """Of each worker's waiting (`worker_seconds`), what `PAUSE_KINDS` take; shape (workers,), of the kinds there are.

    >>> from distsim import example, simulate
    >>> paused_seconds(simulate(example("synchronous_ring")))
    {}
    """
    counted = trace.spans.of_kind(*COMPUTE_KINDS, *COMMUNICATION_KINDS, *PAUSE_KINDS)
    found: dict[SpanKind, Floats] = {}
    kinds = [*COMPUTE_KINDS, *COMMUNICATION_KINDS]
    present = [kind for kind in PAUSE_KINDS if (counted.kind == kind).any()]
    before = _covered(counted.of_kind(*kinds), trace.workers, trace.total_seconds) if present else np.empty(0)
    for kind in present:
        kinds.append(kind)
        until = _covered(counted.of_kind(*kinds), trace.workers, trace.total_seconds)
        found[kind], before = np.maximum(until - before, 0.0), until  # sums in two orders differ by a rounding
    return found


def _covered(spans: Spans, workers: int, total: float) -> Floats:
    """Seconds of [0, total] that lie in at least one of a worker's spans, shape (workers,)."""
    order = np.lexsort((spans.start_seconds, spans.worker))
    starts = np.clip(spans.start_seconds[order], 0.0, total)
    ends = np.clip(spans.end_seconds[order], 0.0, total)
    first = np.searchsorted(spans.worker[order], np.arange(workers + 1))
    seconds = np.zeros(workers)
    for worker in np.flatnonzero(np.diff(first)):
        own = slice(first[worker], first[worker + 1])
        latest = np.maximum.accumulate(ends[own])
        begins = np.maximum(starts[own], np.concatenate([[0.0], latest[:-1]]))
        seconds[worker] = np.maximum(latest - begins, 0.0).sum()
    return seconds


def _shares(trace: Trace) -> dict[str, float]:
    if trace.total_seconds <= 0.0:
        return {}
    return {part: float(seconds.mean() / trace.total_seconds) for part, seconds in worker_seconds(trace).items()}


def _paused_shares(trace: Trace) -> dict[str, float]:
    found = paused_seconds(trace)
    return {kind.text: float(np.mean(found.get(kind, 0.0)) / trace.total_seconds) for kind in PAUSE_KINDS}


def bytes_per_link(trace: Trace) -> tuple[Floats, Floats] | None:
    """Bytes on each host's up-link and down-link by the last update, each of shape (hosts,), or None if unobserved.

    A colocated server's are those of its worker's host. Where the workers of a node share a NIC, its bytes stand at
    the node's first worker. What crosses no NIC, inside a node or a host, counts nowhere.
    """
    if not len(trace.transfers):
        return None
    carried = bytes_by_link(trace, ended(trace))
    up, down = (np.array([carried.get((way, host), 0.0) for host in range(hosts(trace))]) for way in ("up", "down"))
    return up, down


def _bytes_per_link_max(trace: Trace) -> float | None:
    links = bytes_per_link(trace)
    return None if links is None else float(max(links[0].max(), links[1].max()))


class UnavailableError(ValueError):
    """A metric that this trace cannot give; the message says why."""


def throughput_samples_per_second(trace: Trace) -> float:
    """Samples whose gradients went into updates, per second until the last update.

    >>> from distsim import example, simulate
    >>> round(throughput_samples_per_second(simulate(example("synchronous_ring"))))
    1817
    """
    if trace.total_seconds <= 0.0:
        raise UnavailableError("throughput: the trace has no update that took time")
    return float(_weights(trace).sum()) * trace.scenario.workload.batch / trace.total_seconds


def scaling_efficiency(trace: Trace, one_worker: Trace) -> float:
    """Throughput per worker as a share of what one worker alone reaches: 1.0 is perfect scaling.

    >>> from distsim import example, simulate
    >>> ring = example("synchronous_ring")
    >>> alone = ring.replacing({"cluster.workers": 1})
    >>> scaling_efficiency(simulate(ring), simulate(alone)) < 1.0
    True
    """
    if one_worker.workers != 1:
        raise UnavailableError(f"scaling efficiency: compares with one worker, and that trace has {one_worker.workers}")
    ideal = trace.workers * throughput_samples_per_second(one_worker)
    return throughput_samples_per_second(trace) / ideal


def staleness_histogram(trace: Trace) -> dict[int, float]:
    """How many applied gradients had each staleness; of one in parts, each part counts as its share of the items.

    FlexRR's steps are done in ranges of items, each on the version its doer had read, and with several servers each
    applies a part of every gradient. A gradient counts once all the same: the values add up to their number.

    >>> from distsim import example, simulate
    >>> staleness_histogram(simulate(example("synchronous_ring")))
    {0: 200.0}
    """
    values, place = np.unique(trace.contributions.staleness, return_inverse=True)
    counts = np.bincount(place, _weights(trace), len(values))
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def mean_staleness(trace: Trace) -> float | None:
    """The mean over all applied gradients, parts counted as in `staleness_histogram`; None where there are none."""
    staleness = trace.contributions.staleness
    return float(np.average(staleness, weights=_weights(trace))) if len(staleness) else None


def _weights(trace: Trace) -> Floats:
    """For each applied row, the share of its gradient that it is."""
    applied = trace.contributions.where(trace.contributions.applied)
    if trace.servers <= 1 and not applied.first_item.any():
        return np.ones(len(applied))  # whole gradients
    order = np.lexsort((applied.step, applied.worker))
    worker, step, items = applied.worker[order], applied.step[order], applied.items[order].astype(np.float64)
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (np.diff(worker) != 0) | (np.diff(step) != 0)
    weights = np.empty(len(order))
    weights[order] = items / np.add.reduceat(items, np.flatnonzero(begins))[np.cumsum(begins) - 1]
    return weights


def messages(trace: Trace) -> int:
    """Transfers that had ended by the last update. Raises UnavailableError where none were observed."""
    return len(_observed(trace, "messages"))


def link_utilization(trace: Trace) -> dict[str, float]:
    """For each link, named as "up of host 2", its bytes as a share of what it could have carried until the last update.

    Raises UnavailableError where the run's transfers were not observed, or its links' speed is not known.
    """
    if trace.producer == "measured":
        raise UnavailableError(
            "link utilization: a measured run uses the machine's own links, whose speed is not known"
        )
    carried = bytes_by_link(trace, _observed(trace, "link utilization"))
    speeds = trace.scenario.cluster.capacities(trace.scenario.hosts)
    return {
        f"{way} of host {host}": carried.get((way, host), 0.0) / (speed * trace.total_seconds)
        for (way, host), speed in speeds.items()
    }


def goodput(trace: Trace) -> float:
    """The share of the time until the last update that was not lost to checkpoints, failures and restarts.

    >>> from distsim import example, simulate
    >>> goodput(simulate(example("synchronous_ring")))
    1.0
    """
    if trace.total_seconds <= 0.0:
        raise UnavailableError("goodput: the trace has no update that took time")
    kept_from_work = trace.spans.of_kind(*PAUSE_KINDS)
    lost = _covered(kept_from_work, trace.workers, trace.total_seconds)
    return 1.0 - float(lost.mean()) / trace.total_seconds


def price(trace: Trace) -> float:
    """What the run costs, in the scenario's currency: every host, by the hour, until the last update.

    Raises UnavailableError where the scenario has no `[cost]` table.
    """
    if trace.scenario.cost is None:
        raise UnavailableError("price: the scenario has no [cost] table with price_per_hour")
    return trace.scenario.cost.price_per_hour * trace.scenario.hosts * trace.total_seconds / 3600.0


def _observed(trace: Trace, metric: str) -> Transfers:
    if not len(trace.transfers):
        raise UnavailableError(f"{metric}: {why_none(trace)}")
    return ended(trace)
