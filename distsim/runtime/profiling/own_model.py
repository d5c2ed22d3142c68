"""A model of the user's own: "my_model.py:build" returns a module and a batch, and the module returns the loss.

own = load("my_model.py:build")
own.check()                     # one forward and backward; InputError names what the model breaks, and where
own.loss().backward()
"""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from distsim.errors import InputError, shortened
from distsim.own_code import importing_beside, module_of, place_of
from distsim.profile import Profile
from distsim.workload import OWN_MODEL

ASKED = "model"
RETURNS = "return (module, batch), a torch.nn.Module and a tuple of tensors"
CPU = torch.device("cpu")
NO_MEMORY = ("out of memory", "allocate memory", "not enough memory", "cannot allocate", "failed to allocate")
MOST_NAMED = 5
PACKAGES = (str(Path(torch.__file__).parent), str(Path(__file__).parents[2]))  # torch, and distsim


@dataclass(frozen=True)
class OwnModel:
    """A module and its batch. spec: "my_model.py:build". place: of the function, as "my_model.py:3"."""

    spec: str
    module: nn.Module
    batch: tuple[torch.Tensor, ...]
    place: str

    @cached_property
    def layers(self) -> dict[str, nn.Parameter]:
        """The parameters that get a gradient, in the order of the module; a shared parameter counts once."""
        return {name: one for name, one in self.module.named_parameters() if one.requires_grad}

    @property
    def samples(self) -> int:
        """The length of the batch: of the first dimension of its first tensor."""
        first = self.batch[0]
        return len(first) if first.dim() else 1

    @property
    def name(self) -> str:
        """The spec without its folder."""
        return Path(self.spec).name

    def loss(self) -> torch.Tensor:
        """The module's loss for the batch. Raises InputError where forward raises, or returns something else."""
        with told(self.spec, "forward"):
            loss = self.module(*self.batch)
        if not isinstance(loss, torch.Tensor):
            self._refuse_loss(f"returned {_kind(loss)}")
        elif loss.dim():
            self._refuse_loss(f"returned a tensor of shape {tuple(loss.shape)}")
        elif not loss.requires_grad:
            self._refuse_loss("returned a loss that depends on no parameter")
        found: torch.Tensor = loss
        return found

    def backward(self, loss: torch.Tensor) -> None:
        """Computes the gradients. Raises InputError where backward raises."""
        with told(self.spec, "backward"):
            loss.backward()  # type: ignore[no-untyped-call] # torch

    def check(self) -> None:
        """Computes forward and backward once.

        Raises InputError where the loss is no finite scalar, or a parameter gets no gradient.
        """
        self.module.zero_grad(set_to_none=True)
        loss = self.loss()
        if not math.isfinite(loss.item()):
            self._refuse_loss(f"returned a loss of {loss.item()}", "return a finite loss")
        self.backward(loss)
        unused = [name for name, one in self.layers.items() if one.grad is None]
        if unused:
            more = f", and {len(unused) - MOST_NAMED} more" if len(unused) > MOST_NAMED else ""
            raise refused(
                self.spec, f"{self.place}: the loss uses no {', '.join(unused[:MOST_NAMED])}{more}, and DDP would wait "
                "for the gradient", "use each parameter in forward, remove it, or set its requires_grad to False",
            )  # fmt: skip

    def check_fits(self, profile: Profile) -> None:
        """Raises InputError where `profile` is one of another model, or a real run could not learn the parameters."""
        sizes = {name: one.numel() * one.element_size() for name, one in self.layers.items()}
        known = {layer.name: layer.bytes for layer in profile.layers}
        if sizes != known:
            name = min(sizes.items() ^ known.items())[0]
            raise refused(
                self.spec, f"{self.place}: parameter {name} has {sizes.get(name, 'no')} bytes, and "
                f"{known.get(name, 'none')} in the profile of {profile.model}", "run distsim profile again",
            )  # fmt: skip
        other = next((name for name, one in self.layers.items() if one.dtype is not torch.float32), None)
        if other is not None:
            raise refused(
                self.spec, f"{self.place}: parameter {other} is {self.layers[other].dtype}, no torch.float32",
                "build the module in float32, which real runs learn",
            )  # fmt: skip

    def _refuse_loss(self, what: str, cure: str = "return the loss alone, a scalar tensor, from forward") -> None:
        forward = getattr(type(self.module), "forward", None)
        raise refused(self.spec, f"{_line(forward) or self.place}: forward {what}", cure)


