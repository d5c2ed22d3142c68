"""What a worker learns: one of distsim's models on the batch of each step, or a model of the user's own on its batch.

All workers start with equal parameters. Parameters that get no gradient are no part of the task.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

import torch
from torch import nn

from distsim.learning.batches import Batches
from distsim.learning.kernels import plain_convolutions
from distsim.learning.problems import Data, Problem, problem
from distsim.profile import Profile
from distsim.runtime.profiling.own_model import BuiltBuffers, OwnModel, load
from distsim.scenario import Scenario

LEARNING_RATE = 0.05  # every model of distsim's learns with it, and none diverges
OWN_LEARNING_RATE = 0.001  # of a model that nobody here knows


class Task(Protocol):
    """A model with its data. layers: the parameters of each layer that the workload counts, in the order of forward;
    those alone that get a gradient. parameters: the same in the order of the module."""

    model: nn.Module
    layers: list[list[nn.Parameter]]
    parameters: list[nn.Parameter]
    learning_rate: float

    def loss(self, step: int) -> torch.Tensor:
        """The loss on the batch of a step, a scalar."""
        ...

    def backward(self, loss: torch.Tensor) -> None:
        """Computes the gradients."""
        ...

    def routines(self) -> AbstractContextManager[None]:
        """The choice of torch's routines, around forward and backward."""
        ...


class KnownTask:
    """A model of distsim's."""

    learning_rate = LEARNING_RATE

    def __init__(self, scenario: Scenario, worker: int, place: torch.device) -> None:
        self._worker = worker
        self._problem = problem_on(place, scenario)
        self._batches = Batches(
            len(self._problem.training), scenario.cluster.workers, scenario.workload.batch, scenario.seed
        )
        self.model: nn.Module = self._problem.model
        self.layers = [list(layer.parameters()) for layer in self._problem.layers]
        self.parameters = list(self.model.parameters())

    def loss(self, step: int) -> torch.Tensor:
        """The loss on the batch of a step, a scalar."""
        return self._problem.loss_of(torch.from_numpy(self._batches.of(self._worker, step)))

    def backward(self, loss: torch.Tensor) -> None:
        """Computes the gradients."""
        loss.backward()  # type: ignore[no-untyped-call] # torch

    def routines(self) -> AbstractContextManager[None]:
        """Routines by which a batch's gradient is the mean of its parts' gradients."""
        return plain_convolutions()


class OwnTask:
    """A model of the user's own. Every step has the same batch, with the routines that torch chooses."""

    learning_rate = OWN_LEARNING_RATE

    def __init__(self, own: OwnModel, profile: Profile) -> None:
        self._own, self._built = own, BuiltBuffers(own.module)
        self.model = own.module
        self.layers = [[own.layers[layer.name]] for layer in reversed(profile.layers)]
        self.parameters = list(own.layers.values())

    def loss(self, step: int) -> torch.Tensor:
        """The loss on the batch, a scalar."""
        self._built.put_back_before(step)
        return self._own.loss()

    def backward(self, loss: torch.Tensor) -> None:
        """Computes the gradients."""
        self._own.backward(loss)

    def routines(self) -> AbstractContextManager[None]:
        """Nothing changes."""
        return nullcontext()


def flat(parameters: Iterable[nn.Parameter]) -> torch.Tensor:
    """All values one after the other, in a tensor of their own; parameters need not lie whole in memory."""
    return torch.cat([parameter.detach().flatten() for parameter in parameters])


def own_model_on(place: torch.device, scenario: Scenario) -> OwnModel:
    """The user's own model of the scenario, on device `place`, with the scenario's batch."""
    workload = scenario.workload
    return load(str(workload.model), seed=scenario.seed, batch=workload.batch, place=place)


def problem_on(place: torch.device, scenario: Scenario) -> Problem:
    """The scenario's problem, with its model and data on device `place`."""
    found = problem(scenario.workload, scenario.seed)
    training = Data(found.training.inputs.to(place), found.training.targets.to(place))
    return replace(found, model=found.model.to(place), training=training)


def task_of(scenario: Scenario, worker: int, place: torch.device) -> Task:
    """The task of `worker` in this scenario, which has a model."""
    if scenario.workload.own_model:
        assert scenario.workload.profile is not None, "each rank gets one with the scenario"
        return OwnTask(own_model_on(place, scenario), scenario.workload.profile)
    return KnownTask(scenario, worker, place)
