"""What a step of a model takes on a measured machine: with so many workers at once, and on cores that they share."""

from __future__ import annotations

import numpy as np

from distsim.calibration.machine import SHORTEST_SECONDS, MachineCalibration
from distsim.calibration.operations import Operation
from distsim.errors import InputError
from distsim.policies import Ddp, Mesh, Programmed, Tensor
from distsim.scenario import Scenario
from distsim.workload import Model, Workload


def model_seconds(machine: MachineCalibration, scenario: Scenario, workers: int) -> float:
    """Seconds of a step's forward and backward, in the policy's buckets or units, with so many workers at once.

    The policy divides them by the workers that share a block. They share what grows with the samples, while each of
    them calls all operations, so the seconds of calling count once for each of them.
    """
    model = scenario.workload.known_model
    if model is None or scenario.workload.profile is not None:
        return 0.0
    if scenario.workload != scenario.workload.model_copy(update=_default_shape(model)):
        raise InputError.of(
            "calibration for a transformer of width", scenario.workload.width,
            "the calibration holds transformers of the default width and layers", "leave both out",
        )  # fmt: skip
    batch = float(scenario.workload.batch)
    called = machine.on_line(machine.fit_of("compute", workers, model), workers, 0.0)
    alone = machine.seconds("compute", workers, batch, model) + (_sharing_a_block(scenario) - 1) * called
    policy = scenario.policy
    if isinstance(policy, Ddp):
        more = _more_in_parts(machine, "ddp", model, workers, len(policy.buckets(scenario.workload.layer_bytes)))
    elif isinstance(policy, Programmed):
        more = _more_in_parts(machine, "units", model, workers, policy.program(scenario.workload, workers).forwards)
    else:
        more = 0.0
    return max(alone + _sharing_a_block(scenario) * more, SHORTEST_SECONDS)


def _more_in_parts(machine: MachineCalibration, operation: Operation, model: Model, workers: int, parts: int) -> float:
    """By how much a step of the largest batch takes longer in so many buckets or units; 0 in earlier files."""
    measured = {n for fit in machine.fits if (fit.operation, fit.model) == (operation, model) for n in fit.workers}
    if not measured:
        return 0.0
    largest = max(found.amount for found in machine.measured if (found.operation, found.model) == ("compute", model))
    found = min(measured, key=lambda number: (abs(number - workers), number))
    more = machine.seconds(operation, found, float(parts), model) - machine.seconds("compute", found, largest, model)
    return more * machine.oversubscribed("compute", workers).byte / machine.oversubscribed("compute", found).byte


def step_seconds(machine: MachineCalibration, scenario: Scenario) -> float:
    """Seconds of a step of one worker alone, without exchanges."""
    profile = scenario.workload.profile
    if profile is None:
        return model_seconds(machine, scenario, 1)
    in_parts = isinstance(scenario.policy, Ddp | Programmed)
    return (profile.ddp_seconds if in_parts else None) or profile.step_seconds


def busy_pace(machine: MachineCalibration, scenario: Scenario) -> float:
    """The pace of a core among busy cores, beside one alone: the profile's own, or that of a measured model.

    Of a measured model it is interpolated over the logarithm of a batch. A profile without a pace of its own takes the
    median of all measured batches.
    """
    profile = scenario.workload.profile
    if profile and profile.busy:
        shared = profile.busy.shared_pace if scenario.ranks > machine.cores else None
        return min(1.0, shared or profile.busy.pace)
    paces = busy_paces(machine, None if profile else scenario.workload.known_model, scenario.ranks)
    if not paces:
        return 1.0
    if profile:
        return min(1.0, float(np.median(list(paces.values()))))
    batches = sorted(batch for _, batch in paces)
    asked = np.log(float(scenario.workload.batch)), np.log(batches)
    return min(1.0, float(np.interp(*asked, [paces[scenario.workload.known_model, batch] for batch in batches])))


def busy_paces(machine: MachineCalibration, model: Model | None, ranks: int) -> dict[tuple[Model | None, float], float]:
    """By model and batch, the pace of a core where `ranks` workers compute at once; with one alone it is 1.

    The measured workers are as many as there are cores, or, where ranks outnumber cores, more, if there are such.
    model: one that was measured; None: all of them. Empty where no batch was measured both ways.
    """
    computed = [found for found in machine.measured if found.operation == "compute" and model in (None, found.model)]
    numbers = sorted({found.workers for found in computed})
    busy = max((number for number in numbers if number <= machine.cores), default=1)
    if ranks > machine.cores:
        busy = min((number for number in numbers if number > machine.cores), key=lambda n: abs(n - ranks), default=busy)
    alone, together = (
        {(found.model, found.amount): found.seconds for found in computed if found.workers == workers}
        for workers in (1, busy)
    )
    share = max(1.0, busy / machine.cores)  # of the workers, for each core
    return {key: share * alone[key] / together[key] for key in alone if key in together and busy > 1}


def _default_shape(model: Model) -> dict[str, int]:
    """The layers and width of `model` in a calibration."""
    workload = Workload(model=model)
    return {"layers": workload.layers, "width": workload.width}


def _sharing_a_block(scenario: Scenario) -> int:
    """How many workers share each block of a transformer; 1 where none do."""
    if isinstance(scenario.policy, Mesh):
        return scenario.policy.tensor
    return scenario.cluster.workers if isinstance(scenario.policy, Tensor) else 1
