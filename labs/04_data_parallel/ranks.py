"""What runs in the ranks: it calls the student's functions, and hands back what they gave."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import DataLoader, Sampler, TensorDataset

from distsim.testbed import rank

WIDTH = 32  # of the small network
LARGE = 2000  # numbers in a buffer
REPEATS = 15  # of what a real run takes the time of
NEEDED_TO_TRAIN = {"OwnSamples", "same_parameters", "train_step"}
OPTIMIZERS = {
    "SGD with momentum": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda groups: torch.optim.Adam(groups, lr=0.02),
}


def steep_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """A multiple of the mean of squared errors, each of which counts more where the target is large, above its value.

    So the loss is 0, and its gradient is large.
    """
    mean = 1e5 * ((outputs - targets).square() * (1 + targets.square())).mean()
    return mean - mean.detach()


LOSSES = {"SGD with momentum": mse_loss, "Adam": steep_loss}


class Layer(nn.Module):
    """One parameter, and a buffer if there is one. passing: whether the buffer is left out of `state_dict`."""

    def __init__(self, weight: Tensor, buffer: Tensor | None = None, *, passing: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.register_buffer("buffer", buffer, persistent=not passing)


class Network(nn.Module):
    """Two tied layers, a frozen one, three buffers, and two layers that only samples with a first number above 0 take.

    One buffer is not persistent, and much larger than all others. One counts the forwards. The dropout does nothing,
    unless somebody makes a model train that evaluates.
    """

    def __init__(self, seed: int, *, trains: bool = True) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.0 if trains else 0.5)
        self.first = nn.Linear(WIDTH, WIDTH)
        self.frozen = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.second.weight = self.first.weight
        self.special = nn.Sequential(nn.Linear(WIDTH, 2), nn.Linear(2, 2))  # with two tensors of one shape
        self.last = nn.Linear(WIDTH, 2)
        self.gain = nn.Parameter(torch.ones(()))
        self.register_buffer("scale", torch.ones(WIDTH))
        self.register_buffer("shift", torch.ones(LARGE), persistent=False)
        self.double()
        generator = torch.Generator().manual_seed(seed)
        for tensor in self.state():
            drawn = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            tensor.data.copy_(drawn * (2 * WIDTH**-0.5 if tensor.dim() == 2 else 0.5))
        self.register_buffer("forwards", torch.tensor(seed))
        self.train(trains)

    def state(self) -> list[Tensor]:
        """Every parameter once, then the buffers."""
        return [*self.parameters(), *self.buffers()]

    def forward(self, inputs: Tensor) -> Tensor:
        """Two numbers for each sample."""
        self.forwards += 1
        hidden = self.second(torch.tanh(self.frozen(torch.tanh(self.first(inputs)))))
        hidden = torch.tanh(self.dropout(hidden) * self.scale + self.shift[:WIDTH])
        outputs = self.last(hidden) * self.gain
        chosen = inputs[:, 0] > 0
        if chosen.any():
            special = torch.zeros_like(outputs)
            special[chosen] = self.special(hidden[chosen])
            outputs = outputs + special
        return outputs


class Given(Sampler[int]):
    """The samples of one rank, given for each epoch. At first it stands at the last epoch."""

    def __init__(self, orders: list[list[int]]) -> None:
        self.orders, self.current = orders, len(orders) - 1

    def set_epoch(self, epoch: int) -> None:
        """As DistributedSampler's."""
        self.current = epoch

    def __len__(self) -> int:
        return len(self.orders[self.current])

    def __iter__(self) -> Iterator[int]:
        return iter(self.orders[self.current])


def same_parameters(tasks: ModuleType, *, models: list[dict[str, Any]]) -> dict[str, Any]:
    """For each model, the state after `same_parameters`, where it has begun with this rank's values."""
    return {"models": [_made_alike(tasks, **model) for model in models]}


def _made_alike(tasks: ModuleType, **values: Any) -> dict[str, Any]:
    model, layers = _layers(**values)
    before = _places(model)
    tasks.same_parameters(model)
    return {
        "weights": [layer.weight for layer in layers],
        "buffers": [layer.buffer for layer in layers],
        "same_objects": [number for number, _ in before] == [number for number, _ in _places(model)],
        "same_memory": before == _places(model),
        "trained": [layer.weight.requires_grad for layer in layers],
    }


