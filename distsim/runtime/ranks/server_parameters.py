"""The parameters that one server keeps, version after version, and the gradients for the next version."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch

from distsim.runtime.transport.messages import Message, MessageKind, pattern

LEARNING_RATE = 2.0**-10


class DisagreementError(RuntimeError):
    """At the end of a run, a worker's parameters or the server's own parameters are wrong."""


@dataclass(frozen=True)
class FirstParameters:
    """The first parameters of a model, flat, and its learning rate."""

    values: torch.Tensor
    learning_rate: float


class Parameters:
    """Each version is a message, ready to be sent. It does not change while it is the newest version or is lent.

    last_version: the version whose message says stop. weight: the factor by which gradients are too large.
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
        self._lent: Counter[int] = Counter()  # by version: to how many workers
        self._pending = torch.zeros(floats)
        self._contributors: list[int] = []  # the workers whose gradients are pending
        self._applied = [0.0] * workers  # sum over updates of 1 / gradients in the update
        self.newest = self._stamped(Message(floats))
        if first is not None:
            self.newest.payload[: first.values.numel()].copy_(first.values)

    def add(self, worker: int, gradient: torch.Tensor) -> None:
        """Adds the worker's gradient to the next version."""
        if self._contributors:
            self._pending.add_(gradient)
        else:
            self._pending.copy_(gradient)
        self._contributors.append(worker)

    def update(self) -> None:
        """Makes a new version: one step against the mean of the gradients that have been added since the last."""
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
        """The state of the newest version for a checkpoint."""
        return {"numbers": self.newest.payload, "applied": self._applied}

    def restore(self, version: int, state: dict[str, Any]) -> None:
        """Goes on from version `version` of a checkpoint, before any version has been lent."""
        self.version = version
        self._applied = list(state["applied"])
        self.newest.payload.copy_(state["numbers"])
        self._stamped(self.newest)

    def end(self) -> None:
        """Makes the newest version the last: its message says stop, also where that comes earlier than planned."""
        if not self.newest.stop:
            last, self.newest = self.newest, Message(self._floats)
            self.newest.payload.copy_(last.payload)
            self.newest.write(MessageKind.ANSWER, version=self.version, stop=True)

    def lend(self) -> Message:
        """Lends the newest version, until `take_back`."""
        self._lent[self.version] += 1
        return self.newest

    def take_back(self, message: Message) -> None:
        """A worker no longer needs this version. When no worker does, a later version may use its buffer."""
        self._lent[message.version] -= 1
        if not self._lent[message.version] and message is not self.newest:
            self._unused.append(message)

    def verify(self) -> None:
        """Raises DisagreementError where the parameters do not follow from the added gradients.

        Checks only without a model, where the right parameters are known.
        """
        if not self._is_pattern:
            return
        factor = sum((worker + 1) * applied for worker, applied in enumerate(self._applied))
        expected = pattern(self._floats) * (-LEARNING_RATE * factor)
        # Each update may be rounded once, by half a unit in the last place of float32.
        tolerance = 2.0**-23 * (2 + self.version)
        if not torch.allclose(self.newest.payload, expected, rtol=tolerance, atol=0.0):
            raise DisagreementError("the server's parameters are not what the gradients it applied lead to")

    def _stamped(self, message: Message) -> Message:
        message.write(MessageKind.ANSWER, version=self.version, stop=self.version == self._last_version)
        return message
