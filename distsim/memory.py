"""The bytes that a worker holds while it trains, by kind: parameters, gradients, the optimizer's numbers, activations.

They are counted from the scenario: tensors that training needs, not the memory of a process, which is larger.
Sources: Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 3 for the kinds, 5 for what each stage divides;
Narayanan et al. 2021 (arXiv 2104.04473), section 2.2, for the micro-batches that a stage of a pipeline holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from distsim.errors import InputError
from distsim.pipeline_stages import layer_cuts
from distsim.policies import Mesh, Pipeline, Sharded, Tensor
from distsim.policies.sharded import GRADIENT_UNITS, last_users
from distsim.profile import Profile
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


@dataclass(frozen=True)
class Division:
    """What workers divide in sharded training, also on a mesh.

    units: bytes of each unit, in the order of forward. in_forward, in_backward: of each, the last unit that computes
    with its parameters.
    """

    policy: Sharded
    units: list[float]
    in_forward: list[int]
    in_backward: list[int]
    workers: int

    def stays(self, unit: int) -> bool:
        """Whether a unit is whole from its forward to its backward at stage 3."""
        return self.policy.stays(unit, self.in_backward[unit])

    @property
    def part(self) -> float:
        """Bytes of all units' parts at the worker that has most."""
        return sum(FLOAT_BYTES * ceil(unit / FLOAT_BYTES / self.workers) for unit in self.units)


def division(scenario: Scenario) -> Division | None:
    """How the workers of a scenario divide the state of training; None where each has it whole."""
    policy, workload = scenario.policy, scenario.workload
    if isinstance(policy, Mesh) and policy.stage:
        sizes, workers = workload.part_bytes(policy.tensor), policy.data
        policy = Sharded(policy.stage, prefetch=policy.prefetch)
    elif isinstance(policy, Sharded):
        sizes, workers = workload.layer_bytes, scenario.cluster.workers
    else:
        return None
    units = policy.units(sizes)
    in_forward, in_backward = (last_users(units, ahead) for ahead in (workload.used_ahead, workload.needed_ahead))
    return Division(policy, [sum(sizes[layer] for layer in unit) for unit in units], in_forward, in_backward, workers)


def held(scenario: Scenario, optimizer: str = "sgd") -> Held:
    """What the worker that holds most holds: the most of each kind, which need not be at one moment.

    Activations are those that a profile has measured: its peak without parameters and gradients, the batch included; 0
    without a profile. A gradient that is about to be added to those kept counts among them, once also in a pipeline. At
    stage 3 of sharded training, the units that a worker has gathered count as parameters, beside its own part: those
    ahead, and those that one module, or several layers, compute with together, as the profile tells. At stages 2 and 3,
    two whole units count as gradients: one that is made, and one that is summed; at stage 3 without prefetch it is one.
    Under tensor parallelism all activations are divided, which is a lower bound: each worker holds the inputs of its
    blocks whole. Frozen parameters and buffers, which a profile tells, count as parameters. Nobody measures what one
    stage of a pipeline has of these and of activations: both are divided among the stages by the time of forward.

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
    policy = scenario.policy
    if not isinstance(policy, Pipeline):
        return held_in_a_step(scenario, 0, optimizer)
    stages, count = scenario.cluster.workers // policy.width, policy.micro_batches
    found = []
    for stage in range(stages):
        under_way = min(stages - stage, count) / count if policy.schedule == "1f1b" else 1.0
        found.append(held_in_a_step(scenario, stage * policy.width, optimizer, under_way))
    return max(found, key=lambda one: one.total)


def not_counted(profile: Profile | None) -> str | None:
    """A sentence where nobody knows the activations of a workload with this profile; None where they are known.

    >>> not_counted(None)
    'Activations are not counted, since the workload has no profile.'
    """
    if profile is None:
        return "Activations are not counted, since the workload has no profile."
    if not profile.peak_bytes:
        return "Activations are not counted, since the profile has no peak of memory."
    return None


def held_in_a_step(scenario: Scenario, worker: int, optimizer: str = "sgd", under_way: float = 1.0) -> Held:
    """The same for one worker, as if it kept what each forward of a step leaves for its backward to the step's end.

    Only stages of a pipeline differ in it, and only they do a step's backwards before its last forward. under_way: the
    share of a step's activations that are there at once.
    """
    if optimizer not in OPTIMIZERS:
        raise InputError.of("optimizer", optimizer, "is not known", f"take one of {', '.join(OPTIMIZERS)}")
    if scenario.workload.num_bytes is None:
        raise InputError.of("workload.gradient", None, "is missing, and memory is counted from it", 'write "4 MiB"')
    workload, policy, workers = scenario.workload, scenario.policy, scenario.cluster.workers
    profile = workload.profile
    activations = under_way * (profile.activation_bytes if profile else 0)
    passing: float = profile.passing_bytes if profile else 0
    frozen: float = profile.frozen_bytes if profile else 0
    parameters = gradients = kept = scenario.gradient_bytes
    if isinstance(policy, Tensor | Mesh):
        sharing = policy.tensor if isinstance(policy, Mesh) else workers
        parameters = gradients = kept = sum(workload.part_bytes(sharing))
        activations /= sharing
    if isinstance(policy, Pipeline):
        stage = worker // policy.width
        first, end = [0, *layer_cuts(policy, workload, workers)][stage : stage + 2]
        parameters = gradients = kept = sum(workload.part_bytes(policy.tensor)[first:end])
        if policy.stage:
            kept /= policy.data
        share = profile.forward_share(first, end) if profile else 0.0
        activations, frozen = activations * share / policy.tensor, frozen * share
    if divided := division(scenario):
        kept, stage = divided.part, divided.policy.stage
        if stage == 3:
            parameters = kept + divided.policy.most_whole(divided.units, divided.in_forward, divided.in_backward)
        if stage >= 2:  # where nothing is gathered ahead, a gather stands between two units' gradients
            units = 1 if stage == 3 and not divided.policy.prefetch else GRADIENT_UNITS
            gradients = kept + _most_together(divided.units, units)
    own = 0.0 if scenario.server_decides else OPTIMIZERS[optimizer] * kept
    return Held(parameters + frozen, gradients, own, activations + passing)


def _most_together(units: list[float], count: int) -> float:
    """The bytes of the `count` neighbours that have most together."""
    return max(sum(units[first : first + count]) for first in range(len(units)))
