"""One call of a collective on the simulated network: a schedule's transfers, each started when its gate opens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import simpy

from distsim.collectives import Schedule, Transfer
from distsim.communication import Sends
from distsim.network import Flow

Send = Callable[[int, int, float], Flow]  # (source, target, bytes) -> the flow on its way
Carried = Callable[[Transfer, float, float, float], None]  # (transfer, bytes, start seconds, end seconds)


@dataclass(frozen=True)
class Gates:
    """What each transfer of a schedule waits for, worked out once for all calls.

    transfers: in order of rounds. needs: how many conditions each waits for. opens_on_join: by rank, the transfers
    that wait for it to join. opens_on_end: by transfer, the transfers that wait for it to end. parts: by rank, how
    many transfers it takes part in.
    """

    transfers: list[Transfer]
    needs: list[int]
    opens_on_join: list[list[int]]
    opens_on_end: list[list[int]]
    parts: list[int]

    @classmethod
    def of(cls, schedule: Schedule, sends: Sends) -> Gates:
        """Gate "process": a rank has finished its transfers of earlier rounds. Gate "data": the chunk has arrived.

        The source must be ready; with rendezvous sends the target too.
        """
        transfers = [transfer for _, transfer in schedule.transfers()]
        needs = [0] * len(transfers)
        opens_on_join: list[list[int]] = [[] for _ in range(schedule.ranks)]
        opens_on_end: list[list[int]] = [[] for _ in transfers]
        parts = [0] * schedule.ranks
        last_round: list[list[int]] = [[] for _ in range(schedule.ranks)]  # a rank's transfers in its latest round
        arrivals: dict[tuple[int, int], list[int]] = {}  # (rank, chunk): the transfers that brought it
        number = 0
        for members in schedule.rounds:
            this_round: dict[int, list[int]] = {}
            for transfer in members:
                ready = (transfer.source,) if sends == "eager" else (transfer.source, transfer.target)
                waits_for: set[int] = set()
                for rank in ready:
                    opens_on_join[rank].append(number)
                    needs[number] += 1
                    if schedule.gate == "process":
                        waits_for.update(last_round[rank])
                if schedule.gate == "data":
                    waits_for.update(arrivals.get((transfer.source, transfer.chunk), ()))
                for earlier in waits_for:
                    opens_on_end[earlier].append(number)
                needs[number] += len(waits_for)
                for rank in (transfer.source, transfer.target):
                    parts[rank] += 1
                    this_round.setdefault(rank, []).append(number)
                number += 1
            first = number - len(members)
            for offset, transfer in enumerate(members):
                arrivals.setdefault((transfer.target, transfer.chunk), []).append(first + offset)
            for rank, own in this_round.items():
                last_round[rank] = own
        return cls(transfers, needs, opens_on_join, opens_on_end, parts)


@dataclass
class CollectiveCall:
    """The ranks of one call: each joins when it is ready, and its event happens when it has all it wants."""

    environment: simpy.Environment
    gates: Gates
    chunk_bytes: float
    send: Send
    carried: Carried
    _needs: list[int] = field(init=False)
    _parts: list[int] = field(init=False)
    _finished: list[simpy.Event] = field(init=False)

    def __post_init__(self) -> None:
        self._needs = self.gates.needs.copy()
        self._parts = self.gates.parts.copy()
        self._finished = [self.environment.event() for _ in self._parts]

    def join(self, rank: int) -> simpy.Event:
        """`rank` takes part from now on; the event happens when all transfers it takes part in have ended."""
        if not self._parts[rank]:
            self._finished[rank].succeed()
        for transfer in self.gates.opens_on_join[rank]:
            self._open(transfer)
        return self._finished[rank]

    def _open(self, number: int) -> None:
        self._needs[number] -= 1
        if self._needs[number] == 0:
            transfer = self.gates.transfers[number]
            flow = self.send(transfer.source, transfer.target, self.chunk_bytes)
            flow.callbacks.append(lambda _: self._ended(number, flow))

    def _ended(self, number: int, flow: Flow) -> None:
        transfer = self.gates.transfers[number]
        self.carried(transfer, self.chunk_bytes, flow.start_seconds, self.environment.now)
        for waiting in self.gates.opens_on_end[number]:
            self._open(waiting)
        for rank in (transfer.source, transfer.target):
            self._parts[rank] -= 1
            if not self._parts[rank]:
                self._finished[rank].succeed()
