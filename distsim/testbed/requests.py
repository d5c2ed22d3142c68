"""What ranks may ask of the switch, checked: a rank can send anything, and nothing of it is believed."""

from __future__ import annotations

from typing import Any

import numpy as np

from distsim.testbed.costs import SECONDS
from distsim.testbed.operations import Join, Operation, Receive, Send
from distsim.testbed.reductions import OPERATIONS, Array
from distsim.testbed.switch import Switch

LONGEST_SECONDS = 1e6
LONGEST_TEXT = 200
MOST_OPERATIONS = 100_000  # open at once


class RequestError(ValueError):
    """A rank asked for what no rank may ask."""


def obey(switch: Switch, rank: int, request: Any) -> None:
    """Hands a rank's request to the switch. Raises RequestError where it is none."""
    match request:
        case {"do": "post", "key": int(key)}:
            switch.post(rank, key, _operation(rank, switch.cluster.workers, request))
        case {"do": "wait", "keys": [*keys], "where": str(where)} if all(isinstance(key, int) for key in keys):
            switch.wait(rank, keys, where[:LONGEST_TEXT])
        case {"do": "look", "key": int(key)}:
            switch.look(rank, key)
        case {"do": "busy", "seconds": float(seconds), "kind": str(kind)} if 0.0 <= seconds <= LONGEST_SECONDS:
            switch.busy(rank, seconds, kind[:LONGEST_TEXT])
        case {"do": "note", "name": str(name), "value": value}:
            switch.note(rank, name[:LONGEST_TEXT], value)
        case _:
            raise RequestError("an unknown request")


def _operation(rank: int, world: int, request: dict[Any, Any]) -> Operation:
    match request:
        case {"kind": "send", "to": int(to), "tag": int(tag), "group": str(group), "data": np.ndarray() as data}:
            _check_other(rank, to, world)
            return Send(to, tag, group, _plain(data))
        case {
            "kind": "recv",
            "source": int() | None as source,
            "tag": int(tag),
            "group": str(group),
            "bytes": int(room),
        }:
            if source is not None:
                _check_other(rank, source, world)
            return Receive(source, tag, group, room)
        case {
            "kind": str(kind), "group": str(group), "ranks": [*ranks], "root": int(root), "operation": str(operation),
            "data": [*data],
        } if kind in SECONDS and operation in OPERATIONS and _arrays(data):  # fmt: skip
            known = set(ranks) <= set(range(world)) and len(set(ranks)) == len(ranks)
            if rank not in ranks or not known or not 0 <= root < len(ranks):
                raise RequestError(f"a collective of ranks {ranks}")
            return Join(kind, group, tuple(ranks), root, operation, [_plain(array) for array in data])
    raise RequestError("an operation that the network does not have")


def _arrays(data: list[Any]) -> bool:
    return all(isinstance(array, np.ndarray) for array in data)


def _plain(array: Array) -> Array:
    """The shape of an array without numbers would be a message of no bytes."""
    return array if array.size else array.reshape(0)


def _check_other(rank: int, other: int, world: int) -> None:
    if other == rank or not 0 <= other < world:
        raise RequestError(f"rank {rank} has no rank {other} to talk to; there are {world}")
