"""How long a real run should take, for those who wait. The simulator tells it, and the start of the processes is added.

The deadline of a run is something else: only a run that hangs reaches it, see `measure.estimated_seconds`.
"""

from __future__ import annotations

from collections.abc import Sequence

from distsim.runtime.machine import usable_cores
from distsim.runtime.roles import roles
from distsim.scenario import Scenario
from distsim.simulation import simulate

# Seconds on a quiet machine: of torchrun, and of a core for each process, most of them for the import of torch.
START_SECONDS, RANK_SECONDS = 2.5, 2.5
MOST_SIMULATED = 1000  # steps
RUN_SECONDS = 0.1  # between two runs of one launch
MODEL_SECONDS_PER_SAMPLE = 0.0005  # forward and backward on a core


def expected_seconds(scenarios: Sequence[Scenario]) -> float:
    """How long one launch of `scenarios`, all with the same ranks, should take on this machine.

    >>> from distsim import example
    >>> expected_seconds([example("synchronous_ring")]) > 2.5
    True
    """
    if not scenarios:
        return 0.0
    ranks, cores = len(roles(scenarios[0])), usable_cores()
    different = {id(scenario): scenario for scenario in scenarios}  # a launch may run one scenario several times
    seconds = {key: run_seconds(scenario) for key, scenario in different.items()}
    runs = sum(seconds[id(scenario)] for scenario in scenarios)
    return START_SECONDS + RANK_SECONDS * max(1.0, ranks / cores) + runs


def run_seconds(scenario: Scenario) -> float:
    """How long `scenario` itself should take, without the start of its processes."""
    workload, workers = scenario.workload, scenario.cluster.workers
    model = MODEL_SECONDS_PER_SAMPLE * workload.batch * max(1.0, workers / usable_cores()) if workload.model else 0.0
    steps = min(scenario.steps, MOST_SIMULATED)  # the rest goes on like them
    simulated = simulate(scenario if steps == scenario.steps else scenario.model_copy(update={"steps": steps}))
    return RUN_SECONDS + simulated.total_seconds * scenario.steps / steps + scenario.steps * model
