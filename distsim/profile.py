"""The profile of a model: what its layers weigh, and when their gradients are there. `distsim profile` measures it.

A layer is one parameter that gets a gradient. The layers stand in the order in which backward makes their gradients.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import ConfigDict, TypeAdapter, ValidationError

from distsim import files
from distsim.errors import InputError
from distsim.scenario_errors import findings
from distsim.units import BOUNDS, show
from distsim.validated_table import LARGEST_COUNT

LARGEST_MEGABYTES = 10
LARGEST_NAME = 1000  # characters
CURE = "name a file that distsim profile wrote"
BUSY_STEP = 1.25  # times as long as the step's own core-seconds: other work had the core
FASTEST_PACE = 1.15  # beside one worker alone; two workers cannot make each other faster, but times vary
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

Time = Annotated[float, Ge(0.0), Le(BOUNDS["second"][1])]
Quartiles = tuple[Time, Time]
Size = Annotated[int, Ge(0), Le(int(BOUNDS["byte"][1]))]
Count = Annotated[int, Ge(1), Le(LARGEST_COUNT)]
Pace = Annotated[float, Gt(0.0), Le(1e6)]
Name = Annotated[str, MinLen(1), MaxLen(LARGEST_NAME)]


@dataclass(frozen=True)
class Layer:
    """One parameter that gets a gradient. Times are medians over the steps of one batch, in seconds.

    bytes: of the gradient. forward_seconds: the layer's share of forward. ready_seconds: from the start of backward
    until the gradient is there. quartiles: of the same times, over the steps. needed_ahead: how many gradients before
    this layer's own are still missing when backward first needs its parameters. Of a linear layer, say, backward uses
    the weights before it has the gradient of the biases.
    """

    __pydantic_config__: ClassVar = STRICT

    name: Name
    bytes: Size
    forward_seconds: Time
    ready_seconds: Time
    forward_quartiles: Quartiles
    ready_quartiles: Quartiles
    needed_ahead: Annotated[int, Ge(0), Le(100_000)] = 0


@dataclass(frozen=True)
class CoreSeconds:
    """Seconds of a core that each part of a step takes; more than the part's own time where threads share the work."""

    __pydantic_config__: ClassVar = STRICT

    forward: Time
    backward: Time
    optimizer: Time


@dataclass(frozen=True)
class BusyCores:
    """How much slower workers compute at once than one alone.

    pace: of each of `workers` workers that have a core of their own, beside the pace of one alone. shared_pace: of each
    of two cores that four workers share, beside the pace of one alone; None where not measured.
    """

    __pydantic_config__: ClassVar = STRICT

    workers: Annotated[int, Ge(2), Le(LARGEST_COUNT)]
    pace: Pace
    shared_pace: Pace | None = None

    def too_fast(self) -> list[str]:
        """A sentence for each pace that no machine has, since workers do not make each other faster."""
        paces = {"workers with a core each": self.pace, "each core that workers share": self.shared_pace}
        return [
            f"{who} computed at {100 * pace:.0f} % of the pace of one alone"
            for who, pace in paces.items()
            if pace and pace > FASTEST_PACE
        ]


