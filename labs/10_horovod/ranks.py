"""What runs in the ranks: it calls the student's functions, and hands back what they gave."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DistributedSampler, TensorDataset

from distsim.testbed import rank

WIDTH = 6  # of the small network
SCRIPT = "train.py"
OPTIMIZERS = {
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02, betas=(0.8, 0.95)),
}


class Network(nn.Module):
    """Two tied layers, a frozen one, and one that only samples with a first number above 0 go through."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.frozen = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.special = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.second.weight = self.first.weight
        self.last = nn.Linear(WIDTH, WIDTH)
        self.double()
        generator = torch.Generator().manual_seed(seed)
        for weight in self.parameters():
            weight.data.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) / 2)

    def forward(self, inputs: Tensor) -> Tensor:
        """As many numbers for each sample as it has."""
        hidden = torch.tanh(self.second(torch.tanh(self.frozen(torch.tanh(self.first(inputs))))))
        chosen = (inputs[:, :1] > 0).double()
        if chosen.any():
            hidden = hidden + chosen * torch.tanh(self.special(hidden))
        return self.last(hidden)


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


class Layers(nn.Module):
    """Linear layers of one width; each one's backward takes `seconds`. Some are frozen."""

    def __init__(self, weights: list[Tensor], seconds: float = 0.0, frozen: list[int] | None = None) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(weight.clone()) for weight in weights])
        self.seconds = seconds
        for number in frozen or []:
            self.weights[number].requires_grad_(False)

    def forward(self, inputs: Tensor) -> Tensor:
        """The layers one after the other."""
        values = inputs.clone().requires_grad_()
        for weight in self.weights:
            # The seconds of a layer's backward pass before its own gradient is there.
            values = Timed.apply(torch.tanh(values @ weight), self.seconds)
        return values


def places(tasks: ModuleType, *, local_rank: int, local_size: int, secret: int) -> dict[str, Any]:
    """The numbers of this process, and the secrets of those that it then meets in a collective."""
    os.environ |= {"LOCAL_RANK": str(local_rank), "LOCAL_WORLD_SIZE": str(local_size)}
    tasks.init()
    tasks.init()
    met = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(met, torch.tensor([secret]))
    return {"rank": tasks.rank(), "size": tasks.size(), "local_rank": tasks.local_rank(), "met": torch.cat(met)}


def allreduce(tasks: ModuleType, *, tensors: list[Tensor], total: bool) -> dict[str, Any]:
    """What comes back for each tensor, and what the tensor is then. total: by `op=Sum`."""
    given = [tensor.clone() for tensor in tensors]
    if total:
        found = [tasks.allreduce(tensor, op=tasks.Sum) for tensor in given]
    else:
        found = [tasks.allreduce(tensor, name=f"tensor {place}") for place, tensor in enumerate(given)]
    return {"found": found, "given": given}


def broadcast_parameters(
    tasks: ModuleType, *, weights: list[Tensor], buffers: list[Tensor], root: int, order: list[int], state_dict: bool
) -> dict[str, Any]:
    """A model's tensors afterwards. order: in which this rank gives them; as a state_dict, or as named parameters."""
    model = nn.Module()
    for place, weight in enumerate(weights):
        model.register_parameter(f"weight{place}", nn.Parameter(weight.clone(), requires_grad=place > 0))
    for place, buffer in enumerate(buffers):
        model.register_buffer(f"buffer{place}", buffer.clone())
    named = list(model.state_dict().items() if state_dict else model.named_parameters())
    own = [named[place] for place in order]
    tasks.broadcast_parameters(dict(own) if state_dict else iter(own), root_rank=root)
    return {"weights": list(model.parameters()), "buffers": list(model.buffers())}


def optimizer_state(
    tasks: ModuleType | None, *, optimizer: str, rate: float, gradients: list[list[Tensor]], root: int
) -> dict[str, Any]:
    """State and settings after the broadcast, and what a further step makes of ones. Without tasks: no broadcast.

    gradients: of as many steps before it as there are but one; the last one's are those of the further step.
    """
    parameters = [nn.Parameter(torch.ones_like(gradient)) for gradient in gradients[-1]]
    made = OPTIMIZERS[optimizer](parameters)
    for group in made.param_groups:
        group["lr"] = rate
    for step in gradients[:-1]:
        _step(made, parameters, step)
    if tasks is not None:
        tasks.broadcast_optimizer_state(made, root_rank=root)
    kept = [_flat_state(made.state.get(parameter, {})) for parameter in parameters]
    settings = {name: float(value) for name, value in made.param_groups[0].items() if isinstance(value, float)}
    before = [parameter.detach().clone() for parameter in parameters]
    for parameter in parameters:
        nn.init.ones_(parameter)
    _step(made, parameters, gradients[-1])
    return {"state": kept, "settings": settings, "before": before, "after": [one.detach() for one in parameters]}


