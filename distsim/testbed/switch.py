"""The network of a testbed: it matches sends with receives, gathers collectives, and keeps the virtual clock.

The switch knows no process and no socket. Its caller reports what ranks do by `post`, `wait`, `busy` and `leave`. When
all ranks are blocked, `settle` says which ranks go on, and with which results. Requests of one instant are settled
together, by rank and then in the order of each rank, so their order in real time changes nothing.

A send and a receive match by group, ranks and tag, in the order of posting. A receive from any rank takes the send that
was posted first; of several sends of one instant, that of the lowest rank. Both end when the last byte has arrived.
Messages of one group from one rank to another arrive one after the other, as over one connection.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from distsim.cluster import Cluster
from distsim.testbed.collective_results import Array, outcome
from distsim.testbed.costs import collective_seconds
from distsim.testbed.log import Busy, Collective, Log, Message, Note, Unwaited
from distsim.testbed.operations import (
    Done,
    Join,
    Operation,
    Receive,
    Send,
    fit,
    given_bytes,
    named,
    total_bytes,
    whole_bytes,
)
from distsim.testbed.virtual_network import VirtualNetwork

Posted = TypeVar("Posted", bound=Operation, covariant=True)
Group = tuple[str, tuple[int, ...]]  # its name and its ranks

LOOK_SECONDS = 10e-6  # virtual time of the question whether an operation is complete


@dataclass(frozen=True)
class Reply:
    """A rank may go on at time `now`; `done` holds the results of its operations.

    again: whether only operations that it watches are over, so that it should ask its question again.
    """

    rank: int
    now: float
    done: dict[int, Done]
    again: bool = False


@dataclass(eq=False)  # compared by identity: == of tensors has no single answer
class _Posted(Generic[Posted]):
    rank: int
    key: int
    operation: Posted
    seconds: float


@dataclass(frozen=True, eq=False)
class _Transfer:
    send: _Posted[Send]
    receive: _Posted[Receive]
    started_seconds: float


@dataclass(frozen=True, eq=False)
class _Gathering:
    """A collective that all members have called."""

    entry: Collective
    members: Sequence[_Posted[Join]]
    received: Sequence[Sequence[Array]]


@dataclass
class _Rank:
    """The state of a rank. It may be blocked on operations (`keys`), on a time, or on a look at an operation.

    watch: operations whose end wakes it meanwhile. busy_until: the latest end of its times in the log.
    """

    running: bool = True
    left: bool = False
    keys: tuple[int, ...] = ()
    until: float | None = None
    watch: tuple[int, ...] = ()
    where: str = ""
    busy_until: float = 0.0
    ended: dict[int, Done] = field(default_factory=dict)
    open: dict[int, Operation] = field(default_factory=dict)
    begun: dict[int, Unwaited] = field(default_factory=dict)


class DeadlockError(Exception):
    """No rank can ever go on. The message says which rank waits for which."""

    def __init__(self, waits: dict[int, str]) -> None:
        self.waits = waits
        super().__init__("; ".join(f"rank {rank} {wait}" for rank, wait in sorted(waits.items())))


class Switch:
    """A network for the workers of `cluster`, one rank each.

    >>> import numpy as np
    >>> switch = Switch(Cluster(workers=2, bandwidth="1 MB/s", latency="1 ms"))
    >>> switch.post(0, 1, Send(target=1, tag=0, group="", data=np.zeros(125)))
    >>> switch.post(1, 1, Receive(source=0, tag=0, group="", num_bytes=1000))
    >>> switch.wait(0, [1])
    >>> switch.wait(1, [1])
    >>> [(reply.rank, round(reply.now, 6)) for reply in switch.settle()]
    [(0, 0.002), (1, 0.002)]
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.log = Log()
        self._ranks = [_Rank() for _ in range(cluster.workers)]
        self._new: list[list[_Posted[Operation]]] = [[] for _ in self._ranks]
        self._sends: list[_Posted[Send]] = []
        self._receives: list[_Posted[Receive]] = []
        self._joining: dict[Group, list[list[_Posted[Join]]]] = {}
        self._network: VirtualNetwork[_Transfer] = VirtualNetwork(cluster)
        self._gatherings: list[_Gathering] = []
        self._free: dict[Group, float] = {}  # when a group's last collective is over
        self.held_bytes = 0  # of tensors given but not yet received, or received but not yet waited for

    @property
    def now(self) -> float:
        """Virtual time in seconds."""
        return self._network.now

    @property
    def settled(self) -> bool:
        """Whether no rank is running, so that virtual time may advance."""
        return not self.running

    @property
    def running(self) -> list[int]:
        """The ranks that are neither blocked nor have left."""
        return [number for number, rank in enumerate(self._ranks) if rank.running]

    @property
    def over(self) -> bool:
        """Whether all ranks have left."""
        return all(rank.left for rank in self._ranks)

    def begun(self, rank: int) -> Collection[int]:
        """The keys of a rank's operations that it has not yet waited for."""
        return self._ranks[rank].begun

    def post(self, rank: int, key: int, operation: Operation, where: str = "") -> None:
        """A rank begins an operation and goes on. key: the rank's own number for it. where: its line."""
        self._new[rank].append(_Posted(rank, key, operation, self.now))
        self._ranks[rank].begun[key] = Unwaited(rank, *named(operation), where)
        self._ranks[rank].open[key] = operation
        self.held_bytes += given_bytes(operation)

    def wait(
        self, rank: int, keys: Sequence[int], where: str = "", seconds: float | None = None, watch: Sequence[int] = ()
    ) -> None:
        """A rank is blocked until all these operations are over, or for some seconds. where: its current line.

        watch: operations whose end wakes it meanwhile.
        """
        until = None if seconds is None else self.now + max(seconds, 0.0)
        self._block(rank, keys=tuple(keys), until=until, where=where, watch=watch)

    def look(self, rank: int, key: int, watch: Sequence[int] = ()) -> None:
        """A rank asks whether an operation is over."""
        self._block(rank, keys=(key,), until=self.now + LOOK_SECONDS, watch=watch)

    def busy(self, rank: int, seconds: float, kind: str, watch: Sequence[int] = ()) -> None:
        """A rank computes, or sleeps."""
        until = self.now + max(seconds, 0.0)
        self.log.busy.append(Busy(rank, kind, self.now, until))
        self._ranks[rank].busy_until = max(until, self._ranks[rank].busy_until)
        self._block(rank, until=until, watch=watch)

    def resume(self, rank: int, until: float, watch: Sequence[int] = ()) -> None:
        """A rank goes on with what it computes, at most to the end of its times in the log."""
        self._block(rank, until=min(until, self._ranks[rank].busy_until), watch=watch)

    def note(self, rank: int, name: str, value: Any) -> None:
        """A rank writes a value into the log."""
        self.log.notes.append(Note(rank, name, value, self.now))

    def leave(self, rank: int, *, finished: bool = True) -> None:
        """A rank has ended. Its posted operations stay in flight."""
        state = self._ranks[rank]
        state.running, state.left, state.keys, state.until = False, True, (), None
        if finished:
            self.log.unwaited.extend(state.begun.values())

    def settle(self) -> list[Reply]:
        """Advances the clock until at least one rank can go on, and returns the replies.

        Raises DeadlockError if no rank ever can. Call it when `settled`, and not when `over`.
        """
        while True:
            self._match()
            replies = [reply for rank in range(len(self._ranks)) if (reply := self._reply(rank)) is not None]
            if replies:
                return replies
            self._advance()

    def _block(
        self, rank: int, keys: tuple[int, ...] = (), until: float | None = None, where: str = "",
        watch: Sequence[int] = (),
    ) -> None:  # fmt: skip
        state = self._ranks[rank]
        state.running, state.keys, state.until, state.where = False, keys, until, where
        state.watch = tuple(key for key in watch if key not in keys)

    def _reply(self, number: int) -> Reply | None:
        rank = self._ranks[number]
        if rank.left or rank.running:
            return None
        timed_out = rank.until is not None and rank.until <= self.now
        complete = all(key in rank.ended for key in rank.keys) and (bool(rank.keys) or rank.until is None)
        over = [*(rank.keys if complete else ()), *(key for key in rank.watch if key in rank.ended)]
        if not (complete or timed_out or over):
            return None
        done = {key: rank.ended.pop(key) for key in over}
        for key, one in done.items():
            del rank.begun[key]
            self.held_bytes -= total_bytes(one.received)
        rank.running, rank.keys, rank.until, rank.watch = True, (), None, ()
        return Reply(number, self.now, done, again=not (complete or timed_out))

    def _end(self, posted: _Posted[Operation], done: Done) -> None:
        rank = self._ranks[posted.rank]
        rank.ended[posted.key] = done
        rank.open.pop(posted.key, None)
        self.held_bytes += total_bytes(done.received) - given_bytes(posted.operation)

    def _match(self) -> None:
        for mine in self._new:
            for posted in mine:
                if isinstance(posted.operation, Join):
                    self._join(cast("_Posted[Join]", posted))
                elif isinstance(posted.operation, Send):
                    self._sends.append(cast("_Posted[Send]", posted))
                else:
                    self._receives.append(cast("_Posted[Receive]", posted))
            mine.clear()
        for receive in list(self._receives):
            fitting = (send for send in self._sends if fit(send.operation, send.rank, receive.operation, receive.rank))
            if (send := next(fitting, None)) is not None:
                self._sends.remove(send)
                self._receives.remove(receive)
                self._transfer(send, receive)

    def _transfer(self, send: _Posted[Send], receive: _Posted[Receive]) -> None:
        num_bytes, room = send.operation.data.nbytes, receive.operation.num_bytes
        if num_bytes > room:
            error = f"rank {send.rank} sent {num_bytes} bytes to rank {receive.rank}, which had room for {room}"
            self._end(send, Done(error=error))
            self._end(receive, Done(error=error))
            return
        connection = (send.rank, receive.rank, send.operation.group)
        self._network.start(_Transfer(send, receive, self.now), send.rank, receive.rank, num_bytes, connection)

    def _join(self, posted: _Posted[Join]) -> None:
        """Adds a call to the first collective of its group that this rank has not joined yet."""
        group = (posted.operation.group, posted.operation.ranks)
        joining = self._joining.setdefault(group, [])
        members = next((some for some in joining if all(other.rank != posted.rank for other in some)), None)
        if members is None:
            members = []
            joining.append(members)
        members.append(posted)
        if len(members) == len(posted.operation.ranks):
            joining.remove(members)
            self._gather(group, sorted(members, key=lambda member: group[1].index(member.rank)))

    def _gather(self, group: Group, members: list[_Posted[Join]]) -> None:
        joins = [member.operation for member in members]
        first = joins[0]
        try:
            if len({(join.kind, join.root, join.operation) for join in joins}) > 1:
                calls = "; ".join(f"rank {member.rank} calls {member.operation.kind}" for member in members)
                raise ValueError(f"ranks call different collectives: {calls}")
            received = outcome(first.kind, [join.given for join in joins], first.root, first.operation)
        except (ValueError, TypeError, IndexError) as error:  # numpy raises them for arrays that cannot be added
            for member in members:
                self._end(member, Done(error=str(error)))
            return
        num_bytes = whole_bytes(joins)
        start = max(self.now, self._free.get(group, 0.0))
        end = start + collective_seconds(first.kind, num_bytes, first.ranks, self.cluster)
        self._free[group] = end
        posted = tuple(member.seconds for member in members)
        entry = Collective(first.kind, first.ranks, num_bytes, posted, start, end)
        self._gatherings.append(_Gathering(entry, members, received))

    def _advance(self) -> None:
        times = [self._network.next_seconds()]
        times += [rank.until for rank in self._ranks if rank.until is not None]
        times += [gathering.entry.ended_seconds for gathering in self._gatherings]
        to = max(min(times), self.now)
        if to == float("inf"):
            raise DeadlockError(self._waits())
        for transfer in self._network.advance(to):
            self._arrived(transfer)
        for gathering in [one for one in self._gatherings if one.entry.ended_seconds <= to]:
            self._gatherings.remove(gathering)
            self.log.collectives.append(gathering.entry)
            for member, tensors in zip(gathering.members, gathering.received, strict=True):
                self._end(member, Done(tensors))

    def _arrived(self, transfer: _Transfer) -> None:
        send, receive = transfer.send, transfer.receive
        data, tag = send.operation.data, send.operation.tag
        any_source = receive.operation.source is None
        times = (send.seconds, transfer.started_seconds, self.now)
        self.log.messages.append(Message(send.rank, receive.rank, tag, data.nbytes, *times, any_source))
        self._end(send, Done())
        self._end(receive, Done([data], send.rank))

    def _waits(self) -> dict[int, str]:
        return {number: self._wait_of(rank) for number, rank in enumerate(self._ranks) if not rank.left}

    def _wait_of(self, rank: _Rank) -> str:
        operations = [rank.open[key] for key in rank.keys if key in rank.open]
        told = " and ".join(map(self._told, operations)) or "waits for nothing that it has begun"
        return f"{told} ({rank.where})" if rank.where else told

    def _told(self, operation: Operation) -> str:
        if isinstance(operation, Send):
            return f"waits in send to {self._named(operation.target)}"
        if isinstance(operation, Receive):
            return f"waits in recv from {'any rank' if operation.source is None else self._named(operation.source)}"
        missing = [rank for rank in operation.ranks if not self._has_joined(rank, operation)]
        return f"waits in {operation.kind} for {', '.join(map(self._named, missing))}"

    def _has_joined(self, rank: int, join: Join) -> bool:
        return any(
            isinstance(other, Join) and (other.group, other.ranks, other.kind) == (join.group, join.ranks, join.kind)
            for other in self._ranks[rank].open.values()
        )

    def _named(self, rank: int) -> str:
        known = 0 <= rank < len(self._ranks)
        return f"rank {rank}" + (", which has ended" if known and self._ranks[rank].left else "")
