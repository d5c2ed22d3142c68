"""A schedule of one's own, read from a TOML file: rounds of transfers, as `distsim.collectives.Schedule` has them.

    chunks = 1
    rounds = [
        [[1, 0, 0, "add"], [3, 2, 0, "add"]],      # source, target, chunk, and what the target does with it
        [[2, 0, 0, "add"]],
        [[0, 2, 0, "replace"]],
        [[0, 1, 0, "replace"], [2, 3, 0, "replace"]],
    ]

`gate = "data"` lets a transfer start as soon as its data is there; "process", when its ends have finished all their
transfers of earlier rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Field, ValidationError

from distsim.collectives import Schedule, Transfer
from distsim.contest.problem import read_table
from distsim.errors import InputError
from distsim.scenario_errors import explain
from distsim.validated_table import ValidatedTable

MOST_TRANSFERS = 20_000
Number = Annotated[int, Ge(0), Le(10**6)]
Row = Annotated[list[Number | Literal["add", "replace"]], Field(min_length=4, max_length=4)]


class _Written(ValidatedTable):
    chunks: Annotated[int, Ge(1), Le(10_000)] = Field(examples=[1])
    gate: Literal["process", "data"] = "process"
    rounds: list[list[Row]] = Field(examples=[[[[1, 0, 0, "add"]], [[0, 1, 0, "replace"]]]])


def read_schedule(path: Path, workers: int) -> Schedule:
    """The schedule in `path`, for so many workers. It is checked: every worker ends with the whole sum.

    Raises InputError where the file is wrong, and ScheduleError where a worker lacks a part, adds a part twice, or
    sends what it has not.
    """
    try:
        written = _Written.model_validate(read_table(path))
    except ValidationError as error:
        raise explain(error, _Written, path.name) from None
    if (count := sum(map(len, written.rounds))) > MOST_TRANSFERS:
        raise InputError.of(f"{path.name}: transfers", count, f"must be at most {MOST_TRANSFERS}", "write fewer")
    rounds = tuple([_transfer(path, one) for one in members] for members in written.rounds)
    found = Schedule(path.stem, workers, written.chunks, rounds, gate=written.gate)
    found.check()
    return found


def _transfer(path: Path, row: Sequence[int | str]) -> Transfer:
    source, target, chunk, does = row
    if not (isinstance(source, int) and isinstance(target, int) and isinstance(chunk, int) and isinstance(does, str)):
        rule = 'must be source, target, chunk, and "add" or "replace"'
        raise InputError.of(f"{path.name}: a transfer", row, rule, 'write such as [1, 0, 0, "add"]')
    return Transfer(source, target, chunk, reduce=does == "add")
