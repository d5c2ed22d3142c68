"""Error against run time: waiting for fewer gradients leads at first; what leads in the end? (Dutta et al. 2018)

The noisy quadratic, with known curvature and noise, is replayed in the order of simulated runs without communication.
Only the rule for updates differs: an update waits for all gradients, an update waits for the first K gradients and
cancels the others, a worker is at most some steps ahead of the slowest, or no worker waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distsim.errors import InputError
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Slider
from distsim.explorers.explorer import Explorer
from distsim.figures import loss
from distsim.figures.captioned import Captioned, Row, shown
from distsim.figures.wording import counted
from distsim.learning.curve import COLUMNS, Curve
from distsim.learning.optimizers import Sgd
from distsim.learning.quadratic import Quadratic
from distsim.learning.replay import replay
from distsim.metrics import mean_staleness
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.descent import quadratic_floor
from distsim.theory.staleness import asynchronous_seconds_per_update
from distsim.theory.stragglers import cancelled_backup_step_seconds, worker_times
from distsim.trace import Trace

SECONDS, EARLY = 80.0, 8.0  # in mean compute times: length of a run, first reading of the table
QUADRATIC = Quadratic(flattest=0.3)
SPARE = 1.1  # simulated longer than the formula says, which knows only the mean
POINTS = 120
DIVERGED = 10.0  # times the error at the start
LATE = 60.0  # seconds; by then the error is close to its final level
SYNCHRONOUS, ASYNCHRONOUS = "synchronous", "asynchronous"
POLICY, PACE, PACE_FORMULA, STALENESS = "policy", "updates per s", "by formula", "mean staleness"
FIRST, LAST, FLOOR = f"error at {EARLY:g} s", f"error from {LATE:g} s", "floor if not stale"


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    rate: of learning. first: how many gradients an update waits for under "first K". ahead: how many
    steps a worker may be ahead of the slowest. batch: samples of a gradient. cv: standard deviation / mean of the
    compute time, which is a constant and an exponential part, 1 s on average.
    """

    rate: float = 0.15
    first: int = 4
    ahead: int = 2
    workers: int = 8
    batch: int = 1
    cv: float = 1.0
    seed: int = 7


def scenarios(parameters: Parameters) -> tuple[Scenario, ...]:
    """A scenario for each policy, all equally long. Raises InputError where `first` exceeds the number of workers.

    >>> [scenario.policy.kind for scenario in scenarios(Parameters())]
    ['backup', 'backup', 'stale_synchronous', 'asynchronous']
    """
    workers, first = parameters.workers, parameters.first
    if first > workers:
        rule = f"must be at most the {counted(workers, 'worker')}"
        raise InputError.of("gradients an update waits for", first, rule, f"take {workers} or fewer, or more workers")
    times = worker_times(_scenario(parameters, SYNCHRONOUS, {"kind": "asynchronous"}, 1).compute, workers)
    least = asynchronous_seconds_per_update(times)  # no policy updates faster
    by_all, by_first = (cancelled_backup_step_seconds(times, workers - waited) for waited in (workers, first))
    found: dict[str, tuple[dict[str, Any], float]] = {
        SYNCHRONOUS: ({"kind": "backup", "backups": 0, "cancel": True}, SPARE * SECONDS / by_all),
        f"first {first} of {workers}": (
            {"kind": "backup", "backups": workers - first, "cancel": True}, SPARE * SECONDS / by_first,
        ),
        f"at most {parameters.ahead} ahead": (
            {"kind": "stale_synchronous", "staleness": parameters.ahead}, SPARE * SECONDS / least / workers,
        ),
        ASYNCHRONOUS: ({"kind": "asynchronous"}, SPARE * SECONDS / least / workers),
    }  # fmt: skip
    return tuple(_scenario(parameters, name, policy, steps) for name, (policy, steps) in found.items())


