"""What runs in the ranks: stages that take known times, models around the student's layers, and steps of Adam."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from distsim.testbed import rank

REPEATS = 5  # of what a real run takes the time of
WIDTH, SAMPLES = 64, 4  # of a real run's activations, for each micro-batch


class Timed(torch.autograd.Function):
    """Passes its input on, and its gradient after some seconds of computing."""

    @staticmethod
    def forward(context: Any, values: Tensor, seconds: float) -> Tensor:
        """Takes no time."""
        context.seconds = seconds
        return values.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        """Computes for its seconds."""
        rank.busy(context.seconds, "backward")
        return gradient, None


class Stage(nn.Module):
    """Layers values -> tanh(values @ weight), in the order of `path`, and the seconds that they take for each sample.

    frozen: the places of frozen weights. turned: whether activations leave, and their gradients come, with columns one
    after the other in memory. `held` has, after each forward, the number of micro-batches whose activations are in
    memory.
    """

    def __init__(
        self, weights: Sequence[Tensor], path: Sequence[int], seconds: Sequence[float], frozen: Sequence[int] = (),
        *, turned: bool = False, first: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(weight.clone()) for weight in weights])
        self.path, self.seconds, self.turned, self.first = path, seconds, turned, first
        for place in frozen:
            self.weights[place].requires_grad_(False)
        self.memory: list[list[weakref.ref[Any]]] = []  # by micro-batch, of its input, its output and its message
        self.held: list[int] = []

    def forward(self, entering: Tensor) -> Tensor:
        """One micro-batch."""
        rank.busy(self.seconds[0] * len(entering), "forward")
        values = entering
        for place in self.path:
            weight = self.weights[place]
            values = torch.tanh((weight.t() @ values.t().contiguous()).t() if self.turned else values @ weight)
        leaving: Tensor = Timed.apply(values, self.seconds[1] * len(entering))
        own = [leaving] if self.first else [entering, leaving]  # the batch itself is not the student's
        self.memory.append([weakref.ref(one.untyped_storage()) for one in own])
        self.held.append(self.in_memory())
        return leaving

    @contextmanager
    def noting_messages(self) -> Iterator[None]:
        """Inside, the tensors that are sent to the next stage count as activations of the last forward."""
        send, following = dist.isend, dist.get_rank() + 1

        def isend(tensor: Tensor, *given: Any, **named: Any) -> Any:
            if following in (*given[:1], named.get("dst")) and self.memory:
                self.memory[-1].append(weakref.ref(tensor.untyped_storage()))
            return send(tensor, *given, **named)

        dist.isend = isend
        try:
            yield
        finally:
            dist.isend = send

    def in_memory(self) -> int:
        """The number of micro-batches of which an input, an output or a message is still in memory."""
        return sum(any(one() is not None for one in own) for own in self.memory)


def squares(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean over the samples of the sum of squared errors."""
    return (outputs - targets).square().sum(dim=1).mean()


def orders(tasks: ModuleType, *, cases: list[list[Any]]) -> dict[str, Any]:
    """The order for each stage, number of stages, number of micro-batches and schedule."""
    return {"orders": [[list(piece) for piece in tasks.stage_order(*case)] for case in cases]}