def _places(model: nn.Module) -> list[tuple[int, int]]:
    """Of each tensor of the state, the object and the place in memory."""
    return [(id(tensor), tensor.data_ptr()) for tensor in [*model.parameters(), *model.buffers()]]


def shares(tasks: ModuleType, *, counts: list[int], seed: int, epochs: list[int]) -> dict[str, Any]:
    """What this rank takes in these epochs, for each count."""
    return {"shares": [_shares(tasks.OwnSamples(count, seed), epochs) for count in counts]}


def orders(tasks: ModuleType, *, count: int, seed: int, epochs: list[int]) -> dict[str, Any]:
    """This rank's samples of the last epoch by a new sampler; epoch by epoch; the first again; with another seed.

    And those of a sampler whose epoch nobody has chosen, by two iterators that take turns, and by one that has begun
    when another epoch is chosen.
    """
    before = _random_states()
    taken_up_again = _shares(tasks.OwnSamples(count, seed), epochs[-1:])[0]
    sampler = tasks.OwnSamples(count, seed)
    found = {
        "epochs": _shares(sampler, epochs),
        "once_more": _shares(sampler, epochs[:1])[0],
        "taken_up_again": taken_up_again,
        "other_seed": _shares(tasks.OwnSamples(count, seed + 1000), epochs[:1])[0],
    }
    untold = tasks.OwnSamples(count, seed)
    in_turn = [(int(one), int(other)) for one, other in zip(untold, untold, strict=True)]
    found["in_turn"] = [[one for one, _ in in_turn], [other for _, other in in_turn]]
    begun = iter(untold)
    first = int(next(begun))
    untold.set_epoch(epochs[1])
    found["chosen_meanwhile"] = {"samples": [first, *map(int, begun)]}
    return {**found, "disturbed": before != _random_states()}


def _random_states() -> list[Any]:
    """Of torch, Python and numpy: what this process draws next."""
    numpys = np.random.get_state(legacy=True)  # noqa: NPY002 - a student's code may move it
    return [torch.get_rng_state().tolist(), random.getstate(), [part.tolist() for part in map(np.asarray, numpys)]]


