"""One call of a collective in time: which chunks move between which ranks, and what each rank then holds.

A schedule says which transfers there are, and the rows of a simulation or of a trace say when each one took place. The
two together give the partial sums of every rank, and the bytes of every link, at any moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Flags, Floats, Integers
from distsim.cluster import Cluster
from distsim.collectives import Schedule, ScheduleError, Transfer
from distsim.engine import collective
from distsim.errors import InputError, problem
from distsim.trace import Transfers
from distsim.units import parse

PartCounts = NDArray[np.int32]
SAME_INSTANT = 1e-9  # a share of the whole time; moments that differ by less are rounded to one


@dataclass(frozen=True)
class Movement:
    """A transfer that took place: neighbouring chunks from one rank to another.

    chunk: the first one. start_seconds: when it began, latency included. sums: for each of its chunks, what the
    target holds of it after the end, as in `ChunkMovements`.
    """

    source: int
    target: int
    chunk: int
    start_seconds: float
    end_seconds: float
    num_bytes: float
    sums: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ChunkMovements:
    """All transfers of one call, in the order of their ends, and what the ranks hold of the sums.

    What a rank holds of a chunk is a number: of how many workers' parts it is the sum. 0: the rank has nothing. A
    negative number is a wrong sum of so many parts, which has some worker's part twice.

    name: of the schedule. workers: ranks 0 to workers - 1; the others are servers. start: what the ranks hold at
    first, shape (ranks, chunks). parts: how many parts a complete sum has, of the same shape. wanted: which chunks a
    rank must have complete at the end, of the same shape. fault: why the schedule is wrong; "" for a right one.
    """

    name: str
    workers: int
    movements: tuple[Movement, ...]
    start: Integers
    parts: Integers
    wanted: Flags
    fault: str

    @classmethod
    def of(cls, schedule: Schedule, rows: Transfers, num_bytes: float) -> ChunkMovements:
        """The call of which `rows` are the transfers. A wrong schedule moves its chunks too, and has a `fault`.

        rows: of a simulation, or of one collective of a trace (with `collective` equal to one number); the first
        transfer begins at 0 s. num_bytes: of all chunks together.
        Raises ScheduleError where the schedule names a rank or a chunk that is not there, and InputError where the rows
        are not the transfers of this schedule.
        """
        fault = _fault(schedule)
        transfers = [transfer for _, transfer in schedule.transfers()]
        places = _rows_of(transfers, rows, schedule, num_bytes)
        starts, ends = np.split(_moments(np.concatenate([rows.start_seconds[places], rows.end_seconds[places]])), 2)
        carried = _carried(schedule)
        held = next(schedule.states())
        start, parts = _sums(held), _whole(schedule, held)
        movements = []
        for number in sorted(range(len(transfers)), key=lambda one: (ends[one], one)):
            one = transfers[number]
            pieces = slice(one.chunk, one.chunk + one.chunks)
            held[one.target, pieces] = carried[number] + (held[one.target, pieces] if one.reduce else 0)
            movements.append(
                Movement(
                    one.source, one.target, one.chunk, float(starts[number]), float(ends[number]),
                    float(rows.bytes[places[number]]), tuple(_sums(held[one.target, pieces]).tolist()),
                )
            )  # fmt: skip
        return cls(schedule.name, schedule.workers, tuple(movements), start, parts, schedule.wanted, fault)

    @classmethod
    def simulated(cls, schedule: Schedule, cluster: Cluster, size: float | str) -> ChunkMovements:
        """One call on the simulated network; all ranks join at 0 s.

        size: of the gradient, in bytes, or as "64 MB".

        >>> from distsim.collectives import ring
        >>> found = ChunkMovements.simulated(ring(4), Cluster(workers=4, bandwidth="1 MB/s", latency="1 ms"), "1 MB")
        >>> round(found.end_seconds, 3), [movement.sums for movement in found.movements[::8]]
        (1.506, [(2,), (4,), (4,)])
        """
        num_bytes = parse(size, "byte") if isinstance(size, str) else size
        _fault(schedule)  # an unknown rank is told before the simulation looks for its NIC
        return cls.of(schedule, collective.run(schedule, cluster, num_bytes).transfers, num_bytes)

    @property
    def ranks(self) -> int:
        """Workers and servers."""
        return len(self.start)

    @property
    def chunks(self) -> int:
        """Chunks of the data."""
        return int(self.start.shape[1])

    @property
    def end_seconds(self) -> float:
        """The end of the last transfer; 0 if there is none."""
        return max((movement.end_seconds for movement in self.movements), default=0.0)

    @cached_property
    def bytes_per_link(self) -> tuple[Floats, Floats]:
        """The bytes on each rank's up-link and down-link in the whole call, each of shape (ranks,)."""
        return self.bytes_at(self.end_seconds)

    def bytes_at(self, seconds: float) -> tuple[Floats, Floats]:
        """The bytes on each rank's up-link and down-link until then, each of shape (ranks,).

        The bytes of a transfer come evenly from its start to its end.
        """
        up, down = np.zeros(self.ranks), np.zeros(self.ranks)
        for movement in self.movements:
            so_far = movement.num_bytes * _progress(movement, seconds)
            up[movement.source] += so_far
            down[movement.target] += so_far
        return up, down

    def sums_at(self, seconds: float) -> Integers:
        """What each rank holds of each chunk then, shape (ranks, chunks)."""
        sums = self.start.copy()
        for movement in self.movements:
            if movement.end_seconds > seconds:
                break
            sums[movement.target, movement.chunk : movement.chunk + len(movement.sums)] = movement.sums
        return sums

    def complete_at(self, seconds: float) -> int:
        """How many of the wanted chunks are complete then, of all ranks together."""
        return int((self.wanted & (self.sums_at(seconds) == self.parts)).sum())

    def under_way(self, seconds: float) -> list[tuple[Movement, float]]:
        """The transfers under way then, each with the share of its time that is over."""
        now = (one for one in self.movements if one.start_seconds <= seconds < one.end_seconds)
        return [(one, _progress(one, seconds)) for one in now]

    @cached_property
    def moments_seconds(self) -> list[float]:
        """0, and the moments at which a transfer starts or ends, in order."""
        return sorted({0.0, *chain.from_iterable((one.start_seconds, one.end_seconds) for one in self.movements)})

    def cut(self, pieces: int) -> ChunkMovements:
        """The same call with every chunk cut into this many, which move together."""
        if pieces == 1:
            return self
        start, parts = np.repeat(self.start, pieces, axis=1), np.repeat(self.parts, pieces, axis=1)
        wanted = np.repeat(self.wanted, pieces, axis=1)
        movements = tuple(
            replace(one, chunk=one.chunk * pieces, sums=tuple(np.repeat(one.sums, pieces).tolist()))
            for one in self.movements
        )
        return replace(self, movements=movements, start=start, parts=parts, wanted=wanted)

    def content(self) -> dict[str, Any]:
        """All of this as JSON, for a page.

        Movements are [source, target, first chunk, start, end, bytes, sums], in the order of their ends; what the ranks
        hold and want is listed rank by rank. Times are in seconds.
        """
        return {
            "name": self.name,
            "start": self.start.tolist(),
            "parts": self.parts.tolist(),
            "wanted": self.wanted.astype(int).tolist(),
            "moments": self.moments_seconds,
            "movements": [
                [
                    one.source, one.target, one.chunk, one.start_seconds, one.end_seconds, one.num_bytes,
                    list(one.sums),
                ]
                for one in self.movements
            ],
        }  # fmt: skip


