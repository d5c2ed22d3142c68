"""What runs in the ranks: it calls the student's functions, and hands back what they gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from statistics import median
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import DataLoader, DistributedSampler, Sampler, TensorDataset

from distsim.testbed import rank

WIDTH = 8  # of the small network
REPEATS = 15  # of what a real run takes the time of
NEEDED_TO_TRAIN = {"OwnSamples", "same_parameters", "train_step"}
OPTIMIZERS = {
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02),
}


class Layer(nn.Module):
    """One parameter, and a buffer if there is one."""

    def __init__(self, weight: Tensor, buffer: Tensor | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.clone())
        self.register_buffer("buffer", None if buffer is None else buffer.clone())


class Network(nn.Module):
    """Two tied layers, a frozen one, a buffer, and a layer that only samples with a first number above 0 go through."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.frozen = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.second.weight = self.first.weight
        self.special = nn.Linear(WIDTH, 2)
        self.last = nn.Linear(WIDTH, 2)
        self.register_buffer("scale", torch.ones(WIDTH))
        self.double()
        generator = torch.Generator().manual_seed(seed)
        for tensor in self.state():
            tensor.data.copy_(torch.randn(tensor.shape, generator=generator, dtype=torch.float64) / 2)

    def state(self) -> list[Tensor]:
        """Every parameter once, then the buffer."""
        return [*self.parameters(), *self.buffers()]

    def forward(self, inputs: Tensor) -> Tensor:
        """Two numbers for each sample."""
        hidden = self.second(torch.tanh(self.frozen(torch.tanh(self.first(inputs)))))
        hidden = torch.tanh(hidden * self.scale)
        outputs = self.last(hidden)
        chosen = inputs[:, 0] > 0
        if chosen.any():
            special = torch.zeros_like(outputs)
            special[chosen] = self.special(hidden[chosen])
            outputs = outputs + special
        return outputs


class Given(Sampler[int]):
    """The samples of one rank, given for each epoch."""

    def __init__(self, orders: list[list[int]]) -> None:
        self.orders, self.current = orders, 0

    def set_epoch(self, epoch: int) -> None:
        """As DistributedSampler's."""
        self.current = epoch

    def __len__(self) -> int:
        return len(self.orders[self.current])

    def __iter__(self) -> Iterator[int]:
        return iter(self.orders[self.current])


def same_parameters(
    tasks: ModuleType, *, weights: list[Tensor], buffers: list[Tensor], frozen: int, tied: list[int]
) -> dict[str, Any]:
    """The state after `same_parameters` of a model that has begun with this rank's values."""
    model = _layers(weights, buffers, [frozen], tied)
    before = list(model.parameters())
    tasks.same_parameters(model)
    return {
        "weights": [layer.weight for layer in model],
        "buffers": [layer.buffer for layer in model],
        "same_objects": [id(one) for one in before] == [id(one) for one in model.parameters()],
    }


def shares(tasks: ModuleType, *, counts: list[int], seed: int, epochs: list[int]) -> dict[str, Any]:
    """What this rank takes in these epochs, for each count."""
    return {"shares": [_shares(tasks.OwnSamples(count, seed), epochs) for count in counts]}


def shares_of_torch(tasks: None, *, counts: list[int], seed: int, epochs: list[int]) -> dict[str, Any]:  # noqa: ARG001
    """As `shares`, by torch's own sampler."""
    return {"shares": [_shares(DistributedSampler(range(count), seed=seed), epochs) for count in counts]}


def orders(tasks: ModuleType, *, count: int, seed: int, epochs: list[int]) -> dict[str, Any]:
    """This rank's samples epoch by epoch; the first again; the last by a new sampler; and with another seed."""
    before = torch.get_rng_state()
    sampler = tasks.OwnSamples(count, seed)
    found = {
        "epochs": _shares(sampler, epochs),
        "once_more": _shares(sampler, epochs[:1])[0],
        "taken_up_again": _shares(tasks.OwnSamples(count, seed), epochs[-1:])[0],
        "other_seed": _shares(tasks.OwnSamples(count, seed + 1000), epochs[:1])[0],
    }
    return {**found, "disturbed": not torch.equal(before, torch.get_rng_state())}


def average_gradients(
    tasks: ModuleType,
    *,
    weights: list[Tensor],
    gradients: list[Tensor | None],
    samples: int,
    frozen: list[int],
    tied: list[int],
) -> dict[str, Any]:
    """What the gradients are afterwards, by layer, and the weights, which nobody has asked to change."""
    model = _layers(weights, [None] * len(weights), frozen, tied)
    for layer, gradient in zip(model, gradients, strict=True):
        layer.weight.grad = None if gradient is None else gradient.clone()
    tasks.average_gradients(model, samples)
    return {
        "gradients": [layer.weight.grad for layer in model],
        "weights": [layer.weight for layer in model],
        "tied": [layer.weight is model[tied[0]].weight for layer in model] if tied else [],
    }


