"""What runs in the ranks: models whose layers take known times, and the student's code around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
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
    """Layers of one parameter each; some are frozen.

    weights: a matrix is multiplied with the values; a vector or a single number scales them, and a weight without a
    number adds its sum, 0. path: the layers that values go through, in order; a layer may come twice, or never.
    seconds: of the backward at each place of the path.
    """

    def __init__(
        self, weights: list[torch.Tensor], path: Sequence[int], seconds: Sequence[float], frozen: Sequence[int]
    ) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(
            [torch.nn.Parameter(weight.clone(memory_format=torch.contiguous_format)) for weight in weights]
        )
        self.path, self.seconds = path, seconds
        for number in frozen:
            self.weights[number].requires_grad_(False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The layers of the path, one after the other."""
        values = inputs.requires_grad_()
        for number, seconds in zip(self.path, self.seconds, strict=True):
            # The seconds of a layer's backward pass before its own gradient is there.
            values = Timed.apply(torch.tanh(_layer(self.weights[number], values)), seconds)
        return values


def _layer(weight: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    if weight.dim() == 2:
        return values @ weight
    return values * weight if weight.numel() else values + weight.sum()


def buckets(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of the parameters in each bucket, for each case."""
    return {"buckets": [_buckets(tasks, **case) for case in cases]}


def _buckets(
    tasks: ModuleType, *, shapes: list[list[int]], dtypes: list[str], frozen: list[int], bucket_bytes: int
) -> list[list[int]]:
    parameters = [
        torch.nn.Parameter(torch.zeros(shape, dtype=getattr(torch, dtype)), requires_grad=number not in frozen)
        for number, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
    ]
    place = {id(parameter): number for number, parameter in enumerate(parameters)}
    made = tasks.make_buckets(parameters, bucket_bytes)
    return [[place[id(parameter)] for parameter in bucket] for bucket in made]


def train(
    tasks: ModuleType,
    *,
    weights: list[torch.Tensor],
    path: list[int],
    seconds: list[float],
    frozen: list[int],
    inputs: list[torch.Tensor],
    bucket_bytes: int,
    batches: list[int],
    kept: bool,
    broken_off: bool,
    others: bool,
) -> dict[str, Any]:
    """The gradients after each update, of which each adds up as many batches as `batches` says.

    kept: whether the gradients of an update are added to those of the update before. broken_off: whether an error of
    the batch leaves the first `no_sync`, and whether another one stands inside the second. others: whether two smaller
    models are wrapped, one before and one after this one; they are not trained.
    """
    model = Layers(weights, path, seconds, frozen)
    if others:
        tasks.Overlapped(Layers(weights[1:], [], [], []), bucket_bytes)
    wrapped = tasks.Overlapped(model, bucket_bytes)
    if others:
        tasks.Overlapped(Layers(weights[2:], [], [], []), bucket_bytes)
    given = iter(inputs)
    found, swallowed, graphs = [], False, False
    for update, count in enumerate(batches):
        if not kept:
            for weight in model.parameters():
                weight.grad = None
        for number in range(count - 1):
            with wrapped.no_sync():
                if broken_off and update and not number:
                    with wrapped.no_sync():
                        pass
                _step(wrapped, model, next(given))
        if broken_off and not update:
            with suppress(BatchError):
                with wrapped.no_sync():
                    raise BatchError
                swallowed = True
        _step(wrapped, model, next(given))
        found.append([None if weight.grad is None else weight.grad.clone() for weight in model.parameters()])
        graphs = graphs or any(weight.grad is not None and weight.grad.requires_grad for weight in model.parameters())
    left = [weight.detach() for weight in model.parameters()]
    return {"gradients": found, "graphs": graphs, "weights": left, "swallowed": swallowed}


class BatchError(Exception):
    """An error of one batch, which training goes on after."""


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
        weights = [torch.randn(width, width) / width**0.5 for _ in range(layers)]
        model = Layers(weights, range(layers), [backward / layers] * layers, [])
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
