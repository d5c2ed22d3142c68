"""How long a real run should take, for those who wait. The simulator tells it, and the start of the processes is added.

The deadline of a run is something else: only a run that hangs reaches it, see `measure.estimated_seconds`.
"""

from __future__ import annotations

from collections.abc import Sequence

from distsim.calibration.plan import NOMINAL_LINKS
from distsim.runtime.machine import usable_cores
from distsim.runtime.roles import roles
from distsim.scenario import Scenario
from distsim.simulation import simulate

# Seconds on a quiet machine: of torchrun, most of them for the import of torch, and of a core for each forked rank.
START_SECONDS, RANK_SECONDS = 3.0, 0.25
MOST_SIMULATED = 1000  # steps
RUN_SECONDS = 0.1  # between two runs of one launch
MODEL_SECONDS_PER_SAMPLE = 0.0005  # forward and backward on a core


def expected_seconds(scenarios: Sequence[Scenario], *, emulate: bool = False, processes: int = 0) -> float:
    """How long one launch of `scenarios`, all with the same ranks, should take, in seconds.

    emulate: whether the scenarios' links are imposed; otherwise nominal links stand for the machine's own. processes:
    how many ranks start on this machine; 0 for all.

    >>> from distsim import example
    >>> expected_seconds([example("synchronous_ring")]) > 2.5
    True
    """
    if not scenarios:
        return 0.0
    here = processes or len(roles(scenarios[0]))
    different = {id(scenario): scenario for scenario in scenarios}  # a launch may run one scenario several times
    seconds = {key: _run_seconds(one if emulate else _on_own_links(one), here) for key, one in different.items()}
    runs = sum(seconds[id(scenario)] for scenario in scenarios)
    return START_SECONDS + RANK_SECONDS * max(1.0, here / usable_cores()) + runs


def _run_seconds(scenario: Scenario, processes: int) -> float:
    """How long `scenario` itself should take, without the start of its processes, of which so many are here."""
    workload, workers = scenario.workload, min(scenario.cluster.workers, processes)
    sharing = max(1.0, workers / usable_cores())
    model = MODEL_SECONDS_PER_SAMPLE * workload.batch * sharing if workload.model else 0.0
    if workload.profile is not None:  # the simulation takes its seconds, on a core for each worker
        model = workload.profile.step_seconds * (sharing - 1.0)
    steps = min(scenario.steps, MOST_SIMULATED)  # the rest goes on like them
    simulated = simulate(scenario if steps == scenario.steps else scenario.model_copy(update={"steps": steps}))
    return RUN_SECONDS + simulated.total_seconds * scenario.steps / steps + scenario.steps * model


def _on_own_links(scenario: Scenario) -> Scenario:
    """`scenario` with nominal links, since a run on the machine's own links does not use the scenario's."""
    links = {f"cluster.{key}": value for key, value in NOMINAL_LINKS.items()}
    if scenario.cluster.nodes:
        links |= {f"cluster.nodes.{key}": value for key, value in NOMINAL_LINKS.items()}
    return scenario.replacing({**links, "cluster.nic": {}})
