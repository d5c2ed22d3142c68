"""What to know before a prediction is trusted: how far it lies beyond the calibration, and what the calibration lacks.

Towards small sizes a line ends at the latency, and is safe. Towards large sizes and more workers it holds only as
long as caches, memory and the sharing of cores behave as measured.
"""

from __future__ import annotations

from distsim.calibration.exchange import exchanged_bytes
from distsim.calibration.file import Calibration
from distsim.calibration.imposed import calibrate_command
from distsim.calibration.links import carried_at_once, operation_of
from distsim.calibration.machine import MachineCalibration, title_of
from distsim.calibration.model_step import busy_paces
from distsim.calibration.operations import Operation
from distsim.scenario import Scenario
from distsim.units import show
from distsim.workload import Model

FAR_AMOUNT, FAR_WORKERS = 4, 2  # far beyond: more than so many times the largest measured


def cautions(calibration: Calibration | None, scenario: Scenario, *, emulated: bool = False) -> list[str]:
    """All sentences on why not to trust a prediction of `scenario`. None: a calibration of its exchange alone.

    emulated: whether the prediction is for emulated links, so that a calibration is to be made on these.
    Raises InputError if no measurement applies.
    """
    profile = scenario.workload.profile
    found = profile.warnings() if profile else []
    if calibration is not None:
        found += calibration.machine.busy_warnings() if calibration.machine else []
        found += far_beyond(calibration, scenario)
    return found + lacking(calibration, scenario, emulated=emulated)


def far_beyond(calibration: Calibration, scenario: Scenario) -> list[str]:
    """A sentence for each operation of `scenario` that is far beyond the measurements.

    Raises InputError if no measurement applies.

    >>> from distsim import example
    >>> from distsim.calibration import Exchange
    >>> known = Calibration((Exchange("ring", 4, 1.1e9, 1e-4, 0.0, ((1e5, 1e-3), (1e6, 3e-3))),))
    >>> run = example("synchronous_ring").replacing({"workload.gradient": "100 MB"})
    >>> far_beyond(known, run)    # doctest: +ELLIPSIS
    ['ring: 100 MB on 4 workers are far beyond the 1 MB on 4 that was measured; the prediction is a guess. Cure: ...
    """
    exchange, workers = calibration.of(scenario), scenario.cluster.workers
    if exchange in calibration.exchanges:
        most = max((size for size, _ in exchange.points), default=float("inf"))
        told = _told(exchange.kind.replace("_", " "), "byte", (exchanged_bytes(scenario), workers), (most, workers))
        return [told] if told else []
    assert calibration.machine is not None, "the exchange is the machine's"
    asked: list[tuple[Operation, Model | None, float]] = [(operation_of(scenario), None, carried_at_once(scenario))]
    if (model := scenario.workload.known_model) is not None:
        asked.append(("compute", model, float(scenario.workload.batch)))
    found = [_of_operation(calibration.machine, *one, workers) for one in asked]
    return [told for told in found if told]


def lacking(calibration: Calibration | None, scenario: Scenario, *, emulated: bool = False) -> list[str]:
    """A sentence for what a prediction of `scenario` lacks. None: a calibration of its exchange alone.

    emulated: as in `cautions`, and where the calibration has emulated links. Raises InputError as `far_beyond` does.

    >>> from distsim import Scenario, example
    >>> table = example("synchronous_ring").table() | {"workload": {"model": "mlp"}}
    >>> lacking(None, Scenario.of(table))    # doctest: +ELLIPSIS
    ['the prediction has no time for the forward and backward of mlp: run distsim calibrate --model mlp ...
    """
    model, profile = scenario.workload.known_model, scenario.workload.profile
    known = None if calibration is None else calibration.machine
    emulated = emulated or (known is not None and known.emulated)
    if (model is None and profile is None) or (profile and profile.device != "cpu"):
        return []
    exchange, what = None if calibration is None else calibration.of(scenario), profile.model if profile else model
    timed = exchange is not None and (exchange.cores is not None or exchange.model_seconds > 0.0)
    if not timed and not profile:
        run = calibrate_command(scenario.cluster, f"--model {model}", emulated=emulated)
        cure = f"run {run}, and add --calibration machine.json"
        return [f"the prediction has no time for the forward and backward of {model}: {cure}"]
    machine = None if calibration is None else calibration.machine
    if exchange is None or exchange.cores is None or machine is None:
        run = calibrate_command(scenario.cluster, "--workers 1,2", emulated=emulated)
        cure = "" if scenario.servers else f". Run {run}, and add --calibration machine.json"
        return [f"the prediction does not know how exchanges and the computing of {what} compete for cores{cure}"]
    own_pace = profile is not None and profile.busy is not None
    if machine.cores > 1 and not own_pace and not busy_paces(machine, None if profile else model, scenario.ranks):
        run = calibrate_command(scenario.cluster, f"--workers 1,{machine.cores}", emulated=emulated)
        return [
            f"the calibration did not measure a model on {machine.cores} busy cores: the prediction takes them for as "
            f"fast as one alone. Run {run}"
        ]
    return []


def _of_operation(
    machine: MachineCalibration, operation: Operation, model: Model | None, amount: float, workers: int
) -> str | None:
    measured = [found for found in machine.measured if (found.operation, found.model) == (operation, model)]
    if not measured:
        return None
    most = max(found.amount for found in measured)
    # A message has two ends, whatever the number of workers.
    numbers = workers if operation == "point_to_point" else max(found.workers for found in measured)
    return _told(title_of(operation, model), "sample" if model else "byte", (amount, workers), (most, numbers))


def _told(title: str, unit: str, asked: tuple[float, int], most: tuple[float, int]) -> str | None:
    """The sentence, or None. asked, most: the amount in `unit`, and the number of workers."""
    large, many = asked[0] > FAR_AMOUNT * most[0], asked[1] > FAR_WORKERS * most[1]
    if not (large or many):
        return None
    if unit == "byte":
        ours, theirs = f"{show(asked[0], 'byte')} on {asked[1]} workers are", f"the {show(most[0], 'byte')}"
        cure = "larger --sizes"
    else:
        ours, theirs = f"a batch of {asked[0]:.0f} on {asked[1]} workers is", f"one of {most[0]:.0f}"
        cure = "a larger --batch"
    beyond = f"{title}: {ours} far beyond {theirs} on {most[1]} that was measured; the prediction is a guess"
    return f"{beyond}. Cure: calibrate with {' and '.join([*[cure] * large, *['more --workers'] * many])}"
