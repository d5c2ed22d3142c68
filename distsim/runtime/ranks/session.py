"""Runs the scenarios of a job on one rank: for each warm-up, start of the clock, the rank's role, checks, record."""

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

from distsim.runtime.devices.device import Device, devices
from distsim.runtime.devices.thread_scheduling import be_patient
from distsim.runtime.emulation import coordination
from distsim.runtime.launch.rank_context import RankContext
from distsim.runtime.machine import pin
from distsim.runtime.ranks import server_roles
from distsim.runtime.ranks.failures import FailureRecovery, begun, start_number
from distsim.runtime.ranks.peer_roles import peer_role_of
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.clock_offset import NONE, Offset, between
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder, journal_of
from distsim.runtime.transport import backend
from distsim.runtime.transport.gathering import hand_in, introduce
from distsim.runtime.transport.ping_pong import measured, one_way_seconds
from distsim.scenario import Scenario

START_LEAD_SECONDS = 0.02  # from the agreement on a start to the start, so that all ranks know of it in time


def run(context: RankContext) -> None:
    """Runs all scenarios of the job, one after the other, as the rank of this context."""
    if cores := context.job["cores"]:
        pin(cores[context.rank])
    done = 0
    scenarios = [Scenario.of(table) for table in context.job["scenarios"]]
    with process_group(context):
        context.slot.doing("the choice of devices", waiting=True)
        emulated = coordination.imposed(context.folder) is not None
        chosen = devices(scenarios, emulated=emulated, patience=_patience(context))
        for number, (scenario, device) in enumerate(zip(scenarios, chosen, strict=True)):
            if not _over(context, number):
                recorder = Recorder(journal_of(context.folder, number, context.rank, start_number()))
                recovery = FailureRecovery(context, number, scenario, recorder) if scenario.failures else None
                before = _offset(context)
                _one(context, number, scenario, context.job["rules"][number], recorder, done, recovery, before, device)
                after = _offset(context)
                context.slot.doing("the writing of its record")
                recorder.save(context.folder, number, context.rank, between(before, after))
                if machines := context.job["machines"]:
                    context.slot.doing("the gathering of records", waiting=True)
                    hand_in(context, number, machines)
            done += scenario.steps


def _over(context: RankContext, number: int) -> bool:
    """Whether this scenario was over before torchrun restarted the ranks: a later scenario has begun already."""
    return any(begun(context.folder, later) for later in range(number + 1, len(context.job["scenarios"])))


def _offset(context: RankContext) -> Offset:
    """The offset of this machine's clock in a run on several machines."""
    machines = context.job["machines"]
    if not machines:
        return NONE
    context.slot.doing("ping-pong for the clock", waiting=True)
    return measured(machines)


def _patience(context: RankContext) -> timedelta:
    """How long the back end may wait: longer than the launcher's deadline, which tells where a rank waits."""
    return timedelta(seconds=3600 + 2 * float(context.job["deadline_seconds"]))


@contextmanager
def process_group(context: RankContext) -> Iterator[None]:
    """Connects all ranks of the run while the block lasts."""
    patience = _patience(context)
    context.slot.doing("init_process_group", waiting=True)
    meeting = backend.meet(patience, start_number())
    if context.job.get("machines"):
        introduce(context, meeting)
    be_patient()  # and so are all threads of the backend, and those that exchange
    backend.join(meeting, patience)
    if coordination.imposed(context.folder) is not None:
        context.slot.doing("ping-pong", waiting=True)
        if (latency := one_way_seconds()) is not None:
            coordination.note_latency(context.folder, latency)
    yield
    backend.leave()


def _one(
    context: RankContext, number: int, scenario: Scenario, rule: str | None, recorder: Recorder, done: int,
    recovery: FailureRecovery | None, offset: Offset, device: Device,
) -> None:  # fmt: skip
    slot = context.slot
    if not scenario.server_decides:
        peer = peer_role_of(scenario, context.rank, recorder, slot, done, device, recovery)
        slot.doing("warm-up", waiting=True)
        peer.warm_up()
        peer.run(_start(recorder, slot, recovery, offset))
        peer.verify()
    else:
        roles = server_roles.ServerRoles(scenario, rule, context, number, done, recovery)
        slot.doing("warm-up", waiting=True)
        recorder.facts["apply_seconds"] = roles.warm_up()
        roles.role(recorder).run(_start(recorder, slot, recovery, offset))
    if recovery is not None:
        recovery.end()
    recorder.facts |= _host(device)
    slot.doing("the barrier at the end", waiting=True)
    backend.barrier()


def _start(recorder: Recorder, slot: StatusSlot, recovery: FailureRecovery | None, offset: Offset) -> float:
    """Agrees on the moment (monotonic seconds) at which all ranks begin, and waits for it."""
    moment = agreed_moment(slot, offset)
    if recovery is not None:
        return recovery.begin(moment)
    sleep_until(moment)
    left = time.monotonic()
    recorder.facts["left_barrier"] = left
    recorder.table("left")((left,))
    return left


def agreed_moment(slot: StatusSlot, offset: Offset = NONE) -> float:
    """A moment in the near future (monotonic seconds of this machine), the same for all ranks."""
    slot.doing("the start barrier", waiting=True)
    backend.barrier()
    return backend.largest(time.monotonic() + offset.seconds + START_LEAD_SECONDS) - offset.seconds


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
