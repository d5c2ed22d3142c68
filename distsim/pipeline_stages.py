"""What each stage of a pipeline computes, hands on and exchanges, and which workers it has.

A stage has `width` workers of neighbouring ranks: `data` groups that each have a batch, and in each group `tensor`
workers that share every layer of the stage. A worker hands on to the worker with the same place in the next stage.
Source: Narayanan et al. 2021, Efficient large-scale language model training on GPU clusters (arXiv 2104.04473),
section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from distsim.groups import GroupExchange, Groups
from distsim.policies import Pipeline
from distsim.policies.pipeline import Direction
from distsim.policies.tensor import HALVES
from distsim.profile import stage_cuts
from distsim.workload import Workload


@dataclass(frozen=True)
class Part:
    """A part of what a worker computes in one piece, which is one direction of one micro-batch.

    share: of the step's drawn time. added_seconds: what a profile adds. summed: whether the workers that share the
    layer sum activations after it.
    """

    share: float
    added_seconds: float
    summed: bool = False


@dataclass(frozen=True)
class Stage:
    """One stage. forward, backward: the parts of a piece, in order. gradient_bytes: of a worker's part of the layers.

    apply_seconds: what a profile adds for the update.
    """

    forward: tuple[Part, ...]
    backward: tuple[Part, ...]
    gradient_bytes: float
    apply_seconds: float

    def parts(self, direction: Direction) -> tuple[Part, ...]:
        """Those of a piece in this direction."""
        return self.forward if direction == "forward" else self.backward


@dataclass(frozen=True)
class Call:
    """One exchange of a step. stage: whose workers call it; None: those of all stages."""

    exchange: GroupExchange
    num_bytes: float
    label: str
    stage: int | None = None

    def workers(self, width: int) -> range | None:
        """The workers that call it; None: all. width: of a stage."""
        return None if self.stage is None else range(self.stage * width, (self.stage + 1) * width)


@dataclass(frozen=True)
class Stages:
    """All stages of a pipeline, first stage first.

    width: workers of each. message_bytes: what a worker hands on for one micro-batch. sums: the sum of activations, and
    of their gradients, after a part that is summed: of message_bytes, too. gradients: the exchanges at a step's end.
    pieces: of one stage in a step.
    """

    of: tuple[Stage, ...]
    width: int
    message_bytes: float
    sums: GroupExchange
    gradients: tuple[GroupExchange, ...]
    pieces: int

    @property
    def sums_of_a_piece(self) -> int:
        """As many in every stage and direction."""
        return sum(part.summed for part in self.of[0].forward)

    @property
    def calls(self) -> list[Call]:
        """The exchanges of a step: the sums of all pieces, and then those of each stage's gradients."""
        micros = [*range(self.pieces // 2)] * 2
        found = [
            Call(self.sums, self.message_bytes, f"micro-batch {micro}")
            for micro in micros for _ in range(self.sums_of_a_piece)
        ]  # fmt: skip
        for number, stage in enumerate(self.of):
            found += [Call(one, stage.gradient_bytes, "gradients", number) for one in self.gradients]
        return found

    def sum_number(self, direction: Direction, micro: int, place: int) -> int:
        """Which call of a step the sum at `place` of a piece is."""
        piece = micro if direction == "forward" else self.pieces // 2 + micro
        return piece * self.sums_of_a_piece + place

    def gradient_number(self, stage: int, place: int) -> int:
        """Which call of a step the exchange at `place` of a stage's gradients is."""
        return self.pieces * self.sums_of_a_piece + stage * len(self.gradients) + place


def stages_of(policy: Pipeline, workload: Workload, workers: int) -> Stages:
    """The stages of `policy` on so many workers.

    A profile's layers, and its times, are cut as `layer_cuts` says. Workers that share layers have an equal part of
    their times. A layer in which forward computes nothing, such as an embedding, is not summed.
    """
    width, count = policy.width, policy.micro_batches
    ends = layer_cuts(policy, workload, workers)
    sizes = workload.part_bytes(policy.tensor) if workload.num_bytes is not None else [0.0] * workload.layers
    profile, whole = workload.profile, sum(sizes)
    found = []
    for first, end in pairwise([0, *ends]):
        gradient_bytes, apply_seconds = sum(sizes[first:end]), 0.0
        if profile is not None and whole:
            sharing = policy.tensor * (policy.data if policy.stage else 1)
            apply_seconds = profile.optimizer_seconds * gradient_bytes / whole / sharing
        both: list[tuple[Part, ...]] = []
        for share, way in ((1.0 - workload.backward_share, 0), (workload.backward_share, 1)):
            seconds = (
                [one[way] / policy.tensor / count for one in profile.layer_seconds[first:end]]
                if profile is not None else [0.0] * (end - first)
            )  # fmt: skip
            if policy.tensor == 1:
                both.append((Part(share / count, sum(seconds)),))
            else:
                idle = workload.idle_layers[first:end]
                parts = _summed_parts(share / count, seconds, idle)
                both.append(tuple(parts if way == 0 else parts[::-1]))
        found.append(Stage(both[0], both[1], gradient_bytes, apply_seconds))
    alike = Groups(policy.data, stride=policy.tensor)
    kinds = () if policy.data == 1 else ("reduce_scatter", "all_gather") if policy.stage else ("all_reduce",)
    return Stages(
        tuple(found), width, (workload.handed_on_bytes or 0.0) / count, GroupExchange(groups=Groups(policy.tensor)),
        tuple(GroupExchange(kind, alike) for kind in kinds), 2 * count,
    )  # fmt: skip


def layer_cuts(policy: Pipeline, workload: Workload, workers: int) -> list[int]:
    """The end of each stage among the layers.

    Where workers share layers, each stage has as many blocks; other layers belong to the stage of the next block, or to
    the last stage. Otherwise the cuts are `policy.stage_layers`, or those that make the slowest stage fastest, or
    without a profile those that give the stages as many layers, but for one.
    """
    stages = workers // policy.width
    if policy.tensor > 1:
        blocks = [number for number, idle in enumerate(workload.idle_layers) if not idle]
        return [*(blocks[stage * len(blocks) // stages - 1] + 1 for stage in range(1, stages)), workload.layers]
    if workload.profile is not None:
        return stage_cuts(workload.profile, stages, policy.stage_layers or ())
    layers = workload.layers
    return list(accumulate(layers // stages + (stage < layers % stages) for stage in range(stages)))


def _summed_parts(share: float, seconds: Sequence[float], idle: Sequence[bool]) -> list[Part]:
    """The parts of a piece whose layers are shared: each block in halves, with a sum after each."""
    blocks = len(idle) - sum(idle)
    found: list[Part] = []
    for own, nothing in zip(seconds, idle, strict=True):
        if not nothing:
            found += [Part(share / blocks / HALVES, own / HALVES, summed=True)] * HALVES
        elif own:
            found.append(Part(0.0, own))
    return found
