"""The updates that a trace records, for a replay: their gradients, and the versions that the gradients read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distsim.errors import InputError
from distsim.policies.table import POLICIES, read_policy
from distsim.trace import NO_SERVER, Contributions, Trace


class Gradient(NamedTuple):
    """One worker's gradient of one step, or of a range of its items: the part [first, last) of the step's batch.

    first, last: shares of the batch, 0 and 1 for a whole step.
    """

    worker: int
    step: int
    read_version: int
    first: float
    last: float

    @property
    def whole(self) -> bool:
        """Whether this is the gradient of the whole batch."""
        return self.first <= 0.0 and self.last >= 1.0


class Update(NamedTuple):
    """A new version of the parameters, and the gradients that the update averages.

    The gradients are in the order in which the server added them up; without a server, by worker and step.
    """

    version: int
    seconds: float
    gradients: list[Gradient]


@dataclass(frozen=True)
class RecordedUpdates:
    """Everything that a replay needs of a trace.

    workers: the number that share the samples. averages_parameters: True if an update is the mean of the workers'
    parameters after separate descents; False if an update descends by the mean of the gradients. last_read: by version
    from 0 on, the last update with a gradient that read the version. batch, seed, touched: from the scenario.
    """

    workers: int
    averages_parameters: bool
    seconds: NDArray[np.float64]
    last_read: NDArray[np.int64]
    batch: int
    seed: int
    touched: float
    rows: Contributions
    bounds: list[int]
    kind: str

    def updates(self) -> Iterator[Update]:
        """All updates in order, from version 1 on."""
        rows = self.rows
        columns = (rows.worker, rows.step, rows.read_version, *_parts(rows))
        gradients = list(map(Gradient, *(column.tolist() for column in columns)))
        times = self.seconds.tolist()
        for number, seconds in enumerate(times):
            yield Update(number + 1, seconds, gradients[self.bounds[number] : self.bounds[number + 1]])


def recorded_updates(trace: Trace) -> RecordedUpdates:
    """The updates that `trace` records.

    Raises InputError, which names the missing field, where the trace lacks something that a replay needs,
    such as the rest of the run.

    >>> from distsim import example, simulate
    >>> found = recorded_updates(simulate(example("synchronous_ring")))
    >>> [gradient.worker for gradient in next(found.updates()).gradients]
    [0, 1, 2, 3]
    """
    trace.check_whole("recorded_updates(trace)")
    kind, table = _kind(trace)
    workers = trace.metadata.get("workers")
    if not isinstance(workers, int):
        raise _missing("metadata.workers", "which says how many share the samples")
    rows = _rows(trace)
    _check_ranges(trace, rows, workers)
    # Workers that share a batch compute parts of the same gradient.
    batches = np.array(read_policy(table["policy"]).batch_workers(workers), dtype=np.int32)
    rows = rows.where(np.isin(rows.worker, batches))
    rows = replace(rows, worker=np.searchsorted(batches, rows.worker).astype(np.int32))
    times = trace.updates.where(np.argsort(trace.updates.time_seconds, kind="stable"))
    seconds = np.zeros(int(trace.updates.version.max()))
    seconds[times.version - 1] = times.time_seconds  # with several servers, the time of the last server
    bounds = np.searchsorted(rows.version, np.arange(1, len(seconds) + 2)).tolist()
    last_read = np.zeros(len(seconds) + 1, dtype=np.int64)
    np.maximum.at(last_read, rows.read_version, rows.version)
    workload = table.get("workload", {})
    return RecordedUpdates(
        workers=len(batches),
        averages_parameters=POLICIES[kind].averages_parameters,
        seconds=seconds,
        last_read=last_read,
        batch=int(workload.get("batch", 1)),
        seed=int(table.get("seed", 0)),
        touched=float(table["policy"].get("touched", 1.0)),
        rows=rows,
        bounds=bounds,
        kind=kind,
    )


def _kind(trace: Trace) -> tuple[str, dict[str, Any]]:
    table: dict[str, Any] = trace.metadata.get("scenario") or {}
    kind = table.get("policy", {}).get("kind")
    if kind is None:
        raise _missing("metadata.scenario.policy.kind", "which says how gradients become an update")
    if kind not in POLICIES:
        raise InputError.of(
            "the trace's metadata.scenario.policy.kind", kind, "is a policy that no replay knows",
            f"take a trace of {', '.join(POLICIES)}",
        )  # fmt: skip
    return kind, table


def _rows(trace: Trace) -> Contributions:
    """The applied rows of one server, by version; within an update, in the order of the sum."""
    if not len(trace.updates):
        raise _missing("updates.version", "without which nothing is learned")
    rows = trace.contributions.where(trace.contributions.applied)
    absent = np.setdiff1d(trace.updates.version, rows.version)
    if len(absent):
        raise _missing("contributions.version", f"which names the gradients of update {absent[0]}")
    if (rows.read_version < 0).any():
        raise _missing("contributions.read_version", "which says what parameters a gradient was computed on")
    if (rows.read_version >= rows.version).any():
        late = rows.where(rows.read_version >= rows.version)
        raise InputError.of(
            "the trace's contributions.read_version", int(late.read_version[0]),
            f"is no older than the update {late.version[0]} that it went into", "record the trace anew",
        )  # fmt: skip
    servers = [rows.where(rows.server == server) for server in np.unique(rows.server)]
    _check_alike(servers)
    own = servers[0]  # other servers hold other parameters and may have added up in another order
    if own.server[0] == NO_SERVER:
        return own.where(np.lexsort((own.first_item, own.step, own.worker, own.version)))
    return own.where(np.argsort(own.version, kind="stable"))


def _check_alike(servers: list[Contributions]) -> None:
    """Raises InputError where servers averaged different gradients."""
    first, *others = (one.where(np.lexsort((one.step, one.worker, one.version))) for one in servers)
    for one in others:
        if not all(np.array_equal(getattr(one, name), getattr(first, name)) for name in ("version", "worker", "step")):
            raise InputError.of(
                "the trace's contributions.server", int(one.server[0]),
                f"averaged other gradients than server {first.server[0]}, and a replay knows one server's",
                "write servers = 1 in [communication]",
            )  # fmt: skip


def _check_ranges(trace: Trace, rows: Contributions, workers: int) -> None:
    """Raises InputError where a row names a worker or an update that does not exist."""
    strange = rows.worker[(rows.worker < 0) | (rows.worker >= workers)]
    if len(strange):
        raise InputError.of(
            "the trace's contributions.worker", int(strange[0]), f"is none of its {workers} workers",
            "record the trace anew",
        )  # fmt: skip
    versions = np.unique(trace.updates.version)
    absent = np.setdiff1d(np.arange(1, max(versions[-1], rows.version.max()) + 1), versions)
    if len(absent):
        raise _missing("updates.version", f"of which number {absent[0]} is absent")


def _parts(rows: Contributions) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The part of its step's batch that each row covers; the rows of a step together cover all of it."""
    last = rows.first_item + rows.items
    _, step = np.unique(rows.worker.astype(np.int64) * (rows.step.max() + 1) + rows.step, return_inverse=True)
    items = np.zeros(step.max() + 1, dtype=last.dtype)
    np.maximum.at(items, step, last)
    return rows.first_item / items[step], last / items[step]


def _missing(field: str, why: str) -> InputError:
    return InputError(
        f"the trace cannot be replayed: it has no {field}, {why}. Cure: take a trace of `distsim simulate` or "
        "`distsim measure`"
    )
