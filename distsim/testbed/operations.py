"""What a rank asks of the network, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from distsim.testbed.reductions import Array


@dataclass(frozen=True)
class Send:
    """A tensor for another rank."""

    target: int
    tag: int
    group: str
    data: Array


@dataclass(frozen=True)
class Receive:
    """Room for a tensor of another rank; of any other where `source` is None."""

    source: int | None
    tag: int
    group: str
    num_bytes: int


@dataclass(frozen=True)
class Join:
    """One rank's part in a collective of all `ranks`; root: its position among them."""

    kind: str
    group: str
    ranks: tuple[int, ...]
    root: int
    operation: str
    given: Sequence[Array]


Operation = Send | Receive | Join


@dataclass(frozen=True)
class Done:
    """How an operation ended: what was received, and from whom; or what was wrong with it."""

    received: Sequence[Array] = ()
    source: int = -1
    error: str | None = None


def fit(send: Send, source: int, receive: Receive, target: int) -> bool:
    """Whether a receive of rank `target` takes a send of rank `source`."""
    return (
        send.target == target
        and receive.source in (None, source)
        and (send.tag, send.group) == (receive.tag, receive.group)
    )


def total_bytes(arrays: Sequence[Array]) -> int:
    """Of all of them.

    >>> total_bytes([])
    0
    """
    return sum(array.nbytes for array in arrays)


def given_bytes(operation: Operation) -> int:
    """What an operation gives to the network."""
    match operation:
        case Send():
            return operation.data.nbytes
        case Join():
            return total_bytes(operation.given)
    return 0


def whole_bytes(joins: Sequence[Join]) -> int:
    """Bytes of a collective's whole vector, from what each member gave to it, in the order of its ranks."""
    sizes = [given_bytes(join) for join in joins]
    first = joins[0]
    if first.kind in ("gather", "all_gather"):
        return sum(sizes)
    if first.kind in ("broadcast", "scatter"):
        return sizes[first.root]
    return max(sizes)
