"""A step's program without a model: its exchanges carry made-up numbers, whose making is part of the drawn time.

Before a gather, the worker's own part gets new numbers, as an update would give; the gather brings them to all. A
reduce-scatter and an all-reduce sum gradients, or activations, of this step.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from distsim.policies import Programmed
from distsim.runtime.ranks.filled_exchange import FilledVector
from distsim.runtime.ranks.program import StepQueues
from distsim.runtime.recording.recorder import Recorder
from distsim.scenario import Scenario


class FilledProgram:
    """The work of one worker, see `StepWork`."""

    def __init__(self, scenario: Scenario, worker: int) -> None:
        assert isinstance(scenario.policy, Programmed)
        self._program = scenario.policy.program(scenario.workload, scenario.cluster.workers)
        self._vectors = [
            FilledVector(scenario, worker, one.called, one.num_bytes, f"unit {one.unit}")
            for one in self._program.exchanges
        ]
        self._last_step = scenario.steps - 1

    def prepare(self) -> None:
        """Does nothing."""

    def record_in(self, recorder: Recorder) -> None:
        """Does nothing: there is nothing to record."""

    def compute(self, step: int, queues: StepQueues) -> None:
        """Makes the numbers of each exchange in the last computation before it."""
        for number in range(len(self._program.computations)):
            queues.begin(number)
            for exchange, vector in zip(self._program.exchanges, self._vectors, strict=True):
                if exchange.after == number + 1:
                    vector.make(step)
            queues.end(number)

    def numbers(self, exchange: int) -> torch.Tensor:
        """The vector of an exchange."""
        return self._vectors[exchange].numbers

    def exchanged(self, exchange: int) -> None:
        """Does nothing: the vector stays as the exchange left it."""

    def verify(self, repeat: Callable[[int], None]) -> None:  # noqa: ARG002 - the last numbers are still there
        """Raises WrongSumError where the last step's exchanges did not leave the right numbers."""
        for vector in self._vectors:
            vector.check(self._last_step)
