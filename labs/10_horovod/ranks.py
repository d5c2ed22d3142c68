"""What runs in the ranks: it calls the student's functions, and hands back what they gave."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DistributedSampler, TensorDataset

from distsim.testbed import rank

WIDTH = 6  # of the small network
SCRIPT = "train.py"
REST_SECONDS = 1.0
OPTIMIZERS = {
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02, betas=(0.8, 0.95)),
}


class Network(nn.Module):
    """Two tied layers, a frozen one, and two alike that only samples with a first number above 0 go through.

    Also a parameter without dimensions, and two without numbers.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.frozen = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.special = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
        self.second = nn.Linear(WIDTH, WIDTH)
        self.second.weight = self.first.weight
        self.last = nn.Linear(WIDTH, WIDTH)
        self.scale = nn.Parameter(torch.ones(()))
        self.empty = nn.ParameterList([torch.zeros(0), torch.zeros(0)])
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
        return self.scale * self.last(hidden) + sum(one.sum() for one in self.empty)


class Single:
    """A compression of the script's own: numbers travel in 32 bits, and each tensor by another scale."""

    def __init__(self) -> None:
        self.count = 0

    def compress(self, tensor: Tensor) -> tuple[Tensor, tuple[torch.dtype, float]]:
        """What travels; the type of what was given, and the scale."""
        self.count += 1
        scale = float(2 ** (self.count % 3))
        return tensor.float() * scale, (tensor.dtype, scale)

    def decompress(self, tensor: Tensor, known: tuple[torch.dtype, float]) -> Tensor:
        """What arrived, in that type and without the scale."""
        return tensor.to(known[0]) / known[1]


class Eighth:
    """A compression of the script's own: an eighth of each number travels, as `decompress` knows without being told."""

    def compress(self, tensor: Tensor) -> tuple[Tensor, None]:
        """What travels, and nothing else."""
        return tensor / 8, None

    def decompress(self, tensor: Tensor, known: None) -> Tensor:
        """Eight times what arrived."""
        return tensor * 8


class Repeated(torch.optim.SGD):
    """Calls a closure several times, as LBFGS does, and makes a step each time."""

    def step(self, closure: Callable[[], Tensor] | None = None) -> Any:  # type: ignore[override]
        """The loss of the first call. Without a closure, one step."""
        losses = []
        for _ in range(self.param_groups[0]["calls"] if closure else 1):
            if closure:
                with torch.enable_grad():
                    losses.append(closure())
            torch.optim.SGD.step(self)
        return losses[0] if losses else None


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
    """Linear layers of one width; each one's backward takes `seconds`. Some are frozen, and some may be left out.

    Every second weight lies column by column.
    """

    def __init__(self, weights: list[Tensor], seconds: float = 0.0, frozen: list[int] | None = None) -> None:
        super().__init__()
        laid = [weight.t().contiguous().t() if place % 2 else weight.clone() for place, weight in enumerate(weights)]
        self.weights = nn.ParameterList([nn.Parameter(weight) for weight in laid])
        self.seconds, self.missing = seconds, []
        for number in frozen or []:
            self.weights[number].requires_grad_(False)

    def forward(self, inputs: Tensor) -> Tensor:
        """The layers one after the other."""
        values = inputs.clone().requires_grad_()
        for weight in (one for number, one in enumerate(self.weights) if number not in self.missing):
            # The seconds of a layer's backward pass before its own gradient is there.
            values = Timed.apply(torch.tanh(values @ weight), self.seconds)
        return values


def places(tasks: ModuleType, *, local_rank: int, local_size: int, secret: int, on_gpus: bool) -> dict[str, Any]:
    """The numbers of this process, and the secrets of those that it then meets in a collective of CPU tensors.

    on_gpus: whether `nccl_built` tells that there are GPUs. A group for tensors on GPUs alone would refuse others.

    Each rank asks for its numbers once more often than the rank before, as scripts ask on one rank alone.
    """
    os.environ |= {"LOCAL_RANK": str(local_rank), "LOCAL_WORLD_SIZE": str(local_size)}
    if on_gpus:
        tasks.nccl_built = lambda: True  # type: ignore[attr-defined]
    tasks.init()
    tasks.init()
    for _ in range(dist.get_rank()):
        tasks.rank(), tasks.size(), tasks.local_rank(), tasks.local_size()
    met = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(met, torch.tensor([secret]))
    return {
        "rank": tasks.rank(), "size": tasks.size(), "local_rank": tasks.local_rank(),
        "local_size": tasks.local_size(), "met": torch.cat(met),
    }  # fmt: skip


