"""From the samples of a calibration, measured times of an operation, to the fitted machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from distsim.arrays import Floats
from distsim.calibration.fitted_line import fit_line
from distsim.calibration.imposed import Imposed
from distsim.calibration.machine import SHORTEST_SECONDS, Fit, MachineCalibration, Measured
from distsim.calibration.operations import (
    NOT_OVERSUBSCRIBED,
    OF_MODELS,
    OPERATIONS,
    Correction,
    Operation,
    oversubscription,
    terms,
)
from distsim.workload import Model

Repeats = dict[tuple[Operation, Model | None, int, float], Floats]  # operation, model, workers, amount: all repeats
Sample = tuple[Operation, Model | None, int, float, Floats]  # operation, model, workers, amount, seconds of the repeats
Corrected = tuple[Correction, int, float, Floats]  # workers, amount, seconds of the repeats


def fitted(
    samples: Iterable[Sample], cores: int, *, emulated: bool = False, imposed: Imposed | None = None,
    work: Iterable[Sample] = (), corrections: Sequence[Corrected] = (), other_work: float = 0.0,
) -> MachineCalibration:  # fmt: skip
    """The calibration from these samples; samples of the same operation, model, workers and amount are joined.

    Of a model's times, only the sample at the lower quartile counts. The cores of a virtual machine lose up to a third
    of their pace for seconds or minutes, and most runs are not disturbed.
    work: core-seconds of one rank in place of seconds. corrections: all-reduces beside workers that compute, and
    hand-overs of an exchange to another thread. other_work: cores that other programs took meanwhile.

    >>> import numpy as np
    >>> one = [("point_to_point", None, 2, size, np.full(20, 1e-4 + size / 1e9)) for size in (1e4, 1e5, 1e6)]
    >>> machine = fitted(one, cores=2)
    >>> round(machine.seconds("point_to_point", 2, 5e6), 9)
    0.0051
    """
    repeats, fits = _joined(samples), []
    for operation, model in dict.fromkeys((operation, model) for operation, model, _, _ in repeats):
        own = {key: seconds for key, seconds in repeats.items() if key[:2] == (operation, model)}
        numbers = sorted({workers for _, _, workers, _ in own})
        for at in [(number,) for number in numbers] + ([tuple(numbers)] if len(numbers) > 1 else []):
            points = {key: seconds for key, seconds in own.items() if key[2] in at}
            rows = [
                terms(operation, workers, amount, oversubscription(operation, workers, cores, emulated=emulated))
                for _, _, workers, amount in points
            ]
            fits.append(Fit(operation=operation, model=model, workers=at, line=fit_line(rows, list(points.values()))))
    machine = MachineCalibration(
        cores=cores, emulated=emulated, imposed=imposed, fits=tuple(fits),
        measured=tuple(_measured(*key, seconds) for key, seconds in repeats.items()), work=_work(work),
        other_work=other_work,
    )  # fmt: skip
    together = {key: np.concatenate(found) for key, found in _together(corrections).items()}
    handed = [one[-1] for one in corrections if one[0] == "hand_over"]
    return machine.model_copy(
        update={
            "turn_seconds": _turn_seconds(machine, together, "turn", "all_reduce"),
            "schedule_turn_seconds": _turn_seconds(machine, together, "schedule_turn", "ring_schedule"),
            "wake_seconds": _wake_seconds(together, cores),
            "shared_wake_seconds": _wake_seconds(together, cores + 1),
            "hand_over_seconds": float(np.median(np.concatenate(handed))) if handed else 0.0,
        }
    )


def _turn_seconds(
    machine: MachineCalibration, turns: dict[tuple[Correction, int, float], Floats], kind: Correction, shown: Operation
) -> float:
    """How much longer a message of an all-reduce takes behind one worker on each core, at the fewest that fill them.

    >>> import numpy as np
    >>> free = [("all_reduce", None, 2, size, np.full(20, 1e-3 + size / 1e9)) for size in (1e4, 1e5, 1e6)]
    >>> busy = [("turn", 2, 1e5, np.full(20, 9.1e-3))]  # 8 ms more, for two rounds of messages
    >>> [round(fitted(free, cores, corrections=busy).turn_seconds, 6) for cores in (2, 4)]
    [0.004, 0.0]
    """
    key = _of_fewest(turns, kind, machine.cores)
    if key is None:
        return 0.0
    _, workers, amount = key
    messages, _ = terms(shown, workers, amount, NOT_OVERSUBSCRIBED)
    behind = workers / machine.cores  # workers on each core, one after the other
    return max(0.0, float(np.median(turns[key])) - machine.seconds(shown, workers, amount)) / messages / behind


def _wake_seconds(wakes: dict[tuple[Correction, int, float], Floats], workers: int) -> float:
    """Of the fewest measured workers, but no fewer than so many; 0 where there are none."""
    key = _of_fewest(wakes, "wake", workers)
    return float(np.median(wakes[key])) if key else 0.0


def _of_fewest(
    corrections: dict[tuple[Correction, int, float], Floats], kind: Correction, workers: int
) -> tuple[Correction, int, float] | None:
    """The key of the samples of this kind at the fewest workers, but no fewer than so many; None if there are none."""
    enough = [key for key in corrections if key[0] == kind and key[1] >= workers]
    return min(enough, key=lambda key: key[1], default=None)


def _together(samples: Iterable[tuple[Any, ...]]) -> dict[Any, list[Floats]]:
    """The seconds of all samples that are alike in everything else."""
    together: dict[Any, list[Floats]] = {}
    for *key, seconds in samples:
        together.setdefault(tuple(key), []).append(seconds)
    return together


def _joined(samples: Iterable[Sample]) -> Repeats:
    """The repeats of the same operation, model, workers and amount together, in the order of tables."""
    together = _together(samples)
    order = sorted(together, key=lambda key: (OPERATIONS.index(key[0]), key[1] or "", *key[2:]))
    return {
        key: _at_the_lower_quartile(together[key]) if key[0] in OF_MODELS else np.concatenate(together[key])
        for key in order
    }


def _at_the_lower_quartile(runs: list[Floats]) -> Floats:
    """The repeats of the run that is slower than a quarter of the others, by its median."""
    return sorted(runs, key=np.median)[(len(runs) - 1) // 4]


def _work(samples: Iterable[Sample]) -> tuple[Fit, ...]:
    """For each operation the line of a rank's core-seconds, which do not depend on who else has work.

    The line of the all-reduce is that of its messages, without the call, which the line of the bucket's mean tells.
    """
    repeats, found = _joined(samples), []
    call = 0.0
    for operation in sorted({key[0] for key in repeats}, key=lambda operation: operation != "bucket_mean"):
        own = {key: seconds for key, seconds in repeats.items() if key[0] == operation}
        if operation == "all_reduce":
            own = {key: np.maximum(seconds - call, SHORTEST_SECONDS) for key, seconds in own.items()}
        rows = [terms(operation, workers, amount, NOT_OVERSUBSCRIBED) for _, _, workers, amount in own]
        workers = tuple(sorted({key[2] for key in own}))
        found.append(Fit(operation=operation, workers=workers, line=fit_line(rows, list(own.values()))))
        if operation == "bucket_mean":
            call = found[-1].line.fixed_seconds
    return tuple(found)


def _measured(operation: Operation, model: Model | None, workers: int, amount: float, seconds: Floats) -> Measured:
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75])
    return Measured(
        operation=operation, model=model, workers=workers, amount=amount, seconds=float(middle),
        quartiles=(float(low), float(high)), repeats=len(seconds),
    )  # fmt: skip
