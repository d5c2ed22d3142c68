"""One scenario on one rank: warm-up, start of the clock, the rank's story, verification, record."""

from __future__ import annotations

import os
import platform
import sys
import time
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist

from distsim.policies import Synchronous, WithServer
from distsim.runtime.clock import sleep_until
from distsim.runtime.emulation import order
from distsim.runtime.latency import one_way_seconds
from distsim.runtime.messages import num_floats
from distsim.runtime.peers import Peer
from distsim.runtime.recorder import Recorder
from distsim.runtime.seat import Seat
from distsim.runtime.server import Duty, Server
from distsim.runtime.status import StatusSlot
from distsim.runtime.worker import CancelledWorker, Work, Worker
from distsim.scenario import Scenario

BACKEND = "gloo"
START_LEAD_SECONDS = 0.02  # from the agreement on a start to the start, so that all have heard of it
WARM_UP_STEPS = 3


def run(seat: Seat) -> None:
    """All scenarios of the job, one after the other, as the rank of this seat."""
    # Whoever waits too long is to be found by the launcher's deadline, which tells where; never by the backend's own.
    patience = timedelta(seconds=3600 + 2 * float(seat.job["deadline_seconds"]))
    seat.slot.doing("init_process_group", waiting=True)
    dist.init_process_group(BACKEND, timeout=patience)
    if order.imposed(seat.folder) is not None:
        seat.slot.doing("ping-pong", waiting=True)
        if (latency := one_way_seconds()) is not None:
            order.note_latency(seat.folder, latency)
    done = 0
    for number, table in enumerate(seat.job["scenarios"]):
        scenario = Scenario.of(table)
        recorder = Recorder()
        _one(scenario, seat.rank, recorder, seat.slot, done)
        recorder.save(seat.folder, number, seat.rank)
        done += scenario.steps
    dist.destroy_process_group()


def _one(scenario: Scenario, rank: int, recorder: Recorder, slot: StatusSlot, done: int) -> None:
    if not scenario.servers:
        peer = Peer(scenario, rank, recorder, slot, done)
        slot.doing("warm-up", waiting=True)
        peer.warm_up()
        peer.run(_start(recorder, slot))
        peer.verify()
    elif rank in scenario.servers:
        _server(scenario, Recorder(), slot, done, warm_up=True).run()
        server = _server(scenario, recorder, slot, done)
        _start(recorder, slot)
        server.run()
    else:
        _worker(scenario, rank, Recorder(), slot, warm_up=True).run(time.monotonic())
        worker = _worker(scenario, rank, recorder, slot)
        worker.run(_start(recorder, slot))
    recorder.facts |= _host()
    slot.doing("the barrier at the end", waiting=True)
    dist.barrier()


def _server(scenario: Scenario, recorder: Recorder, slot: StatusSlot, done: int, *, warm_up: bool = False) -> Server:
    workers = scenario.cluster.workers
    policy = Synchronous() if warm_up else scenario.policy
    assert isinstance(policy, WithServer), "checked before the launch"
    duty = Duty(
        rule=policy.rule(workers),
        workers=workers,
        updates=WARM_UP_STEPS if warm_up else policy.updates(scenario.steps, workers),
        floats=num_floats(scenario.gradient_bytes),
        receive=scenario.receive,
        cancels=cancels(scenario) and not warm_up,
    )
    return Server(duty, recorder, slot, done - WARM_UP_STEPS if warm_up else done)


def _worker(scenario: Scenario, rank: int, recorder: Recorder, slot: StatusSlot, *, warm_up: bool = False) -> Worker:
    times = scenario.compute_times()
    times.first(rank, scenario.steps)  # drawn before the clock starts

    def seconds(step: int, read_version: int) -> float:
        return 0.0 if warm_up else times(rank, read_version if scenario.policy.has_global_step else step)

    (server,) = scenario.servers
    cancelled = cancels(scenario) and not warm_up
    work = Work(rank, server, num_floats(scenario.gradient_bytes), seconds)
    return CancelledWorker(work, recorder, slot) if cancelled else Worker(work, recorder, slot)


def cancels(scenario: Scenario) -> bool:
    """Whether the policy's rule may answer a worker that has not pushed yet."""
    return bool(getattr(scenario.policy, "cancel", False))


def _start(recorder: Recorder, slot: StatusSlot) -> float:
    """The moment (monotonic seconds) at which all ranks begin, agreed upon and then waited for."""
    slot.doing("the start barrier", waiting=True)
    dist.barrier()
    moment = torch.tensor([time.monotonic() + START_LEAD_SECONDS], dtype=torch.float64)
    dist.all_reduce(moment, op=dist.ReduceOp.MAX)
    sleep_until(moment.item())
    left = time.monotonic()
    recorder.facts["left_barrier"] = left
    return left


def _host() -> dict[str, object]:
    return {
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        "host": {
            "cores": os.cpu_count(),
            "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "platform": platform.platform(),
            "machine": platform.machine(),
            "system": sys.platform,
            "backend": BACKEND,
            "threads": torch.get_num_threads(),
        },
    }
