"""The parameters that one server keeps, version after version, and the gradients of the version to come."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch

from distsim.runtime.transport.messages import Message, MessageKind, pattern

LEARNING_RATE = 2.0**-10


class DisagreementError(RuntimeError):
    """A worker's parameters, or the server's own, are not what they must be at the end of a run."""


@dataclass(frozen=True)
class FirstParameters:
    """What a model begins with, flat, and the learning rate that it learns with."""

    values: torch.Tensor
    learning_rate: float


class Parameters:
    """Each version is a message, ready to be sent, that stays as it is while it is the newest or lent to somebody.

    last_version: the one whose message tells to stop. weight: gradients are so many times what they stand for.
    first: version 0 of a model, which may be shorter than the message; None: zeros, and gradients that are the pattern.
    """

    def __init__(
        self, floats: int, workers: int, last_version: int, weight: int = 1, first: FirstParameters | None = None
    ) -> None:
        self.version = 0
        self._is_pattern = first is None
        self._rate = LEARNING_RATE if first is None else first.learning_rate
        self._floats = floats
        self._last_version = last_version
        self._weight = weight
        self._unused = [Message(floats), Message(floats)]
        self._lent: Counter[int] = Counter()  # by version: to how many
        self._pending = torch.zeros(floats)
        self._contributors: list[int] = []  # whose gradients are pending
        self._applied = [0.0] * workers  # sum over updates of 1 / gradients in the update
        self.newest = self._stamped(Message(floats))
        if first is not None:
            self.newest.payload[: first.values.numel()].copy_(first.values)

    def add(self, worker: int, gradient: torch.Tensor) -> None:
        """The worker's gradient goes into the version to come."""
        if self._contributors:
            self._pending.add_(gradient)
        else:
            self._pending.copy_(gradient)
        self._contributors.append(worker)

    def update(self) -> None:
        """A new version: one step down the mean of the gradients that have been added since the last."""
        old, fresh = self.newest, self._unused.pop() if self._unused else Message(self._floats)
        share = 1 / max(len(self._contributors), 1)
        step = -self._rate * share / self._weight if self._contributors else 0.0
        torch.add(old.payload, self._pending, alpha=step, out=fresh.payload)
        for worker in self._contributors:
            self._applied[worker] += share
        self._contributors.clear()
        self.version += 1
        self.newest = self._stamped(fresh)
        if not self._lent[old.version]:
            self._unused.append(old)

    def state(self) -> dict[str, Any]:
        """What a checkpoint has to keep of the newest version."""
        return {"numbers": self.newest.payload, "applied": self._applied}

    def restore(self, version: int, state: dict[str, Any]) -> None:
        """The newest version is this one, of a checkpoint; nobody has been lent one yet."""
        self.version = version
        self._applied = list(state["applied"])
        self.newest.payload.copy_(state["numbers"])
        self._stamped(self.newest)

    def end(self) -> None:
        """There will be no other version: the newest tells to stop, also where that is earlier than was foreseen."""
        if not self.newest.stop:
            last, self.newest = self.newest, Message(self._floats)
            self.newest.payload.copy_(last.payload)
            self.newest.write(MessageKind.ANSWER, version=self.version, stop=True)

    def lend(self) -> Message:
        """The newest version, to be given back."""
        self._lent[self.version] += 1
        return self.newest

    def take_back(self, message: Message) -> None:
        """Somebody needs this version no more; when nobody does, its buffer is for a later one."""
        self._lent[message.version] -= 1
        if not self._lent[message.version] and message is not self.newest:
            self._unused.append(message)

    def verify(self) -> None:
        """Raises DisagreementError where the parameters are not those that the added gradients lead to.

        That is known of the pattern alone.
        """
        if not self._is_pattern:
            return
        factor = sum((worker + 1) * applied for worker, applied in enumerate(self._applied))
        expected = pattern(self._floats) * (-LEARNING_RATE * factor)
        # Each update may round once, by half a unit in the last place of float32.
        tolerance = 2.0**-23 * (2 + self.version)
        if not torch.allclose(self.newest.payload, expected, rtol=tolerance, atol=0.0):
            raise DisagreementError("the server's parameters are not what the gradients it applied lead to")

    def _stamped(self, message: Message) -> Message:
        message.write(MessageKind.ANSWER, version=self.version, stop=self.version == self._last_version)
        return message
