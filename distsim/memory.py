"""The bytes that a worker holds while it trains, by kind: parameters, gradients, the optimizer's numbers, activations.

They are counted from the scenario: tensors that training needs, not the memory of a process, which is larger.
Sources: Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 3 for the kinds, 5 for what each stage divides;
Narayanan et al. 2021 (arXiv 2104.04473), section 2.2, for the micro-batches that a stage of a pipeline holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil

from distsim.errors import InputError
from distsim.policies import Mesh, Pipeline, Sharded, Tensor
from distsim.policies.sharded import GRADIENT_UNITS
from distsim.profile import stage_cuts
from distsim.scenario import Scenario
from distsim.workload import FLOAT_BYTES

# Bytes of the optimizer's own numbers for each byte of the gradient. Mixed precision: a copy of the parameter and two
# numbers, 4 bytes each, beside a gradient of 2 bytes.
OPTIMIZERS = {"sgd": 0.0, "momentum": 1.0, "adam": 2.0, "mixed_adam": 6.0}


@dataclass(frozen=True)
class Held:
    """Bytes of each kind that one worker holds at most."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float

    @property
    def total(self) -> float:
        """All kinds together."""
        return self.parameters + self.gradients + self.optimizer + self.activations


def held(scenario: Scenario, optimizer: str = "sgd") -> Held:
    """What the worker that holds most holds: the most of each kind, which need not be at one moment.

    Activations are those that a profile has measured: its peak without parameters and gradients, the batch included;
    0 without a profile. At stage 3 of sharded training, the units that a worker has gathered count as parameters,
    beside its own part; at stages 2 and 3, two whole units count as gradients: one that is made, and one that is
    summed. A model whose units share parameters, or whose gradients come in another order, holds more. Under tensor
    parallelism all activations are divided, which is a lower bound: each worker holds the inputs of its blocks whole.

    optimizer: "sgd", "momentum", "adam" or "mixed_adam". Raises InputError for another one, and where the scenario does
    not say how large a gradient is.

    >>> from distsim.examples import example
    >>> ring = example("synchronous_ring").replacing({"workload.gradient": "100 MB"})
    >>> held(ring, "adam").total / 1e6
    400.0
    >>> whole = ring.replacing({"policy": {"kind": "sharded", "stage": 1}})
    >>> held(whole, "adam").total / 1e6    # four workers: 100 + 100 + 200 / 4
    250.0
    """
    if optimizer not in OPTIMIZERS:
        raise InputError.of("optimizer", optimizer, "is not known", f"take one of {', '.join(OPTIMIZERS)}")
    if scenario.workload.num_bytes is None:
        raise InputError.of("workload.gradient", None, "is missing, and memory is counted from it", 'write "4 MiB"')
    state, workers, policy = scenario.gradient_bytes, scenario.cluster.workers, scenario.policy
    profile = scenario.workload.profile
    activations = max(profile.peak_bytes - 2.0 * profile.gradient_bytes, 0.0) if profile else 0.0
    own = OPTIMIZERS[optimizer] * state
    match policy:
        case Sharded():
            return _sharded(scenario.workload.layer_bytes, workers, policy, OPTIMIZERS[optimizer], activations)
        case Pipeline():
            return _pipeline(scenario, policy, OPTIMIZERS[optimizer], activations)
        case Tensor() | Mesh():
            sharing = policy.tensor if isinstance(policy, Mesh) else workers
            blocks = scenario.workload.part_bytes(sharing)
            if isinstance(policy, Mesh) and policy.stage:
                sharded = Sharded(policy.stage, prefetch=policy.prefetch)
                return _sharded(blocks, policy.data, sharded, OPTIMIZERS[optimizer], activations / sharing)
            part = sum(blocks)
            return Held(part, part, OPTIMIZERS[optimizer] * part, activations / sharing)
    return Held(state, state, 0.0 if scenario.server_decides else own, activations)


def _sharded(layer_bytes: list[float], workers: int, policy: Sharded, optimizer: float, activations: float) -> Held:
    """optimizer: bytes for each byte of the parameters."""
    units = [sum(layer_bytes[layer] for layer in unit) for unit in policy.units(layer_bytes)]
    state = sum(units)
    part = sum(FLOAT_BYTES * ceil(unit / FLOAT_BYTES / workers) for unit in units)  # of the worker with most
    together = 1 + policy.prefetch  # units that are whole at once: the one that is computed, and those gathered ahead
    parameters = part + _most_together(units, together) if policy.stage == 3 else state
    gradients = part + _most_together(units, GRADIENT_UNITS) if policy.stage >= 2 else state
    return Held(parameters, gradients, optimizer * part, activations)


def _most_together(units: list[float], count: int) -> float:
    """The bytes of the `count` neighbours that have most together."""
    return max(sum(units[first : first + count]) for first in range(len(units)))


def _pipeline(scenario: Scenario, policy: Pipeline, optimizer_share: float, activations: float) -> Held:
    """The stage that holds most. Its activations are its layers' share of them, for each micro-batch under way."""
    layer_bytes, stages = scenario.workload.layer_bytes, scenario.cluster.workers
    profile, count = scenario.workload.profile, policy.micro_batches
    ends = stage_cuts(profile, stages, policy.stage_layers or ()) if profile else _equal_cuts(len(layer_bytes), stages)
    found = []
    for stage, (first, end) in enumerate(pairwise([0, *ends])):
        state = sum(layer_bytes[first:end])
        under_way = min(stages - stage, count) / count if policy.schedule == "1f1b" else 1.0
        kept = activations * (end - first) / len(layer_bytes) * under_way
        found.append(Held(state, state, optimizer_share * state, kept))
    return max(found, key=lambda one: one.total)


def _equal_cuts(layers: int, stages: int) -> list[int]:
    """The ends of stages whose numbers of layers differ by one at most."""
    return list(accumulate(layers // stages + (stage < layers % stages) for stage in range(stages)))
