"""Pipeline parallelism: each stage holds a part of the model, and the micro-batches of a batch follow each other.

A stage is one worker, or in a product with other ways several: `data` groups that each have a batch and sum their
gradients, of `tensor` workers that share every block.
Source: Huang et al. 2019, GPipe (arXiv 1811.06965); Harlap et al. 2018, PipeDream (arXiv 1806.03377) for 1F1B;
Narayanan et al. 2021 (arXiv 2104.04473), section 3, for the products; Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054)
for the first stage of sharding, the one that leaves a pipeline's order of pieces as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from annotated_types import Ge, Le
from pydantic import Field

from distsim.errors import InputError
from distsim.policies.policy import Policy
from distsim.policies.tensor import check_blocks, has_blocks
from distsim.validated_table import Count

if TYPE_CHECKING:
    from distsim.workload import Workload

Direction = Literal["forward", "backward"]
Piece = tuple[Direction, int]


@dataclass(frozen=True)
class Pipeline(Policy):
    """`steps` updates; micro_batches = 1 is plain model parallelism.

    schedule: "gpipe": all forwards, then all backwards; "1f1b": each backward as soon as possible, so that a stage
    never holds more micro-batches than there are stages from this one to the last. stage_layers: how many layers of the
    profile each stage has, first stage first; by default the layers are cut so that the slowest stage is fastest.

    data, tensor: a stage has data x tensor workers. The compute time is that of a worker's part of the work on its
    group's batch. stage: 0: gradients are all-reduced at a step's end; 1: the optimizer's state is divided among the
    `data` workers with the same layers, as in sharded training.
    """

    micro_batches: Annotated[Count, Field(examples=[8])]
    schedule: Literal["gpipe", "1f1b"] = "gpipe"
    stage_layers: Annotated[tuple[Count, ...], Field(strict=False, examples=[[3, 5]])] | None = None

    data: Count = 1
    tensor: Count = 1
    stage: Annotated[int, Ge(0), Le(1)] = 0

    kind: ClassVar = "pipeline"
    all_reduces: ClassVar = False
    real_model: ClassVar = False
    real_eager: ClassVar = False  # a real stage posts a receive only when it comes to the piece that needs it

    @property
    def width(self) -> int:
        """The workers of each stage."""
        return self.data * self.tensor

    def check_workers(self, workers: int) -> None:
        """Raises ValueError where the stages would not be alike, or `stage_layers` does not name as many."""
        if workers % self.width:
            raise ValueError(
                f"policy.data = {self.data} times policy.tensor = {self.tensor} are the workers of a stage, and do not "
                f"divide cluster.workers = {workers}. Cure: write {self.width * max(workers // self.width, 1)} workers"
            )
        stages = workers // self.width
        if self.stage_layers is not None and len(self.stage_layers) != stages:
            raise ValueError(
                f"policy.stage_layers names {len(self.stage_layers)} stages, and a pipeline of {workers} workers has "
                f"{stages}. Cure: write a number of layers for each stage, or leave it out"
            )

    def check_workload(self, workload: Workload, workers: int) -> None:
        """Raises ValueError where the stages cannot be cut as the policy says, or nobody knows what they exchange."""
        if self.data > 1 and workload.num_bytes is None:
            raise ValueError('workload.gradient is missing. Cure: write gradient = "4 MiB" in [workload]')
        if self.tensor > 1:
            self._check_blocks(workload, workers // self.width)
        if workload.profile is not None and self.micro_batches > workload.profile.batch:
            raise ValueError(
                f"policy.micro_batches = {self.micro_batches} divides a batch, and the profile's has "
                f"{workload.profile.batch} samples. Cure: write {workload.profile.batch} or fewer"
            )
        if self.stage_layers is None:
            return
        if workload.profile is None:
            raise ValueError(
                f"policy.stage_layers = {list(self.stage_layers)} counts layers of a profile, and workload.profile is "
                "missing. Cure: name a profile, or leave stage_layers out"
            )
        if sum(self.stage_layers) != workload.layers:
            raise ValueError(
                f"policy.stage_layers = {list(self.stage_layers)} has {sum(self.stage_layers)} layers, and the profile "
                f"has {workload.layers}. Cure: give each layer to one stage"
            )

    def _check_blocks(self, workload: Workload, stages: int) -> None:
        profile = workload.profile
        if (model := profile.model if profile else workload.model) is not None:
            check_blocks(self.kind, model, known=has_blocks(model))
        if self.stage_layers is not None:
            raise ValueError(
                f"policy.stage_layers = {list(self.stage_layers)} cuts a pipeline whose workers share no block, and "
                f"policy.tensor = {self.tensor}. Cure: leave stage_layers out: each stage has as many blocks"
            )
        blocks = workload.blocks
        if blocks % stages:
            raise ValueError(
                f"{stages} stages of workers that share blocks need as many blocks each, and the model has {blocks}. "
                f"Cure: write other numbers for policy.data and policy.tensor, or a model of {stages}, {2 * stages}, … "
                "blocks"
            )

    @property
    def hands_on(self) -> bool:
        """Whether workers give each other activations."""
        return True

    def takes(self, collective: str) -> bool:
        """Whether this kind of communication makes sense: groups of workers have rings. Single workers have none."""
        return self.width == 1 or collective == "ring"

    def batch_workers(self, workers: int) -> range:  # noqa: ARG002 - all stages compute on the same batches
        """For each batch of a step, the first worker of the group in the first stage that shares it."""
        return range(0, self.width, self.tensor)

    def check_real(self, workload: Workload, workers: int) -> None:  # noqa: ARG002 - for any workload
        """Raises InputError where torch's schedule refuses so few micro-batches."""
        stages = workers // self.width
        if self.schedule == "1f1b" and self.micro_batches < stages:
            raise InputError.of(
                "policy.micro_batches", self.micro_batches, f"must be at least the {stages} stages for torch's 1f1b",
                f'write {stages} or more, or schedule = "gpipe"',
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
