"""What runs in the ranks: a model that tells which samples it sees, the student's ports, and one process to compare."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from distsim.testbed import rank

SCRIPT = "script.py"
WIDTH, HIDDEN, CLASSES = 12, 24, 5
LAUNCHED = {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0"}
DAY_SECONDS, EARLY_SECONDS = 86400.0, 10.0
REPEATS = 5  # of the all-reduce that is measured
NEEDED = {"learning_rate", "evaluate"}


def _script() -> ModuleType:
    """script.py, under the name by which tasks.py imports it."""
    spec = importlib.util.spec_from_file_location("script", Path(__file__).with_name(SCRIPT))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["script"] = module
    spec.loader.exec_module(module)
    return module


script = _script()


class Stronger(nn.Module):
    """Computes otherwise in training than in evaluation, as dropout does, but without chance."""

    def forward(self, hidden: Tensor) -> Tensor:
        """The numbers, 1.5 times as large in training."""
        return 1.5 * hidden if self.training else hidden


class Network(nn.Module):
    """Two layers and a buffer. It keeps the first numbers of the samples of each batch, which tell them apart.

    The numbers of batches that somebody may learn from are in `learned`, the others in `looked_at`.
    """

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.register_buffer("middle", torch.zeros(WIDTH, dtype=torch.float64))
        self.first = nn.Linear(WIDTH, HIDDEN, dtype=torch.float64)
        self.stronger = Stronger()
        self.last = nn.Linear(HIDDEN, CLASSES, dtype=torch.float64)
        self.put(start)
        self.learned: list[list[float]] = []
        self.looked_at: list[list[float]] = []

    def put(self, numbers: Tensor) -> None:
        """Makes the parameters those of one vector."""
        nn.utils.vector_to_parameters(numbers.clone(), self.parameters())

    def flat(self) -> Tensor:
        """All parameters in one new vector."""
        return nn.utils.parameters_to_vector(self.parameters()).detach().clone()

    def forward(self, inputs: Tensor) -> Tensor:
        """A number for each class and sample."""
        (self.learned if torch.is_grad_enabled() else self.looked_at).append(inputs[:, 0].tolist())
        return self.last(self.stronger(torch.tanh(self.first(inputs - self.middle))))


def rates(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The student's learning rates. A case has the numbers of a Job; the rest of this Job cannot be used."""
    missing = dict.fromkeys(script.Job.__dataclass_fields__)
    return {"rates": [float(tasks.learning_rate(script.Job(**{**missing, **case}))) for case in cases]}


