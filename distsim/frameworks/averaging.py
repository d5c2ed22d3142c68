"""What Horovod's library does for a script, on torch.distributed: averaged gradients, and equal first parameters."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn


class AveragingSGD(torch.optim.SGD):
    """SGD on gradients that are averaged over the ranks, as Horovod's optimizer does it.

    An all-reduce begins as soon as backward has a gradient. `step` waits for all of them, then updates.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float) -> None:
        own = list(parameters)
        super().__init__(own, rate)
        self._begun: list[tuple[Tensor, dist.Work]] = []
        for parameter in own:
            parameter.register_post_accumulate_grad_hook(self._begin)  # type: ignore[no-untyped-call]

    def _begin(self, parameter: Tensor) -> None:
        assert parameter.grad is not None, "the hook follows a gradient"
        self._begun.append((parameter.grad, dist.all_reduce(parameter.grad, async_op=True)))

    def step(self, closure: None = None) -> None:  # type: ignore[override] # this training needs no closure
        """Waits for the sums, makes means of them, and updates."""
        for gradient, work in self._begun:
            work.wait()
            gradient /= dist.get_world_size()
        self._begun.clear()
        super().step(closure)


def broadcast_from_first(model: nn.Module) -> None:
    """Gives each rank the parameters of rank 0."""
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0)