def _moments(seconds: Floats) -> Floats:
    """Times from the first one; those of one instant are equal, also where they were rounded in different ways.

    >>> _moments(np.array([5.0, 7.0, 7.0 + 1e-12])).tolist()
    [0.0, 2.0, 2.0]
    """
    if not len(seconds):
        return seconds
    order = np.argsort(seconds, kind="stable")
    since = seconds[order] - seconds[order[0]]
    new = np.diff(since, prepend=-np.inf) > SAME_INSTANT * since[-1]
    found = np.empty_like(seconds)
    found[order] = since[new][np.cumsum(new) - 1]
    return found


def _progress(movement: Movement, seconds: float) -> float:
    """The share of the transfer's time that is over."""
    if seconds >= movement.end_seconds:
        return 1.0
    took = movement.end_seconds - movement.start_seconds
    return min(max((seconds - movement.start_seconds) / took, 0.0), 1.0)


def _fault(schedule: Schedule) -> str:
    """The error of a wrong schedule; raises it where the schedule cannot even be simulated."""
    for _, transfer in schedule.transfers():
        ranks, pieces = (transfer.source, transfer.target), transfer.carried
        known = min(ranks) >= 0 and max(ranks) < schedule.ranks and ranks[0] != ranks[1]
        if not (known and pieces and pieces[0] >= 0 and pieces[-1] < schedule.chunks):
            rule = f"must be between two of the {schedule.ranks} ranks, with chunks of 0 to {schedule.chunks - 1}"
            raise ScheduleError(problem(f"schedule {schedule.name!r}: transfer", transfer, rule, "correct it"))
    try:
        schedule.check()
    except ScheduleError as error:
        if error.rank is None:
            raise
        return str(error)
    return ""


