"""Pipeline parallelism: each worker holds a stage of the model, and the micro-batches of a batch follow each other.

Source: Huang et al. 2019, GPipe (arXiv 1811.06965); Harlap et al. 2018, PipeDream (arXiv 1806.03377) for 1F1B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from distsim.errors import InputError
from distsim.policies.policy import Policy
from distsim.validated_table import Count

if TYPE_CHECKING:
    from distsim.workload import Workload

Piece = tuple[Literal["forward", "backward"], int]


@dataclass(frozen=True)
class Pipeline(Policy):
    """`steps` updates; micro_batches = 1 is plain model parallelism.

    schedule: "gpipe": all forwards, then all backwards; "1f1b": each backward as soon as possible, so that a stage
    never holds more micro-batches than there are stages from this one to the last. stage_layers: how many layers of the
    profile each stage has, first stage first; by default the layers are cut so that the slowest stage is fastest.
    """

    micro_batches: Annotated[Count, Field(examples=[8])]
    schedule: Literal["gpipe", "1f1b"] = "gpipe"
    stage_layers: Annotated[tuple[Count, ...], Field(strict=False, examples=[[3, 5]])] | None = None

    kind: ClassVar = "pipeline"
    all_reduces: ClassVar = False
    real_model: ClassVar = False
    real_eager: ClassVar = False  # a real stage posts a receive only when it comes to the piece that needs it

    def check_workers(self, workers: int) -> None:
        """Raises ValueError where `stage_layers` does not name as many stages."""
        if self.stage_layers is not None and len(self.stage_layers) != workers:
            raise ValueError(
                f"policy.stage_layers names {len(self.stage_layers)} stages, and a pipeline of {workers} workers has "
                f"{workers}. Cure: write a number of layers for each worker, or leave it out"
            )

    @property
    def hands_on(self) -> bool:
        """Whether workers give each other activations."""
        return True

    def batches(self, workers: int) -> int:  # noqa: ARG002 - all stages compute on one
        """On how many batches the workers compute in a step."""
        return 1

    def check_real(self, workload: Workload, workers: int) -> None:  # noqa: ARG002 - for any workload
        """Raises InputError where torch's own schedule refuses so few micro-batches."""
        if self.schedule == "1f1b" and self.micro_batches < workers:
            raise InputError.of(
                "policy.micro_batches", self.micro_batches, f"must be at least the {workers} stages for torch's 1f1b",
                f'write {workers} or more, or schedule = "gpipe"',
            )  # fmt: skip

    def order(self, stage: int, stages: int) -> list[Piece]:
        """The pieces that a stage computes in one step, in order.

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
