"""Reads a profile from a trace of `torch.profiler`, for a model that was run elsewhere, such as on a cluster.

A step is what lies between two calls of `prof.step()`. In a step, `AccumulateGrad` is where a parameter gets its
gradient. Forward is mapped to layers by autograd's sequence numbers, which an operation shares with its backward.
On a GPU a moment of the CPU counts as the end of the last kernel that was launched before it; kernels of NCCL do not
count, since they belong to the exchange.
"""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from distsim import files
from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.profile import CoreSeconds, Layer, Profile
from distsim.scenario_errors import findings

LARGEST_MEGABYTES = 4000
MICROSECOND = 1e-6
QUARTERS = [0.25, 0.5, 0.75]
UNKNOWN = "unknown"
STEP, GRADIENT, BACKWARD = "ProfilerStep#", "torch::autograd::AccumulateGrad", "autograd::engine::evaluate_function: "
OPTIMIZER = "Optimizer."
KERNELS, LAUNCHES = ("kernel", "gpu_memcpy", "gpu_memset"), ("cuda_runtime", "cuda_driver")
ITEM_BYTES = {"float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2}
RECORD = (
    "record it with torch.profiler.profile(schedule=..., record_shapes=True), call prof.step() after each step, and "
    "write it with prof.export_chrome_trace"
)


class _Arguments(BaseModel):
    """What an event tells about itself."""

    model_config = ConfigDict(extra="ignore")

    sequence: int | None = Field(None, alias="Sequence number")
    dims: list[Any] = Field([], alias="Input Dims")
    types: list[str] = Field([], alias="Input type")
    correlation: int | None = None
    allocated: float = Field(0.0, alias="Total Allocated")


class _Event(BaseModel):
    """An event of the trace: from `ts` on for `dur`, both in microseconds."""

    model_config = ConfigDict(extra="ignore")

    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    args: _Arguments = _Arguments()

    @property
    def end(self) -> float:
        return self.ts + self.dur


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore")

    traceEvents: list[_Event]  # noqa: N815 - the file's own name
    deviceProperties: list[dict[str, Any]] = []  # noqa: N815


@dataclass(frozen=True)
class _Step:
    """One step. ready, forward: by gradient, in the order of the gradients. All times in seconds.

    sizes: what is known of each gradient, its shape and its bytes. cores: seconds of forward, backward and optimizer by
    the CPU's clock.
    """

    sizes: tuple[tuple[str, int], ...]
    ready: Floats
    forward: Floats
    optimizer: float
    cores: tuple[float, float, float]


def read_profiler_trace(path: Path, batch: int) -> Profile:
    """The profile in a trace that `prof.export_chrome_trace` wrote, plain or packed by gzip.

    A last step in which the profiler stopped before backward does not count.

    batch: samples of a step, which a trace does not tell. Layers have no names there, so they are numbered. peak_bytes
    is 0 unless memory was profiled. Raises InputError where the trace lacks what a profile needs.
    """
    found = _read(path)
    events = sorted(found.traceEvents, key=lambda event: event.ts)
    device = _Device.of(events)
    windows = [event for event in events if event.name.startswith(STEP) and event.cat == "user_annotation"]
    within = [_within(events, window) for window in windows]
    if len(within) > 1 and not any(event.name == GRADIENT for event in within[-1]):
        within.pop()  # the profiler stopped in it
    steps = [_step(path, of_step, device) for of_step in within]
    if not steps:
        raise _lacks(path, "has no step")
    if len({step.sizes for step in steps}) > 1:
        raise _lacks(path, "has steps that differ in their gradients, so one profile cannot stand for them")
    shapes = steps[0].sizes
    ready, forward = (np.array([getattr(step, part) for step in steps]) for part in ("ready", "forward"))
    low, middle, high = np.quantile(ready, QUARTERS, axis=0)
    less, passed, more = np.quantile(forward, QUARTERS, axis=0)
    layers = tuple(
        Layer(
            f"gradient {number + 1} ({shape})", num_bytes, float(passed[number]), float(middle[number]),
            (float(less[number]), float(more[number])), (float(low[number]), float(high[number])),
        )
        for number, (shape, num_bytes) in enumerate(shapes)
    )  # fmt: skip
    below, optimizer, above = np.quantile([step.optimizer for step in steps], QUARTERS)
    cores = np.median([step.cores for step in steps], axis=0)
    return Profile(
        path.name, layers, float(optimizer), (float(below), float(above)), CoreSeconds(*map(float, cores)),
        int(max(event.args.allocated for event in events)), batch,
        str(found.deviceProperties[0].get("name", "GPU")) if device.ends else "cpu", UNKNOWN, len(steps),
    )  # fmt: skip


def _read(path: Path) -> _File:
    try:
        content = files.read(path, LARGEST_MEGABYTES)
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        return TypeAdapter(_File).validate_json(content)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        cure = "name the trace of one rank"
        raise InputError.of("profiler trace", str(path), f"cannot be read ({reason})", cure) from None
    except ValidationError as error:
        raise _lacks(path, f"is not a trace of torch.profiler ({findings(error)})") from None


def _lacks(path: Path, rule: str) -> InputError:
    return InputError.of("profiler trace", str(path), rule, RECORD)


@dataclass(frozen=True)
class _Device:
    """When what the CPU launched was done. launches: CPU moments, rising; ends: of all kernels until each of them."""

    launches: list[float]
    ends: list[float]

    @classmethod
    def of(cls, events: Sequence[_Event]) -> _Device:
        ends = {
            event.args.correlation: event.end
            for event in events
            if event.cat in KERNELS and "nccl" not in event.name.lower()
        }
        launched = [event for event in events if event.cat in LAUNCHES and event.args.correlation in ends]
        return cls(
            [event.ts for event in launched], list(accumulate((ends[one.args.correlation] for one in launched), max))
        )

    def moment(self, cpu: float) -> float:
        """When all that was launched before this moment of the CPU was done; without a GPU the moment itself."""
        before = bisect_right(self.launches, cpu)
        return self.ends[before - 1] if before else cpu


def _within(events: Sequence[_Event], window: _Event) -> list[_Event]:
    return [event for event in events if window.ts <= event.ts and event.end <= window.end and event is not window]


def _step(path: Path, events: Sequence[_Event], device: _Device) -> _Step:
    gradients = [event for event in events if event.name == GRADIENT]
    if not gradients:
        raise _lacks(path, "has a step without backward")
    backward = [event for event in events if event.name.startswith(BACKWARD)]
    optimizing = [event for event in events if event.name.startswith(OPTIMIZER) and event.cat == "user_annotation"]
    begin = min(event.ts for event in backward)
    passing = [
        event for event in events
        if event.cat == "cpu_op" and event.args.sequence is not None and event.ts < begin
        and not any(one.ts <= event.ts <= one.end for one in optimizing)
    ]  # fmt: skip
    if not passing:
        raise _lacks(path, "has a step without forward")
    start = passing[0].ts
    forward_begins = max(start, device.moment(start))
    backward_begins = max(forward_begins, device.moment(begin))
    ready = np.array([device.moment(event.end) - backward_begins for event in gradients]) * MICROSECOND
    whole = (backward_begins - forward_begins) * MICROSECOND
    return _Step(
        tuple(_size(path, event) for event in gradients),
        np.maximum.accumulate(np.maximum(ready, 0.0)),
        _shares(_marks(gradients, backward, passing, device.moment, forward_begins), whole),
        sum(_seconds(one, device) for one in optimizing),
        (
            (begin - start) * MICROSECOND, (gradients[-1].end - begin) * MICROSECOND,
            sum(one.dur for one in optimizing) * MICROSECOND,
        ),
    )  # fmt: skip


def _size(path: Path, gradient: _Event) -> tuple[str, int]:
    """The shape in words, and the bytes."""
    dims, types = gradient.args.dims, gradient.args.types
    if not dims or not types or not isinstance(dims[0], list) or not all(isinstance(size, int) for size in dims[0]):
        raise _lacks(path, "does not tell the shapes of the gradients")
    if types[0] not in ITEM_BYTES:
        raise _lacks(path, f"has gradients of type {types[0]}, which distsim does not know")
    shape = " x ".join(str(size) for size in dims[0]) or "one number"
    return shape, int(np.prod(dims[0])) * ITEM_BYTES[types[0]]


def _seconds(annotation: _Event, device: _Device) -> float:
    begun = max(annotation.ts, device.moment(annotation.ts))
    return float(max(device.moment(annotation.end) - begun, 0.0) * MICROSECOND)


def _marks(
    gradients: Sequence[_Event], backward: Sequence[_Event], passing: Sequence[_Event],
    moment: Callable[[float], float], begin: float,
) -> Iterator[float]:  # fmt: skip
    """For each gradient, the seconds from the begin of forward until its operation was done.

    The operation is that whose backward ran last before the gradient was there.
    """
    ends: dict[int, float] = {}
    for event in passing:
        assert event.args.sequence is not None
        ends[event.args.sequence] = max(ends.get(event.args.sequence, 0.0), event.end)
    known = [(event.ts, event.args.sequence) for event in backward if event.args.sequence in ends]
    moments = [ts for ts, _ in known]
    for gradient in gradients:
        before = bisect_right(moments, gradient.ts)
        sequence = known[before - 1][1] if before else None
        yield max(moment(ends[sequence]) - begin, 0.0) * MICROSECOND if sequence is not None else 0.0


def _shares(marks: Iterator[float], whole: float) -> Floats:
    """Each layer's part of forward: from the layers that are done before until it is done; the last gets the rest."""
    done = np.minimum(np.array(list(marks)), whole)
    order = np.argsort(done, kind="stable")
    shares = np.empty(len(done))
    shares[order] = np.diff(done[order], prepend=0.0)
    shares[order[-1]] += whole - done[order[-1]]
    return shares
