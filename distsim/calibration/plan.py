"""What `distsim calibrate` measures: scenarios with one exchange per step and next to no work, and what they show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from distsim.arrays import Floats
from distsim.calibration.exchange import WARM_UP_STEPS, exchange_seconds, exchanged_bytes
from distsim.calibration.machine import Sample
from distsim.errors import InputError
from distsim.policies import Ddp
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Spans, Trace
from distsim.units import write
from distsim.workload import FLOAT_BYTES, TRAINING_SAMPLES, Model, Workload

PASSES = 2  # over all sizes, so that a busy moment does not fall on one of them alone
SHORTEST_PAUSE, LONGEST_PAUSE = 1e-6, 1.0  # in seconds
PIPELINE_MESSAGES = 2  # of a pipeline of two stages: an activation, and its gradient back
NOMINAL_LINKS = {"bandwidth": "10 Gbit/s", "latency": "0 s"}  # what a machine's own links are called

Shows = Literal["all_reduce", "ring_schedule", "parameter_server", "point_to_point", "compute", "ddp"]


@dataclass(frozen=True)
class Probe:
    """A scenario to measure, and what it shows."""

    shows: Shows
    scenario: Scenario

    def samples(self, trace: Trace) -> Iterator[Sample]:
        """What the trace of this scenario says, family by family."""
        workers, workload = self.scenario.cluster.workers, self.scenario.workload
        if self.shows == "compute":
            yield "compute", workload.model, workers, float(workload.batch), model_seconds(trace)
            return
        if self.shows == "ddp":
            yield "ddp", workload.model, workers, float(len(buckets(self.scenario))), ddp_seconds(trace)
            return
        amount, seconds = exchanged_bytes(self.scenario), exchange_seconds(trace)
        if self.shows == "point_to_point":
            seconds = seconds / PIPELINE_MESSAGES
        yield self.shows, None, workers, amount, seconds
        if self.shows == "parameter_server":
            gathers, applies, broadcasts = server_seconds(trace)
            yield "gather", None, workers, amount, gathers
            yield "apply", None, workers, amount, applies
            yield "broadcast", None, workers, amount, broadcasts


@dataclass(frozen=True)
class CalibrationPlan:
    """Numbers of workers, sizes in bytes, and models to calibrate with.

    batch: of the models; smaller ones are measured too. busy: more numbers of workers, at which only compute is.
    pause: seconds that every worker sleeps before each exchange and in each step of a model, as long as steps of the
    runs to be predicted sleep: cores that have slept are slower at first. repeats: of each size. bandwidth: bytes/s of
    every NIC of an emulated cluster, and latency in seconds between two; None: the machine's own links. Raises
    InputError where no line could be fitted.

    >>> [len(launch) for launch in CalibrationPlan(workers=(1, 2), sizes=(1e5, 1e6), models=()).launches()]
    [12, 4, 4]
    """

    workers: tuple[int, ...] = (1, 2, 4)
    sizes: tuple[float, ...] = (16 * 2.0**10, 256 * 2.0**10, 2.0**20, 4 * 2.0**20)
    models: tuple[Model, ...] = ("cnn",)
    batch: int = 32
    busy: tuple[int, ...] = ()
    pause: float = 0.02
    repeats: int = 20
    bandwidth: float | None = None
    latency: float = 0.0

    def __post_init__(self) -> None:
        for name, numbers in (("workers", self.workers), ("busy", self.busy)):
            if any(number < 1 for number in numbers) or len(set(numbers)) < len(numbers):
                raise InputError.of(name, numbers, "must be different whole numbers above 0", "write 1,2,4")
        if not self.workers:
            raise InputError.of("workers", self.workers, "names no number", "write 1,2,4")
        if len(set(self.sizes)) < max(2, len(self.sizes)) or any(size < FLOAT_BYTES for size in self.sizes):
            raise InputError.of(
                "sizes", self.sizes, "must be at least two different ones, of 4 bytes or more: a line needs two points",
                "write '64 KiB,1 MiB,4 MiB'",
            )  # fmt: skip
        if self.batch < 2:
            raise InputError.of("batch", self.batch, "must be at least 2: a smaller one is measured too", "write 32")
        for model in self.models:
            samples = TRAINING_SAMPLES[model]
            most = samples // self.batch
            for name, numbers in (("workers", self.workers), ("busy", self.busy)):
                if any(number > most for number in numbers):
                    rule = f"with batches of {self.batch} is more than the {samples} samples that {model} learns from"
                    raise InputError.of(name, numbers, rule, f"take at most {most} workers, or a smaller batch")
        if not SHORTEST_PAUSE <= self.pause <= LONGEST_PAUSE:
            raise InputError.of(
                "pause", self.pause, f"must be from {SHORTEST_PAUSE} to {LONGEST_PAUSE} seconds", "write '20 ms'"
            )
        if self.repeats < PASSES:
            raise InputError.of("repeats", self.repeats, f"must be at least {PASSES}", "write 20")

    @property
    def emulated(self) -> bool:
        """Whether links are imposed."""
        return self.bandwidth is not None

    @property
    def _links(self) -> dict[str, str]:
        if self.bandwidth is None:
            return NOMINAL_LINKS
        return {"bandwidth": write(self.bandwidth, "byte/second"), "latency": write(self.latency, "second")}

    def launches(self) -> list[list[Probe]]:
        """The probes, those together that have the same ranks and can share a launch."""
        together: dict[tuple[int, int], list[Probe]] = {}
        for probe in self._probes():
            scenario = probe.scenario
            together.setdefault((len(scenario.servers), scenario.cluster.workers), []).append(probe)
        return [probes * PASSES for _, probes in sorted(together.items())]

    def _probes(self) -> Iterator[Probe]:
        for size in self.sizes:
            gradient = {"gradient": write(size, "byte")}
            for workers in self.workers:
                if workers > 1:
                    yield self._probe("all_reduce", workers, gradient, kind="ring")
                    yield self._probe("ring_schedule", workers, gradient, kind="ring", implementation="schedule")
                yield self._probe("parameter_server", workers, gradient, kind="parameter_server")
            pipeline = {"kind": "pipeline", "micro_batches": 1}
            activation = {"activation": gradient["gradient"]}
            yield self._probe("point_to_point", 2, activation, policy=pipeline, kind="ring")
        for model in self.models:
            for batch in sorted({max(1, self.batch // 4), self.batch // 2, self.batch}):
                for workers in sorted({*self.workers, *self.busy}):
                    yield self._probe("compute", workers, {"model": model, "batch": batch}, kind="ring")
            for workers in sorted({*self.workers, *self.busy}):
                for bucket in dict.fromkeys(bucket_sizes(model)):
                    ddp = {"kind": "ddp"} | {key: write(bucket, "byte") for key in ("bucket", "first_bucket")}
                    yield self._probe("ddp", workers, {"model": model, "batch": self.batch}, policy=ddp, kind="ring")

    def _probe(
        self, shows: Shows, workers: int, workload: dict[str, Any], policy: dict[str, Any] | None = None,
        **communication: str,
    ) -> Probe:  # fmt: skip
        scenario = Scenario.of(
            {
                "name": "calibration",
                "steps": WARM_UP_STEPS + -(-self.repeats // PASSES),
                "cluster": {"workers": workers, **self._links},
                "compute": {"mean": write(self.pause, "second")},
                "workload": workload,
                "policy": policy or {"kind": "synchronous"},
                "communication": communication,
            }
        )
        return Probe(shows, scenario)


def bucket_sizes(model: Model) -> tuple[float, float]:
    """Of DDP in bytes: all of the gradient in one bucket, and a bucket for each layer.

    >>> bucket_sizes("mlp")
    (19240.0, 2600.0)
    """
    layer_bytes = Workload(model=model).layer_bytes
    return sum(layer_bytes), min(layer_bytes)


def buckets(scenario: Scenario) -> list[list[int]]:
    """Those in which DDP sends the layers of `scenario`."""
    assert isinstance(scenario.policy, Ddp)
    return scenario.policy.buckets(scenario.workload.layer_bytes)


def ddp_seconds(trace: Trace) -> Floats:
    """From an update until all workers have handed over the next one's last bucket, per step, without the warm-up.

    The drawn time is taken away. That is forward, backward, what DDP does around them, and the wait for a core.
    """
    handed_over = _latest(trace, trace.spans.of_kind(SpanKind.BACKWARD))
    before = np.concatenate([[0.0], trace.updates.time_seconds[:-1]])
    drawn = trace.scenario.compute_times()(0, 0)  # constant, as probes are
    return np.asarray((handed_over - before - drawn)[WARM_UP_STEPS:])


def model_seconds(trace: Trace) -> Floats:
    """Forward and backward of the slowest worker, per step, without the warm-up."""
    work = trace.spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
    seconds = np.zeros((trace.scenario.steps, trace.workers))
    np.add.at(seconds, (work.step, work.worker), work.end_seconds - work.start_seconds)
    return np.asarray(seconds.max(axis=1)[WARM_UP_STEPS:])


def server_seconds(trace: Trace) -> tuple[Floats, Floats, Floats]:
    """Of each step: from the last compute to the last push, the server's own work, from there to the last answer."""
    spans, workers = trace.spans, trace.workers
    receives, applies = spans.of_kind(SpanKind.RECEIVE), spans.of_kind(SpanKind.APPLY)
    computed = _latest(trace, spans.of_kind(SpanKind.COMPUTE))
    pushed = _latest(trace, receives.where(receives.worker >= workers))
    answered = _latest(trace, receives.where(receives.worker < workers))
    own = np.zeros(trace.scenario.steps)
    np.add.at(own, applies.step, applies.end_seconds - applies.start_seconds)
    parts = pushed - computed, own, answered - pushed - own
    return tuple(part[WARM_UP_STEPS:] for part in parts)  # type: ignore[return-value] # there are three


def _latest(trace: Trace, spans: Spans) -> Floats:
    """When the last of these spans ended, per step."""
    ends = np.full(trace.scenario.steps, -np.inf)
    np.maximum.at(ends, spans.step, spans.end_seconds)
    return ends