def evaluations(tasks: ModuleType, *, start: Tensor, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """For each case, the student's evaluation of one model, the batches of this rank, and how the model stands then."""
    return {"cases": [_evaluated(tasks, start, **case) for case in cases]}


def _evaluated(
    tasks: ModuleType, start: Tensor, *, inputs: Tensor, labels: Tensor, batch: int, trains: bool
) -> dict[str, Any]:
    model = Network(start).train(trains)
    found = tasks.evaluate(model, TensorDataset(inputs, labels), cross_entropy, batch)
    batches = model.learned + model.looked_at
    return {"numbers": [float(one) for one in found], "batches": batches, "kept": model.training == trains}


def port(tasks: ModuleType, *, name: str, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """For each job, what the student's port gives, and everything that it does with its model and optimizer."""
    os.environ.update(LAUNCHED)  # as torchrun does
    return {"jobs": [_ported(getattr(tasks, name), **one) for one in jobs]}


def _ported(
    train: Callable[[Any], Any],
    *,
    start: Tensor,
    training: list[Tensor],
    test: list[Tensor],
    momentum: float,
    late_seconds: float,
    save_seconds: list[float],
    **numbers: Any,
) -> dict[str, Any]:
    """late_seconds: see `_begin`. save_seconds: of virtual time, for each checkpoint; then as the last."""
    model = Network(start)
    states: list[Tensor] = []
    used: list[float] = []
    saves: list[dict[str, Any]] = []

    def optimizer(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
        made = torch.optim.SGD(parameters, lr=lr, momentum=momentum)
        made.register_step_pre_hook(lambda *_: used.append(float(made.param_groups[0]["lr"])))
        made.register_step_post_hook(lambda *_: states.append(model.flat()))
        return made

    def save(state: dict[str, Tensor]) -> None:
        found = [state[name].detach().flatten() for name, _ in model.named_parameters() if name in state]
        trains = threading.current_thread() is threading.main_thread()
        saves.append({"names": sorted(state), "numbers": torch.cat([torch.zeros(0), *found]), "trains": trains})
        if trains:
            rank.busy(save_seconds[min(len(saves), len(save_seconds)) - 1], "save")

    before = _files()
    job = script.Job(
        model=model, training=TensorDataset(*training), test=TensorDataset(*test), loss=cross_entropy,
        optimizer=optimizer, save=save, **numbers,
    )  # fmt: skip
    _begin(late_seconds)
    with _Watch() as watch:
        rows = train(job)
    return {
        "rows": [[float(number) for number in row] for row in rows],
        "states": states,
        "rates": used,
        "saves": saves,
        "files": sorted(_files() - before),
        "learned": model.learned,
        "looked_at": len(model.looked_at),
        "returned": rank.now(),
        "backwards": watch.backwards,
    }


def _begin(late_seconds: float) -> None:
    """Lets virtual time pass until so many seconds after ten seconds to midnight.

    With some ranks before midnight and some after it, no part of the clock is the same for all.
    """
    earliest = DAY_SECONDS * ceil((rank.now() + EARLY_SECONDS) / DAY_SECONDS) - EARLY_SECONDS
    rank.busy(earliest + late_seconds - rank.now())


class _Watch:
    """Counts the backwards that a framework makes, and lets the next training begin with a new framework."""

    def __init__(self) -> None:
        self.backwards = 0
        self._kept: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> _Watch:
        if "lightning.pytorch" in sys.modules:
            from lightning.fabric.strategies import Strategy as FabricStrategy
            from lightning.pytorch.strategies import Strategy

            self._count(Strategy, "backward")
            self._count(FabricStrategy, "backward")
        if "accelerate" in sys.modules:
            from accelerate import Accelerator

            self._count(Accelerator, "backward")
        return self

    def _count(self, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def counted(*given: Any, **options: Any) -> Any:
            self.backwards += 1
            return real(*given, **options)

        self._kept.append((owner, name, real))
        setattr(owner, name, counted)

    def __exit__(self, *_: object) -> None:
        for owner, name, real in self._kept:
            setattr(owner, name, real)
        if "accelerate" in sys.modules:
            from accelerate.state import AcceleratorState, GradientState

            AcceleratorState._reset_state(reset_partial_state=True)
            GradientState._reset_state()


def _files() -> set[str]:
    """The files of the rank's folder for temporary files, which holds its working folder, without Python's own."""
    folder = Path(tempfile.gettempdir())
    return {os.path.relpath(path) for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def one_process(tasks: None, *, trainings: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: ARG001
    """For each training, what one process gives that takes the joined batches."""
    return {"trainings": [_alone(**one) for one in trainings]}


def _alone(
    *, start: Tensor, training: list[Tensor], test: list[Tensor], epochs: list[list[list[list[int]]]],
    rate: float, decay: float, momentum: float,
) -> dict[str, Any]:  # fmt: skip
    """epochs: for each epoch its updates, for each update its joined batches, each with the numbers of its samples."""
    model = Network(start)
    velocity = torch.zeros_like(start)
    states, rates, losses, tested = [], [], [], []
    for epoch, updates in enumerate(epochs):
        of_epoch = []
        for update in updates:
            of_update = [cross_entropy(model(training[0][batch]), training[1][batch]) for batch in update]
            gradients = torch.autograd.grad(torch.stack(of_update).mean(), list(model.parameters()))
            velocity = momentum * velocity + torch.cat([one.flatten() for one in gradients])
            model.put(model.flat() - rate * decay**epoch * velocity)
            states.append(model.flat())
            rates.append(rate * decay**epoch)
            of_epoch += [one.item() for one in of_update]
        losses.append(sum(of_epoch) / len(of_epoch))
        with torch.no_grad():
            scores = model.eval()(test[0])
            right = (scores.argmax(dim=1) == test[1]).double().mean().item()
            tested.append([cross_entropy(scores, test[1]).item(), right])
            model.train()
    return {"states": states, "rates": rates, "losses": losses, "tested": tested}


def real(
    tasks: ModuleType, *, name: str = "train_ddp", batches: int = 24, accumulated: int = 2,
    gradient_bytes: int = 8 * 2**20, seconds_per_batch: float = 0.020, digits: bool = False,
    unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """An epoch for real by one of the ports, whose batches sleep for their seconds; without a name, an all-reduce.

    digits: instead, a training on handwritten digits.
    """
    if not name:
        gradients = torch.zeros(gradient_bytes // 4)
        return {"seconds": [_seconds(partial(dist.all_reduce, gradients)) for _ in range(REPEATS)]}
    if {name, *NEEDED} & set(unwritten):
        return {}
    train = getattr(tasks, name)
    if digits:
        return {"rows": [[float(number) for number in row] for row in train(_digits())]}
    train(_sleeping(1, 1, 0.0, 1))  # what the framework does once
    job = _sleeping(batches, accumulated, seconds_per_batch, gradient_bytes // 4)
    return {"seconds": [_seconds(lambda: train(job))]}


class Total(nn.Module):
    """The sum of all parameters, times the inputs: little computing for many gradients."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(count))

    def forward(self, inputs: Tensor) -> Tensor:
        """One number for each sample."""
        return self.weights.sum() * inputs


def _sleeping(batches: int, accumulated: int, seconds: float, count: int) -> Any:
    """A job whose batches have one sample each, and whose loss sleeps in training."""

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        if outputs.requires_grad:
            rank.busy(seconds)
        return (outputs - targets).mean()

    samples = torch.ones(batches * dist.get_world_size(), 1)
    data = TensorDataset(samples, samples)
    return script.Job(
        model=Total(count), training=data, test=TensorDataset(samples[:1], samples[:1]), loss=loss, batch=1,
        accumulated=accumulated, epochs=1, rate=0.01, rate_samples=1, decay=1.0, optimizer=torch.optim.SGD,
        save=lambda _state: None,
    )  # fmt: skip


def _digits() -> Any:
    """A job that trains a small network on scikit-learn's digits."""
    from distsim.learning.digits import digits

    training, test = (TensorDataset(*map(torch.from_numpy, part)) for part in digits())
    torch.manual_seed(dist.get_rank())
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return script.Job(
        model=model, training=training, test=test, loss=cross_entropy, batch=16, accumulated=1, epochs=5, rate=0.05,
        rate_samples=16, decay=0.9, optimizer=partial(torch.optim.SGD, momentum=0.9), save=lambda _state: None,
    )  # fmt: skip


def _seconds(call: Callable[[], object]) -> float:
    """Seconds of a call that all ranks begin together."""
    dist.barrier()
    started = rank.now()
    call()
    return rank.now() - started