def allreduce(tasks: ModuleType, *, tensors: list[Tensor], totals: list[bool]) -> dict[str, Any]:
    """What comes back for each tensor, and what the tensor is then. totals: which ones by `op=Sum`.

    What came back is written over before the tensors are looked at: a new tensor shares no memory with them. Matrices
    are given as columns of a larger one or column by column, and tensors of one dimension with `requires_grad`.
    """
    given = [_laid(tensor, columns=place % 2 == 1) for place, tensor in enumerate(tensors)]
    found = []
    for place, (tensor, total) in enumerate(zip(given, totals, strict=True)):
        options = {"op": tasks.Sum} if total else [{}, {"op": tasks.Average}][place % 2]
        found.append(tasks.allreduce(tensor, name=f"tensor {place}", **options))
    kept = [tensor.detach().clone() for tensor in found]
    for tensor in found:
        tensor.detach().zero_()
    new = [one is not own for one, own in zip(found, given, strict=True)]
    return {"found": kept, "given": [tensor.detach().clone() for tensor in given], "new": new}


def _laid(tensor: Tensor, *, columns: bool) -> Tensor:
    """The same numbers: of a matrix, as columns of a larger one, or the columns one after the other."""
    if tensor.dim() == 2 and columns:
        return tensor.t().contiguous().t()
    if tensor.dim() == 2:
        larger = torch.zeros(len(tensor), 3 * tensor.shape[1] + 3, dtype=tensor.dtype)
        larger[:, 1 : 1 + tensor.shape[1]] = tensor
        return larger[:, 1 : 1 + tensor.shape[1]]
    own = tensor.clone()
    return own.requires_grad_() if own.dim() == 1 and own.is_floating_point() else own


