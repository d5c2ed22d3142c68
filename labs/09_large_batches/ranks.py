"""What runs in the ranks: models whose loss takes known times, the student's functions, and one process to compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from distsim.testbed import rank

SECONDS_PER_SAMPLE = 0.001
OLD = 7.0  # a gradient that somebody has left on what is frozen
NEEDED = {"own_batches", "joined_gradient", "learning_rate", "train"}


class Network(nn.Module):
    """Two tied layers, a frozen one, one that only samples with a first number above 0 take, and single parameters.

    One is never used, one is empty, one is a single number. The columns of one lie one after the other in memory.
    """

    def __init__(self, seed: int, width: int, dtype: str) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.second = nn.Linear(width, width)
        self.second.weight = self.first.weight
        self.special = nn.Linear(width, 2)
        self.last = nn.Linear(width, 2)
        self.last.weight = nn.Parameter(torch.empty(width, 2).t())
        self.gain = nn.Parameter(torch.empty(()))
        self.nothing = nn.Parameter(torch.empty(0))
        self.unused = nn.Parameter(torch.empty(3))
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.data.copy_(drawn * (2 * width**-0.5 if parameter.dim() == 2 else 0.5))
        self.to(getattr(torch, dtype))

    def forward(self, inputs: Tensor) -> Tensor:
        """Two numbers for each sample."""
        hidden = torch.tanh(self.second(torch.tanh(self.frozen(torch.tanh(self.first(inputs))))))
        outputs = self.last(hidden) * self.gain + self.nothing.sum()
        chosen = inputs[:, 0] > 0
        if chosen.any():
            special = torch.zeros_like(outputs)
            special[chosen] = self.special(hidden[chosen])
            outputs = outputs + special
        return outputs


class Quadratic(nn.Module):
    """One vector of parameters w. The loss of sample x is half of (w - x) squared, so its gradient is w - x."""

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.weights = nn.Parameter(start.clone())

    def forward(self, inputs: Tensor) -> Tensor:
        """The difference for each sample."""
        return self.weights - inputs


class Total(nn.Module):
    """The sum of all parameters, times the inputs: little computing for many gradients."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(count))

    def forward(self, inputs: Tensor) -> Tensor:
        """One number for each sample."""
        return self.weights.sum() * inputs


def timed_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean of squared errors; computing takes a time for each sample."""
    rank.busy(SECONDS_PER_SAMPLE * len(outputs), "forward and backward")
    return mse_loss(outputs, targets)


def half_square(differences: Tensor, targets: Tensor) -> Tensor:  # noqa: ARG001 - a loss has two arguments
    """Half the squared length of a difference, as a mean over the samples."""
    rank.busy(SECONDS_PER_SAMPLE * len(differences), "forward and backward")
    return differences.square().sum() / (2 * len(differences))


def batches(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """For each case, this rank's batches, and whether the order has stayed as it was."""
    return {"cases": [_batches(tasks, **case) for case in cases]}


def _batches(tasks: ModuleType, *, order: list[int], batch: int, accumulated: int) -> dict[str, Any]:
    given = list(order)
    updates = tasks.own_batches(given, batch, accumulated)
    found = [[[int(sample) for sample in one] for one in update] for update in updates]
    return {"updates": found, "kept": given == order}


def joined(
    tasks: ModuleType, *, seed: int, width: int, dtype: str, inputs: list[list[Tensor]], targets: list[list[Tensor]],
    frozen: list[list[int]],
) -> dict[str, Any]:  # fmt: skip
    """For each update, all gradients and the squares after `joined_gradient`; and the weights when all is over.

    inputs, targets: by update and batch. frozen: for each update the numbers of parameters that are frozen.
    """
    model = Network(seed, width, dtype)
    gradients, squares = [], []
    for batch_inputs, batch_targets, still in zip(inputs, targets, frozen, strict=True):
        for number, parameter in enumerate(model.parameters()):
            parameter.requires_grad_(number not in still)
            if number in still:
                parameter.grad = torch.full_like(parameter, OLD)
        own = list(zip(batch_inputs, batch_targets, strict=True))
        squares.append(_numbers(tasks.joined_gradient(model, timed_loss, own)))
        gradients.append([None if one.grad is None else one.grad.clone() for one in model.parameters()])
    return {"gradients": gradients, "squares": squares, "weights": _flat(model)}


def _numbers(squares: Any) -> list[float]:
    return [float(one) for one in (squares.small_batch, squares.small, squares.large_batch, squares.large)]


