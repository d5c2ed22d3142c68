"""Tensor parallel training: the workers share every block of a transformer, and all work on one batch.

Each worker has some columns of a block's first matrix and the rows of its second matrix that go with them, in attention
and in the perceptron alike. The workers' results are parts of a sum, so an all-reduce follows each of the two halves:
of the activations in forward, and of their gradients in backward. Here nobody goes on before it has ended. In forward
nobody could; in backward, an implementation may compute gradients of weights meanwhile.
Source: Shoeybi et al. 2019, Megatron-LM (arXiv 1909.08053), section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from distsim.errors import InputError
from distsim.policies.policy import Programmed
from distsim.policies.step_program import Computation, Computed, Exchange, StepProgram

if TYPE_CHECKING:
    from distsim.workload import Workload

HALVES = 2  # of a block: attention and the perceptron


def check_blocks(kind: str, model: str, *, known: bool) -> None:
    """Raises ValueError for a model that is not known to have blocks to split."""
    if not known and has_blocks(model):
        raise ValueError(
            f"policy.kind = {kind!r} does not take the profile of {model!r}. "
            'Cure: write kind = "mesh" with data = 1 and tensor = the number of workers'
        )
    if not known:
        raise ValueError(
            f"policy.kind = {kind!r} splits the blocks of a transformer, and {model!r} is not known to have any. "
            'Cure: write model = "transformer", or layers and activation without a model'
        )


def check_handed_on(workload: Workload) -> None:
    """Raises InputError where a real run would hand on other bytes than the scenario says."""
    own = workload.model_copy(update={"activation_bytes": None}).handed_on_bytes
    if own is not None and workload.handed_on_bytes != own:
        raise InputError.of(
            "workload.activation", workload.handed_on_bytes, f"is not what a block of this model hands on: {own:g} "
            "bytes", "remove activation, or simulate it",
        )  # fmt: skip


@dataclass(frozen=True)
class Tensor(Programmed):
    """`steps` updates. The blocks are the workload's layers; the compute time is that of a worker's part of the batch's
    work, and `workload.activation` is what one block hands to the next."""

    kind: ClassVar = "tensor"
    server: ClassVar = "none"
    all_reduces: ClassVar = False

    @property
    def hands_on(self) -> bool:
        """Whether workers give each other activations."""
        return True

    def batch_workers(self, workers: int) -> range:  # noqa: ARG002 - all compute on one batch
        """The first worker."""
        return range(1)

    def check_model(self, model: str) -> None:
        """Raises ValueError for a model that has no blocks."""
        check_blocks(self.kind, model, known=model == "transformer")

    def check_real(self, workload: Workload, workers: int) -> None:
        """Raises InputError where a worker would have no head, or would send other bytes than the scenario says."""
        if workload.model is None:
            return
        if workers > workload.heads:
            raise InputError.of(
                "cluster.workers", workers, f"are more than the {workload.heads} heads of a block, which they share",
                f"write {workload.heads} or fewer, or simulate it",
            )  # fmt: skip
        check_handed_on(workload)

    def program(self, workload: Workload, workers: int) -> StepProgram:  # noqa: ARG002 - the same for any number
        """Half a block at a time, each followed by the all-reduce of its result."""
        blocks, num_bytes = range(workload.layers), workload.handed_on_bytes or 0.0
        share = workload.backward_share / workload.layers / HALVES
        parts: list[tuple[Computed, int, float]] = [
            *(("forward", block, 1.0 / workload.layers / HALVES - share) for block in blocks for _ in range(HALVES)),
            *(("backward", block, share) for block in reversed(blocks) for _ in range(HALVES)),
        ]
        return StepProgram(
            tuple(Computation(*part, after=(number - 1,) if number else ()) for number, part in enumerate(parts)),
            tuple(Exchange("all_reduce", part[1], num_bytes, after=number + 1) for number, part in enumerate(parts)),
            unit="block",
        )


def has_blocks(model: str) -> bool:
    """Whether a model, or that of a computed profile, is a transformer of distsim's.

    >>> has_blocks("transformer of 24 blocks of width 2048"), has_blocks("transformer.py:build")
    (True, False)
    """
    return model == "transformer" or model.startswith("transformer of ")
