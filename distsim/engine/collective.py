"""One call of a collective on the simulated network. Each transfer of the schedule starts when its gate opens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import simpy

from distsim.cluster import Cluster
from distsim.collectives import Schedule, Transfer
from distsim.communication import Sends
from distsim.engine.simulated_hosts import DelayedTransfer, SimulatedHosts
from distsim.network import Flow
from distsim.trace import Transfers

Send = Callable[[int, int, float], Flow | DelayedTransfer]  # (source, target, bytes) -> the transfer
Carried = Callable[[Transfer, float, float, float], None]  # (transfer, bytes, start seconds, end seconds)


@dataclass(frozen=True)
class Gates:
    """The conditions that each transfer of a schedule waits for. They are found once and serve all calls.

    A condition is that a rank joins, or that certain transfers have all ended. Transfers that wait for the same ones
    share the condition: for N workers, a server's N answers share the one condition that all N gradients have arrived.

    transfers: in order of rounds. needs: the number of conditions of each transfer. opens_on_join: by rank, the
    transfers that wait until the rank joins. counts: by condition, how many transfers must end. opens: by condition,
    the transfers that wait for it. counted_by: by transfer, the conditions that count its end. parts: by rank, the
    number of transfers that the rank takes part in.
    """

    transfers: list[Transfer]
    needs: list[int]
    opens_on_join: list[list[int]]
    counts: list[int]
    opens: list[list[int]]
    counted_by: list[tuple[int, ...]]
    parts: list[int]

    @classmethod
    def of(cls, schedule: Schedule, sends: Sends) -> Gates:
        """Gate "process": the rank has finished its transfers of earlier rounds. Gate "data": the chunk has arrived.

        The source must be ready. With rendezvous sends the target must be ready too. With eager sends a round in which
        a rank only receives waits for none of its earlier transfers, so the rank's next send waits for all of them.
        """
        transfers = [transfer for _, transfer in schedule.transfers()]
        gates = cls(
            transfers, [0] * len(transfers), [[] for _ in range(schedule.ranks)], [], [],
            [()] * len(transfers), [0] * schedule.ranks,
        )  # fmt: skip
        latest: list[list[int]] = [[] for _ in range(schedule.ranks)]  # by rank: when these have ended, all have ended
        arrivals: dict[tuple[int, int], list[int]] = {}  # (rank, chunk): the transfers that brought the chunk
        number = 0
        for members in schedule.rounds:
            this_round: dict[int, list[int]] = {}
            waited: set[int] = set()  # the ranks that begin this round when their earlier transfers have ended
            conditions: dict[object, int | None] = {}  # by what is ready: a rank, or (rank, its chunks)
            for transfer in members:
                ready = (transfer.source,) if sends == "eager" else (transfer.source, transfer.target)
                waited.update(ready)
                for rank in ready:
                    gates.opens_on_join[rank].append(number)
                    gates.needs[number] += 1
                    if schedule.gate == "process":
                        if rank not in conditions:
                            conditions[rank] = gates._condition(latest[rank])
                        gates._wait(number, conditions[rank])
                if schedule.gate == "data":
                    data = (transfer.source, transfer.chunk, transfer.chunks)
                    if data not in conditions:
                        brought = [arrivals.get((transfer.source, chunk), ()) for chunk in transfer.carried]
                        conditions[data] = gates._condition(dict.fromkeys(chain.from_iterable(brought)))
                    gates._wait(number, conditions[data])
                for rank in (transfer.source, transfer.target):
                    gates.parts[rank] += 1
                    this_round.setdefault(rank, []).append(number)
                number += 1
            first = number - len(members)
            for offset, transfer in enumerate(members):
                for chunk in transfer.carried:
                    arrivals.setdefault((transfer.target, chunk), []).append(first + offset)
            for rank, own in this_round.items():
                latest[rank] = own if rank in waited else latest[rank] + own
        return gates

    def _condition(self, ended: Collection[int]) -> int | None:
        """A new condition: that these transfers have ended. None if there is nothing to wait for."""
        if not ended:
            return None
        for earlier in ended:
            self.counted_by[earlier] += (len(self.counts),)
        self.counts.append(len(ended))
        self.opens.append([])
        return len(self.counts) - 1

    def _wait(self, number: int, condition: int | None) -> None:
        if condition is not None:
            self.opens[condition].append(number)
            self.needs[number] += 1


@dataclass
class CollectiveCall:
    """One call. Each rank joins when the rank is ready; the rank's event happens when all its transfers have ended."""

    environment: simpy.Environment
    gates: Gates
    chunk_bytes: float
    send: Send
    carried: Carried
    _needs: list[int] = field(init=False)
    _counts: list[int] = field(init=False)
    _parts: list[int] = field(init=False)
    _finished: list[simpy.Event] = field(init=False)

    def __post_init__(self) -> None:
        self._needs = self.gates.needs.copy()
        self._counts = self.gates.counts.copy()
        self._parts = self.gates.parts.copy()
        self._finished = [self.environment.event() for _ in self._parts]

    def join(self, rank: int) -> simpy.Event:
        """`rank` takes part from now on. The event happens when all transfers of `rank` have ended."""
        # With eager sends all transfers of `rank` may have ended before `rank` joins.
        if not self._parts[rank] and not self._finished[rank].triggered:
            self._finished[rank].succeed()
        for transfer in self.gates.opens_on_join[rank]:
            self._open(transfer)
        return self._finished[rank]

    def _open(self, number: int) -> None:
        self._needs[number] -= 1
        if self._needs[number] == 0:
            transfer = self.gates.transfers[number]
            flow = self.send(transfer.source, transfer.target, transfer.chunks * self.chunk_bytes)
            flow.callbacks.append(partial(self._ended, number))

    def _ended(self, number: int, flow: Flow | DelayedTransfer) -> None:
        transfer = self.gates.transfers[number]
        self.carried(transfer, transfer.chunks * self.chunk_bytes, flow.start_seconds, self.environment.now)
        for condition in self.gates.counted_by[number]:
            self._counts[condition] -= 1
            if not self._counts[condition]:
                for waiting in self.gates.opens[condition]:
                    self._open(waiting)
        for rank in (transfer.source, transfer.target):
            self._parts[rank] -= 1
            if not self._parts[rank]:
                self._finished[rank].succeed()