def broadcast_parameters(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What `broadcast_one_model` gives for each case."""
    return [broadcast_one_model(tasks, **case) for case in cases]


def broadcast_one_model(
    tasks: ModuleType, *, weights: list[Tensor], buffers: list[Tensor], root: int, order: list[int], form: str
) -> dict[str, Any]:
    """A model's tensors afterwards, and what `broadcast` makes of the first ones.

    order: in which this rank gives them. form: "state_dict", "mapping" (of parameters, and no dict), "pairs" (a list of
    named parameters), or "iterator". The first weight lies as it is given; further matrices are columns of a larger
    one, or lie column by column; two buffers are parts of one tensor. Two names differ by a capital letter alone, and
    in a mapping two stand for one tensor.
    """
    model = nn.Module()
    for place, weight in enumerate(weights):
        laid = _laid(weight, columns=place % 2 == 1) if place else weight.clone()
        model.register_parameter(("weight", "Weight", "bias")[place], nn.Parameter(laid, requires_grad=place > 0))
    for place, buffer in enumerate(buffers):
        model.register_buffer(f"buffer{place}", _laid(buffer, columns=place % 2 == 1).detach())
    model.buffer0, model.buffer4 = torch.cat([model.buffer0, model.buffer4]).split(len(model.buffer0))
    named = list(model.state_dict().items() if form == "state_dict" else model.named_parameters())
    own = [named[place] for place in order]
    if form in ("state_dict", "mapping"):
        own.insert(len(own) * (dist.get_rank() % 2), ("Alias", model.bias))
    kinds = {
        "state_dict": dict,
        "mapping": lambda pairs: MappingProxyType(dict(pairs)),
        "pairs": list,
        "iterator": iter,
    }
    given = kinds[form](own)
    first = [tasks.broadcast(weight, root_rank=root) for weight in weights[:2]]
    tasks.broadcast_parameters({}, root_rank=root)
    tasks.broadcast_parameters(given, root_rank=root)
    return {"weights": list(model.parameters()), "buffers": list(model.buffers()), "first": first}


def optimizer_states(tasks: ModuleType | None, *, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What `optimizer_state` gives for each case."""
    return [optimizer_state(tasks, **case) for case in cases]


def optimizer_state(
    tasks: ModuleType | None,
    *,
    optimizer: str,
    settings: list[dict[str, Any]],
    gradients: list[list[Tensor]],
    root: int,
) -> dict[str, Any]:
    """State and settings after the broadcast, and what a further step makes of ones. Without tasks: no broadcast.

    settings: of the group of the first parameter, and of that of the others. gradients: of as many steps before the
    broadcast as there are but one; the last one's are those of the further step. Before, the last parameter has no
    gradient, and so no state, and the second one is frozen after the steps.
    """
    parameters = [nn.Parameter(torch.ones_like(gradient)) for gradient in gradients[-1]]
    made = OPTIMIZERS[optimizer]([{"params": parameters[:1]}, {"params": parameters[1:]}])
    for group, given in zip(made.param_groups, settings, strict=True):
        group.update({name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    for step in gradients[:-1]:
        _step(made, parameters[:-1], step[:-1])
    parameters[1].requires_grad_(False)
    if tasks is not None:
        tasks.broadcast_optimizer_state(made, root_rank=root)
    kept = [_flat_state(made.state.get(parameter, {})) for parameter in parameters]
    found = {
        f"{name} of group {number}": repr(value)
        for number, group in enumerate(made.param_groups)
        for name, value in sorted(group.items())
        if name != "params"
    }
    for place, parameter in enumerate(parameters):
        for name, value in sorted(made.state.get(parameter, {}).items()):
            found[f"type of {name} of parameter {place}"] = str(getattr(value, "dtype", type(value).__name__))
    before = [parameter.detach().clone() for parameter in parameters]
    for parameter in parameters:
        nn.init.ones_(parameter)
    tensors = sum(len(made.state.get(parameter, {})) for parameter in parameters)
    _step(made, parameters, gradients[-1])
    after = [one.detach() for one in parameters]
    return {"state": kept, "tensors": tensors, "settings": found, "before": before, "after": after}


def _step(made: torch.optim.Optimizer, parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    made.step()


def _flat_state(state: dict[str, Any]) -> Tensor:
    """All that is kept for one parameter, by name."""
    kept = [torch.as_tensor(state[name]).double().flatten() for name in sorted(state) if state[name] is not None]
    return torch.cat([torch.zeros(0, dtype=torch.float64), *kept])


def steps(tasks: ModuleType | None, *, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What `steps_of_one` gives for each case."""
    return [steps_of_one(tasks, **case) for case in cases]


def steps_of_one(
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
    others = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    plain = OPTIMIZERS[optimizer]([{"params": weights}, {"params": others, "lr": 0.05}])
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
        "trained": [one.numel() for _, one in named if one.requires_grad],
        "same_class": isinstance(used, type(OPTIMIZERS[optimizer]([nn.Parameter(torch.zeros(1))]))),
    }


def overlap(
    tasks: ModuleType, *, weights: list[Tensor], order: list[int], inputs: Tensor, seconds: float, rest: float,
    passes: int, steps: int, second: int, options: dict[str, Any],
) -> None:  # fmt: skip
    """Steps of so many backwards each; a backward takes so many seconds in each layer.

    order: of the layers in the optimizer, from number `second` on in a second group; 0: all in one. rest: seconds
    between the last backward and the step. options: of the optimizer.
    """
    model = Layers(weights, seconds)
    given = [model.weights[layer] for layer in order]
    groups = [{"params": part} for part in (given[:second], given[second:]) if part]
    sgd = _distributed(tasks, groups, model, backward_passes_per_step=passes, **_named(tasks, options))
    for _ in range(steps):
        sgd.zero_grad()
        for _ in range(passes):
            model(inputs).square().sum().backward()
        rank.busy(rest, "rest")
        sgd.step()


def refusals(tasks: ModuleType, *, weights: list[Tensor], inputs: Tensor, counts: list[int]) -> list[dict[str, bool]]:
    """What `refusals_of_one` gives for so many backwards for a step."""
    return [refusals_of_one(tasks, weights, inputs, passes) for passes in counts]


def refusals_of_one(tasks: ModuleType, weights: list[Tensor], inputs: Tensor, passes: int) -> dict[str, bool]:
    """What should not be so, and whether it is: what goes through and should raise, or raises and should go through.

    Between the last backward and the step, first or second, zero_grad and one backward more should raise. The backward
    should so, too, where the first parameter in turn has no gradient, so that all others wait for their turn; as
    nothing has been sent then, zero_grad should go through. A backward more changes gradients that travel, so what
    arrives afterwards is not defined, and no step follows.
    """
    wrong = [{"op": tasks.Adasum}, {"op": tasks.Sum, "gradient_predivide_factor": 2.0}]
    model = Layers(weights)
    found = {
        "an option that is not offered goes through": not all(
            _refuses(lambda given=given: _distributed(tasks, model.parameters(), model, **given)) for given in wrong
        )
    }
    for waiting in (False, True):
        for steps in (1, 2):
            model = Layers(weights)
            given = [*model.parameters()]
            if waiting:
                model.idle = nn.Parameter(torch.zeros(2))
                given.append(model.idle)
            sgd = _distributed(tasks, given, model, backward_passes_per_step=passes)
            for step in range(steps):
                sgd.zero_grad()
                for backward in range(passes):
                    if backward:
                        sgd.zero_grad()  # nothing has been sent, and the backward before still counts
                    model(inputs).square().sum().backward()
                rank.busy(REST_SECONDS, "rest")  # so that what has been sent has arrived
                if not waiting:
                    told = "zero_grad goes through before anybody has waited for what was sent"
                    refused = [_refuses(lambda sgd=sgd, none=none: sgd.zero_grad(none)) for none in (False, True)]
                    found[told] = found.get(told, False) or not all(refused)
                if step + 1 < steps:
                    sgd.step()
            told = f"one backward more goes through{' while all gradients wait for their turn' if waiting else ''}"
            found[told] = found.get(told, False) or not _refuses(model(inputs).square().sum().backward)
            if waiting:
                raises = _refuses(lambda sgd=sgd: sgd.zero_grad(set_to_none=False))
                found["zero_grad raises before any exchange has begun"] = raises
    return found


def updates(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What `updates_of_one` gives for each case."""
    return [updates_of_one(tasks, **case) for case in cases]


def updates_of_one(
    tasks: ModuleType, *, weights: list[Tensor], inputs: list[list[Tensor]], passes: int, clips: list[float],
    frozen: list[int], others: list[int], missing: list[int], scale: float, options: dict[str, Any], closure: bool,
    calls: int, reset: str, second: bool, by_hand: bool,
    again: bool,
) -> dict[str, Any]:  # fmt: skip
    """The gradients and the weights after each update, which adds up one backward for each of its inputs.

    passes: backwards_passes_per_step. clips: by update, the largest norm of its gradient, and then the way with
    `synchronize`; 0: any. frozen: layers that are not trained; others: layers that the optimizer does not have, which a
    `second` one may have, which divides before the exchange. missing: layers that are left out on this rank. scale: of
    the loss. options: of the optimizer. closure: whether steps make their backwards in a closure, which the step calls
    so many times, and which itself synchronizes and clips. reset: how gradients become zero. by_hand: whether gradients
    are set without a backward of theirs. again: whether updates without clipping are synchronized before the step does
    so. Before it all, an error ends a `skip_synchronize`.
    """
    model = Layers(weights, frozen=frozen)
    model.missing = missing
    own = [weight for number, weight in enumerate(model.weights) if number not in others]
    parts = [own, [model.weights[number] for number in others]] if second else [own]
    options = _named(tasks, options)
    made = [
        _distributed(
            tasks, [{"params": part, "calls": calls}], model, Repeated, backward_passes_per_step=passes, **given
        )
        for part, given in zip(parts, (options, {"gradient_predivide_factor": 1.5}), strict=False)
    ]
    for sgd in made:
        with suppress(RuntimeError), sgd.skip_synchronize():
            raise RuntimeError
    gradients, states, losses, resets = [], [], [], []

    def backwards(update: int) -> Tensor:
        if reset == "by the model":
            model.zero_grad()
        for sgd in made if reset != "by the model" else []:
            sgd.zero_grad(**{"to None": {}, "to zero": {"set_to_none": False}}[reset])
        resets.append(_gradients(model))
        loss = sum((_backward(model, batch, scale, by_hand) for batch in inputs[update]), torch.zeros(()))
        if clips[update]:
            for sgd in made:
                sgd.synchronize()
            gradients.append(_gradients(model))
            for part in parts:
                nn.utils.clip_grad_norm_(part, clips[update])
        return loss

    for update, clip in enumerate(clips):
        if not closure:
            losses.append(backwards(update))
        for sgd in made if again and not clip else []:
            sgd.synchronize()
        with ExitStack() as stack:
            for sgd in made if clip else []:
                stack.enter_context(sgd.skip_synchronize())
            for sgd in made:
                loss = sgd.step(lambda update=update: backwards(update)) if closure else sgd.step()
                losses += [loss] if closure else []
        if not clip:
            gradients.append(_gradients(model))
        states.append([weight.detach().clone() for weight in model.weights])
    return {"gradients": gradients, "weights": states, "losses": losses, "resets": resets}


def _named(tasks: ModuleType, options: dict[str, Any]) -> dict[str, Any]:
    """The options of an optimizer, some of which are given by their names."""
    compressions = SimpleNamespace(fp16=tasks.Compression.fp16, single=Single(), eighth=Eighth())
    named = {"compression": compressions, "op": tasks}
    return {name: getattr(named[name], value) if name in named else value for name, value in options.items()}


def _backward(model: Layers, batch: Tensor, scale: float, by_hand: bool) -> Tensor:
    loss = model(batch).square().sum() * scale
    if not by_hand:
        loss.backward()
        return loss.detach()
    trained = [weight for weight in model.weights if weight.requires_grad]
    for weight, gradient in zip(trained, torch.autograd.grad(loss, trained, allow_unused=True), strict=True):
        if gradient is not None:
            weight.grad = gradient if weight.grad is None else weight.grad + gradient
    return loss.detach()


def _distributed(
    tasks: ModuleType, parameters: Any, model: nn.Module, kind: type[torch.optim.SGD] = torch.optim.SGD, **options: Any
) -> Any:
    plain = kind(parameters, lr=0.1)
    return tasks.DistributedOptimizer(plain, named_parameters=model.named_parameters(), **options)


def _refuses(call: Callable[[], object]) -> bool:
    try:
        call()
    except (AssertionError, ValueError):
        return True
    return False


def _gradients(model: Layers) -> list[Tensor | None]:
    return [None if weight.grad is None else weight.grad.clone() for weight in model.weights]


def script_alone(tasks: None, *, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each case, what `script` gives in one process, for which nothing is averaged; and `samples` of all ranks."""
    sys.modules["tasks"] = _alone()  # type: ignore[assignment]
    return [{**script(tasks, **case["script"]), "samples": _samples(**case["samplers"])} for case in cases]


def _samples(world: int, count: int, epochs: list[int]) -> list[list[int]]:
    """The samples that each rank's sampler takes in any of these epochs."""
    found = []
    for number in range(world):
        sampler = DistributedSampler(range(count), num_replicas=world, rank=number)
        taken = set()
        for epoch in epochs:
            sampler.set_epoch(epoch)
            taken |= set(sampler)
        found.append(sorted(taken))
    return found


def script(
    tasks: ModuleType | None,
    *,
    arguments: list[str],
    training: list[Tensor],
    test: list[Tensor],
    checkpoint: dict[str, Any] | None,
) -> dict[str, Any]:
    """What train.py returns, and the parameters before each step.

    checkpoint: what `--resume` finds; None: no such file.
    """
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
