"""The log of the switch for one run, with virtual times: the evidence for checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    """One send and its matching receive.

    posted: when the source posted the send. started: when the target had posted the receive, too. ended: when the last
    byte had arrived. any_source: whether the receive accepted a message from any rank. Times are in seconds.
    """

    source: int
    target: int
    tag: int
    num_bytes: int
    posted_seconds: float
    started_seconds: float
    ended_seconds: float
    any_source: bool = False


@dataclass(frozen=True)
class Collective:
    """One collective operation of the back end, such as an `all_reduce`.

    ranks: its members. num_bytes: bytes of the whole vector; for a gather, scatter or all_gather, of all pieces
    together. posted: when each member called it. started: when the last member had called it and earlier collectives
    of the same members were over. Times are in seconds.
    """

    kind: str
    ranks: tuple[int, ...]
    num_bytes: int
    posted_seconds: tuple[float, ...]
    started_seconds: float
    ended_seconds: float


@dataclass(frozen=True)
class Busy:
    """A time in which a rank computed or slept."""

    rank: int
    kind: str
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class Unwaited:
    """An operation that a rank began and never waited for, though it finished. where: its line, as the rank told it.

    other: the rank that it sends to or receives from; None for any rank, and for a collective.

    >>> print(Unwaited(0, "isend", 1, "tasks.py:31 in ring"))
    rank 0 never waits for its isend to rank 1 (tasks.py:31 in ring)
    """

    rank: int
    kind: str
    other: int | None
    where: str

    def __str__(self) -> str:
        side = "" if self.other is None else f" {'to' if self.kind == 'isend' else 'from'} rank {self.other}"
        return f"rank {self.rank} never waits for its {self.kind}{side}" + (f" ({self.where})" if self.where else "")


@dataclass(frozen=True)
class Note:
    """A value that a rank noted. A note is no proof: code on the rank's side can note anything."""

    rank: int
    name: str
    value: Any
    seconds: float


@dataclass
class Log:
    """All events of a run: messages and collectives in the order of their ends, the others by their starts."""

    messages: list[Message] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    busy: list[Busy] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unwaited: list[Unwaited] = field(default_factory=list)

    def sort(self) -> None:
        """Sorts events of one instant by rank; the order within a rank stays."""
        self.busy.sort(key=lambda busy: (busy.start_seconds, busy.rank))
        self.notes.sort(key=lambda note: (note.seconds, note.rank))
        self.unwaited.sort(key=lambda one: one.rank)

    def bytes_sent(self, source: int, target: int | None = None) -> int:
        """Bytes of the messages that one rank sent, to one target or to all. Collectives do not count.

        >>> log = Log([Message(0, 1, 0, 8, 0.0, 0.0, 1.0), Message(0, 2, 0, 4, 1.0, 1.0, 2.0)])
        >>> log.bytes_sent(0), log.bytes_sent(0, 2)
        (12, 4)
        """
        return sum(m.num_bytes for m in self.messages if m.source == source and target in (None, m.target))

    def kinds(self, rank: int) -> list[str]:
        """The kinds of the collectives of one rank, in order.

        >>> Log(collectives=[Collective("barrier", (0, 1), 0, (0.0, 0.0), 0.0, 0.0)]).kinds(1)
        ['barrier']
        """
        return [collective.kind for collective in self.collectives if rank in collective.ranks]

    def notes_of(self, rank: int, name: str) -> Sequence[Any]:
        """The values of one rank's notes of this name."""
        return [note.value for note in self.notes if note.rank == rank and note.name == name]