def _step(made: torch.optim.Optimizer, parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    made.step()


def _flat_state(state: dict[str, Any]) -> Tensor:
    """All that is kept for one parameter, by name."""
    kept = [torch.as_tensor(state[name]).double().flatten() for name in sorted(state) if state[name] is not None]
    return torch.cat([torch.zeros(0, dtype=torch.float64), *kept])


def steps(
    tasks: ModuleType | None,
    *,
    optimizer: str,
    seed: int,
    earlier: list[Tensor],
    inputs: list[Tensor],
    targets: list[Tensor],
) -> dict[str, Any]:
    """The parameters after each step; without tasks, those of one process. Rates change from step to step.

    earlier: a batch of a step that every process makes alone, before its optimizer is distributed.
    """
    model = Network(seed)
    weights = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    biases = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    plain = OPTIMIZERS[optimizer]([{"params": weights}, {"params": biases, "lr": 0.05}])
    mse_loss(model(earlier[0]), earlier[1]).backward()
    plain.step()
    used = tasks.DistributedOptimizer(plain, named_parameters=model.named_parameters()) if tasks else plain
    schedule = torch.optim.lr_scheduler.StepLR(used, step_size=1, gamma=0.8)
    states = []
    for one, target in zip(inputs, targets, strict=True):
        used.zero_grad()
        mse_loss(model(one), target).backward()
        used.step()
        schedule.step()
        states.append(_flat(model))
    named = list(model.named_parameters())
    return {
        "states": torch.stack(states),
        "names": [name for name, one in named for _ in range(one.numel())],
        "same_class": isinstance(used, type(OPTIMIZERS[optimizer]([nn.Parameter(torch.zeros(1))]))),
    }


def overlap(tasks: ModuleType, *, weights: list[Tensor], inputs: Tensor, seconds: float) -> dict[str, Any]:
    """One step whose backward takes so many seconds in each layer, and whether zero_grad is refused before it."""
    model = Layers(weights, seconds)
    sgd = _distributed(tasks, model.parameters(), model)
    sgd.zero_grad()
    model(inputs).square().sum().backward()
    refused = _refuses(lambda: sgd.zero_grad(set_to_none=False))
    sgd.step()
    return {"refused": refused}


def updates(
    tasks: ModuleType | None,
    *,
    weights: list[Tensor],
    inputs: list[Tensor],
    passes: int,
    clips: list[float],
    frozen: list[int],
    others: list[int],
) -> dict[str, Any]:
    """The gradients and the weights after each update, which adds up so many backwards.

    clips: by update, the largest norm of its gradient, and then the way with `synchronize`; 0: any. frozen: layers that
    are not trained; others: layers that the optimizer does not have. Without tasks: this rank's own gradients.
    """
    model = Layers(weights, frozen=frozen)
    own = [weight for number, weight in enumerate(model.weights) if number not in others]
    sgd = _distributed(tasks, own, model, backward_passes_per_step=passes) if tasks else None
    gradients, states = [], []
    for number, clip in enumerate(clips):
        (sgd or model).zero_grad()
        for batch in inputs[number * passes : (number + 1) * passes]:
            model(batch).square().sum().backward()
        if sgd is not None and clip:
            sgd.synchronize()
            gradients.append(_gradients(model))
            nn.utils.clip_grad_norm_(own, clip)
            with sgd.skip_synchronize():
                sgd.step()
        else:
            if sgd is not None:
                sgd.step()
            gradients.append(_gradients(model))
        states.append([weight.detach().clone() for weight in model.weights])
    return {"gradients": gradients, "weights": states}


def _distributed(tasks: ModuleType, parameters: Any, model: nn.Module, **options: Any) -> Any:
    plain = torch.optim.SGD(parameters, lr=0.1)
    return tasks.DistributedOptimizer(plain, named_parameters=model.named_parameters(), **options)


def _refuses(call: Callable[[], object]) -> bool:
    try:
        call()
    except AssertionError:
        return True
    return False


def _gradients(model: Layers) -> list[Tensor | None]:
    return [None if weight.grad is None else weight.grad.clone() for weight in model.weights]


def shares(tasks: None, *, count: int, epochs: list[int]) -> dict[str, Any]:
    """The samples that this rank's sampler takes in these epochs."""
    sampler = DistributedSampler(range(count))
    found = []
    for epoch in epochs:
        sampler.set_epoch(epoch)
        found.append(list(sampler))
    return {"samples": found}


def script(
    tasks: ModuleType | None,
    *,
    arguments: list[str],
    training: list[Tensor],
    test: list[Tensor],
    checkpoint: dict[str, Any] | None,
) -> dict[str, Any]:
    """What train.py returns, and the parameters before each step.

    checkpoint: what `--resume` finds; None: no such file. Without tasks: one process, for which nothing is averaged.
    """
    if tasks is None:
        sys.modules["tasks"] = _alone()  # type: ignore[assignment]
    torch.set_default_dtype(torch.float64)
    train = _script()
    states: list[Tensor] = []

    class Watched(train.Net):  # type: ignore[misc, name-defined]
        def forward(self, images: Tensor) -> Tensor:
            if self.training:
                states.append(_flat(self))
            return super().forward(images)

    if checkpoint is not None:
        _write_checkpoint(train.Net(), **checkpoint)
    train.Net = Watched
    history = train.main(arguments, (TensorDataset(*training), TensorDataset(*test)))
    return {"states": torch.stack(states), "history": history}


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("train", Path(__file__).with_name(SCRIPT))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _alone() -> SimpleNamespace:
    """Horovod for one process."""

    @contextmanager
    def skip_synchronize() -> Iterator[None]:
        yield

    def distributed(sgd: Any, named_parameters: Any) -> Any:
        sgd.synchronize = lambda: None
        sgd.skip_synchronize = skip_synchronize
        return sgd

    return SimpleNamespace(
        init=lambda: None,
        rank=lambda: 0,
        size=lambda: 1,
        local_rank=lambda: 0,
        allreduce=lambda tensor, name: tensor,  # noqa: ARG005
        broadcast_parameters=lambda params, root_rank: None,  # noqa: ARG005
        broadcast_optimizer_state=lambda optimizer, root_rank: None,  # noqa: ARG005
        DistributedOptimizer=distributed,
    )


def _write_checkpoint(model: nn.Module, *, file: str, epoch: int, seed: int, rate: float) -> None:
    """With parameters, buffers and momenta that nobody can know without the seed."""
    generator = torch.Generator().manual_seed(seed)
    sgd = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.5)
    for weight in model.parameters():
        weight.data.uniform_(-0.25, 0.25, generator=generator)
        momentum = torch.empty_like(weight.data).uniform_(-0.05, 0.05, generator=generator)
        sgd.state[weight]["momentum_buffer"] = momentum
    for buffer in model.buffers():
        buffer.uniform_(0.2, 0.6, generator=generator)
    torch.save({"model": model.state_dict(), "optimizer": sgd.state_dict(), "epoch": epoch}, file)


