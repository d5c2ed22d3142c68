"""Any torch model as an objective: one flat array holds all its parameters, one after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from distsim.learning.kernels import one_thread, plain_convolutions
from distsim.learning.objective import Numbers, Samples
from distsim.learning.problems import Data, Loss, cnn, digits, mlp

Make = Callable[[], nn.Module]


class TorchModel:
    """A new model from `make`, its training data and its test data.

    loss: the mean over the samples of a batch. dtype: of parameters and inputs; float64 where rounding must not matter.
    The parameters of `start` are those that `torch.manual_seed(seed)` gives, as in real runs.

    >>> model = TorchModel.of("mlp")
    >>> loss, gradient = model.gradient(model.start(seed=0))
    >>> gradient.shape, 2.2 < loss < 2.4    # log 10 is 2.303
    ((4810,), True)
    """

    def __init__(
        self,
        make: Make,
        training: Data,
        test: Data,
        loss: Loss = nn.functional.cross_entropy,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._make = make
        self._training, self._test = (Data(data.inputs.to(dtype), data.targets) for data in (training, test))
        self._loss = loss
        self._model = make().to(dtype)
        self._parameters = torch.cat([parameter.detach().flatten() for parameter in self._model.parameters()])
        self._gradient = torch.zeros_like(self._parameters)
        self._adopt()

    @classmethod
    def of(cls, model: str, dtype: torch.dtype = torch.float32, samples: int | None = None) -> TorchModel:
        """The models of real runs on digits: "mlp" or "cnn". samples: only the first so many to learn from."""
        training, test = digits()
        if samples is not None:
            training = Data(training.inputs[:samples], training.targets[:samples])
        return cls({"mlp": mlp, "cnn": cnn}[model], training, test, dtype=dtype)

    def _adopt(self) -> None:
        """Makes the model's parameters and gradients views of the two flat tensors."""
        place = 0
        for parameter in self._model.parameters():
            own = slice(place, place + parameter.numel())
            place = own.stop
            parameter.data = self._parameters[own].view_as(parameter)
            parameter.grad = self._gradient[own].view_as(parameter)

    @property
    def samples(self) -> int:
        """The number of samples to learn from."""
        return len(self._training)

    @property
    def sizes(self) -> list[int]:
        """The number of entries of each of the model's tensors, in the order of the flat array."""
        return [parameter.numel() for parameter in self._model.parameters()]

    def start(self, seed: int) -> Numbers:
        """The parameters of a new model."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = self._make()
        flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        return np.asarray(flat.to(self._parameters.dtype).numpy())

    def gradient(self, parameters: Numbers, samples: Samples | None = None) -> tuple[float, Numbers]:
        """The mean loss and its gradient, by forward and backward."""
        self._put(parameters)
        self._gradient.zero_()
        inputs, targets = self._training.inputs, self._training.targets
        if samples is not None:
            chosen = torch.from_numpy(samples)
            inputs, targets = inputs[chosen], targets[chosen]
        with one_thread(), plain_convolutions():
            loss = self._loss(self._model(inputs), targets)
            loss.backward()  # type: ignore[no-untyped-call] # torch
        return loss.item(), self._gradient.numpy().copy()

    def loss(self, parameters: Numbers) -> float:
        """The mean loss, by one forward over all samples."""
        self._put(parameters)
        with one_thread(), torch.inference_mode():
            return self._loss(self._model(self._training.inputs), self._training.targets).item()

    def accuracy(self, parameters: Numbers) -> float:
        """The share of the test samples whose largest output belongs to the right class."""
        self._put(parameters)
        with one_thread(), torch.inference_mode():
            found = self._model(self._test.inputs).argmax(dim=1)
            return float((found == self._test.targets).double().mean())

    def _put(self, parameters: Numbers) -> None:
        self._parameters.copy_(torch.from_numpy(parameters))