def rates(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The student's learning rates."""
    return {"rates": [float(tasks.learning_rate(**case)) for case in cases]}


def training(tasks: ModuleType, *, trainings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each training gives, one after the other."""
    return [_trained(tasks, **one) for one in trainings]


def _trained(tasks: ModuleType, *, seed: int, width: int, **given: Any) -> dict[str, Any]:
    """The parameters after each step that the optimizer makes, and when all is over; the samples of each update."""
    model = Network(seed, width, "float64")
    optimizer = _optimizer(model)
    states: list[Tensor] = []
    optimizer.register_step_post_hook(lambda *_: states.append(_flat(model)))
    measured = tasks.train(model, optimizer, timed_loss, **given)
    return {"states": torch.stack([*states, _flat(model)]), "samples": [_numbers(one)[2] for one in measured]}


def _optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """With two groups of parameters, and rates that nobody asked for."""
    *most, last = [one for one in model.parameters() if one.requires_grad]
    options = {"momentum": 0.9, "weight_decay": 0.01}
    return torch.optim.SGD([{"params": most, "lr": 3.0}, {"params": [last], "lr": 5.0}], **options)


def noise_of_quadratic(tasks: ModuleType, *, start: Tensor, inputs: list[list[Tensor]]) -> dict[str, Any]:
    """The student's noise scale, from several updates' squares at one place. inputs: by update and batch."""
    model = Quadratic(start)
    measured = [tasks.joined_gradient(model, half_square, [(one, one) for one in own]) for own in inputs]
    return {"noise_scale": float(tasks.noise_scale(measured))}


def noise_scales(tasks: ModuleType, *, cases: list[list[list[float]]]) -> dict[str, Any]:
    """The student's noise scale of given squares, for each case."""
    return {"noise_scales": [float(tasks.noise_scale([tasks.Squares(*one) for one in case])) for case in cases]}


def one_process(
    tasks: None,  # noqa: ARG001
    *,
    seed: int,
    width: int,
    dtype: str,
    updates: list[dict[str, Any]],
) -> dict[str, Any]:
    """The gradients and squares of each update of a single process with all samples, in double precision.

    updates: with inputs and targets of each rank's samples, the numbers of what is frozen, and a learning rate where
    the update makes a step.
    """
    model = Network(seed, width, dtype).double()
    chosen = _optimizer(model)
    begun = _flat(Network(seed, width, dtype))
    gradients, squares, states = [], [], []
    for update in updates:
        for number, parameter in enumerate(model.parameters()):
            parameter.requires_grad_(number not in update["frozen"])
        parts = [one for one in zip(update["inputs"], update["targets"], strict=True) if len(one[0])]
        own = [_square(_gradients(model, *part)) * len(part[0]) for part in parts]
        everything = [torch.cat(one) for one in zip(*parts, strict=True)]
        found = _gradients(model, *everything)
        count = len(everything[0])
        squares.append([count / len(parts), sum(own) / count, float(count), _square(found)])
        gradients.append(found)
        if update["rate"] is not None:
            for options in chosen.param_groups:
                options["lr"] = update["rate"]
            for parameter, gradient in zip(model.parameters(), found, strict=True):
                parameter.grad = gradient
            chosen.step()
            states.append(_flat(model))
    layers = [name for name, _ in model.named_parameters()]
    return {
        "gradients": gradients, "squares": squares, "states": states, "weights": begun, "layers": layers,
        "names": [name for name, one in model.named_parameters() for _ in range(one.numel())],
    }  # fmt: skip


def _gradients(model: nn.Module, inputs: Tensor, targets: Tensor) -> list[Tensor | None]:
    """Of the mean loss, by parameter; zeros where it needs none, and None for what is frozen."""
    model.zero_grad()
    mse_loss(model(inputs.double()), targets.double()).backward()
    return [
        (torch.zeros_like(one) if one.grad is None else one.grad.clone()) if one.requires_grad else None
        for one in model.parameters()
    ]


def _square(gradients: Sequence[Tensor | None]) -> float:
    return float(sum(one.square().sum() for one in gradients if one is not None))


def _flat(model: nn.Module) -> Tensor:
    """All parameters, each once, in one copy."""
    return torch.cat([one.detach().flatten() for one in model.parameters()]).clone()


def real(
    tasks: ModuleType, *, accumulated: int = 8, updates: int = 10, gradient_bytes: int = 16 * 2**20,
    seconds_per_batch: float = 0.030, digits: bool = False, unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Updates for real, in which each batch sleeps for its seconds; without a batch, an all-reduce of that many bytes.

    digits: instead, a training on handwritten digits, and the noise scale of each quarter of it.
    """
    if digits:
        return {} if unwritten else _real_training(tasks)
    if not accumulated:
        gradients = torch.zeros(gradient_bytes // 4)
        return {"seconds": [_timed(lambda: dist.all_reduce(gradients)) for _ in range(updates)]}
    if "joined_gradient" in unwritten:
        return {}
    model = Total(gradient_bytes // 4)
    sample = torch.ones(1, 1)

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        rank.busy(seconds_per_batch)
        return (outputs - targets).mean()

    own = [(sample, sample)] * accumulated
    return {"seconds": [_timed(lambda: tasks.joined_gradient(model, loss, own)) for _ in range(updates)]}


def _real_training(tasks: ModuleType, batch: int = 8, accumulated: int = 2, epochs: int = 12) -> dict[str, Any]:
    """A linear model learns the digits. Each part is the noise scale of a quarter of the training."""
    from distsim.learning.digits import digits

    pixels, classes = (torch.from_numpy(array) for array in digits()[0])
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    orders = [torch.randperm(len(pixels)).tolist() for _ in range(epochs)]
    measured = tasks.train(
        model, optimizer, cross_entropy, pixels, classes, orders, batch, accumulated, rate=0.05, warm_up=20
    )
    each = len(measured) // 4
    parts = [measured[first : first + each] for first in range(0, 4 * each, each)]
    return {"noise_scales": [float(tasks.noise_scale(part)) for part in parts]}


def _timed(call: Callable[[], object]) -> float:
    """Seconds of a call that all ranks begin together."""
    dist.barrier()
    before = rank.now()
    call()
    return rank.now() - before