def _rows_of(transfers: Sequence[Transfer], rows: Transfers, schedule: Schedule, num_bytes: float) -> list[int]:
    """The place of each transfer's row. Of equal transfers the one of the earlier round began earlier."""
    chunk_bytes = num_bytes / schedule.chunks
    carried = np.rint(rows.bytes / chunk_bytes).astype(int) if chunk_bytes else np.ones(len(rows), int)
    found: Mapping[tuple[int, ...], list[int]] = defaultdict(list)
    for place in np.argsort(rows.start_seconds, kind="stable")[::-1].tolist():
        key = int(rows.source[place]), int(rows.target[place]), int(rows.chunk[place]), int(carried[place])
        found[key].append(place)
    keys = [(one.source, one.target, one.chunk, one.chunks) for one in transfers]
    places = [found[key].pop() if found[key] else -1 for key in keys]
    if len(rows) != len(transfers) or -1 in places:
        what = f"{len(rows)} rows"
        rule = f"must be the {len(transfers)} transfers of the schedule {schedule.name!r}, with {num_bytes:g} bytes"
        raise InputError.of("ChunkMovements.of(rows)", what, rule, "take the rows of one call of this schedule")
    return places


def _carried(schedule: Schedule) -> list[PartCounts]:
    """The parts in the chunks of each transfer: what its source has at the start of the round."""
    held = next(schedule.states())
    found = []
    for members in schedule.rounds:
        before = held.copy()
        for one in members:
            pieces = slice(one.chunk, one.chunk + one.chunks)
            found.append(before[one.source, pieces].copy())
            held[one.target, pieces] = found[-1] + (held[one.target, pieces] if one.reduce else 0)
    return found


def _sums(held: PartCounts) -> Integers:
    """The number of parts in each chunk; negative where some part is in it twice."""
    numbers: Integers = held.sum(axis=-1).astype(np.int64)
    numbers[(held > 1).any(axis=-1)] *= -1
    return numbers


def _whole(schedule: Schedule, held: PartCounts) -> Integers:
    """How many parts a complete sum has, shape (ranks, chunks): those of all workers, or of the rank's group."""
    if schedule.groups is None:
        return np.tile(held.sum(axis=(0, 2)), (schedule.ranks, 1)).astype(np.int64)
    members = [schedule.groups.members(rank) for rank in range(schedule.workers)]
    return np.array([held[own].sum(axis=(0, 2)) for own in members], dtype=np.int64)
