"""Synchronous updates against backup workers: what is gained by not waiting for the slowest workers?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from distsim.explorers import scenario_tables
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Slider, Switch
from distsim.explorers.explorer import Explorer
from distsim.explorers.result_columns import CANCELLED, DROPPED, IDLE, STEP, TOTAL, results
from distsim.figures.captioned import Captioned, Row
from distsim.figures.timeline import timeline
from distsim.figures.wording import counted, signed
from distsim.scenario import Scenario
from distsim.simulation import simulate

MEAN, PAUSE = "50 ms", "250 ms"


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    workers: backups included. cv: standard deviation / mean of the compute time, whose mean is 50 ms.
    pause_percent: probability in percent that a step takes 250 ms longer. gradient_mib: in MiB.
    gbit_per_second: bandwidth of every NIC, each direction. cancel: late workers stop at the update.
    """

    workers: int = 5
    backups: int = 1
    cv: float = 0.3
    pause_percent: int = 0
    gradient_mib: float = 4.0
    gbit_per_second: float = 10.0
    cancel: bool = False
    seed: int = 7


def scenarios(parameters: Parameters) -> tuple[Scenario, ...]:
    """The synchronous scenario and the one with backups: the same cluster, the same draws.

    Raises InputError where the backups leave no worker to wait for.

    >>> [scenario.policy.kind for scenario in scenarios(Parameters())]
    ['synchronous', 'backup']
    """
    compute = scenario_tables.compute(MEAN, parameters.cv)
    if parameters.pause_percent > 0:
        compute["pauses"] = {"probability": round(parameters.pause_percent / 100.0, 6), "duration": PAUSE}
    backup = {"kind": "backup", "backups": parameters.backups, "cancel": parameters.cancel}
    name = f"backup-{parameters.backups}-of-{parameters.workers}"
    policies: dict[str, dict[str, Any]] = {"synchronous": {"kind": "synchronous"}, name: backup}
    return scenario_tables.with_one_server(parameters, compute, policies)


def explore(parameters: Parameters) -> Captioned:
    """Both policies simulated on the same draws: their timelines above each other, and their numbers as a table.

    Raises InputError for an impossible combination.

    >>> [row["policy"] for row in explore(Parameters(backups=2)).table]
    ['synchronous', '2 backups']
    """
    synchronous, backup = (simulate(scenario) for scenario in scenarios(parameters))
    names = ["synchronous", counted(parameters.backups, "backup")]
    lanes = timeline(synchronous, backup, names=names)
    table: list[Row] = [
        {"policy": name, **results(trace, STEP, TOTAL, DROPPED, CANCELLED, IDLE)}
        for trace, name in zip((synchronous, backup), names, strict=True)
    ]
    return Captioned(lanes.figure, _sentence(table, parameters, len(backup.contributions)), table)


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> view.controls["backups"].value = 2
    >>> view.shown.table[1]["policy"]
    '2 backups'
    """
    return Explorer(
        title=EXPLORERS["backup_workers"].title,
        question="Both runs have one parameter server and the same draws of compute time. The mean is 50 ms.",
        start=Parameters(),
        controls=[
            Slider("workers", "workers, backups included", "", 2, 64),
            Slider("backups", "backups", "workers", 0, 16),
            Slider("cv", "straggler spread, cv", "", 0.0, 1.5, 0.05),
        ],
        more=[
            Slider("pause_percent", "pauses of 250 ms", "% of steps", 0, 20),
            Choice("gradient_mib", "gradient", "MiB", (0.25, 1.0, 4.0, 16.0, 64.0)),
            Choice("gbit_per_second", "bandwidth", "Gbit/s", (0.2, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)),
            Switch("cancel", "cancel late workers"),
            Slider("seed", "seed of the draws", "", 0, 20),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(STEP, DROPPED, CANCELLED, IDLE),
    )


def _sentence(table: list[Row], parameters: Parameters, gradients: int) -> str:
    synchronous, backup = (float(row[STEP] or 0.0) for row in table)
    wasted = int(table[1][DROPPED] or 0) + int(table[1][CANCELLED] or 0)
    change = signed(100.0 * (backup - synchronous) / synchronous, "%") if synchronous else "–"
    return (
        f"With {table[1]['policy']} among {parameters.workers} workers, the median step takes {backup:.1f} ms instead "
        f"of {synchronous:.1f} ms ({change}). The run wastes {wasted} of its {counted(gradients, 'gradient')}."
    )