@dataclass(frozen=True)
class Profile:
    """What one batch of a model takes on one device, alone.

    model: "my_model.py:build", without its folder. layers: in the order of their gradients, first gradient first.
    optimizer_seconds: one step of SGD. peak_bytes: the most memory held in a step: parameters, gradients, the batch and
    what forward and backward make. passing_bytes: how much less it is without the gradients that backward has made and
    not yet added to those kept. frozen_bytes: how much of it are parameters without gradients, and buffers. batch:
    samples. device: "cpu", or the GPU's name. torch: the version. steps: how many were timed. ddp_seconds: of a step of
    one worker under DDP, which handles gradients more often, without its all-reduce. busy: how workers compute at once.
    Both are None where they were not measured. Raises ValueError where the gradients' times do not grow, parameters are
    needed ahead of more gradients than there are, or there are no bytes or no time.

    >>> layer = Layer("weight", 4000, 0.001, 0.002, (0.001, 0.001), (0.002, 0.002))
    >>> found = Profile("m.py:build", (layer,), 0.0005, (0.0005, 0.0005), CoreSeconds(1e-3, 2e-3, 5e-4), 9000, 32,
    ...                 "cpu", "2.9", steps=10)
    >>> round(found.step_seconds, 4), found.gradient_bytes
    (0.0035, 4000)
    """

    __pydantic_config__: ClassVar = STRICT

    model: Name
    layers: Annotated[tuple[Layer, ...], MinLen(1), MaxLen(100_000)]
    optimizer_seconds: Time
    optimizer_quartiles: Quartiles
    core_seconds: CoreSeconds
    peak_bytes: Size
    batch: Count
    device: Name
    torch: Name
    steps: Count
    busy: BusyCores | None = None
    ddp_seconds: Annotated[float, Gt(0.0), Le(BOUNDS["second"][1])] | None = None
    passing_bytes: Size = 0
    frozen_bytes: Size = 0
    distsim_profile: Literal[1] = 1

    def __post_init__(self) -> None:
        for number, layer in enumerate(self.layers):
            if layer.needed_ahead > number:
                raise ValueError(
                    f"has {layer.name} needed ahead of {layer.needed_ahead} gradients, and only {number} come before"
                )
        for before, after in pairwise(self.layers):
            if after.ready_seconds < before.ready_seconds:
                raise ValueError(
                    f"has the gradient of {after.name} after that of {before.name}, and it is ready before it"
                )
        if not self.gradient_bytes:
            raise ValueError("has gradients of 0 bytes in all")
        if self.step_seconds < (least := BOUNDS["second"][0]):
            raise ValueError(f"has a step of {self.step_seconds:g} seconds, and the least is {least:g}")

    @cached_property
    def gradient_bytes(self) -> int:
        """Bytes of all gradients."""
        return sum(layer.bytes for layer in self.layers)

    @property
    def activation_bytes(self) -> int:
        """Bytes of the peak that are neither parameters nor gradients; 0 where the peak was not measured."""
        return max(self.peak_bytes - self.passing_bytes - self.frozen_bytes - 2 * self.gradient_bytes, 0)

    @cached_property
    def forward_seconds(self) -> float:
        """Seconds of a forward."""
        return sum(layer.forward_seconds for layer in self.layers)

    @property
    def backward_seconds(self) -> float:
        """Seconds of a backward: until the last gradient is there."""
        return self.layers[-1].ready_seconds

    @cached_property
    def layer_seconds(self) -> list[tuple[float, float]]:
        """Seconds of forward and of backward of each layer, in the order of forward."""
        ready = [0.0, *(layer.ready_seconds for layer in self.layers)]
        backward = [after - before for before, after in pairwise(ready)]
        return [(layer.forward_seconds, own) for layer, own in zip(self.layers, backward, strict=True)][::-1]

    def forward_share(self, first: int, end: int) -> float:
        """The share of forward in the layers from `first` to before `end`, in the order of forward: of its time."""
        seconds = [forward for forward, _ in self.layer_seconds]
        whole = sum(seconds)
        return sum(seconds[first:end]) / whole if whole else (end - first) / len(seconds)

    @cached_property
    def of_module_ahead(self) -> list[int]:
        """For each layer, in the order of forward, how many layers after it the last one of its module is."""
        modules = [_module_of(layer) for layer in reversed(self.layers)]
        last = {module: number for number, module in enumerate(modules)}
        return [last[module] - number for number, module in enumerate(modules)]

    @property
    def step_seconds(self) -> float:
        """Seconds of forward, backward and optimizer."""
        return self.forward_seconds + self.backward_seconds + self.optimizer_seconds

    def warnings(self) -> list[str]:
        """A sentence if these times tell that the machine did other work while they were measured."""
        spent = sum(asdict(self.core_seconds).values())
        signs = []
        if self.device == "cpu" and spent and self.step_seconds > BUSY_STEP * spent:
            signs.append(f"a step took {show(self.step_seconds, 'second')}, and only {show(spent, 'second')} of a core")
        signs += self.busy.too_fast() if self.busy else []
        cure = "do not trust predictions from this profile: measure it again while nothing else runs"
        return [f"the machine did other work while {self.model} was measured: {', and '.join(signs)}; {cure}"] * bool(
            signs
        )

    def as_dict(self) -> dict[str, Any]:
        """The content of the file as plain values."""
        return asdict(self)

    def save(self, path: Path) -> None:
        """Writes the profile as JSON."""
        files.write_text(path, json.dumps(self.as_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Profile:
        """Reads a file that `save` wrote. Raises InputError."""
        try:
            return cls.loads(files.read(path, LARGEST_MEGABYTES))
        except OSError as error:
            rule = f"cannot be read ({error.strerror})"
        except ValidationError as error:
            rule = f"is not a profile that distsim wrote ({findings(error)})"
        raise InputError.of("profile", str(path), rule, CURE)

    @classmethod
    def loads(cls, content: str | bytes) -> Profile:
        """The profile written as JSON. Raises pydantic's ValidationError."""
        return TypeAdapter(cls).validate_json(content)


@dataclass(frozen=True)
class AddedTimes:
    """The seconds that a profile adds to a step of distributed data parallel training; all 0 without a profile.

    optimizer: before the forward after an update. buckets: by bucket, from the moment when the gradients of the bucket
    before are there (or backward begins) until those of this bucket are there. forwards: of the same layers.
    """

    optimizer: float
    forward: float
    buckets: tuple[float, ...]
    forwards: tuple[float, ...]

    @property
    def computed(self) -> float:
        """Forward and backward."""
        return self.forward + sum(self.buckets)


def added_times(profile: Profile | None, bucket_layers: Sequence[int]) -> AddedTimes:
    """What `profile` adds to a step under DDP. bucket_layers: by bucket, its layers, in the order of their gradients.

    >>> added_times(None, [1, 3])
    AddedTimes(optimizer=0.0, forward=0.0, buckets=(0.0, 0.0), forwards=(0.0, 0.0))
    """
    if profile is None:
        return AddedTimes(0.0, 0.0, (0.0,) * len(bucket_layers), (0.0,) * len(bucket_layers))
    bounds = [0, *accumulate(bucket_layers)]
    ready = [0.0, *(profile.layers[last - 1].ready_seconds for last in bounds[1:])]
    slower = (profile.ddp_seconds or profile.step_seconds) / profile.step_seconds
    gaps = tuple(slower * (after - before) for before, after in pairwise(ready))
    forwards = tuple(
        slower * sum(layer.forward_seconds for layer in profile.layers[first:end]) for first, end in pairwise(bounds)
    )
    return AddedTimes(slower * profile.optimizer_seconds, slower * profile.forward_seconds, gaps, forwards)


def stage_cuts(profile: Profile, stages: int, stage_layers: Sequence[int] = ()) -> list[int]:
    """The end of each stage of a pipeline among the layers in the order of forward.

    stage_layers: how many layers each stage has, first stage first. Without it the cuts are such that the slowest stage
    is as fast as it can be; each stage has neighbouring layers, at least one. Layers of one module stay together, where
    there are as many modules as stages. Raises InputError where there are fewer layers than stages.
    """
    if len(profile.layers) < stages:
        raise InputError.of(
            "cluster.workers", stages, f"are more stages than the {len(profile.layers)} layers of the profile",
            f"write {len(profile.layers)} or fewer",
        )  # fmt: skip
    if stage_layers:
        return list(accumulate(stage_layers))
    ends = [*accumulate(len([*layers]) for _, layers in groupby(reversed(profile.layers), key=_module_of))]
    if len(ends) < stages:
        ends = [*range(1, len(profile.layers) + 1)]
    each = [sum(seconds) for seconds in profile.layer_seconds]
    cuts = _balanced([sum(each[first:end]) for first, end in pairwise([0, *ends])], stages)
    return [ends[cut - 1] for cut in cuts]


def _module_of(layer: Layer) -> str:
    """The module of a parameter such as "layers.0.weight"; a layer without a module is alone."""
    return layer.name.rpartition(".")[0] or layer.name


def _balanced(seconds: Sequence[float], parts: int) -> list[int]:
    """The end of each of `parts` neighbouring parts, none of them empty, whose largest sum is the least possible."""
    until = [0.0, *accumulate(seconds)]
    least: list[list[float]] = [until]  # by parts - 1 and by end: the largest sum of the best cut
    cuts: list[list[int]] = [[0] * len(until)]
    for part in range(1, parts):
        row, cut = [0.0] * len(until), [0] * len(until)
        for end in range(part + 1, len(until)):
            row[end], cut[end] = min(
                (max(least[-1][start], until[end] - until[start]), start) for start in range(part, end)
            )
        least.append(row)
        cuts.append(cut)
    ends = [len(seconds)]
    for cut in reversed(cuts[1:]):
        ends.append(cut[ends[-1]])
    return ends[::-1]


def read_profile(given: object, folder: Path) -> Profile:
    """The profile of a scenario: a path as the scenario's file gives it, or the content as a trace keeps it.

    Raises InputError.
    """
    if isinstance(given, Profile):
        return given
    if isinstance(given, str):
        return Profile.load(folder / given)
    if not isinstance(given, dict):
        raise InputError.of("profile", given, "must be the path of a profile", CURE)
    try:
        return Profile.loads(json.dumps(given))
    except (ValidationError, TypeError) as error:
        rule = findings(error) if isinstance(error, ValidationError) else str(error)
        raise InputError.of("profile", "a table", f"is not a profile that distsim wrote ({rule})", CURE) from None
