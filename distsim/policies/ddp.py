"""Distributed data parallel: gradients leave in buckets during backward, last layer first. Sending overlaps computing.

Source: Li et al. 2020, PyTorch Distributed: Experiences on Accelerating Data Parallel Training (arXiv 2006.15704);
the defaults are PyTorch's: a first bucket of 1 MiB, then buckets of 25 MiB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Ge, Le
from pydantic import Field

from distsim.errors import InputError
from distsim.policies.policy import Policy
from distsim.units import PositiveBytes
from distsim.validated_table import Count

if TYPE_CHECKING:
    from distsim.workload import Workload

MIB = 2.0**20
REAL_COMPRESSIONS = (1.0, 0.5)  # float32 and float16


@dataclass(frozen=True)
class Ddp(Policy):
    """`steps` local steps per worker, an update every `accumulate` of them.

    bucket_bytes, first_bucket_bytes: a bucket is sent when its gradients have reached that size. accumulate: steps
    whose gradients are summed before they are sent (`no_sync`). compression: bytes sent / bytes of the gradient.
    """

    bucket_bytes: Annotated[PositiveBytes, Field(alias="bucket")] = 25 * MIB
    first_bucket_bytes: Annotated[PositiveBytes, Field(alias="first_bucket")] = MIB
    accumulate: Count = 1
    compression: Annotated[float, Ge(1e-6), Le(1.0)] = 1.0

    kind: ClassVar = "ddp"
    server: ClassVar = "none"

    def check_steps(self, steps: int) -> None:
        """Raises ValueError where a run of so many steps would make no update."""
        if self.accumulate > steps:
            raise ValueError(
                f"policy.accumulate = {self.accumulate} must be at most steps = {steps}, or no gradient is ever sent. "
                f"Cure: write accumulate = {steps}, or more steps"
            )

    def check_real(self, workload: Workload, workers: int) -> None:  # noqa: ARG002 - for any of both
        """Raises InputError where no number type of torch compresses gradients so far."""
        if self.compression not in REAL_COMPRESSIONS:
            raise InputError.of(
                "policy.compression", self.compression, "is no size of torch's numbers",
                "write 1.0 (float32) or 0.5 (float16), or simulate it",
            )  # fmt: skip

    @property
    def steps_per_update(self) -> int:
        """How many steps of a worker go into one update."""
        return self.accumulate

    def updates(self, steps: int, workers: int) -> int:  # noqa: ARG002 - all take part in each
        """The number of updates: one every `accumulate` steps; steps left over at the end make none."""
        return steps // self.accumulate

    def buckets(self, layer_bytes: list[float]) -> list[list[int]]:
        """The layers of each bucket, in the order in which buckets leave: the last layer first.

        A bucket is full when it has reached `bucket_bytes`, the first at `first_bucket_bytes`.

        >>> Ddp(bucket_bytes=4.0, first_bucket_bytes=1.0).buckets([2.0, 2.0, 2.0, 2.0])
        [[3], [2, 1], [0]]
        """
        return in_buckets(layer_bytes, self.bucket_bytes, self.first_bucket_bytes)


def in_buckets(layer_bytes: list[float], size: float, first_size: float) -> list[list[int]]:
    """Layers in buckets, the last layer first. A bucket is full when it has reached `size`, the first `first_size`.

    >>> in_buckets([2.0, 2.0, 2.0, 2.0], size=4.0, first_size=0.0)
    [[3], [2, 1], [0]]
    """
    found: list[list[int]] = [[]]
    held = 0.0
    for layer in reversed(range(len(layer_bytes))):
        found[-1].append(layer)
        held += layer_bytes[layer]
        if held >= (first_size if len(found) == 1 else size) and layer:
            found.append([])
            held = 0.0
    return found
