"""Local SGD: each worker updates its own parameters, and all average them every `period` steps.

Source: Stich 2019, Local SGD Converges Fast and Communicates Little (arXiv 1805.09767).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from distsim.policies.policy import Policy
from distsim.validated_table import Count


@dataclass(frozen=True)
class LocalSgd(Policy):
    """`steps` local steps per worker, an average (an update) every `period` and at the end."""

    period: Annotated[Count, Field(examples=[8])]

    kind: ClassVar = "local_sgd"
    real_failures: ClassVar = True
    averages_parameters: ClassVar = True

    def updates(self, steps: int, workers: int) -> int:  # noqa: ARG002 - all take part in each
        """The number of averages: one every `period` steps, and one for the steps left over."""
        return -(-steps // self.period)

    @property
    def steps_per_update(self) -> int:
        """How many local steps of a worker go into one average."""
        return self.period

    def updates_after(self, step: int, steps: int) -> bool:
        """Whether the workers average after local step number `step`, which counts from 0.

        >>> [step for step in range(5) if LocalSgd(period=2).updates_after(step, steps=5)]
        [1, 3, 4]
        """
        return super().updates_after(step, steps) or step + 1 == steps
