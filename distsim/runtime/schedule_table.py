"""A schedule as JSON values: the launching process writes them into the job, and the ranks read them."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from distsim.collectives import Schedule, Transfer


def table_of(schedule: Schedule) -> dict[str, Any]:
    """The schedule as values that JSON can hold. `schedule_of` turns these values into the schedule again.

    >>> import json
    >>> from distsim.collectives import broadcast
    >>> schedule_of(json.loads(json.dumps(table_of(broadcast(4))))) == broadcast(4)
    True
    """
    table = {field.name: getattr(schedule, field.name) for field in fields(schedule)}
    rounds = [[asdict(transfer) for transfer in transfers] for transfers in schedule.rounds]
    return table | {"rounds": rounds} | {key: table[key] and sorted(table[key]) for key in ("start", "end")}


def schedule_of(table: dict[str, Any]) -> Schedule:
    """The schedule that `table_of` made the table of."""
    rounds = tuple(tuple(Transfer(**transfer) for transfer in transfers) for transfers in table["rounds"])
    ends = {
        key: None if table[key] is None else frozenset((rank, chunk) for rank, chunk in table[key])
        for key in ("start", "end")
    }
    return Schedule(**table | {"rounds": rounds} | ends)
