"""Measures the profile of a model: warm-up, and then steps of forward, backward and an optimizer's step.

Each timed step runs twice: without hooks for the times of forward, backward and optimizer, and with hooks for the
layers. The times of the layers are then scaled to the step without hooks, so the hooks cost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import nn

from distsim import files
from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.learning.kernels import one_thread
from distsim.profile import CoreSeconds, Layer, Profile
from distsim.progress import Phase, Report
from distsim.runtime.devices.freed_memory import keep_freed_memory
from distsim.runtime.devices.stopwatch import ON_CPU, CudaStopwatch, Moment, Stopwatch
from distsim.runtime.profiling.held_memory import peak_of
from distsim.runtime.profiling.own_model import OwnModel, load, located, told
from distsim.runtime.profiling.parameter_uses import backward_turns
from distsim.scenario import Scenario

STEPS, WARM_UP_STEPS = 20, 5
FEW_STEPS, FEW_WARM_UP_STEPS = 3, 2
LEARNING_RATE = 1e-6  # the time of a step does not depend on it, and no model diverges


def profile(
    spec: str, *, seed: int = 0, batch: int | None = None, device: str = "cpu", steps: int = STEPS,
    warm_up: int = WARM_UP_STEPS, report: Report | None = None,
) -> Profile:  # fmt: skip
    """The profile of the model "my_model.py:build", measured on this machine on one thread, as ranks compute.

    batch: repeats or cuts the batch to so many samples. device: "cpu" or "cuda". report: called with each `Phase`.
    Raises InputError where the model breaks a rule, or the machine lacks the device.
    """
    tell = report or (lambda _: None)
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError.of("device", device, "is no device of this machine", 'take "cpu"')
    keep_freed_memory()  # as the ranks of real runs do
    with one_thread():
        tell(Phase("building the model"))
        own = load(spec, seed=seed, batch=batch, place=torch.device(device))
        stopwatch = CudaStopwatch() if device == "cuda" else ON_CPU
        own.check()
        timed = Timed(own, stopwatch)
        for step in range(warm_up):
            tell(Phase.counted("warm-up step", step + 1, warm_up))
            timed.step(hooked=step % 2 == 0)
        peak = peak_of(own)
        found = []
        for step in range(steps):
            tell(Phase.counted("step", step + 1, steps))
            found.append((timed.step(hooked=False), timed.step(hooked=True)))
        layers = with_needs(own, layers_of(own, found))
    return Profile(
        own.name, layers, *_middle([plain.optimizer for plain, _ in found]),
        CoreSeconds(*(median(plain.cores[part] for plain, _ in found) for part in range(3))),
        peak.whole, own.samples, torch.cuda.get_device_name() if device == "cuda" else "cpu", torch.__version__, steps,
        passing_bytes=peak.passing, frozen_bytes=peak.frozen,
    )  # fmt: skip


def ready(scenario: Scenario) -> Scenario:
    """The scenario with its own model checked, the model's file by its absolute path, and with a profile.

    Where the scenario has no profile, a profile of few steps tells the sizes to the real run. A `batch` of the scenario
    repeats or cuts the model's own. Raises InputError where the model breaks a rule, or is not that of the profile.
    """
    table, workload = scenario.table(), scenario.workload
    model = str(Path(str(workload.model)).resolve())
    table["workload"] |= {"model": model}
    if workload.profile is None:
        batch = workload.batch if "batch" in workload.model_fields_set else None
        found = profile(model, seed=scenario.seed, batch=batch, steps=FEW_STEPS, warm_up=FEW_WARM_UP_STEPS)
        table["workload"] |= {"profile": found.as_dict(), "layers": len(found.layers), "batch": found.batch}
    made = Scenario.of(table)
    _check(model, files.changed(located(model)[0]), made.seed, made.workload.profile)
    return made


@lru_cache(maxsize=8)
def _check(model: str, changed: int, seed: int, profile: Profile) -> None:  # noqa: ARG001 - a changed file is checked anew
    with one_thread():
        own = load(model, seed=seed, batch=profile.batch)
        own.check_fits(profile)
        own.check()


@dataclass
class Step:
    """The times of one step, in seconds. cores: of forward, backward and optimizer.

    modules: by module, its share of forward; ready: by parameter, from the start of backward. Both only with hooks.
    """

    forward: float
    backward: float
    optimizer: float
    cores: tuple[float, float, float]
    modules: dict[nn.Module, float] = field(default_factory=dict)
    ready: dict[nn.Parameter, float] = field(default_factory=dict)


class Timed:
    """Times the steps of a model. Gradients are kept and set to zero, as in real runs."""

    def __init__(self, own: OwnModel, stopwatch: Stopwatch) -> None:
        self._own = own
        self._stopwatch = stopwatch
        self._optimizer = torch.optim.SGD(own.layers.values(), lr=LEARNING_RATE)
        self._optimizer.zero_grad(set_to_none=False)

    def step(self, *, hooked: bool) -> Step:
        """One forward, backward and optimizer's step."""
        self._stopwatch.wait()
        with _hooks(self._own, self._stopwatch) if hooked else _no_hooks() as moments:
            cores, begin = [time.process_time()], self._stopwatch.moment()
            loss = self._own.loss()
            moments.forward_over = True
            cores.append(time.process_time())
            between = self._stopwatch.moment()
            self._own.backward(loss)
            after = self._stopwatch.moment()
            self._stopwatch.wait()
            start, middle, end = begin(), between(), after()
            modules, previous = dict[nn.Module, float](), start
            for module, moment in moments.modules:
                now = moment()
                modules[module] = modules.get(module, 0.0) + now - previous
                previous = now
            ready = {parameter: moment() - middle for parameter, moment in moments.ready}
        cores.append(time.process_time())
        begun = self._stopwatch.wait()
        with told(self._own.spec, "the optimizer's step"):
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=False)
        optimizer = self._stopwatch.wait() - begun
        cores.append(time.process_time())
        each = tuple(float(seconds) for seconds in np.diff(cores))
        return Step(middle - start, end - middle, optimizer, (each[0], each[1], each[2]), modules, ready)


