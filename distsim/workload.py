"""The `[workload]` table: the model, the batch and the sizes of what is sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from distsim.errors import InputError
from distsim.profile import AddedTimes, Profile, added_times, read_profile
from distsim.units import Bytes
from distsim.validated_table import Count, ValidatedTable

Model = Literal["mlp", "cnn", "transformer"]  # those of distsim; a model of the user's own is "my_model.py:build"
MODELS: tuple[str, ...] = get_args(Model)
OWN_MODEL = re.compile(r"(?P<file>.+\.py):(?P<function>[^\W\d]\w*)")
FLOAT_BYTES = 4
# Parameters of each layer, weights and biases; `distsim.learning.problems` builds the layers themselves.
LAYER_PARAMETERS: dict[str, tuple[int, ...]] = {
    "mlp": (64 * 64 + 64, 64 * 10 + 10),
    "cnn": (9 * 1 * 8 + 8, 9 * 8 * 16 + 16, 256 * 10 + 10),
}
TRAINING_SAMPLES = {"mlp": 1437, "cnn": 1437, "transformer": 1024}
HEADS = 4  # of attention in a transformer's block; they share its width
TOKENS = 8  # of each of a transformer's samples


def block_parameters(width: int) -> int:
    """Parameters of one transformer block, weights and biases.

    Attention has 4 (w^2 + w), the two layers of its perceptron 4 w^2 + 4 w and 4 w^2 + w, and two norms 2 w each.

    >>> block_parameters(64)
    49984
    """
    return 12 * width**2 + 13 * width


def _known_model(model: str) -> str:
    if model not in MODELS and not OWN_MODEL.fullmatch(model):
        raise ValueError(
            "must be 'mlp', 'cnn' or 'transformer', or a function of yours in a Python file. "
            'Cure: take one of these, or write model = "my_model.py:build"'
        )
    return model


class Workload(ValidatedTable):
    """The `[workload]` table: bytes of a gradient (and of the parameters), and samples per worker and step.

    model: real forward and backward of this model in real runs; the gradient's size follows from it, and the drawn
    compute time is added. "mlp" and "cnn" learn scikit-learn's digits; "transformer" is `layers` blocks of `width`
    on made-up data; "my_model.py:build" is a function without arguments that returns a module and a batch. profile:
    what `distsim profile` found; simulations take sizes and times from it. layers: of equal compute time and, without
    a model, equal gradient bytes; a profile has its own. backward_share: of the drawn compute time; the rest is
    forward. activation_bytes: sent by one stage of a pipeline to the next for a whole batch.

    >>> Workload(gradient="4 MiB", batch=32).gradient_bytes
    4194304.0
    >>> Workload(model="mlp").num_bytes    # 4 bytes for each of 64 x 64 + 64 and 64 x 10 + 10 parameters
    19240.0
    """

    gradient_bytes: Bytes | None = Field(default=None, alias="gradient")
    batch: Count = 1
    model: Annotated[str, AfterValidator(_known_model)] | None = None
    profile: Profile | None = None
    width: Annotated[int, Field(ge=HEADS, le=100_000, multiple_of=HEADS)] = 64
    samples: Annotated[int, Field(ge=1, le=10**15)] | None = None
    layers: Annotated[int, Field(ge=1, le=100_000)] = 16
    backward_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 2 / 3
    activation_bytes: Bytes | None = Field(default=None, alias="activation")
    input_bytes: Bytes | None = Field(default=None, alias="input")
    output_bytes: Bytes | None = Field(default=None, alias="output")

    @model_validator(mode="before")
    @classmethod
    def _of_the_model(cls, table: Any, info: ValidationInfo) -> Any:
        """Finds the files beside the scenario, and sets `layers` and `batch` where model or profile has its own."""
        if not isinstance(table, dict):
            return table
        folder: Path = (info.context or {}).get("folder", Path())
        own: dict[str, Any] = {}
        model = table.get("model")
        if str(model) in LAYER_PARAMETERS:
            own["layers"] = len(LAYER_PARAMETERS[str(model)])
        elif isinstance(model, str) and OWN_MODEL.fullmatch(model):
            table = table | {"model": str(folder / model)}
        if table.get("profile") is not None:
            profile = read_profile(table["profile"], folder)
            table = table | {"profile": profile}
            own |= {"layers": len(profile.layers), "batch": profile.batch}
        return own | table

    @model_validator(mode="after")
    def _check_profile(self) -> Workload:
        profile = self.profile
        if profile is None:
            return self
        if self.model in MODELS:
            raise ValueError(
                f"profile is one of {profile.model}, and model = {self.model!r} is another. Cure: remove one of the two"
            )
        if self.gradient_bytes is not None:
            raise ValueError(
                f"gradient follows from the profile, whose layers have {profile.gradient_bytes} bytes. "
                "Cure: remove gradient"
            )
        for key, value, found, cure in (
            ("layers", self.layers, len(profile.layers), "remove layers"),
            ("batch", self.batch, profile.batch, f"remove batch, or run distsim profile --batch {self.batch}"),
        ):
            if value != found:
                raise ValueError(f"{key} = {value} does not fit the profile, which has {found}. Cure: {cure}")
        return self

    @model_validator(mode="after")
    def _check_model(self) -> Workload:
        if self.own_model and self.gradient_bytes is not None:
            raise ValueError(f"gradient follows from model = {self.model!r}. Cure: remove gradient")
        if self.model is not None and self.gradient_bytes is not None:
            raise ValueError(
                f"gradient follows from model = {self.model!r}, which has one of {self._model_bytes:.0f} bytes. "
                "Cure: remove one of the two"
            )
        if self.model != "transformer" and "width" in self.model_fields_set:
            raise ValueError(f'width = {self.width} goes with model = "transformer" alone. Cure: remove it')
        own = LAYER_PARAMETERS.get(self.model or "")
        if own is not None and self.layers != len(own):
            raise ValueError(
                f"layers = {self.layers} does not fit model = {self.model!r}, which has {len(own)}. Cure: remove layers"
            )
        return self

    @property
    def known_model(self) -> Model | None:
        """The model if it is one of distsim's, whose seconds a calibration tells; otherwise None."""
        return cast(Model, self.model) if self.model in MODELS else None

    @property
    def own_model(self) -> bool:
        """Whether the model is a function of the user's own."""
        return self.model is not None and self.known_model is None

    @property
    def computes(self) -> bool:
        """Whether a step computes something beside the drawn time."""
        return self.model is not None or self.profile is not None

    @property
    def heads(self) -> int:
        """Heads of attention in each block of a transformer."""
        return HEADS

    @property
    def handed_on_bytes(self) -> float | None:
        """`activation_bytes` where given; otherwise those of a transformer, which each block hands on whole.

        >>> Workload(model="transformer", width=64, batch=2).handed_on_bytes    # 2 samples of 8 tokens of 64 numbers
        4096.0
        """
        if self.activation_bytes is None and self.model == "transformer":
            return float(FLOAT_BYTES * self.batch * TOKENS * self.width)
        return self.activation_bytes

    @property
    def layer_bytes(self) -> list[float]:
        """Bytes of each layer's gradient, first layer first. The workload must have a gradient or a model.

        Raises InputError where only a profile could tell.
        """
        if self.profile is not None:
            return [float(layer.bytes) for layer in reversed(self.profile.layers)]
        if self.model is None:
            assert self.gradient_bytes is not None, "checked when the scenario was read"
            return [self.gradient_bytes / self.layers] * self.layers
        if self.known_model is None:
            raise unprofiled(self.model)
        if self.model == "transformer":
            return [float(FLOAT_BYTES * block_parameters(self.width))] * self.layers
        return [float(FLOAT_BYTES * parameters) for parameters in LAYER_PARAMETERS[self.model]]

    def part_bytes(self, workers: int) -> list[float]:
        """For each layer, the bytes of its gradient at the worker with most of it, where `workers` share every layer.

        Of an unknown model, an even part. Of a transformer's block, a worker has some heads and some hidden units, and
        both norms and the biases behind the two sums whole.

        >>> Workload(gradient="8 MB", layers=2).part_bytes(4), Workload(model="transformer", layers=1).part_bytes(2)
        ([1000000.0, 1000000.0], [100736.0])
        """
        if self.model != "transformer":
            return [layer / workers for layer in self.layer_bytes]
        width, heads, hidden = self.width, ceil(self.heads / workers), ceil(4 * self.width / workers)
        attention = (4 * width + 3) * width * heads // self.heads  # queries, keys, values, and their way out
        perceptron = (2 * width + 1) * hidden
        whole = 6 * width
        return [float(FLOAT_BYTES * (attention + perceptron + whole))] * self.layers

    @property
    def ready_shares(self) -> list[float]:
        """The share of backward at whose end each layer's gradient is there, in the order of the gradients.

        >>> Workload(gradient="4 MB", layers=4).ready_shares
        [0.25, 0.5, 0.75, 1.0]
        """
        profile = self.profile
        if profile is None or not profile.backward_seconds:
            return [(layer + 1) / self.layers for layer in range(self.layers)]
        return [layer.ready_seconds / profile.backward_seconds for layer in profile.layers]

    def added_times(self, bucket_layers: Sequence[int]) -> AddedTimes:
        """What the profile adds to a step. bucket_layers: by bucket, its layers, in the order of their gradients."""
        return added_times(self.profile, bucket_layers)

    @property
    def idle_layers(self) -> list[bool]:
        """For each layer, first layer first, whether its forward computes nothing, as that of an embedding.

        Where no layer's forward takes any time, none is idle.
        """
        if self.profile is None or not self.profile.forward_seconds:
            return [False] * self.layers
        return [not layer.forward_seconds for layer in reversed(self.profile.layers)]

    @property
    def needed_ahead(self) -> list[int]:
        """For each layer, first layer first, how many layers after it still lack their gradients when backward first
        needs its parameters.
        """
        if self.profile is None:
            return [0] * self.layers
        return [layer.needed_ahead for layer in reversed(self.profile.layers)]

    @property
    def used_ahead(self) -> list[int]:
        """For each layer, first layer first, how many layers after it forward still computes with its parameters.

        A module computes with all its parameters at once. What backward needs together, forward needs together, too.
        """
        if self.profile is None:
            return [0] * self.layers
        pairs = zip(self.profile.of_module_ahead, self.needed_ahead, strict=True)
        return [max(pair) for pair in pairs]

    @property
    def blocks(self) -> int:
        """How many layers compute something in forward."""
        return self.layers - sum(self.idle_layers)

    @property
    def num_bytes(self) -> float | None:
        """Bytes of one gradient, given or following from the model; None where there is neither.

        Raises InputError where only a profile could tell.
        """
        return self._model_bytes if self.computes else self.gradient_bytes

    @property
    def _model_bytes(self) -> float:
        return sum(self.layer_bytes)


def unprofiled(model: str) -> InputError:
    """The error where sizes and times of a user's own model are needed, and no profile tells them."""
    name = Path(model).name
    return InputError.of(
        "workload.model", model, "is a model of your own, and only its profile tells its sizes and times",
        f'run distsim profile {name} --out profile.json, and write profile = "profile.json" in [workload]',
    )  # fmt: skip