def explore(parameters: Parameters) -> Captioned:
    """Each policy's loss above the least loss, against time, and a table of the pace and staleness of its updates.

    Raises InputError for an impossible combination.

    >>> [row["policy"] for row in explore(Parameters()).table]
    ['synchronous', 'first 4 of 8', 'at most 2 ahead', 'asynchronous']
    """
    curves: dict[str, Curve] = {}
    table: list[Row] = []
    for scenario in scenarios(parameters):
        trace = simulate(scenario)
        curve = _until(SECONDS, replay(trace, QUADRATIC, Sgd(parameters.rate), points=POINTS))
        curves[scenario.name] = curve
        table.append(_row(trace, curve, parameters))
    return Captioned(loss(curves, ["seconds"]).figure, _sentence(table), table)


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> view.controls["first"].value = 2
    >>> view.shown.table[1]["policy"]
    'first 2 of 8'
    """
    return Explorer(
        title=EXPLORERS["race"].title,
        question="Plain SGD minimises a noisy quadratic. Each policy applies its own gradients in its own order. "
        "Messages take no time; a worker takes 1 s on average for a gradient.",
        start=Parameters(),
        controls=[
            Choice("rate", "learning rate", "", (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)),
            Slider("first", "gradients an update waits for", "", 1, 12),
            Slider("ahead", "steps ahead of the slowest", "", 0, 16),
        ],
        more=[
            Slider("workers", "workers", "", 2, 12),
            Choice("batch", "batch", "samples", (1, 2, 4, 8, 16)),
            Slider("cv", "straggler spread, cv", "", 0.1, 1.0, 0.1),
            Slider("seed", "seed of the draws", "", 0, 20),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(PACE, STALENESS, FIRST, LAST),
        real=lambda _: None,  # a real run would not compute the quadratic
    )


def _scenario(parameters: Parameters, name: str, policy: dict[str, Any], steps: float) -> Scenario:
    return Scenario.of(
        {
            "name": name,
            "steps": max(1, round(steps)),
            "seed": parameters.seed,
            "cluster": {"workers": parameters.workers, "bandwidth": "1000 Gbit/s", "latency": "0 s"},
            "compute": {"distribution": "shifted_exponential", "mean": "1 s", "cv": round(parameters.cv, 6)},
            "workload": {"gradient": "0 B", "batch": parameters.batch},
            "policy": policy,
            "communication": {"kind": "parameter_server"},
        }
    )


def _row(trace: Trace, curve: Curve, parameters: Parameters) -> Row:
    """A policy's row. Errors are measured from the least loss, which is 0."""
    scenario = trace.scenario
    times = worker_times(scenario.compute, parameters.workers)
    policy = scenario.table()["policy"]
    waited = parameters.workers - policy["backups"] if "backups" in policy else 1
    seconds = {
        "backup": lambda: cancelled_backup_step_seconds(times, parameters.workers - waited),
        "asynchronous": lambda: asynchronous_seconds_per_update(times),
    }.get(policy["kind"])
    variance = QUADRATIC.curvature  # of the noise, by construction
    return {
        POLICY: scenario.name,
        PACE: len(trace.updates) / trace.total_seconds,
        PACE_FORMULA: None if seconds is None else 1.0 / seconds(),
        STALENESS: mean_staleness(trace),
        FIRST: _error(curve.loss_at(EARLY)),
        LAST: _error(float(np.mean(curve.loss[curve.seconds >= LATE]))),
        FLOOR: quadratic_floor(QUADRATIC.curvature, variance, parameters.rate, waited * parameters.batch),
    }


def _until(seconds: float, curve: Curve) -> Curve:
    """The curve up to `seconds`: policies are simulated for longer."""
    rows = curve.seconds <= seconds
    return replace(curve, **{column: getattr(curve, column)[rows] for column in COLUMNS})


def _error(loss: float) -> float | None:
    """The loss; None where it grows without bound."""
    return loss if loss < DIVERGED * QUADRATIC.loss(QUADRATIC.start(0)) else None


def _sentence(table: list[Row]) -> str:
    diverged = [str(row[POLICY]) for row in table if row[LAST] is None]
    early, late = (min(table, key=lambda row: _or_infinite(row[column])) for column in (FIRST, LAST))
    first, last = (_names(table, row, column) for row, column in ((early, FIRST), (late, LAST)))
    text = f"After {EARLY:g} s, the smallest error is {_or_infinite(early[FIRST]):.2g} ({first}); "
    text += f"from {LATE:g} s on, it is {_or_infinite(late[LAST]):.2g} ({last})"
    if diverged:
        text += f". The error of {' and '.join(diverged)} grows without bound"
    synchronous, *_, asynchronous = (_or_infinite(row[PACE]) for row in table)
    text += f". Asynchronous training makes {asynchronous / synchronous:.1f} times as many updates as synchronous."
    return text


def _names(table: list[Row], best: Row, column: str) -> str:
    """The policies that equal the best policy in the digits that the table shows."""
    return " and ".join(str(row[POLICY]) for row in table if shown(row[column]) == shown(best[column]))


def _or_infinite(value: Any) -> float:
    return math.inf if value is None else float(value)
