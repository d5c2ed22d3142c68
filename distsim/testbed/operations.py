"""The operations that a rank posts to the network, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from distsim.testbed.collective_results import Array


@dataclass(frozen=True)
class Send:
    """A tensor to send to another rank."""

    target: int
    tag: int
    group: str
    data: Array


@dataclass(frozen=True)
class Receive:
    """A receive of a tensor from another rank; from any rank if `source` is None."""

    source: int | None
    tag: int
    group: str
    num_bytes: int


@dataclass(frozen=True)
class Join:
    """One rank's call of a collective of all `ranks`. root: the position of the root among them."""

    kind: str
    group: str
    ranks: tuple[int, ...]
    root: int
    operation: str
    given: Sequence[Array]


Operation = Send | Receive | Join


@dataclass(frozen=True)
class Done:
    """The result of an operation: the tensors received and their source, or an error."""

    received: Sequence[Array] = ()
    source: int = -1
    error: str | None = None


def named(operation: Operation) -> tuple[str, int | None]:
    """What torch.distributed calls an operation that goes on, and the other rank.

    >>> named(Receive(source=2, tag=0, group="", num_bytes=8))
    ('irecv', 2)
    """
    match operation:
        case Send():
            return "isend", operation.target
        case Receive():
            return "irecv", operation.source
        case Join():
            return operation.kind, None


def fit(send: Send, source: int, receive: Receive, target: int) -> bool:
    """Whether a receive of rank `target` takes a send of rank `source`."""
    return (
        send.target == target
        and receive.source in (None, source)
        and (send.tag, send.group) == (receive.tag, receive.group)
    )


def total_bytes(arrays: Sequence[Array]) -> int:
    """Bytes of all arrays together.

    >>> total_bytes([])
    0
    """
    return sum(array.nbytes for array in arrays)


def given_bytes(operation: Operation) -> int:
    """Bytes that an operation hands to the network."""
    match operation:
        case Send():
            return operation.data.nbytes
        case Join():
            return total_bytes(operation.given)
    return 0


def whole_bytes(joins: Sequence[Join]) -> int:
    """Bytes of a collective's whole vector, from what each member gave, in the order of its ranks."""
    sizes = [given_bytes(join) for join in joins]
    first = joins[0]
    if first.kind in ("gather", "all_gather"):
        return sum(sizes)
    if first.kind in ("broadcast", "scatter"):
        return sizes[first.root]
    return max(sizes)