def real(
    tasks: ModuleType, layers: int = 0, layer_bytes: int = 0, forward: float = 0.0, backward: float = 0.0,
    repeats: int = 10, epochs: int = 5,
) -> dict[str, Any]:  # fmt: skip
    """For real: train.py; with layers, steps that sleep for their seconds; with bytes alone, exchanges of so many."""
    if not layer_bytes:
        cuda = ["--cuda"] if _on_gpus() else []
        history = _script().main([f"--epochs={epochs}", *cuda])
        return {f"epoch {number}": accuracy for number, (_, accuracy) in enumerate(history, start=1)}
    device = torch.device("cuda", torch.cuda.current_device()) if _on_gpus() else torch.device("cpu")
    torch.manual_seed(0)
    if not layers:
        gradient = torch.zeros(layer_bytes // 4, device=device)
        return {"seconds": [_timed(lambda: dist.all_reduce(gradient)) for _ in range(repeats)]}
    width = round((layer_bytes / 4) ** 0.5)
    model = Layers([torch.randn(width, width) / width**0.5 for _ in range(layers)], backward / layers).to(device)
    sgd = _distributed(tasks, model.parameters(), model)
    inputs = torch.randn(1, width, device=device)

    def step() -> None:
        sgd.zero_grad()
        rank.busy(forward, "forward")
        model(inputs).square().mean().backward()
        sgd.step()

    return {"seconds": [_timed(step) for _ in range(repeats)]}


def _timed(call: Callable[[], object]) -> float:
    """Seconds of a call that all ranks begin together."""
    dist.barrier()
    started = rank.now()
    call()
    if _on_gpus():
        torch.cuda.synchronize()
    return rank.now() - started


def _on_gpus() -> bool:
    return "nccl" in str(dist.get_backend_config())


def _flat(model: nn.Module) -> Tensor:
    """All parameters and buffers, each once, in one copy."""
    return torch.cat([tensor.detach().flatten() for tensor in [*model.parameters(), *model.buffers()]]).clone()
