"""Judges a scenario that a student designs, for example so that a prediction of it fails: by simulating it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from distsim.course.answer import Judged, shown, untouched
from distsim.errors import InputError
from distsim.figures.wording import counted
from distsim.grading.result import UNTOUCHED
from distsim.scenario import Scenario

FAR_PCT = 20.0
MOST_WORKERS = 64  # so that a simulation takes seconds

Changes = Mapping[str, Any]


def error_told(error_pct: float) -> str:
    """What a design has done to a prediction.

    >>> error_told(-10.0)
    'the prediction is 10.0 % below the simulation'
    """
    size = f"{abs(error_pct):.1f} %"
    direction = "off" if size == "0.0 %" else "above" if error_pct > 0 else "below"
    return f"the prediction is {size} {direction} the simulation"


def design(
    answer: object,
    *,
    scenario: Scenario,
    error_pct: Callable[[Scenario], float],
    otherwise: str | Callable[[float, Changes], str],
    changeable: Collection[str] = (),
    fixed: Collection[str] = (),
    far: Callable[[float], bool] = lambda error: abs(error) > FAR_PCT,
    told: Callable[[float], str] = error_told,
    least_workers: int = 1,
    most_workers: int = MOST_WORKERS,
) -> Judged:
    """Judges a dictionary of changes to `scenario`.

    error_pct: of the prediction against the simulation of the changed scenario, in percent; above 0 where the
    prediction is too large. It may be another number, where `told` says what the number is. far: which errors are
    right. otherwise: the feedback for other errors, or a function of the error and the changes. changeable: the keys
    that may change, such as "compute.cv"; none named: all but those in `fixed`.

    >>> from distsim import example
    >>> ring = example("synchronous_ring")
    >>> design(
    ...     {"steps": 10}, scenario=ring, error_pct=lambda changed: changed.steps - 50,
    ...     otherwise="Fewer steps.",
    ... ).observed
    'the prediction is 40.0 % below the simulation'
    """
    if untouched(answer):
        return Judged(0.0, UNTOUCHED)
    if not isinstance(answer, Mapping):
        return Judged(0.0, shown(answer), 'This must be a dictionary of changes, such as {"compute.cv": 0.5}.')
    for key in answer:
        if not isinstance(key, str) or key in fixed or (changeable and key not in changeable):
            table = f"{key}."
            if isinstance(key, str) and any(one.startswith(table) for one in changeable):
                first = next(one for one in changeable if one.startswith(table))
                return Judged(
                    0.0, shown(answer),
                    f'Name the keys of {key} one by one, such as {{"{first}": ...}}. None removes a key.',
                )  # fmt: skip
            allowed = f" Change only {', '.join(changeable)}." if changeable else " Change something else."
            return Judged(0.0, shown(answer), f"{key} must stay as it is.{allowed}")
    workers = answer.get("cluster.workers")
    if isinstance(workers, int) and workers < least_workers:
        return Judged(0.0, counted(workers, "worker"), f"Take at least {counted(least_workers, 'worker')}.")
    try:
        changed = scenario.replacing(dict(answer))
        if changed.cluster.workers > most_workers:
            return Judged(0.0, counted(changed.cluster.workers, "worker"), f"Take at most {most_workers} workers.")
        error = error_pct(changed)
    except InputError as problem:
        return Judged(0.0, shown(answer), f"This is no scenario for the check: {problem}")
    except ZeroDivisionError:
        rule = "Here what is predicted takes no time at all, so no error in percent. Leave something to predict."
        return Judged(0.0, shown(answer), rule)
    if far(error):
        return Judged(1.0, told(error))
    return Judged(0.0, told(error), otherwise if isinstance(otherwise, str) else otherwise(error, answer))
