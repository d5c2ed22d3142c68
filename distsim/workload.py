"""The `[workload]` table: the model, the batch and the sizes of what is sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from distsim.units import Bytes
from distsim.validated_table import Count, ValidatedTable

Model = Literal["mlp", "cnn", "transformer"]
FLOAT_BYTES = 4
# Parameters of each layer, weights and biases; `distsim.learning.problems` builds the layers themselves.
LAYER_PARAMETERS: dict[str, tuple[int, ...]] = {
    "mlp": (64 * 64 + 64, 64 * 10 + 10),
    "cnn": (9 * 1 * 8 + 8, 9 * 8 * 16 + 16, 256 * 10 + 10),
}
TRAINING_SAMPLES = {"mlp": 1437, "cnn": 1437, "transformer": 1024}
HEADS = 4  # of attention in a transformer's block; they share its width


def block_parameters(width: int) -> int:
    """Parameters of one transformer block, weights and biases.

    Attention has 4 (w^2 + w), the two layers of its perceptron 4 w^2 + 4 w and 4 w^2 + w, and two norms 2 w each.

    >>> block_parameters(64)
    49984
    """
    return 12 * width**2 + 13 * width


class Workload(ValidatedTable):
    """The `[workload]` table: bytes of a gradient (and of the parameters), and samples per worker and step.

    model: real forward and backward of this model in real runs; the gradient's size follows from it, and the drawn
    compute time is added. "mlp" and "cnn" learn scikit-learn's digits; "transformer" is `layers` blocks of `width`
    on made-up data. layers: of equal compute time and, without a model, equal gradient bytes. backward_share: of the
    compute time; the rest is forward. activation_bytes: sent by one stage of a pipeline to the next for a whole batch.

    >>> Workload(gradient="4 MiB", batch=32).gradient_bytes
    4194304.0
    >>> Workload(model="mlp").num_bytes    # 4 bytes for each of 64 x 64 + 64 and 64 x 10 + 10 parameters
    19240.0
    """

    gradient_bytes: Bytes | None = Field(default=None, alias="gradient")
    batch: Count = 1
    model: Model | None = None
    width: Annotated[int, Field(ge=HEADS, le=100_000, multiple_of=HEADS)] = 64
    samples: Annotated[int, Field(ge=1, le=10**15)] | None = None
    layers: Annotated[int, Field(ge=1, le=100_000)] = 16
    backward_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 2 / 3
    activation_bytes: Bytes | None = Field(default=None, alias="activation")
    input_bytes: Bytes | None = Field(default=None, alias="input")
    output_bytes: Bytes | None = Field(default=None, alias="output")

    @model_validator(mode="before")
    @classmethod
    def _layers_of_the_model(cls, table: Any) -> Any:
        """Sets `layers` where the model has its own number of layers."""
        if not isinstance(table, dict) or "layers" in table:
            return table
        own = LAYER_PARAMETERS.get(str(table.get("model")))
        return table if own is None else table | {"layers": len(own)}

    @model_validator(mode="after")
    def _check_model(self) -> Workload:
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
    def layer_bytes(self) -> list[float]:
        """Bytes of each layer's gradient, first layer first. The workload must have a gradient or a model."""
        if self.model is None:
            assert self.gradient_bytes is not None, "checked when the scenario was read"
            return [self.gradient_bytes / self.layers] * self.layers
        if self.model == "transformer":
            return [float(FLOAT_BYTES * block_parameters(self.width))] * self.layers
        return [float(FLOAT_BYTES * parameters) for parameters in LAYER_PARAMETERS[self.model]]

    @property
    def num_bytes(self) -> float | None:
        """Bytes of one gradient, given or following from the model; None where there is neither."""
        return self.gradient_bytes if self.model is None else self._model_bytes

    @property
    def _model_bytes(self) -> float:
        return sum(self.layer_bytes)
