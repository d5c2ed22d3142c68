"""The messages between the lifelines of a sequence diagram, computed from one trace without plotly.

Servers stand left of the workers. A push goes to a server, an answer comes from a server, and a transfer goes from
worker to worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.trace import COMPUTE_KINDS, PAUSE_KINDS, Trace, Transfers

MessageKind = Literal["push", "answer", "transfer"]
KINDS: tuple[MessageKind, ...] = ("push", "answer", "transfer")
SAME_SECONDS = 1e-9


@dataclass(frozen=True)
class Messages:
    """Messages of one kind, in columns: the transfers, the texts that hovering shows, and the versions.

    version: of the parameters that an answer carries, or that a gradient was computed from; None where it is not known.
    """

    transfers: Transfers
    text: list[str]
    version: list[int | None]

    def __len__(self) -> int:
        return len(self.text)


def order(trace: Trace) -> list[int]:
    """The ranks from left to right: servers stand in the middle, so that few messages cross a worker's lifeline."""
    left = -(-trace.workers // 2) if trace.servers else trace.workers
    servers = range(trace.workers, trace.workers + trace.servers)
    return [*range(left), *servers, *range(left, trace.workers)]


def places(trace: Trace) -> Floats:
    """The place of each rank's lifeline. Workers stand 1 apart; with more than 16 workers, servers stand further apart.

    >>> import distsim
    >>> places(distsim.simulate(distsim.example("backup_server")))    # five workers, and their server
    array([0., 1., 2., 4., 5., 3.])
    """
    ranks = np.array(order(trace))
    beside_server = (ranks[1:] >= trace.workers) | (ranks[:-1] >= trace.workers)
    steps = np.where(beside_server, max(1.0, trace.workers / 16), 1.0)
    found = np.empty(len(ranks))
    found[ranks] = np.concatenate([[0.0], np.cumsum(steps)])
    return found


def window(trace: Trace, steps: Sequence[int]) -> tuple[float, float]:
    """The first and the last second of these local steps, over all workers. Raises InputError where none ran.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("backup_server"))
    >>> start, end = window(trace, range(1))
    >>> start, bool(end > trace.updates.time_seconds.min())
    (0.0, True)
    """
    of_steps = np.isin(trace.spans.step, list(steps)) & ~np.isin(trace.spans.kind, PAUSE_KINDS)
    own = trace.spans.where((trace.spans.worker < trace.workers) & of_steps)
    if not len(own):
        most = int(trace.spans.step[~np.isin(trace.spans.kind, PAUSE_KINDS)].max(initial=0))
        raise InputError.of("sequence(steps)", steps, f"must be among the run's steps, 0 to {most}", "take one of them")
    return float(own.start_seconds.min()), float(own.end_seconds.max())


def messages(trace: Trace, start_seconds: float, end_seconds: float) -> dict[MessageKind, Messages]:
    """The messages that overlap the window, by kind."""
    transfers = trace.transfers
    shown = transfers.where((transfers.end_seconds > start_seconds) & (transfers.start_seconds < end_seconds))
    to_server, from_server = shown.target >= trace.workers, shown.source >= trace.workers
    found: dict[MessageKind, Messages] = {}
    for kind, rows in zip(KINDS, (to_server & ~from_server, from_server, ~to_server & ~from_server), strict=True):
        own = shown.where(rows)
        if len(own):
            found[kind] = _of_kind(trace, own, kind)
    return found


def _of_kind(trace: Trace, own: Transfers, kind: MessageKind) -> Messages:
    sources, targets = own.source.tolist(), own.target.tolist()
    if kind == "transfer":
        rows = zip(sources, targets, own.chunk.tolist(), strict=True)
        text = [f"chunk {chunk} from {trace.lane(source)} to {trace.lane(target)}" for source, target, chunk in rows]
        return Messages(own, text, [None] * len(text))
    read = _read_versions(trace)
    if kind == "push":
        told = [_step_before(read, source, start) for source, start in zip(sources, own.start_seconds, strict=True)]
        text = [
            f"{trace.lane(source)}: gradient" + (f" of step {step}, of version {version}" if step is not None else "")
            for source, (step, version) in zip(sources, told, strict=True)
        ]
        return Messages(own, text, [version for _, version in told])
    versions: list[int | None] = [
        _newest(trace, source, start) if (version := _version_after(read, target, end)) is None else version
        for source, target, start, end in zip(sources, targets, own.start_seconds, own.end_seconds, strict=True)
    ]
    text = [f"to {trace.lane(target)}: version {version}" for target, version in zip(targets, versions, strict=True)]
    return Messages(own, text, versions)


Reads = dict[int, tuple[Floats, list[int], list[int | None]]]  # by worker: starts of its computes, steps, versions


def _read_versions(trace: Trace) -> Reads:
    """The times when each worker began to compute a step, and the version that the worker read for this step."""
    rows = trace.contributions
    keys = zip(rows.worker.tolist(), rows.step.tolist(), strict=True)
    versions = dict(zip(keys, rows.read_version.tolist(), strict=True))
    compute = trace.spans.of_kind(*COMPUTE_KINDS)
    found: Reads = {}
    for worker in range(trace.workers):
        own = compute.where(compute.worker == worker)
        own = own.where(np.argsort(own.start_seconds, kind="stable"))
        steps = own.step.tolist()
        found[worker] = own.start_seconds, steps, [versions.get((worker, step)) for step in steps]
    return found


def _step_before(read: Reads, worker: int, seconds: float) -> tuple[int | None, int | None]:
    """The last step that the worker began before this time, and the version that the worker read for this step."""
    starts, steps, versions = read[worker]
    place = int(np.searchsorted(starts, seconds)) - 1
    return (steps[place], versions[place]) if place >= 0 else (None, None)


def _version_after(read: Reads, worker: int, seconds: float) -> int | None:
    """The version of the first step that the worker begins at or after this time."""
    starts, _, versions = read[worker]
    place = int(np.searchsorted(starts, seconds - SAME_SECONDS))
    return versions[place] if place < len(versions) else None


def _newest(trace: Trace, server: int, seconds: float) -> int:
    """The newest version of a server at this time: a run ends before some workers use what they read last."""
    made = (trace.updates.server == server) & (trace.updates.time_seconds <= seconds + SAME_SECONDS)
    return int(trace.updates.version[made].max(initial=0))
