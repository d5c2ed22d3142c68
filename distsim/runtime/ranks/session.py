"""One scenario on one rank: warm-up, start of the clock, the rank's story, verification, record."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from distsim.runtime.devices.device import Device, devices
from distsim.runtime.devices.thread_scheduling import patient_threads
from distsim.runtime.emulation import order
from distsim.runtime.launch.rank_context import Seat
from distsim.runtime.ranks import server_roles
from distsim.runtime.ranks.failures import Elastic, begun, start_number
from distsim.runtime.ranks.peer_roles import story_of
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.clock_offset import NONE, Offset, between
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder, journal_of
from distsim.runtime.roles import among_peers
from distsim.runtime.transport.gathering import hand_in, introduce
from distsim.runtime.transport.ping_pong import measured, one_way_seconds
from distsim.scenario import Scenario

BACKEND = "gloo"  # of what all ranks say to each other; a device may bring another for its sums
START_LEAD_SECONDS = 0.02  # from the agreement on a start to the start, so that all have heard of it


def run(seat: Seat) -> None:
    """All scenarios of the job, one after the other, as the rank of this seat."""
    done = 0
    scenarios = [Scenario.of(table) for table in seat.job["scenarios"]]
    with process_group(seat):
        seat.slot.doing("the choice of devices", waiting=True)
        emulated = order.imposed(seat.folder) is not None
        chosen = devices(scenarios, emulated=emulated, patience=_patience(seat))
        for number, (scenario, device) in enumerate(zip(scenarios, chosen, strict=True)):
            if not _over(seat, number):
                recorder = Recorder(journal_of(seat.folder, number, seat.rank, start_number()))
                elastic = Elastic(seat, number, scenario, recorder) if scenario.failures else None
                before = _offset(seat)
                _one(seat, number, scenario, seat.job["rules"][number], recorder, done, elastic, before, device)
                after = _offset(seat)
                seat.slot.doing("the writing of its record")
                recorder.save(seat.folder, number, seat.rank, between(before, after))
                if machines := seat.job["machines"]:
                    seat.slot.doing("the gathering of records", waiting=True)
                    hand_in(seat, number, machines)
            done += scenario.steps


def _over(seat: Seat, number: int) -> bool:
    """Whether this scenario had come to its end when torchrun started the ranks again, for the sake of a later one."""
    return any(begun(seat.folder, later) for later in range(number + 1, len(seat.job["scenarios"])))


def _offset(seat: Seat) -> Offset:
    """Of this machine's clock, if there are several."""
    machines = seat.job["machines"]
    if not machines:
        return NONE
    seat.slot.doing("ping-pong for the clock", waiting=True)
    return measured(machines)


def _patience(seat: Seat) -> timedelta:
    """Of the backends. Whoever waits too long is to be found by the launcher's deadline, which tells where."""
    return timedelta(seconds=3600 + 2 * float(seat.job["deadline_seconds"]))


@contextmanager
def process_group(seat: Seat) -> Iterator[None]:
    """All ranks of the run, in one group."""
    patience = _patience(seat)
    seat.slot.doing("init_process_group", waiting=True)
    store, rank, ranks = next(rendezvous("env://", timeout=patience))
    store.set_timeout(patience)
    # torchrun keeps its store when it starts the ranks again, with the addresses of those that are gone.
    store = PrefixStore(f"start_{start_number()}", store)
    if seat.job.get("machines"):
        introduce(seat, store, ranks)
    with patient_threads():
        dist.init_process_group(BACKEND, store=store, rank=rank, world_size=ranks, timeout=patience)
    if order.imposed(seat.folder) is not None:
        seat.slot.doing("ping-pong", waiting=True)
        if (latency := one_way_seconds()) is not None:
            order.note_latency(seat.folder, latency)
    yield
    dist.destroy_process_group()


def _one(
    seat: Seat, number: int, scenario: Scenario, rule: str | None, recorder: Recorder, done: int,
    elastic: Elastic | None, offset: Offset, device: Device,
) -> None:  # fmt: skip
    slot = seat.slot
    if among_peers(scenario):
        peer = story_of(scenario, seat.rank, recorder, slot, done, device, elastic)
        slot.doing("warm-up", waiting=True)
        peer.warm_up()
        peer.run(_start(recorder, slot, elastic, offset))
        peer.verify()
    else:
        part = server_roles.Part(scenario, rule, seat, number, done, elastic)
        slot.doing("warm-up", waiting=True)
        recorder.facts["apply_seconds"] = part.warm_up()
        part.story(recorder).run(_start(recorder, slot, elastic, offset))
    if elastic is not None:
        elastic.end()
    recorder.facts |= _host(device)
    slot.doing("the barrier at the end", waiting=True)
    dist.barrier()


def _start(recorder: Recorder, slot: StatusSlot, elastic: Elastic | None, offset: Offset) -> float:
    """The moment (monotonic seconds) at which all ranks begin, agreed upon and then waited for."""
    moment = agreed_moment(slot, offset)
    if elastic is not None:
        return elastic.begin(moment)
    sleep_until(moment)
    left = time.monotonic()
    recorder.facts["left_barrier"] = left
    recorder.table("left")((left,))
    return left


def agreed_moment(slot: StatusSlot, offset: Offset = NONE) -> float:
    """A moment soon to come (monotonic seconds of this machine), the same for all ranks."""
    slot.doing("the start barrier", waiting=True)
    dist.barrier()
    moment = torch.tensor([time.monotonic() + offset.seconds + START_LEAD_SECONDS], dtype=torch.float64)
    dist.all_reduce(moment, op=dist.ReduceOp.MAX)
    return moment.item() - offset.seconds


def _host(device: Device) -> dict[str, object]:
    return {
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        "host": {
            "cores": os.cpu_count(),
            "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "platform": platform.platform(),
            "machine": platform.machine(),
            "system": sys.platform,
            "threads": torch.get_num_threads(),
            **device.facts(),
        },
    }
