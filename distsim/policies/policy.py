"""The common properties of all policies. Each kind of policy is a frozen dataclass in its own module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from distsim.policies.rule import Rule
    from distsim.policies.step_program import StepProgram
    from distsim.workload import Workload


@dataclass(frozen=True)
class Policy:
    """When updates are applied. Its fields are the keys of the `[policy]` table.

    kind: the name in scenario files. has_global_step: whether all workers compute on one version at a time.
    server: whether bytes travel through a parameter server. collectives: the kinds of communication that make sense, or
    None for all. receive: how a server takes pushes unless the scenario
    says it. single_server: whether several servers make no sense. all_reduces: whether the workers' gradients or
    parameters are summed. averages_parameters: whether an update is the mean of the workers' own parameters.

    What a real run can do: real_model: compute with `workload.model`; real_failures: come back from a checkpoint;
    real_machines: spread over several machines; real_eager: send before the target is ready.
    """

    kind: ClassVar[str]
    has_global_step: ClassVar[bool] = True
    server: ClassVar[Literal["required", "possible", "none"]] = "possible"
    collectives: ClassVar[tuple[str, ...] | None] = None
    receive: ClassVar[str] = "concurrent"
    single_server: ClassVar[bool] = True
    all_reduces: ClassVar[bool] = True
    averages_parameters: ClassVar[bool] = False
    real_model: ClassVar[bool] = True
    real_failures: ClassVar[bool] = False
    real_machines: ClassVar[bool] = True
    real_eager: ClassVar[bool] = True

    def check_workers(self, workers: int) -> None:
        """Raises ValueError where the policy cannot run on so many workers."""

    def check_steps(self, steps: int) -> None:
        """Raises ValueError where a run of so many steps would make no update."""

    def check_model(self, model: str) -> None:
        """Raises ValueError where the policy cannot train `model`, one of distsim's or a user's own."""

    def check_workload(self, workload: Workload, workers: int) -> None:
        """Raises ValueError where the policy cannot train a model of such layers on so many workers."""

    def check_real(self, workload: Workload, workers: int) -> None:
        """Raises InputError where this policy can be simulated with that on so many workers but not really run."""

    @property
    def hands_on(self) -> bool:
        """Whether workers give each other activations."""
        return False

    def takes(self, collective: str) -> bool:
        """Whether this kind of communication makes sense."""
        return self.collectives is None or collective in self.collectives

    def batch_workers(self, workers: int) -> range:
        """For each batch of a step, the first worker that computes on it: each worker, unless some share a batch."""
        return range(workers)

    def batches(self, workers: int) -> int:
        """On how many batches the workers compute in a step."""
        return len(self.batch_workers(workers))

    def updates(self, steps: int, workers: int) -> int:  # noqa: ARG002 - some policies make an update per gradient
        """The number of updates after which the run ends."""
        return steps

    @property
    def steps_per_update(self) -> int:
        """How many steps of a worker go into one update of all workers."""
        return 1

    def updates_after(self, step: int, steps: int) -> bool:  # noqa: ARG002 - local SGD averages at the end
        """Whether all workers make an update after step number `step`, which counts from 0, of a run of `steps`."""
        return (step + 1) % self.steps_per_update == 0


@dataclass(frozen=True)
class WithServer(Policy, ABC):
    """A policy whose parameter server decides by a rule; the simulator and the real server ask the same rule."""

    server: ClassVar[Literal["required", "possible", "none"]] = "required"

    @abstractmethod
    def rule(self, workers: int) -> Rule:
        """A fresh rule for one run."""


@dataclass(frozen=True)
class Programmed(Policy, ABC):
    """A policy whose workers all do the same pieces of computing and exchanging in each step."""

    @abstractmethod
    def program(self, workload: Workload, workers: int) -> StepProgram:
        """The pieces of one step of each of `workers`."""