def steps(
    tasks: ModuleType, *, optimizer: str, seed: int, inputs: list[Tensor], targets: list[Tensor]
) -> dict[str, Any]:
    """The state after each `train_step`, from one start on every rank."""
    model = Network(seed)
    chosen = OPTIMIZERS[optimizer](model.parameters())
    states = []
    for one, target in zip(inputs, targets, strict=True):
        tasks.train_step(model, chosen, mse_loss, one, target)
        states.append(_flat(model))
    return {"states": torch.stack(states)}


def training(
    tasks: ModuleType,
    *,
    optimizer: str,
    seed: int,
    inputs: Tensor,
    targets: Tensor,
    orders: list[list[int]],
    batch: int,
) -> dict[str, Any]:
    """The state after each step that the optimizer makes in `train`. What is not this rank's share is no number."""
    model = Network(seed)
    chosen = OPTIMIZERS[optimizer](model.parameters())
    states: list[Tensor] = []
    chosen.register_step_post_hook(lambda *_: states.append(_flat(model)))
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=batch, sampler=Given(orders))
    tasks.train(model, chosen, mse_loss, loader, len(orders))
    return {"states": torch.stack([*states, _flat(model)])}


def one_process(
    tasks: None,  # noqa: ARG001 - nothing of the student's is asked
    *,
    optimizer: str,
    seed: int,
    inputs: list[Tensor],
    targets: list[Tensor],
) -> dict[str, Any]:
    """The state after each step of a single process with the joined batches, and the name of each number's tensor."""
    model = Network(seed)
    chosen = OPTIMIZERS[optimizer](model.parameters())
    states = []
    for one, target in zip(inputs, targets, strict=True):
        chosen.zero_grad()
        mse_loss(model(one), target).backward()
        chosen.step()
        states.append(_flat(model))
    named = [*model.named_parameters(), *model.named_buffers()]
    return {"states": torch.stack(states), "names": [name for name, one in named for _ in range(one.numel())]}


def real(
    tasks: ModuleType, seconds: list[list[float]], batch: int = 8, unwritten: Sequence[str] = ()
) -> dict[str, Any]:
    """Steps for real, on the digits: each rank also computes for its seconds of the step.

    And what the two parts cost here without that, and without the student's code: the model's own forward and backward,
    and an all-reduce as large as the gradients.
    """
    from distsim.learning.digits import digits

    device = torch.device("cuda", torch.cuda.current_device()) if _on_gpus() else torch.device("cpu")
    pixels, classes = (torch.from_numpy(array) for array in digits()[0])
    data = TensorDataset(pixels.to(device), classes.to(device))
    model = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 10)).to(device)
    found = {} if NEEDED_TO_TRAIN & set(unwritten) else _real_training(tasks, model, data, seconds, batch)
    inputs, targets = data[:batch]
    gradients = torch.zeros_like(_flat(model))
    return {
        **found,
        "model_seconds": _median_seconds(lambda: cross_entropy(model(inputs), targets).backward()),
        "all_reduce_seconds": _median_seconds(lambda: dist.all_reduce(gradients)),
    }


def _real_training(
    tasks: ModuleType, model: nn.Module, data: TensorDataset, seconds: list[list[float]], batch: int
) -> dict[str, Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = tasks.OwnSamples(len(data))
    loader = DataLoader(data, batch_size=batch, sampler=sampler)
    tasks.same_parameters(model)
    times: list[float] = []
    losses: list[float] = []

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        rank.busy(seconds[dist.get_rank()][len(times)])
        found = cross_entropy(outputs, targets)
        losses.append(found.item())
        return found

    steps = len(seconds[0])
    for epoch in range(-(-steps // len(loader))):
        sampler.set_epoch(epoch)
        for pixels, classes in islice(loader, steps - len(times)):
            started = rank.now()
            tasks.train_step(model, optimizer, loss, pixels, classes)
            times.append(rank.now() - started)
    return {"step_seconds": times, "losses": losses, "sum_of_parameters": _flat(model).sum().item()}


def _median_seconds(work: Callable[[], object]) -> float:
    """Of several times, all ranks at once."""
    times = []
    for _ in range(REPEATS):
        dist.barrier()
        started = rank.now()
        work()
        if _on_gpus():
            torch.cuda.synchronize()
        times.append(rank.now() - started)
    return median(times)


def _on_gpus() -> bool:
    return "nccl" in str(dist.get_backend_config())


def _layers(weights: list[Tensor], buffers: list[Any], frozen: list[int], tied: list[int]) -> nn.ModuleList:
    """Layers of these values; those at `frozen` are frozen, those at `tied` have the first one's weight."""
    model = nn.ModuleList(Layer(weight, buffer) for weight, buffer in zip(weights, buffers, strict=True))
    for place in tied:
        model[place].weight = model[tied[0]].weight
    for place in frozen:
        model[place].weight.requires_grad_(False)
    return model


def _shares(sampler: Any, epochs: list[int]) -> list[dict[str, Any]]:
    found = []
    for epoch in epochs:
        sampler.set_epoch(epoch)
        found.append({"samples": [int(sample) for sample in sampler], "length": len(sampler)})
    return found


def _flat(model: nn.Module) -> Tensor:
    """All parameters and buffers, each once, in one copy."""
    return torch.cat([tensor.detach().flatten() for tensor in [*model.parameters(), *model.buffers()]]).clone()
