"""The requests of ranks to the switch, checked, since a rank can send anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distsim.testbed.collective_results import OPERATIONS, Array
from distsim.testbed.costs import SECONDS
from distsim.testbed.frames import pack
from distsim.testbed.operations import Join, Operation, Receive, Send, given_bytes
from distsim.testbed.switch import Switch

LONGEST_SECONDS = 1e6
LONGEST_TEXT = 200
MOST_OPERATIONS = 1000  # pending operations of one rank; the switch compares every send with every receive
MOST_HELD_BYTES = 2**29  # of all ranks together, in the memory of the process of the switch
MOST_TENSORS = 256  # of one collective; one for each rank is usual
MOST_NOTE_BYTES = 4 * 2**20  # of one rank; notes are kept until the run ends

NOTE_BYTES = 100  # of an empty note


class RequestError(ValueError):
    """A rank sent a request that is not allowed."""


class RankRequests:
    """Checks the requests of ranks and hands them to the switch.

    >>> from distsim.cluster import Cluster
    >>> switch = Switch(Cluster(workers=2, bandwidth="1 MB/s", latency="1 ms"))
    >>> RankRequests(switch).obey(0, {"do": "busy", "seconds": -1.0, "kind": "sleep"})
    Traceback (most recent call last):
    ...
    distsim.testbed.rank_requests.RequestError: a rank cannot be busy for -1.0 seconds
    """

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._noted_bytes = [0] * switch.cluster.workers

    def obey(self, rank: int, request: Any) -> None:
        """Hands a rank's request to the switch. Raises RequestError if the request is not allowed."""
        switch = self._switch
        if rank not in switch.running:
            raise RequestError("it sent a request before it had an answer to the last one")
        match request:
            case {"do": "post", "key": int(key), "where": str(where)}:
                self._post(rank, key, _operation(rank, switch.cluster.workers, request), where[:LONGEST_TEXT])
            case {"do": "wait", "keys": [*keys], "where": str(where), "seconds": float() | None as seconds}:
                if seconds is not None:
                    _check_seconds(seconds)
                switch.wait(rank, self._begun(rank, keys), where[:LONGEST_TEXT], seconds, self._watched(rank, request))
            case {"do": "look", "key": key}:
                [begun] = self._begun(rank, [key])
                switch.look(rank, begun, self._watched(rank, request))
            case {"do": "busy", "seconds": float(seconds), "kind": str(kind)}:
                _check_seconds(seconds)
                switch.busy(rank, seconds, kind[:LONGEST_TEXT], self._watched(rank, request))
            case {"do": "resume", "until": float(until)}:
                _check_seconds(until)
                switch.resume(rank, until, self._watched(rank, request))
            case {"do": "note", "name": str(name), "value": value}:
                self._note(rank, name[:LONGEST_TEXT], value)
            case _:
                raise RequestError("an unknown request")

    def _post(self, rank: int, key: int, operation: Operation, where: str) -> None:
        begun = self._switch.begun(rank)
        if key in begun:
            raise RequestError(f"operation {key} was begun twice")
        if len(begun) >= MOST_OPERATIONS:
            raise RequestError(f"more than {MOST_OPERATIONS} operations at once")
        if self._switch.held_bytes + given_bytes(operation) > MOST_HELD_BYTES:
            raise RequestError(f"more than {MOST_HELD_BYTES // 2**20} MiB on their way at once")
        self._switch.post(rank, key, operation, where)

    def _watched(self, rank: int, request: dict[Any, Any]) -> list[int]:
        match request.get("watch", []):
            case [*keys]:
                return self._begun(rank, keys)
        raise RequestError("it watches what is no operation")

    def _begun(self, rank: int, keys: Sequence[Any]) -> list[int]:
        begun = self._switch.begun(rank)
        if not all(isinstance(key, int) and key in begun for key in keys):
            raise RequestError("it waits for an operation that it has not begun, or waits twice for one operation")
        return list(keys)

    def _note(self, rank: int, name: str, value: Any) -> None:
        self._noted_bytes[rank] += NOTE_BYTES + len(pack([name, value]))
        if self._noted_bytes[rank] > MOST_NOTE_BYTES:
            raise RequestError(f"notes of more than {MOST_NOTE_BYTES // 2**20} MiB")
        self._switch.note(rank, name, value)


def _check_seconds(seconds: float) -> None:
    if not 0.0 <= seconds <= LONGEST_SECONDS:
        raise RequestError(f"a rank cannot be busy for {seconds} seconds")


def _operation(rank: int, world: int, request: dict[Any, Any]) -> Operation:
    match request:
        case {"group": str(group)} if len(group) > LONGEST_TEXT:
            pass
        case {"kind": "send", "to": int(to), "tag": int(tag), "group": str(group), "data": np.ndarray() as data}:
            _check_other(rank, to, world)
            return Send(to, tag, group, _plain(data))
        case {
            "kind": "recv", "source": int() | None as source, "tag": int(tag), "group": str(group), "bytes": int(room),
        }:  # fmt: skip
            if source is not None:
                _check_other(rank, source, world)
            return Receive(source, tag, group, room)
        case {
            "kind": str(kind), "group": str(group), "ranks": [*ranks], "root": int(root), "operation": str(operation),
            "data": [*data],
        } if kind in SECONDS and operation in OPERATIONS and _arrays(data):  # fmt: skip
            _check_members(rank, ranks, root, world)
            return Join(kind, group, tuple(ranks), root, operation, [_plain(array) for array in data])
    raise RequestError("an operation that the network does not have")


def _arrays(data: list[Any]) -> bool:
    return len(data) <= MOST_TENSORS and all(isinstance(array, np.ndarray) for array in data)


def _check_members(rank: int, ranks: list[Any], root: int, world: int) -> None:
    numbers = all(type(one) is int and 0 <= one < world for one in ranks)
    if not numbers or rank not in ranks or len(set(ranks)) < len(ranks) or not 0 <= root < len(ranks):
        raise RequestError(f"a collective of ranks {ranks}"[:LONGEST_TEXT])


def _plain(array: Array) -> Array:
    """An empty array gets the shape (0,): its own shape would cost nothing to send."""
    return array if array.size else array.reshape(0)


def _check_other(rank: int, other: int, world: int) -> None:
    if other == rank or not 0 <= other < world:
        raise RequestError(f"rank {rank} has no rank {other} to talk to; there are {world}")
