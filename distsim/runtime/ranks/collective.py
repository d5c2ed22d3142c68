"""One rank of `run_schedule`: join, run the schedule, compare with the back end's own all-reduce."""

from __future__ import annotations

import time

import torch

from distsim.collectives import Schedule
from distsim.runtime.launch.rank_context import RankContext
from distsim.runtime.ranks.peers import WrongSumError
from distsim.runtime.ranks.session import agreed_moment, process_group
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.schedule_table import schedule_of
from distsim.runtime.transport import backend
from distsim.runtime.transport.messages import num_floats
from distsim.runtime.transport.schedule_run import ScheduleTask, runner_of

WARM_UP_CALLS = 2
POSITIONS = 1021  # numbers differ from place to place, so that no chunk equals another


def run(context: RankContext) -> None:
    """Runs all schedules of the job, one after the other."""
    with process_group(context):
        for number, table in enumerate(context.job["schedules"]):
            recorder = _one(context, schedule_of(table), number * context.job["repeats"])
            recorder.save(context.folder, number, context.rank)


def _one(context: RankContext, schedule: Schedule, done: int) -> Recorder:
    """Runs all repeats of one schedule, after warm-up calls that are not recorded."""
    job, rank = context.job, context.rank
    own = contribution(schedule, rank, num_floats(job["num_bytes"]))
    runner = runner_of(ScheduleTask(schedule, rank, len(own), job["sends"]), context.slot)
    data = own.clone()
    recorder, began = Recorder(), []
    for call in range(-WARM_UP_CALLS, job["repeats"]):
        data.copy_(own)
        moment = agreed_moment(context.slot)
        sleep_until(moment + (job["starts_seconds"][rank] if call >= 0 else 0.0))
        joined = time.monotonic()
        context.slot.doing(f"{schedule.name}, repeat {call}", waiting=True)
        runner.run(data, call, recorder if call >= 0 else Recorder(), more=call + 1 < job["repeats"])
        ended = time.monotonic()
        check(schedule, rank, own, data)
        if call >= 0:
            recorder.table("all_reduces")((call, joined, ended))
            began.append(moment)
            context.slot.done(done + call + 1)
    recorder.facts |= {"began": began, "floats": len(own)}
    return recorder


def contribution(schedule: Schedule, rank: int, floats: int) -> torch.Tensor:
    """The numbers that `rank` holds at the start: whole numbers whose sums float32 holds exactly, 0 where it has none.

    They differ from place to place and from rank to rank.
    """
    numbers = ((torch.arange(floats) % POSITIONS + 1) * (rank + 1)).to(torch.float32)
    bounds = schedule.chunk_bounds(floats)
    for chunk in range(schedule.chunks):
        if not _holds(schedule, rank, chunk):
            numbers[bounds[chunk] : bounds[chunk + 1]] = 0.0
    return numbers


def _holds(schedule: Schedule, rank: int, chunk: int) -> bool:
    return rank < schedule.workers if schedule.start is None else (rank, chunk) in schedule.start


def check(schedule: Schedule, rank: int, own: torch.Tensor, data: torch.Tensor) -> None:
    """Raises WrongSumError where a chunk that this rank wants differs from the back end's own all-reduce."""
    total = own.clone()
    backend.all_reduce(total)
    bounds = schedule.chunk_bounds(len(own))
    for chunk in range(schedule.chunks):
        wanted = rank < schedule.workers if schedule.end is None else (rank, chunk) in schedule.end
        place = slice(bounds[chunk], bounds[chunk + 1])
        if wanted and not torch.equal(data[place], total[place]):
            wrong = int((data[place] != total[place]).sum())
            raise WrongSumError(
                f"after {schedule.name!r}, {wrong} of the {len(total[place])} numbers of chunk {chunk} at rank {rank} "
                "are not what the backend's all_reduce gives"
            )