@dataclass(frozen=True)
class CollectiveRun:
    """One simulated call. ends_seconds: by rank, the time when all its transfers had ended. transfers: the rows."""

    ends_seconds: list[float]
    transfers: Transfers


def run(
    schedule: Schedule,
    cluster: Cluster,
    num_bytes: float,
    starts_seconds: Sequence[float] | None = None,
    sends: Sends = "rendezvous",
) -> CollectiveRun:
    """Simulates one call of `schedule` on a gradient of `num_bytes`. Rank i joins at starts_seconds[i] (default 0).

    >>> from distsim.cluster import Cluster
    >>> from distsim.collectives import ring
    >>> cluster = Cluster(workers=4, bandwidth="1 MB/s", latency="1 ms")
    >>> round(max(run(ring(4), cluster, 1e6).ends_seconds), 9)    # 2 (4 - 1) (1 ms + 0.25 s)
    1.506
    """
    hosts = SimulatedHosts(cluster, schedule.ranks)
    rows: list[tuple[Any, ...]] = []

    def carried(transfer: Transfer, carried_bytes: float, start_seconds: float, end_seconds: float) -> None:
        rows.append((transfer.source, transfer.target, carried_bytes, start_seconds, end_seconds, transfer.chunk, 0))

    call = CollectiveCall(
        hosts.environment, Gates.of(schedule, sends), num_bytes / schedule.chunks, hosts.send, carried
    )
    starts = [0.0] * schedule.ranks if starts_seconds is None else list(starts_seconds)
    ends = starts.copy()

    def take_part(rank: int) -> Generator[simpy.Event, Any, None]:
        yield hosts.environment.timeout(starts[rank])
        yield call.join(rank)
        ends[rank] = hosts.now

    for rank in range(schedule.ranks):
        hosts.environment.process(take_part(rank))
    hosts.environment.run()
    return CollectiveRun(ends, Transfers.of_rows(rows))
