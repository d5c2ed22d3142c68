"""A worker's model beside its servers: parameters come from them in shares, and its gradient goes to them in shares."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import torch

from distsim.runtime.ranks.computation import Training
from distsim.runtime.transport.messages import Message


def shares(floats: int, servers: int) -> list[slice]:
    """The parameters that each server keeps, in order: equally many each, and what is left by the last.

    >>> shares(10, 3)
    [slice(0, 4, None), slice(4, 8, None), slice(8, 10, None)]
    """
    each = math.ceil(floats / servers)
    return [slice(min(server * each, floats), min((server + 1) * each, floats)) for server in range(servers)]


class WorkerModel:
    """One worker's model. gradients: for each server the message that its share is pushed with."""

    def __init__(self, training: Training, gradients: Sequence[Message]) -> None:
        self._training = training
        self._to_servers = [
            (training.gradient[share], message.payload[: share.stop - share.start])
            for share, message in zip(shares(training.gradient.numel(), len(gradients)), gradients, strict=True)
        ]
        self._own = [training.parameters[share] for share in shares(training.parameters.numel(), len(gradients))]

    def work(self, step: int, start: float) -> float:
        """Forward and backward of a step that begins at `start`; when they are over, in monotonic seconds."""
        self._training.work(step, start)
        for gradient, payload in self._to_servers:
            payload.copy_(gradient)
        return time.monotonic()

    def adopt(self, answers: Sequence[torch.Tensor]) -> None:
        """The parameters that each server has answered with become the model's."""
        for own, answer in zip(self._own, answers, strict=True):
            own.copy_(answer[: own.numel()])
