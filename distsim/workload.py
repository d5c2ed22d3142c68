"""What one step works on: the `[workload]` table."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from distsim.description import Count, Description
from distsim.units import Bytes


class Workload(Description):
    """The `[workload]` table: bytes of a gradient (and of the parameters), and samples per worker and step.

    layers: of equal gradient bytes and compute time. backward_share: of the compute time, the rest is forward.
    activation_bytes: what one stage of a pipeline sends to the next for a whole batch.

    >>> Workload(gradient="4 MiB", batch=32).gradient_bytes
    4194304.0
    """

    gradient_bytes: Bytes | None = Field(default=None, alias="gradient")
    batch: Count = 1
    model: Literal["mlp", "cnn", "transformer"] | None = None
    samples: Annotated[int, Field(ge=1, le=10**15)] | None = None
    layers: Annotated[int, Field(ge=1, le=100_000)] = 16
    backward_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 2 / 3
    activation_bytes: Bytes | None = Field(default=None, alias="activation")
    input_bytes: Bytes | None = Field(default=None, alias="input")
    output_bytes: Bytes | None = Field(default=None, alias="output")
