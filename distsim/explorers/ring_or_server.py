"""A ring or a parameter server: how long does a step take as workers are added?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from distsim.explorers import scenario_tables
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Slider, Switch
from distsim.explorers.explorer import Explorer
from distsim.figures.captioned import Captioned, Row
from distsim.figures.step_times import step_times
from distsim.figures.wording import counted, signed
from distsim.metrics import step_durations, summary
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace

STEPS = 20  # of a real run
STEADY_STEPS = 3  # nothing is random: all steps from the second on are equal
COMPUTE_MILLISECONDS = 50
MOST_SHOWN = 8  # numbers of workers, one by one
STEP, BESIDES, BUSIEST = "step time (ms)", "not compute (%)", "busiest link, per step (MB)"


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    workers: the largest number. servers: parameter servers, each with its part of the parameters. colocated: servers
    run on workers' hosts. slow: factor by which worker 0's NIC is slower. gradient_mib: in MiB.
    gbit_per_second: bandwidth of every other NIC, each direction.
    """

    workers: int = 6
    servers: int = 1
    gradient_mib: float = 16.0
    colocated: bool = False
    slow: float = 1.0
    gbit_per_second: float = 10.0


def scenarios(parameters: Parameters) -> tuple[Scenario, Scenario]:
    """The scenarios around a ring and through servers, both with all the workers.

    Raises InputError where more servers are colocated than there are workers.

    >>> [scenario.communication.kind for scenario in scenarios(Parameters())]
    ['ring', 'parameter_server']
    """
    servers = {"kind": "parameter_server", "servers": parameters.servers, "colocated": parameters.colocated}
    return _scenario(parameters, {"kind": "ring"}), _scenario(parameters, servers)


def explore(parameters: Parameters) -> Captioned:
    """Simulated step times of both against the number of workers; the table is for the largest number.

    Raises InputError where more servers are colocated than there are workers.

    >>> [row["way"] for row in explore(Parameters(servers=2)).table]
    ['ring', '2 servers']
    """
    names = ("ring", counted(parameters.servers, "server"))
    whole = scenarios(parameters)
    least = (2, parameters.servers if parameters.colocated else 2)
    curves: dict[str, dict[int, float]] = {}
    table = []
    for name, scenario, fewest in zip(names, whole, least, strict=True):
        counts = _counts(parameters.workers, fewest)
        runs = [simulate(scenario.replacing({"cluster.workers": count, "steps": STEADY_STEPS})) for count in counts]
        curves[name] = {count: _step_seconds(run) for count, run in zip(counts, runs, strict=True)}
        table.append(_row(name, runs[-1]))
    drawn = step_times(curves, compute_seconds=COMPUTE_MILLISECONDS / 1e3)
    return Captioned(drawn.figure, _sentence(table, parameters), table)


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> view.controls["servers"].value = 4
    >>> view.shown.table[1]["way"]
    '4 servers'
    """
    return Explorer(
        title=EXPLORERS["ring_or_server"].title,
        question=f"In each step, every worker computes for {COMPUTE_MILLISECONDS} ms. Then the gradients travel.",
        start=Parameters(),
        controls=[
            Slider("workers", "workers, up to", "", 2, 64),
            Slider("servers", "servers", "", 1, 16),
            Switch("colocated", "servers run on workers' hosts"),
        ],
        more=[
            Choice("gradient_mib", "gradient", "MiB", (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)),
            Slider("slow", "NIC of worker 0 slower by", "times", 1.0, 10.0, 0.5),
            Choice("gbit_per_second", "bandwidth", "Gbit/s", (0.2, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(STEP, BESIDES, BUSIEST),
    )


def _scenario(parameters: Parameters, communication: dict[str, Any]) -> Scenario:
    cluster = scenario_tables.cluster(parameters.workers, parameters.gbit_per_second)
    if parameters.slow != 1.0:
        slow = f"{parameters.gbit_per_second / parameters.slow:.6g} Gbit/s"
        cluster["nic"] = {"0": {"up": slow, "down": slow}}
    return Scenario.of(
        {
            "name": f"{communication['kind'].replace('_', '-')}-of-{parameters.workers}",
            "steps": STEPS,
            "cluster": cluster,
            "compute": {"mean": f"{COMPUTE_MILLISECONDS} ms"},
            "workload": {"gradient": f"{parameters.gradient_mib:g} MiB"},
            "policy": {"kind": "synchronous"},
            "communication": communication,
        }
    )


def _counts(workers: int, least: int) -> list[int]:
    """The shown numbers of workers: all if few, else powers of two; always `workers`, and none below `least`."""
    counts = range(2, workers) if workers <= MOST_SHOWN else (2**power for power in range(1, workers.bit_length()))
    return sorted({workers, *(count for count in counts if least <= count < workers)})


def _step_seconds(trace: Trace) -> float:
    """The time from the last update but one to the last update."""
    return float(step_durations(trace).seconds[-1])


def _row(name: str, trace: Trace) -> Row:
    step, busiest = 1e3 * _step_seconds(trace), summary(trace).bytes_per_link_max
    return {
        "way": name,
        STEP: step,
        BESIDES: 100.0 * (1.0 - COMPUTE_MILLISECONDS / step),
        BUSIEST: None if busiest is None else busiest / STEADY_STEPS / 1e6,
    }


def _sentence(table: list[Row], parameters: Parameters) -> str:
    ring, served = (float(row[STEP] or 0.0) for row in table)
    return (
        f"With {parameters.workers} workers, a step takes {ring:.1f} ms around a ring and {served:.1f} ms through "
        f"{table[1]['way']} ({signed(100.0 * (served - ring) / ring, '%')}). "
        f"Compute takes {COMPUTE_MILLISECONDS} ms of each step."
    )
