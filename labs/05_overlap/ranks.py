"""What runs in the ranks: models whose layers take known times, and the student's code around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank

NO_PART_OF_A_STEP = {"Overlapped", "Overlapped.no_sync", "data_parallel_seconds"}


class Timed(torch.autograd.Function):
    """Passes its input on, and its gradient after some seconds of computing."""

    @staticmethod
    def forward(context: Any, values: torch.Tensor, seconds: float) -> torch.Tensor:
        """Takes no time."""
        context.seconds = seconds
        return values.clone()

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        """Computes for its seconds."""
        rank.busy(context.seconds, "backward")
        return gradient, None


class Layers(torch.nn.Module):
    """Linear layers of one width; each one's backward takes `seconds`. Some are frozen, some not used on this rank."""

    def __init__(self, weights: list[torch.Tensor], seconds: float, frozen: list[int], skipped: list[int]) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(weight.clone()) for weight in weights])
        self.seconds, self.skipped = seconds, skipped
        for number in frozen:
            self.weights[number].requires_grad_(False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The layers one after the other."""
        values = inputs.requires_grad_()
        for number, weight in enumerate(self.weights):
            if number not in self.skipped:
                # The seconds of a layer's backward pass before its own gradient is there.
                values = Timed.apply(torch.tanh(values @ weight), self.seconds)
        return values


def buckets(tasks: ModuleType, *, sizes: list[int], frozen: list[int], bucket_bytes: int) -> dict[str, Any]:
    """The numbers of the parameters in each bucket."""
    parameters = [torch.nn.Parameter(torch.zeros(size), requires_grad=k not in frozen) for k, size in enumerate(sizes)]
    place = {id(parameter): number for number, parameter in enumerate(parameters)}
    made = tasks.make_buckets(parameters, bucket_bytes)
    return {"buckets": [[place[id(parameter)] for parameter in bucket] for bucket in made]}


def train(
    tasks: ModuleType | None,
    *,
    weights: list[torch.Tensor],
    inputs: list[torch.Tensor],
    bucket_bytes: int,
    seconds: float = 0.0,
    frozen: list[int] | None = None,
    skipped: list[int] | None = None,
    accumulate: int = 1,
) -> dict[str, Any]:
    """The gradients after each update, of which each adds up so many batches; without tasks, this rank's own."""
    model = Layers(weights, seconds, frozen or [], skipped or [])
    wrapped = tasks.Overlapped(model, bucket_bytes) if tasks else None
    found = []
    for first in range(0, len(inputs), accumulate):
        for weight in model.parameters():
            weight.grad = None
        for number in range(first, first + accumulate):
            last = number == first + accumulate - 1
            if wrapped is None:
                _loss(model, inputs[number]).backward()
            elif last:
                _step(wrapped, model, inputs[number])
            else:
                with wrapped.no_sync():
                    _step(wrapped, model, inputs[number])
        found.append([None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()])
    return {"gradients": found, "weights": [parameter.detach() for parameter in model.parameters()]}


def _step(wrapped: Any, model: Layers, inputs: torch.Tensor) -> None:
    wrapped.begin()
    _loss(model, inputs).backward()
    wrapped.finish()


def _loss(model: Layers, inputs: torch.Tensor) -> torch.Tensor:
    return model(inputs.clone()).square().sum()


def data_parallel(tasks: ModuleType, *, cases: list[dict[str, float]]) -> dict[str, Any]:
    """The student's predictions."""
    return {"seconds": [float(tasks.data_parallel_seconds(**case)) for case in cases]}


def real(
    tasks: ModuleType, bucket_bytes: int = 8 * 2**20, repeats: int = 10, layers: int = 8, layer_bytes: int = 4 * 2**20,
    forward: float = 0.080, backward: float = 0.160, unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Steps for real, which sleep for the seconds of forward and of backward; without layers, a bucket's all-reduce."""
    if layers and set(unwritten) - NO_PART_OF_A_STEP:
        return {}
    torch.manual_seed(0)
    if layers:
        width = round((layer_bytes / 4) ** 0.5)
        model = Layers([torch.randn(width, width) / width**0.5 for _ in range(layers)], backward / layers, [], [])
        wrapped, inputs = tasks.Overlapped(model, bucket_bytes), torch.randn(1, width)

        def step() -> None:
            rank.busy(forward, "forward")
            _step(wrapped, model, inputs)

        return {"seconds": [_timed(step) for _ in range(repeats)]}
    bucket = torch.zeros(bucket_bytes // 4)
    return {"seconds": [_timed(lambda: dist.all_reduce(bucket)) for _ in range(repeats)]}


def _timed(call: Callable[[], object]) -> float:
    """Seconds of a call that all ranks begin together."""
    dist.barrier()
    before = rank.now()
    call()
    return rank.now() - before