def average_gradients(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """For each case, what the gradients are when all is over, by layer, and the weights, which nobody changes."""
    found = [_averaged(tasks, **case) for case in cases]
    for case in found:
        for kind in ("gradients", "weights"):
            case[kind] = [_of_numpy(tensor) for tensor in case[kind]]
    return {"cases": found}


def _of_numpy(tensor: Tensor | None) -> Tensor | None:
    """In a type that numpy has."""
    return tensor.float() if tensor is not None and tensor.dtype is torch.bfloat16 else tensor


def _averaged(
    tasks: ModuleType, *, gradients: list[Tensor | None], samples: int, thawed: bool = False, **values: Any
) -> dict[str, Any]:
    """thawed: whether the frozen layers were the only trained ones, in a call before."""
    model, layers = _layers(**values)
    if thawed:
        for change in (True, False):
            for place, layer in enumerate(layers):
                layer.weight.requires_grad_((place in values["frozen"]) is change)
            if change:
                tasks.average_gradients(model, samples)
    for layer, gradient in zip(layers, gradients, strict=True):
        layer.weight.grad = None if gradient is None else _laid_out(gradient, like=layer.weight)
    tasks.average_gradients(model, samples)
    tied = values.get("tied") or []
    return {
        "gradients": [layer.weight.grad for layer in layers],
        "weights": [layer.weight for layer in layers],
        "tied": [layer.weight is layers[tied[0]].weight for layer in layers] if tied else [],
    }


def steps(
    tasks: ModuleType, *, optimizer: str, seed: int, inputs: list[Tensor], targets: list[Tensor]
) -> dict[str, Any]:
    """The state after each `train_step`, from one start on every rank, with gradients that somebody has left there.

    The model evaluates: its dropout does nothing, and nobody has asked to change that.
    """
    model = Network(seed, trains=False)
    for one in model.parameters():  # also of what is frozen
        one.grad = torch.ones_like(one)
    chosen = _optimizer(optimizer, model)
    states = []
    for one, target in zip(inputs, targets, strict=True):
        tasks.train_step(model, chosen, LOSSES[optimizer], one, target)
        states.append(_flat(model))
    return {"states": torch.stack(states)}


def training(tasks: ModuleType, *, trainings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each training gives, one after the other."""
    return [_trained(tasks, **one) for one in trainings]


def _trained(
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
    chosen = _optimizer(optimizer, model)
    states: list[Tensor] = []
    chosen.register_step_post_hook(lambda *_: states.append(_flat(model)))
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=batch, sampler=Given(orders))
    tasks.train(model, chosen, LOSSES[optimizer], loader, len(orders))
    return {"states": torch.stack([*states, _flat(model)])}


def one_process(tasks: None, *, trainings: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: ARG001
    """For each training, the state after each step of a single process with the joined batches.

    And the name of each number's tensor, and the shapes of the state.
    """
    return {"trainings": [_alone(**training) for training in trainings]}


def _alone(*, optimizer: str, seed: int, inputs: list[Tensor], targets: list[Tensor]) -> dict[str, Any]:
    model = Network(seed)
    chosen = _optimizer(optimizer, model)
    states = [_flat(model)]
    for one, target in zip(inputs, targets, strict=True):
        chosen.zero_grad()
        LOSSES[optimizer](model(one), target).backward()
        chosen.step()
        states.append(_flat(model))
    named = [*model.named_parameters(), *model.named_buffers()]
    return {
        "states": torch.stack(states),
        "names": [name for name, one in named for _ in range(one.numel())],
        "trained_bytes": sum(one.nbytes for one in model.parameters() if one.requires_grad),
        "state_bytes": [one.nbytes for one in model.state()],
    }


def _optimizer(name: str, model: Network) -> torch.optim.Optimizer:
    """With two groups of parameters, the second of which learns more slowly."""
    *most, last = model.parameters()
    chosen: torch.optim.Optimizer = OPTIMIZERS[name]([{"params": most}, {"params": [last], "lr": 0.01}])
    return chosen


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


def _layers(
    *,
    weights: list[Tensor],
    buffers: Sequence[Tensor | None] = (),
    frozen: Sequence[int] = (),
    tied: Sequence[int] = (),
    turned: Sequence[int] = (),
    passing: Sequence[int] = (),
    brief: Sequence[int] = (),
) -> tuple[nn.Module, list[Layer]]:
    """A model with layers inside a layer, and its layers in order.

    frozen: the places of frozen ones. tied: of those that have the first one's weight. turned: of weights whose columns
    lie one after the other in memory, in place of rows. passing: of buffers that are left out of `state_dict`.
    brief: of weights that become bfloat16.
    """
    weights = [weight.bfloat16() if place in brief else weight for place, weight in enumerate(weights)]
    layers = [
        Layer(
            weight.t().contiguous().t() if place in turned else weight.clone(),
            buffers[place].clone() if place < len(buffers) and buffers[place] is not None else None,
            passing=place in passing,
        )
        for place, weight in enumerate(weights)
    ]
    for place in tied:
        layers[place].weight = layers[tied[0]].weight
    for place in frozen:
        layers[place].weight.requires_grad_(False)
    half = len(layers) // 2
    return nn.ModuleList([*layers[:half], nn.Sequential(nn.ModuleList(layers[half:]))]), layers


def _laid_out(gradient: Tensor, like: Tensor) -> Tensor:
    """A copy that lies in memory as the parameter does, as autograd makes it."""
    return torch.empty_like(like).copy_(gradient)


def _shares(sampler: Any, epochs: list[int]) -> list[dict[str, Any]]:
    found = []
    for epoch in epochs:
        sampler.set_epoch(epoch)
        found.append({"samples": [int(sample) for sample in sampler], "length": len(sampler)})
    return found


def _flat(model: nn.Module) -> Tensor:
    """All parameters and buffers, each once, in one copy."""
    return torch.cat([tensor.detach().flatten() for tensor in [*model.parameters(), *model.buffers()]]).clone()