@dataclass
class _Moments:
    """When each module had its outputs, and each parameter its gradient.

    forward_over: whether backward has begun. A model that recomputes activations runs its modules again there.
    """

    forward_over: bool = False
    modules: list[tuple[nn.Module, Moment]] = field(default_factory=list)
    ready: list[tuple[nn.Parameter, Moment]] = field(default_factory=list)


@contextmanager
def _no_hooks() -> Iterator[_Moments]:
    yield _Moments()


@contextmanager
def _hooks(own: OwnModel, stopwatch: Stopwatch) -> Iterator[_Moments]:
    """Notes the moments while the block lasts."""
    found = _Moments()

    def left(module: nn.Module, _inputs: object, _outputs: object) -> None:
        if not found.forward_over:
            found.modules.append((module, stopwatch.moment()))

    def there(parameter: torch.Tensor) -> None:
        assert isinstance(parameter, nn.Parameter)
        found.ready.append((parameter, stopwatch.moment()))

    handles = [module.register_forward_hook(left) for module in _owners(own)]
    handles += [
        one.register_post_accumulate_grad_hook(there)  # type: ignore[no-untyped-call] # torch
        for one in own.layers.values()
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _owners(own: OwnModel) -> dict[nn.Module, list[nn.Parameter]]:
    """The modules that hold layers of their own. A shared parameter belongs to the first module that holds it."""
    found: dict[nn.Module, list[nn.Parameter]] = {}
    seen: set[nn.Parameter] = set()
    for module in own.module.modules():
        for parameter in module.parameters(recurse=False):
            if parameter.requires_grad and parameter not in seen:
                seen.add(parameter)
                found.setdefault(module, []).append(parameter)
    return found


def layers_of(own: OwnModel, steps: Sequence[tuple[Step, Step]]) -> tuple[Layer, ...]:
    """The layers in the order of their gradients. steps: the same steps without and with hooks."""
    names = {parameter: name for name, parameter in own.layers.items()}
    ready = {
        one: np.array([step.ready[one] * plain.backward / step.backward for plain, step in steps]) for one in names
    }
    forward = _forward(own, steps)
    order = sorted(names, key=lambda one: float(np.median(ready[one])))
    together = sum(float(np.median(forward[one])) for one in order)  # the sum of medians is not the median of the sum
    whole = median(plain.forward for plain, _ in steps) / together if together else 1.0
    found = []
    for one in order:
        (there, there_quartiles), (passed, passed_quartiles) = _middle(ready[one]), _middle(forward[one] * whole)
        num_bytes = one.numel() * one.element_size()
        found.append(Layer(names[one], num_bytes, passed, there, passed_quartiles, there_quartiles))
    return tuple(found)


def with_needs(own: OwnModel, layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The same layers, and when the backward of one more step first needs each one's parameters.

    On a GPU nobody tells, so it stays at each layer's own turn.
    """
    if own.batch[0].is_cuda:
        return tuple(layers)
    order = [own.layers[layer.name] for layer in layers]
    loss, there = own.loss(), set[torch.Tensor]()
    turn = 0  # of the first gradient that is missing

    def came(parameter: torch.Tensor) -> None:
        nonlocal turn
        there.add(parameter)
        while turn < len(order) and order[turn] in there:
            turn += 1

    handles = [one.register_post_accumulate_grad_hook(came) for one in order]  # type: ignore[no-untyped-call] # torch
    try:
        turns = backward_turns(order, lambda: turn, lambda: own.backward(loss))
    finally:
        for handle in handles:
            handle.remove()
    return tuple(
        replace(layer, needed_ahead=max(0, number - used[1])) if used else layer
        for number, (layer, used) in enumerate(zip(layers, turns, strict=True))
    )


def _forward(own: OwnModel, steps: Sequence[tuple[Step, Step]]) -> dict[nn.Parameter, Floats]:
    """Each layer's seconds of forward in each step: from the layers before until its module has its outputs.

    Layers of one module share its time by their bytes. The time after the last module belongs to that module.
    """
    owners = _owners(own)
    found: dict[nn.Parameter, Floats] = {}
    last = list(steps[0][1].modules)[-1] if steps[0][1].modules else next(iter(owners))
    for module, parameters in owners.items():
        sizes = [one.numel() for one in parameters]
        seconds = np.array([
            (step.modules.get(module, 0.0) + (step.forward - sum(step.modules.values()) if module is last else 0.0))
            * plain.forward / step.forward for plain, step in steps
        ])  # fmt: skip
        for one, size in zip(parameters, sizes, strict=True):
            found[one] = seconds * (size / max(sum(sizes), 1))
    return found


def _middle(values: Sequence[float] | Floats) -> tuple[float, tuple[float, float]]:
    """The median and the quartiles; rounding never makes a time negative."""
    low, middle, high = np.maximum(np.quantile(values, [0.25, 0.5, 0.75]), 0.0)
    return float(middle), (float(low), float(high))
