"""Pipeline parallelism: a stage of the model per worker, batches cut into micro-batches that follow each other.

Source: Huang et al. 2019, GPipe (arXiv 1811.06965); Narayanan et al. 2019, PipeDream (arXiv 1806.03377) for 1F1B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from distsim.description import Count

Piece = tuple[Literal["forward", "backward"], int]


@dataclass(frozen=True)
class Pipeline:
    """`steps` updates; micro_batches = 1 is plain model parallelism.

    schedule: "gpipe": all forwards, then all backwards; "1f1b": each backward as soon as it can, so that a stage
    never holds more micro-batches than stages are left behind it.
    """

    micro_batches: Annotated[Count, Field(examples=[8])]
    schedule: Literal["gpipe", "1f1b"] = "gpipe"

    kind: ClassVar = "pipeline"
    has_global_step: ClassVar = True
    collectives: ClassVar = ("ring", "tree", "halving_doubling", "parameter_server", "hierarchical")
    receive: ClassVar = "concurrent"
    single_server: ClassVar = True

    def check_workers(self, workers: int) -> None:
        """Any number of stages will do."""

    def updates(self, steps: int, workers: int) -> int:  # noqa: ARG002 - all stages take part in each
        """The number of updates after which the run ends."""
        return steps

    def order(self, stage: int, stages: int) -> list[Piece]:
        """What a stage does in one step, in order.

        >>> Pipeline(micro_batches=3, schedule="1f1b").order(stage=1, stages=2)[:4]
        [('forward', 0), ('backward', 0), ('forward', 1), ('backward', 1)]
        """
        count = self.micro_batches
        ahead = count if self.schedule == "gpipe" else min(stages - 1 - stage, count)
        pieces: list[Piece] = [("forward", micro) for micro in range(ahead)]
        for micro in range(count):
            if ahead + micro < count:
                pieces.append(("forward", ahead + micro))
            pieces.append(("backward", micro))
        return pieces
