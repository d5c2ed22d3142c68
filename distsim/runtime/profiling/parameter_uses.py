"""When a step uses the parameters of each unit, found in one step while all parameters are there.

A worker in sharded training gathers a unit before its first use and frees it after its last. Modules do not tell when
that is: some share parameters, and some compute with the parameters of others. So torch tells each operation's tensors.

The module calls of a forward are its events: their begins and ends, in order. A unit that an event's operations use
must be there when the event comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from distsim.errors import InputError
from distsim.runtime.profiling.held_memory import dense


@dataclass(frozen=True)
class ParameterUses:
    """The uses of units, which are numbered in the order of forward.

    reached: for each event of forward, the last unit whose turn has come with it. forward: for each unit, the last unit
    in whose turn forward uses it. backward: for each unit, the first and the last unit in whose turn backward uses it,
    the higher number first; None where it does not. A unit's turn of backward ends when its gradients are there.
    """

    reached: tuple[int, ...]
    forward: tuple[int, ...]
    backward: tuple[tuple[int, int] | None, ...]


class ModuleEvents:
    """Calls `came(number)` when a module call begins or ends, numbered from 0 since `restart`.

    All forwards must have the events of the first: nobody knows which parameters another one uses. Raises InputError in
    a forward that has others.
    """

    def __init__(self, model: nn.Module, came: Callable[[int], None]) -> None:
        self._came = came
        self._order: list[nn.Module] = []
        self._known = False
        self.number = -1  # of the last event
        for module in model.modules():
            module.register_forward_pre_hook(self._next)
            module.register_forward_hook(self._next)

    def restart(self) -> None:
        """Counts from 0 again."""
        self._known = bool(self._order)
        self.number = -1

    def _next(self, module: nn.Module, *_call: object) -> None:
        self.number += 1
        if not self._known:
            self._order.append(module)
        elif self.number >= len(self._order) or self._order[self.number] is not module:
            raise InputError.of(
                "policy.kind", "sharded", "needs a forward that calls the same modules in each step, and this one "
                f"calls {type(module).__name__} where the first did not", 'let forward go one way, or write "ddp"',
            )  # fmt: skip
        self._came(self.number)


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch
    """Calls `used(unit)` before each operation on a unit's memory."""

    def __init__(self, units: Sequence[torch.Tensor], used: Callable[[int], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch
        self._units = {one.untyped_storage().data_ptr(): unit for unit, one in enumerate(units)}
        self._used = used

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Tells the units among the arguments, and computes."""
        for one in dense((args, kwargs)):
            if (unit := self._units.get(one.untyped_storage().data_ptr())) is not None:
                self._used(unit)
        return func(*args, **(kwargs or {}))


def watched(
    units: Sequence[torch.Tensor], events: ModuleEvents, turn: Callable[[], int], forward: Callable[[], torch.Tensor],
    backward: Callable[[torch.Tensor], None],
) -> ParameterUses:  # fmt: skip
    """Computes one step, and tells when it used each unit.

    units: the memory of each. events: of the model. turn: the unit whose turn of backward it is. forward: returns the
    loss, for `backward`.
    """
    in_forward: list[tuple[int, int]] = []  # event and unit
    events.restart()
    with _Watch(units, lambda unit: in_forward.append((events.number, unit))):
        loss = forward()
    ends = backward_turns(units, turn, lambda: backward(loss))
    reached = [0] * (events.number + 1)
    for event, unit in in_forward:
        reached[event] = max(reached[event], unit)
    for event in range(1, len(reached)):
        reached[event] = max(reached[event - 1 : event + 1])
    last = [0] * len(units)
    for event, unit in in_forward:
        last[unit] = max(last[unit], reached[event])
    return ParameterUses(tuple(reached), tuple(last), ends)


def backward_turns(
    units: Sequence[torch.Tensor], turn: Callable[[], int], backward: Callable[[], None]
) -> tuple[tuple[int, int] | None, ...]:
    """Computes a backward, and tells for each unit the highest and the lowest turn in which it is used; None: in none.

    turn: the number of the turn under way.
    """
    turns: list[list[int]] = [[] for _ in units]
    with _Watch(units, lambda unit: turns[unit].append(turn())):
        backward()
    return tuple((max(own), min(own)) if own else None for own in turns)
