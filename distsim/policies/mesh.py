"""A mesh of workers: `data` groups that each have a batch, and in each group `tensor` workers that share every block.

Workers of neighbouring ranks share blocks, so that the many all-reduces of activations stay inside a node where nodes
have a fast tier. Workers that have the same part of the blocks sum its gradients, as in data parallel training, or
divide its state, as in sharded training. The two kinds of exchange have a queue each, and use the same links only where
their groups do.
Source: Narayanan et al. 2021, Efficient large-scale language model training on GPU clusters (arXiv 2104.04473),
section 3, for the order of ranks; Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054), section 1, for the product of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Ge, Le
from pydantic import Field

from distsim.errors import InputError
from distsim.groups import Groups
from distsim.policies.policy import Programmed
from distsim.policies.sharded import Sharded
from distsim.policies.step_program import Computation, Exchange, StepProgram
from distsim.policies.tensor import HALVES, check_blocks, check_handed_on, has_blocks
from distsim.validated_table import Count

if TYPE_CHECKING:
    from distsim.workload import Workload


@dataclass(frozen=True)
class Mesh(Programmed):
    """`steps` updates. The workers are `data` times `tensor`; the blocks are the workload's layers.

    The compute time is that of a worker's part of the work on its group's batch. stage: 0: each worker has the whole
    state of its part of the blocks, whose gradients are all-reduced; 1 to 3: as in sharded training, among `data`
    workers. prefetch: of stages 1 to 3.
    """

    data: Annotated[Count, Field(examples=[2])]
    tensor: Annotated[Count, Field(examples=[2])]
    stage: Annotated[int, Ge(0), Le(3)] = 0
    prefetch: Annotated[int, Ge(0), Le(100_000)] = 1

    kind: ClassVar = "mesh"
    server: ClassVar = "none"
    collectives: ClassVar = ("ring",)  # of each group

    @property
    def sharing(self) -> Groups:
        """The groups of workers that share the blocks."""
        return Groups(self.tensor)

    @property
    def hands_on(self) -> bool:
        """Whether workers give each other activations."""
        return self.tensor > 1

    def batch_workers(self, workers: int) -> range:
        """For each batch of a step, the first worker of the group that shares it."""
        return range(0, workers, self.tensor)

    def check_workers(self, workers: int) -> None:
        """Raises ValueError where the two numbers do not multiply to the workers."""
        if self.data * self.tensor != workers:
            raise ValueError(
                f"policy.data = {self.data} times policy.tensor = {self.tensor} make {self.data * self.tensor} "
                f"workers, and cluster.workers = {workers}. Cure: {self._cure(workers)}"
            )

    def _cure(self, workers: int) -> str:
        if workers % self.tensor == 0:
            return f"write data = {workers // self.tensor}, or {self.data * self.tensor} workers"
        return f"write {self.data * self.tensor} workers"

    def check_model(self, model: str) -> None:
        """Raises ValueError for a model that has no blocks to split."""
        if self.tensor > 1:
            check_blocks(self.kind, model, known=has_blocks(model))

    def check_real(self, workload: Workload, workers: int) -> None:  # noqa: ARG002 - for any number
        """Raises InputError for a model whose blocks workers do not share, or not evenly."""
        if workload.model is None:
            return
        if self.tensor == 1:
            kind = f'"sharded", stage = {self.stage}' if self.stage else '"ddp"'
            raise InputError.of(
                "policy.tensor", self.tensor, "shares no block, and a real run trains a model on a mesh that does",
                f"write kind = {kind}, or simulate it",
            )  # fmt: skip
        if workload.heads % self.tensor:
            raise InputError.of(
                "policy.tensor", self.tensor, f"does not divide the {workload.heads} heads that workers share",
                "write 2 or 4, and data times tensor workers, or simulate it",
            )  # fmt: skip
        check_handed_on(workload)

    def program(self, workload: Workload, workers: int) -> StepProgram:  # noqa: ARG002 - data times tensor
        """What each worker computes and exchanges in a step: that of its part of the blocks, half a block at a time."""
        sizes = workload.part_bytes(self.tensor)
        if self.stage:
            program = Sharded(self.stage, prefetch=self.prefetch).program_of(sizes, workload, self.data)
        else:
            program = self._replicated(workload, sizes)
        alike = Groups(self.data, stride=self.tensor)
        program = replace(program, exchanges=tuple(replace(one, groups=alike) for one in program.exchanges))
        program = _with_parts(program, self.tensor)
        if self.tensor > 1:
            idle = frozenset(number for number, nothing in enumerate(workload.idle_layers) if nothing)
            program = in_halves(program, workload.handed_on_bytes or 0.0, self.sharing, idle)
        return replace(program, unit="block")

    def _replicated(self, workload: Workload, sizes: list[float]) -> StepProgram:
        """Stage 0: the gradients of each block, of these sizes, are all-reduced when its backward is over."""
        blocks = range(workload.layers)
        added = workload.added_times([1] * workload.layers)
        backward = workload.backward_share / workload.layers
        forward = 1.0 / workload.layers - backward
        return StepProgram(
            (
                Computation("apply", 0, 0.0, added.optimizer),
                *(Computation("forward", block, forward, added.forwards[-1 - block]) for block in blocks),
                *(Computation("backward", block, backward, added.buckets[-1 - block]) for block in reversed(blocks)),
            ),
            tuple(
                Exchange("all_reduce", block, sizes[block], 2 + workload.layers + number)
                for number, block in enumerate(reversed(blocks))
            ),
        )


def _with_parts(program: StepProgram, parts: int) -> StepProgram:
    """The program of a worker that does one of so many parts of the profile's work; the drawn time is its own."""
    own = [replace(one, added_seconds=one.added_seconds / parts) for one in program.computations]
    return replace(program, computations=tuple(own))


def in_halves(
    program: StepProgram, num_bytes: float, groups: Groups, idle: frozenset[int] = frozenset()
) -> StepProgram:
    """The program with an all-reduce of `num_bytes` among `groups` after each half of a forward or backward.

    The next computation waits for it. A backward ends with a piece after its last sum, which takes no time: the
    gradients of the norm that stands before attention. Exchanges of `program` keep their numbers. idle: units without
    any sum, such as an embedding, in which a profile finds nothing to compute.
    """
    computations: list[Computation] = []
    sums: list[Exchange] = []
    first, done = len(program.exchanges), [0]

    def compute(piece: Computation, part: float) -> None:
        after = (*piece.after, first + len(sums) - 1) if sums else piece.after
        share, added = piece.share * part, piece.added_seconds * part
        computations.append(replace(piece, share=share, added_seconds=added, after=after))

    for piece in program.computations:
        if piece.kind == "apply" or piece.unit in idle:
            compute(piece, 1.0)
        else:
            for _ in range(HALVES):
                compute(piece, 1 / HALVES)
                sums.append(Exchange("all_reduce", piece.unit, num_bytes, len(computations), groups))
            if piece.kind == "backward":
                compute(piece, 0.0)
        done.append(len(computations))
    own = tuple(replace(one, after=done[one.after]) for one in program.exchanges)
    return StepProgram(tuple(computations), (*own, *sums))