def pipeline(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Steps of several models, one after the other; all ranks begin each of them together."""
    return {"cases": [_pipeline_case(tasks, **case) for case in cases]}


def _pipeline_case(
    tasks: ModuleType, *, weights: list[Tensor], path: list[int], frozen: list[int], seconds: list[float], turned: bool,
    order: list[list[Any]], inputs: list[Tensor], arriving: list[list[int]], targets: list[Tensor],
    groups: list[list[int]], tied: list[list[int]], steps: int, dtype: str,
) -> dict[str, Any]:  # fmt: skip
    """arriving: on later stages, the shapes of what arrives. tied: places of weights, each with its group's place."""
    made = [dist.new_group(group) for group in groups]
    stage, found = Stage(weights, path, seconds, frozen, turned=turned, first=bool(inputs)), []
    given = inputs or [torch.empty(shape, dtype=getattr(torch, dtype), device="meta") for shape in arriving]
    pairs = [(stage.weights[place], made[group]) for place, group in tied]
    for _ in range(steps):
        stage.memory, stage.held = [], []
        for weight in stage.weights:
            weight.grad = None
        dist.barrier()
        with stage.noting_messages():
            loss = tasks.pipeline_step(stage, [tuple(piece) for piece in order], given, targets, squares, pairs)
        found.append({
            "loss": loss, "history": loss is not None and loss.requires_grad, "held": stage.held,
            "gradients": [None if weight.grad is None else weight.grad.clone() for weight in stage.weights],
        })  # fmt: skip
    return {"steps": found, "weights": [weight.detach() for weight in stage.weights]}


def split(tasks: ModuleType, *, sizes: list[int], sums: list[dict[str, Any]], models: list[dict[str, Any]]) -> Any:
    """The parts of some sizes, the two sums by themselves, and models of split layers."""
    return {
        "parts": [[own.start, own.stop] for own in map(tasks.own_part, sizes)],
        "sums": [_sum_case(tasks, **case) for case in sums],
        "models": [_split_case(tasks, **case) for case in models],
    }


def _sum_case(tasks: ModuleType, *, name: str, values: Tensor, factors: Tensor, turned: bool) -> dict[str, Any]:
    """One of the two sums, of some values and of twice these: seven times the sum of the values.

    Another tensor gets the same gradient: the factors, or where there are none, an expanded one.
    """
    values, zeros = values.requires_grad_(), torch.zeros_like(values).requires_grad_()
    before = values.detach().clone()
    other = zeros.t().clone() if turned else zeros.clone()  # whose backward comes after that of the sum
    total, given = getattr(tasks, name).apply, values.t() if turned else values
    first, second = total(given), total(2 * given)
    result = first + 3 * second + other
    (result.sum() if not len(factors) else (result * (factors.t() if turned else factors)).sum()).backward()
    return {
        "result": (result.t() if turned else result).detach().clone(), "changed": not torch.equal(values, before),
        "gradient": values.grad, "given gradient": zeros.grad,
    }  # fmt: skip


def _split_case(
    tasks: ModuleType, *, layers: list[list[Tensor | None]], path: list[int], tied: bool, frozen: list[list[int]],
    inputs: Tensor, needed: bool, turned: bool, factors: Tensor,
) -> dict[str, Any]:  # fmt: skip
    """Pairs of a ColumnLinear and a RowLinear with tanh between them, and a residual connection round each pair.

    layers: weight and bias of each layer, in pairs. path: the pairs in the order of forward. tied: whether the second
    column layer takes the first one's weight. frozen: layer and place (0: weight, 1: bias).
    """
    whole = [[None if one is None else nn.Parameter(one.clone()) for one in layer] for layer in layers]
    for number, place in frozen:
        if (one := whole[number][place]) is not None:
            one.requires_grad_(False)
    made = [(tasks.RowLinear if number % 2 else tasks.ColumnLinear)(*layer) for number, layer in enumerate(whole)]
    if tied:
        made[2].weight = made[0].weight
    inputs = (inputs.t().contiguous().t() if turned else inputs).requires_grad_(needed)
    values = inputs
    for pair in path:
        values = values + made[2 * pair + 1](torch.tanh(made[2 * pair](values)))
    (values * factors).sum().backward()
    named = [dict(layer.named_parameters()) for layer in made]
    held = [{name: one.detach().clone() for name, one in layer.items()} for layer in named]
    with torch.no_grad():
        for layer in named:
            for one in layer.values():
                one += 1  # as an optimizer changes it
    return {
        "outputs": values.detach(),
        "gradient": inputs.grad,
        "parameters": held,
        "trained": [{name: one.requires_grad for name, one in layer.items()} for layer in named],
        "gradients": [{name: one.grad for name, one in layer.items()} for layer in named],
        "bytes": [sum(one.untyped_storage().nbytes() for one in layer.values()) for layer in named],
        "changed": any(
            one is not None and (one.grad is not None or not torch.equal(one, before))
            for layer, given in zip(whole, layers, strict=True)
            for one, before in zip(layer, given, strict=True)
        ),
    }


def adam(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Steps of several optimizers, one after the other."""
    return {"cases": [_adam_case(tasks, **case) for case in cases]}


def _adam_case(
    tasks: ModuleType, *, parameters: list[Tensor], frozen: list[int], twice: list[int], turned: list[int],
    rates: list[float], betas: list[float], eps: float, gradients: list[list[Tensor | None]], optimizers: int,
) -> dict[str, Any]:  # fmt: skip
    """The parameters of each optimizer after each step, and the bytes of all tensors that came with the optimizers.

    frozen, twice, turned: places of parameters that are frozen, named twice, or have their columns one after the other.
    optimizers: how many there are, each with parameters of its own, and all with the same numbers.
    """
    models = [[
        nn.Parameter(one.t().contiguous().t() if place in turned else one.clone(), place not in frozen)
        for place, one in enumerate(parameters)
    ] for _ in range(optimizers)]  # fmt: skip
    memory = [one.data_ptr() for model in models for one in model]
    before = set(_tensors())
    made = [
        tasks.ShardedAdam(iter([*model, *(model[place] for place in twice)]), rates[0], tuple(betas), eps)
        for model in models
    ]
    steps, kept = [], []
    for rate, given in zip(rates, gradients, strict=True):
        for model, own in zip(models, made, strict=True):
            own.lr = rate
            for one, gradient in zip(model, given, strict=True):
                one.grad = None if gradient is None else torch.empty_like(one).copy_(gradient)
            own.step()
            for one in model:
                one.grad = None
        steps.append([one.detach().clone(memory_format=torch.contiguous_format) for model in models for one in model])
        mine = {one.untyped_storage().data_ptr() for step in steps for one in step}
        kept.append(sum(size for place, size in _tensors().items() if place not in before | mine))
    moved = memory != [one.data_ptr() for model in models for one in model]
    return {"steps": steps, "bytes": kept, "moved": moved}


def _tensors() -> dict[int, int]:
    """Of the memory of all tensors in this process: where it lies, and its bytes."""
    gc.collect()
    found = [one.untyped_storage() for one in gc.get_objects() if issubclass(type(one), Tensor)]
    return {one.data_ptr(): one.nbytes() for one in found if one.nbytes()}


def real(
    tasks: ModuleType, micro_batches: int = 8, forward: float = 0.010, backward: float = 0.020,
    schedules: Sequence[str] = ("gpipe", "1f1b"), unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Steps of a pipeline for real, which sleep for the seconds of each micro-batch; by schedule."""
    if {"stage_order", "pipeline_step"} & set(unwritten):
        return {}
    stage, stages = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(stage)
    seconds = [forward / SAMPLES, backward / SAMPLES]
    part = Stage([torch.randn(WIDTH, WIDTH) / WIDTH**0.5], [0], seconds, first=not stage)
    batch = [torch.randn(SAMPLES, WIDTH) for _ in range(micro_batches)]
    given = batch if not stage else [one.to("meta") for one in batch]
    found: dict[str, Any] = {}
    for schedule in schedules:
        order = tasks.stage_order(stage, stages, micro_batches, schedule)
        took = []
        for _ in range(REPEATS):
            part.memory, part.held = [], []
            part.zero_grad()
            dist.barrier()
            before = rank.now()
            tasks.pipeline_step(part, order, given, batch if stage == stages - 1 else [], squares)
            dist.barrier()
            took.append(rank.now() - before)
        found[schedule] = {"seconds": median(took), "held": max(part.held)}
    return found
