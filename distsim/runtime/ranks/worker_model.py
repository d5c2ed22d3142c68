"""A worker's model: each server sends a share of its parameters, and receives a share of its gradient."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import torch

from distsim.runtime.ranks.computation import Training
from distsim.runtime.transport.messages import Message


def shares(floats: int, servers: int) -> list[slice]:
    """The parameters that each server keeps, in order: shares of equal size, the last of which may be smaller.

    >>> shares(10, 3)
    [slice(0, 4, None), slice(4, 8, None), slice(8, 10, None)]
    """
    each = math.ceil(floats / servers)
    return [slice(min(server * each, floats), min((server + 1) * each, floats)) for server in range(servers)]


class WorkerModel:
    """One worker's model. gradients: for each server, the message that pushes its share."""

    def __init__(self, training: Training, gradients: Sequence[Message]) -> None:
        self._training = training
        self._to_servers = [
            (training.gradient[share], message.payload[: share.stop - share.start])
            for share, message in zip(shares(training.gradient.numel(), len(gradients)), gradients, strict=True)
        ]
        self._own = [training.parameters[share] for share in shares(training.parameters.numel(), len(gradients))]

    def work(self, step: int, start: float) -> float:
        """Computes forward and backward of a step that begins at `start`; returns their end in monotonic seconds."""
        self._training.work(step, start)
        for gradient, payload in self._to_servers:
            payload.copy_(gradient)
        return time.monotonic()

    def adopt(self, answers: Sequence[torch.Tensor]) -> None:
        """Copies the parameters of each server's answer into the model."""
        for own, answer in zip(self._own, answers, strict=True):
            own.copy_(answer[: own.numel()])
