"""Sharded data parallel training, ZeRO: each worker keeps a part of the training's state.

The workers reduce-scatter the gradients of each unit during backward, so that each worker has the sum of its own part,
updates this part, and gathers the parameters of a unit before the next forward that needs them.
Source: Rajbhandari et al. 2020, ZeRO (arXiv 1910.02054); Zhao et al. 2023, PyTorch FSDP (arXiv 2304.11277), for units
and for gathering ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Ge, Le
from pydantic import Field

from distsim.policies.ddp import in_buckets
from distsim.policies.policy import Programmed
from distsim.policies.step_program import Computation, Exchange, StepProgram
from distsim.units import PositiveBytes

if TYPE_CHECKING:
    from distsim.workload import Workload


GRADIENT_UNITS = 2  # whole units of gradients at once from stage 2 on: one is made while another is summed


@dataclass(frozen=True)
class Sharded(Programmed):
    """`steps` updates. A unit is a layer, or neighbouring layers that together reach `bucket`.

    stage: 1: the optimizer's state is divided among the workers; 2: also the gradients; 3: also the parameters, which
    are freed after a unit's forward and gathered again for its backward. prefetch: how many units a worker gathers
    ahead of the one that it computes.
    """

    stage: Annotated[int, Ge(1), Le(3), Field(examples=[3])]
    bucket_bytes: Annotated[PositiveBytes | None, Field(alias="bucket")] = None
    prefetch: Annotated[int, Ge(0), Le(100_000)] = 1

    kind: ClassVar = "sharded"
    server: ClassVar = "none"
    collectives: ClassVar = ("ring",)  # a reduce-scatter and an all-gather are its halves

    def units(self, layer_bytes: list[float]) -> list[list[int]]:
        """The layers of each unit, in the order of forward.

        >>> Sharded(stage=3, bucket_bytes=4.0).units([2.0, 2.0, 2.0])
        [[0], [1, 2]]
        """
        size = self.bucket_bytes or 0.0
        return [bucket[::-1] for bucket in in_buckets(layer_bytes, size, size)][::-1]

    def stays(self, unit: int, first_user: int) -> bool:
        """Whether backward needs a unit, for `first_user`, before it would be gathered again at stage 3."""
        return first_user > unit + self.prefetch

    def most_whole(self, sizes: list[float], in_forward: list[int], in_backward: list[int]) -> float:
        """The most bytes of units whose parameters are whole at once, at stage 3.

        A unit is whole in forward until its last user has computed, and in backward until its own turn has ended. Where
        backward needs it before it would be gathered again, it stays whole in between. sizes: of the units. in_forward,
        in_backward: the last users, see `last_users`.

        >>> sizes, own = [1.0, 2.0, 4.0, 8.0], [0, 1, 2, 3]
        >>> Sharded(stage=3, prefetch=1).most_whole(sizes, own, own)
        12.0
        >>> Sharded(stage=3, prefetch=1).most_whole(sizes, own, [3, 1, 2, 3])    # the first one stays
        13.0
        >>> Sharded(stage=3, prefetch=0).most_whole(sizes, [0, 3, 3, 3], own)    # a module has the last three
        14.0
        """
        count, whole = len(sizes), [0.0] * (2 * len(sizes))  # by computation: the forwards, and then the backwards
        for number, (size, last, first) in enumerate(zip(sizes, in_forward, in_backward, strict=True)):
            forward = range(max(number - self.prefetch, 0), last + 1)
            backward = range(count + max(count - 1 - number - self.prefetch, 0), 2 * count - number)
            between = range(forward.start, backward.stop)
            for place in between if self.stays(number, first) else {*forward, *backward}:
                whole[place] += size
        return max(whole)

    def program(self, workload: Workload, workers: int) -> StepProgram:
        """What each of `workers` computes and exchanges in a step."""
        return self.program_of(workload.layer_bytes, workload, workers)

    def program_of(self, layer_bytes: list[float], workload: Workload, workers: int) -> StepProgram:
        """The same, where `workers` divide layers of these sizes.

        A worker first updates its part of the parameters. It asks for a unit as soon as it has computed all units but
        the `prefetch` ones right before it, in the order of forward, and at stage 3 again in the order of backward.
        From stage 2 on, there are two whole units of gradients at most: a backward waits until the unit two before is
        summed. A backward also waits for other units whose parameters it needs, where these are asked for before.
        """
        units = self.units(layer_bytes)
        needed = _needed(units, workload.needed_ahead)
        sizes = [sum(layer_bytes[layer] for layer in unit) for unit in units]
        added = workload.added_times([len(unit) for unit in reversed(units)])
        backward = workload.backward_share / workload.layers  # of the drawn time, for each layer
        forward = 1.0 / workload.layers - backward
        computations = [Computation("apply", 0, 0.0, added.optimizer / workers)]
        exchanges: list[Exchange] = []
        for number, (unit, seconds) in enumerate(zip(units, reversed(added.forwards), strict=True)):
            begun = 1 + max(number - self.prefetch, 0)
            exchanges.append(Exchange("all_gather", number, sizes[number], after=begun))
            computations.append(Computation("forward", number, forward * len(unit), seconds, (len(exchanges) - 1,)))
        to_gather = iter(range(len(units))[::-1] if self.stage == 3 else ())
        gathered: dict[int, int] = {}  # by unit, the exchange that gathers it again
        summed: dict[int, int] = {}  # by unit, the exchange that sums its gradients

        def gather(count: int) -> None:
            for number in islice(to_gather, count):
                exchanges.append(Exchange("all_gather", number, sizes[number], after=len(computations)))
                gathered[number] = len(exchanges) - 1

        gather(1 + self.prefetch)
        for number, seconds in zip(reversed(range(len(units))), added.buckets, strict=True):
            part = backward * len(units[number])
            after = max(gathered.get(one, len(units) - 1) for one in needed[number])
            if self.stage >= 2:
                after = max(after, summed.get(number + GRADIENT_UNITS, 0))
            computations.append(Computation("backward", number, part, seconds, (after,)))
            exchanges.append(Exchange("reduce_scatter", number, sizes[number], after=len(computations)))
            summed[number] = len(exchanges) - 1
            gather(1)
        return StepProgram(tuple(computations), tuple(exchanges), unit="unit")


def _needed(units: list[list[int]], ahead: list[int]) -> list[list[int]]:
    """For each unit, the units whose parameters its backward needs, and no backward before it: itself and earlier ones.

    >>> _needed([[0, 1], [2], [3]], ahead=[0, 1, 0, 0])    # the second layer is needed with the third
    [[0], [1, 0], [2]]
    """
    needed = [[number] for number in range(len(units))]
    for number, last in enumerate(last_users(units, ahead)):
        if last > number:
            needed[last].append(number)
    return needed


def last_users(units: list[list[int]], ahead: list[int]) -> list[int]:
    """For each unit, the last unit, in the order of forward, that computes with its parameters; itself, if no other.

    >>> last_users([[0, 1], [2], [3]], ahead=[0, 1, 0, 0])    # the second layer is needed with the third
    [1, 1, 2]
    """
    unit_of = {layer: number for number, unit in enumerate(units) for layer in unit}
    return [max(unit_of[layer + ahead[layer]] for layer in unit) for unit in units]