class BuiltBuffers:
    """The buffers of a module as it was built. A run begins with them, also after a warm-up that changed them."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._values = {name: one.clone() for name, one in module.named_buffers()}

    def put_back_before(self, step: int) -> None:
        """Puts them back before the first step, which is number 0 in a warm-up, too."""
        if step == 0:
            with torch.no_grad():
                for name, one in self._module.named_buffers():
                    if name in self._values:
                        one.copy_(self._values[name])


def load(spec: str, *, seed: int = 0, batch: int | None = None, place: torch.device = CPU) -> OwnModel:
    """The module and the batch that the function `spec`, "my_model.py:build", returns.

    seed: torch's, before the function is called, so that all ranks have equal parameters. batch: repeats or cuts the
    samples to so many. place: the device. Raises InputError where the file, the function or its result breaks a rule.
    """
    path, name = located(spec)
    with told(spec, "the import"), importing_beside(path):
        function = getattr(module_of(path, "model"), name, None)
    if not callable(function):
        raise refused(spec, f"{path.name} has no function {name}", f"write def {name}(): in {path.name}")
    at = _line(function) or path.name
    missing = _missing_arguments(function)
    if missing:
        raise refused(spec, f"{at}: {name} needs {', '.join(missing)}", "give each argument a default")
    with torch.random.fork_rng(devices=[]), told(spec, name), importing_beside(path):
        torch.manual_seed(seed)
        found = function()
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise refused(spec, f"{at}: {name} returned {_kind(found)}", RETURNS)
    module, tensors = found
    if not isinstance(module, nn.Module):
        raise refused(spec, f"{at}: {name} returned {_kind(module)} in place of the module", RETURNS)
    if not isinstance(tensors, (tuple, list)) or not tensors:
        raise refused(spec, f"{at}: {name} returned {_kind(tensors)} in place of the batch", RETURNS)
    for number, one in enumerate(tensors):
        if not isinstance(one, torch.Tensor):
            raise refused(spec, f"{at}: entry {number} of the batch is {_kind(one)}", RETURNS)
    if any(isinstance(one, torch.jit.ScriptModule) for one in module.modules()):
        cure = "return the module as it is before torch.jit.script or torch.jit.trace"
        raise refused(spec, f"{at}: the module is one of TorchScript, whose layers nobody can watch", cure)
    lazy = [name for name, one in module.named_parameters() if is_lazy(one)]
    if lazy:
        raise refused(spec, f"{at}: parameter {lazy[0]} has no size yet", f"call the module once in {name}")
    empty = [name for name, one in module.named_parameters() if one.requires_grad and not one.numel()]
    if empty:
        raise refused(spec, f"{at}: parameter {empty[0]} has no elements", "remove it")
    if not any(True for _ in module.parameters()):
        raise refused(spec, f"{at}: the module has no parameters", "return a module that learns")
    if not any(one.requires_grad for one in module.parameters()):
        raise refused(spec, f"{at}: no parameter requires a gradient", "leave requires_grad of some at True")
    with told(spec, f"the move to {place.type}"):
        own = OwnModel(spec, module.to(place), tuple(one.detach().to(place) for one in tensors), at)
        if batch not in (None, own.samples):
            own = replace(own, batch=resized(spec, own.batch, batch))
    if not own.samples:
        raise refused(spec, f"{at}: the batch has no sample", "return tensors with a sample or more")
    return own


def located(spec: str) -> tuple[Path, str]:
    """The absolute path of the file and the name of the function. Raises InputError where there is no such file."""
    match = OWN_MODEL.fullmatch(spec)
    if match is None:
        raise refused(spec, "names no function in a Python file", 'write "my_model.py:build"')
    path = Path(match["file"])
    try:
        found = path.is_file()
    except (OSError, ValueError):  # a name with a zero byte, or one that is too long
        found = False
    if not found:
        raise refused(spec, "there is no such file", 'write "my_model.py:build", a file and a function in it')
    return path.resolve(), match["function"]


def resized(spec: str, batch: tuple[torch.Tensor, ...], samples: int) -> tuple[torch.Tensor, ...]:
    """The batch repeated or cut to so many samples. Raises InputError where its tensors differ in their length.

    >>> resized("m.py:build", (torch.arange(3),), 5)
    (tensor([0, 1, 2, 0, 1]),)
    """
    lengths = [len(one) if one.dim() else None for one in batch]
    if None in lengths or len(set(lengths)) > 1 or 0 in lengths:
        shapes = ", ".join(str(tuple(one.shape)) for one in batch)
        raise refused(
            spec, f"a batch of {samples} samples needs tensors of one length in their first dimension, and these have "
            f"shapes {shapes}", "leave the size of the batch out, or return tensors with a sample in each row",
        )  # fmt: skip
    return tuple(one.repeat(-(-samples // len(one)), *(1,) * (one.dim() - 1))[:samples] for one in batch)


@contextmanager
def told(spec: str, doing: str) -> Iterator[None]:
    """Turns an error of the user's code into an InputError with its place. doing: what the code does in the block."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        if _needs_memory(error):
            rule = f"does not fit into the memory in {doing} ({_text(error)})"
            raise refused(spec, rule, "take a smaller batch, or a smaller model") from error
        file = Path(spec.rpartition(":")[0]).resolve()
        place = place_of(error, str(file), but=__file__)
        rule = f"raised {type(error).__name__} at {place} in {doing}: {_text(error)}"
        cure = f"correct {place}" if _in_code_of_user(error) else f"correct what {spec.rpartition(':')[2]} returns"
        raise refused(spec, rule, cure) from error


def refused(spec: str, rule: str, cure: str) -> InputError:
    """The error about the model `spec`."""
    return InputError.of(ASKED, spec, rule, cure)


def _needs_memory(error: BaseException) -> bool:
    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in NO_MEMORY)


def _in_code_of_user(error: BaseException) -> bool:
    """Whether code other than torch's and distsim's raised the error, or called what raised it."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return isinstance(error, SyntaxError) or not all(file.startswith(PACKAGES) for file in files)


def _text(error: BaseException) -> str:
    return shortened((str(error).strip().splitlines() or ["no message"])[0])


def _kind(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _missing_arguments(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function without a signature
        return []
    return [
        one.name
        for one in parameters
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]


def _line(function: object) -> str | None:
    """The place of a function in the user's file: "my_model.py:3"; None where it has none, as a class or in torch."""
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    if code is None or code.co_filename.startswith(str(Path(torch.__file__).parent)):
        return None
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"
