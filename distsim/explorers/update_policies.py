"""Synchronous, asynchronous, stale synchronous: what are the costs of waiting and of not waiting?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from distsim.explorers import scenario_tables
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Pick, Slider
from distsim.explorers.explorer import Explorer
from distsim.explorers.result_columns import GRADIENTS, IDLE, STALENESS, STEP, results
from distsim.figures.captioned import Captioned, Row
from distsim.figures.staleness import staleness
from distsim.figures.timeline import timeline
from distsim.figures.wording import counted, signed
from distsim.scenario import Scenario
from distsim.simulation import simulate

MEAN = "50 ms"
NAMES = ("synchronous", "asynchronous", "stale synchronous")
TIMELINES, HISTOGRAM = "timelines", "staleness"


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    ahead: how many steps a worker may be ahead of the slowest, under stale synchronous updates. cv: standard
    deviation / mean of the compute time, whose mean is 50 ms. slow: factor on the compute time of worker 0.
    gradient_mib: in MiB. gbit_per_second: bandwidth of every NIC, each direction. picture: which figure is drawn.
    """

    workers: int = 4
    ahead: int = 2
    slow: float = 2.0
    cv: float = 0.3
    gradient_mib: float = 1.0
    gbit_per_second: float = 10.0
    picture: str = TIMELINES
    seed: int = 7


def scenarios(parameters: Parameters) -> tuple[Scenario, ...]:
    """One scenario for each policy: the same cluster, the same draws.

    >>> [scenario.policy.kind for scenario in scenarios(Parameters())]
    ['synchronous', 'asynchronous', 'stale_synchronous']
    """
    compute = scenario_tables.compute(MEAN, parameters.cv)
    if parameters.slow != 1.0:
        compute["slow"] = {"0": round(parameters.slow, 6)}
    policies: dict[str, dict[str, Any]] = {
        "synchronous": {"kind": "synchronous"},
        "asynchronous": {"kind": "asynchronous"},
        f"stale-synchronous-{parameters.ahead}": {"kind": "stale_synchronous", "staleness": parameters.ahead},
    }
    return scenario_tables.with_one_server(parameters, compute, policies)


def explore(parameters: Parameters) -> Captioned:
    """The three policies simulated on the same draws: their timelines or their staleness, and their numbers.

    >>> [row["policy"] for row in explore(Parameters()).table]
    ['synchronous', 'asynchronous', 'stale synchronous']
    """
    traces = [simulate(scenario) for scenario in scenarios(parameters)]
    draw = timeline if parameters.picture == TIMELINES else staleness
    drawn = draw(*traces, names=NAMES)
    table: list[Row] = [
        {"policy": name, **results(trace, STEP, STALENESS, GRADIENTS, IDLE)}
        for trace, name in zip(traces, NAMES, strict=True)
    ]
    return Captioned(drawn.figure, _sentence(table, parameters), table)


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> view.controls["ahead"].value = 0
    >>> waiting, _, held = (row["gradients per second"] for row in view.shown.table)
    >>> held < 1.1 * waiting
    True
    """
    return Explorer(
        title=EXPLORERS["update_policies"].title,
        question="All three runs have one parameter server and the same draws of compute time. The mean is 50 ms.",
        start=Parameters(),
        controls=[
            Slider("workers", "workers", "", 1, 64),
            Slider("slow", "worker 0 takes", "times as long", 1.0, 4.0, 0.25),
            Slider("ahead", "steps ahead of the slowest", "", 0, 16),
        ],
        more=[
            Pick("picture", "picture", (TIMELINES, HISTOGRAM)),
            Slider("cv", "straggler spread, cv", "", 0.0, 1.5, 0.05),
            Choice("gradient_mib", "gradient", "MiB", (0.25, 1.0, 4.0, 16.0, 64.0)),
            Choice("gbit_per_second", "bandwidth", "Gbit/s", (0.2, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)),
            Slider("seed", "seed of the draws", "", 0, 20),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(STEP, STALENESS, GRADIENTS, IDLE),
    )


def _sentence(table: list[Row], parameters: Parameters) -> str:
    waiting, free, held = (float(row[GRADIENTS] or 0.0) for row in table)
    stale, bounded = (float(row[STALENESS] or 0.0) for row in table[1:])
    gain = signed(100.0 * (free - waiting) / waiting, "%") if waiting else "–"
    return (
        f"With {counted(parameters.workers, 'worker')}, asynchronous updates apply {free:.1f} gradients a second, and "
        f"synchronous updates {waiting:.1f} ({gain}). The asynchronous gradients are {stale:.2f} updates stale on "
        f"average. If a worker may be at most {counted(parameters.ahead, 'step')} ahead, {held:.1f} gradients a second "
        f"are applied, and they are {bounded:.2f} updates stale on average."
    )
