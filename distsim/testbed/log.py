"""What passed the switch in one run, with virtual times: the evidence that checks judge by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    """One send and the receive that took it.

    posted: when its source gave it to the network. started: when its target was ready for it too. ended: when its last
    byte had arrived. any_source: whether the receive would have taken a message from anybody. In seconds.
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

    ranks: its members. num_bytes: of the whole vector; for a gather, scatter or all_gather that is all pieces together.
    posted: by member, when it called; started: when the last had called and earlier collectives of the same members
    were over. In seconds.
    """

    kind: str
    ranks: tuple[int, ...]
    num_bytes: int
    posted_seconds: tuple[float, ...]
    started_seconds: float
    ended_seconds: float


@dataclass(frozen=True)
class Busy:
    """A rank computed, or slept."""

    rank: int
    kind: str
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class Note:
    """What a rank says of itself: no proof, for code on the rank's side can say anything."""

    rank: int
    name: str
    value: Any
    seconds: float


@dataclass
class Log:
    """Everything that passed: messages and collectives in the order of their ends, the others by their starts."""

    messages: list[Message] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    busy: list[Busy] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def sort(self) -> None:
        """Puts what ranks did at one instant into the order of their ranks; each rank's own order stays."""
        self.busy.sort(key=lambda busy: (busy.start_seconds, busy.rank))
        self.notes.sort(key=lambda note: (note.seconds, note.rank))

    def bytes_sent(self, source: int, target: int | None = None) -> int:
        """Bytes of the messages of one rank, to one other or to all; collectives do not count.

        >>> log = Log([Message(0, 1, 0, 8, 0.0, 0.0, 1.0), Message(0, 2, 0, 4, 1.0, 1.0, 2.0)])
        >>> log.bytes_sent(0), log.bytes_sent(0, 2)
        (12, 4)
        """
        return sum(m.num_bytes for m in self.messages if m.source == source and target in (None, m.target))

    def kinds(self, rank: int) -> list[str]:
        """The kinds of the collectives that one rank took part in, in order.

        >>> Log(collectives=[Collective("barrier", (0, 1), 0, (0.0, 0.0), 0.0, 0.0)]).kinds(1)
        ['barrier']
        """
        return [collective.kind for collective in self.collectives if rank in collective.ranks]

    def notes_of(self, rank: int, name: str) -> Sequence[Any]:
        """The values of one rank's notes of this name."""
        return [note.value for note in self.notes if note.rank == rank and note.name == name]
