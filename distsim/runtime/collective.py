"""Runs one collective for real, outside a scenario: a schedule in, transfers and times out, and the result checked.

The real twin of `distsim.engine.collective.run`: the same schedule object, bytes and starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distsim.arrays import Floats
from distsim.collectives import Schedule
from distsim.communication import Sends
from distsim.errors import InputError
from distsim.runtime.launch.launcher import Launch, launched
from distsim.runtime.machine import check_buffers
from distsim.runtime.measure import RANK_ENTRY, check_machine
from distsim.runtime.recording.merge.peers import carried_by
from distsim.runtime.recording.recorder import load
from distsim.runtime.schedule_table import table_of
from distsim.trace import Transfers
from distsim.workload import FLOAT_BYTES

IMPORTS = ("distsim.runtime.ranks.collective",)


@dataclass(frozen=True)
class RealCollective:
    """The records of the ranks for each repeat. Seconds count from the beginning of the repeat.

    joined_seconds, ends_seconds: shape (repeats, ranks). transfers: column `collective` is the number of the repeat.
    sent_bytes, sent_messages: by rank, counted by the ranks themselves, over all repeats.
    """

    joined_seconds: Floats
    ends_seconds: Floats
    transfers: Transfers
    sent_bytes: list[int]
    sent_messages: list[int]

    @property
    def seconds(self) -> Floats:
        """For each repeat, the time from the moment at which the last rank joined until all ranks had their results."""
        return np.asarray(self.ends_seconds.max(axis=1) - self.joined_seconds.max(axis=1))


def run_schedule(
    schedule: Schedule,
    num_bytes: float,
    starts_seconds: Sequence[float] | None = None,
    sends: Sends = "rendezvous",
    *,
    repeats: int = 1,
    deadline_seconds: float = 120.0,
) -> RealCollective:
    """Runs `schedule` for real on a gradient of `num_bytes`, a process per rank; rank i joins at starts_seconds[i].

    Before the clock starts, the ranks run the schedule twice to open connections. Each chunk that a rank wants at the
    end must equal the result of the back end's own all-reduce; otherwise RunError names the rank. Raises InputError
    where the schedule itself is wrong (`Schedule.check`), or torch is missing.

    starts_seconds: default 0, all ranks at once. sends: "eager" posts receives before the sends, so no sender waits.
    repeats: how often the schedule is run; all ranks begin each repeat together. deadline_seconds: from the launch.
    """
    (found,) = run_schedules(
        [schedule], num_bytes, starts_seconds, sends, repeats=repeats, deadline_seconds=deadline_seconds
    )
    return found


def run_schedules(
    schedules: Sequence[Schedule],
    num_bytes: float,
    starts_seconds: Sequence[float] | None = None,
    sends: Sends = "rendezvous",
    *,
    repeats: int = 1,
    deadline_seconds: float = 120.0,
    entry: Sequence[str] = RANK_ENTRY,
) -> list[RealCollective]:
    """Runs schedules with the same number of ranks one after the other in one launch, which costs one start.

    Arguments and errors are those of `run_schedule`. entry: what torchrun starts as each rank.
    """
    check_machine(deadline_seconds)
    ranks = _check(schedules, repeats)
    check_buffers("num_bytes", float(num_bytes), ranks)
    starts = [0.0] * ranks if starts_seconds is None else [float(start) for start in starts_seconds]
    if len(starts) != ranks or min(starts) < 0.0:
        raise InputError.of(
            "starts_seconds", starts, f"must be a time of at least 0 for each of the {ranks} ranks",
            "leave it out, for all at once",
        )  # fmt: skip
    job = {
        "schedules": [table_of(schedule) for schedule in schedules], "num_bytes": num_bytes, "starts_seconds": starts,
        "sends": sends, "repeats": repeats, "deadline_seconds": deadline_seconds,
    }  # fmt: skip
    workers = min(schedule.workers for schedule in schedules)
    roles = [f"{'worker' if rank < workers else 'server'} {rank}" for rank in range(ranks)]
    what = f"run_schedule {schedules[-1].name!r}"
    with launched(Launch(what, roles, entry, job, deadline_seconds, imports=IMPORTS)) as folder:
        return [_merged(folder, number, schedule, sends) for number, schedule in enumerate(schedules)]


def _check(schedules: Sequence[Schedule], repeats: int) -> int:
    """The number of ranks that all schedules have."""
    if repeats < 1:
        raise InputError.of("repeats", repeats, "must be at least 1", "write 1")
    for schedule in schedules:
        schedule.check()
    ranks = {schedule.ranks for schedule in schedules}
    if len(ranks) != 1:
        raise InputError.of(
            "ranks of the schedules", sorted(ranks), "must be one number for all", "run them one by one"
        )
    return ranks.pop()


def _merged(folder: Path, number: int, schedule: Schedule, sends: Sends) -> RealCollective:
    records = [load(folder, number, rank) for rank in range(schedule.ranks)]
    joins, ends = (
        np.array([[row[column] for row in record.rows("all_reduces")] for record in records]).T for column in (1, 2)
    )
    zeros: list[float] = records[0].facts["began"]
    floats = int(records[0].facts["floats"])
    rows = [
        (
            carried.source, carried.target, carried.num_bytes, carried.start - zeros[carried.call],
            carried.end - zeros[carried.call], carried.chunk, carried.call,
        )
        for carried in carried_by([schedule], records, [(floats, FLOAT_BYTES)], eager=sends == "eager")
    ]  # fmt: skip
    began = np.array(zeros)[:, None]
    sent = [record.facts["tally"]["sent"].values() for record in records]
    return RealCollective(
        joins - began, ends - began, Transfers.of_rows(rows),
        sent_bytes=[sum(num_bytes for _, num_bytes in counted) for counted in sent],
        sent_messages=[sum(messages for messages, _ in counted) for counted in sent],
    )  # fmt: skip
