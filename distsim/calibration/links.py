"""The links of a scenario on a measured machine, and the cores that its ranks share."""

from __future__ import annotations

import numpy as np

from distsim.calibration.exchange import Exchange, exchanged_bytes
from distsim.calibration.machine import MachineCalibration
from distsim.calibration.model_step import busy_pace, model_seconds, step_seconds
from distsim.calibration.operations import NOT_OVERSUBSCRIBED, Operation, terms
from distsim.cores import Cores
from distsim.policies import Ddp, Pipeline, Programmed
from distsim.scenario import Scenario
from distsim.units import BOUNDS

FASTEST_BYTES_PER_SECOND = 1e13  # the bandwidth if more bytes took no longer; no memory copy reaches it


def exchange_of(machine: MachineCalibration, scenario: Scenario) -> Exchange:
    """The links of `scenario` on this machine, and the seconds of its server and model.

    Raises InputError if the scenario's operation was not measured.
    """
    operation, amount = operation_of(scenario), carried_at_once(scenario)
    workers, cores = scenario.cluster.workers, _shared_cores(machine, scenario)
    # Beside shared cores the links are those of ranks that do not compete for cores.
    links = machine.fit_of(operation, workers if cores is None else max(2, min(workers, machine.cores)))
    shared = machine.oversubscribed(operation, scenario.ranks) if cores is None else NOT_OVERSUBSCRIBED
    miss = machine.miss(links, workers, amount)
    latency = links.line.fixed_seconds * shared.message * miss
    if cores is not None and operation == "all_reduce":  # the cores have the call, so the messages do not
        messages = np.mean([terms(operation, n, 0.0, NOT_OVERSUBSCRIBED)[0] for n in links.workers])
        latency = max(0.0, latency - cores.call_seconds / float(messages))
    return Exchange(
        kind=scenario.communication.kind,
        workers=workers,
        bandwidth_bytes_per_second=bytes_per_second(links.line.unit_seconds * shared.byte * miss),
        latency_seconds=latency,
        apply_seconds=machine.seconds("apply", workers, amount) if scenario.server_decides else 0.0,
        points=tuple(
            (found.amount, found.seconds) for found in machine.points(links) if found.workers == links.workers[-1]
        ),
        model_seconds=model_seconds(machine, scenario, workers) if cores is None else 0.0,
        measured_workers=links.workers,
        cores=cores,
    )


def _shared_cores(machine: MachineCalibration, scenario: Scenario) -> Cores | None:
    """The cores that the workers share, if they compute a model, exchange among peers, and their work is known."""
    model, profile = scenario.workload.known_model, scenario.workload.profile
    known = {fit.operation: fit.line for fit in machine.work}
    exchange, mean = known.get(operation_of(scenario)), known.get("bucket_mean")
    on_a_cpu = profile.device == "cpu" if profile else model is not None
    if not on_a_cpu or exchange is None or scenario.servers:
        return None
    turn = arrival_turn = call = wake = 0.0
    if operation_of(scenario) == "all_reduce":
        turn, call = machine.turn_seconds, mean.fixed_seconds if mean else 0.0
    elif operation_of(scenario) == "ring_schedule":  # a trace shows that both ends wait
        turn = arrival_turn = machine.schedule_turn_seconds / 2
        if isinstance(scenario.policy, Ddp | Programmed):  # another thread follows the schedule
            call = machine.hand_over_seconds
        if scenario.ranks >= machine.cores:
            shared = machine.shared_wake_seconds if scenario.ranks > machine.cores else 0.0
            wake = shared or machine.wake_seconds
    ends = 2  # of a message: a rank that sends one and receives one does both
    return Cores(
        capacity=machine.cores * busy_pace(machine, scenario),
        step_seconds=step_seconds(machine, scenario),
        call_seconds=call,
        message_seconds=exchange.fixed_seconds / ends,
        byte_seconds=exchange.unit_seconds / ends,
        bucket_byte_seconds=mean.unit_seconds if mean else 0.0,
        count=machine.cores,
        turn_seconds=turn,
        arrival_turn_seconds=arrival_turn,
        wake_seconds=wake,
    )


def carried_at_once(scenario: Scenario) -> float:
    """Bytes of one exchange; under DDP, of one bucket."""
    whole = exchanged_bytes(scenario)
    return min(whole, scenario.policy.bucket_bytes) if isinstance(scenario.policy, Ddp) else whole


def operation_of(scenario: Scenario) -> Operation:
    """The measured operation that is the exchange of `scenario`."""
    if isinstance(scenario.policy, Pipeline):
        return "point_to_point"
    if scenario.server_decides:
        return "parameter_server"
    return "ring_schedule" if scenario.follows_schedule else "all_reduce"


def bytes_per_second(seconds_per_byte: float) -> float:
    """The bandwidth, finite even if bytes cost no measurable time."""
    return max(1.0 / max(seconds_per_byte, 1.0 / FASTEST_BYTES_PER_SECOND), BOUNDS["byte/second"][0])
