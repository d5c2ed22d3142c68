"""The scenarios that `distsim calibrate` runs, one exchange per step and little work, and what each of them shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from distsim.arrays import Floats
from distsim.calibration.exchange import WARM_UP_STEPS, exchange_seconds, exchanged_bytes
from distsim.calibration.operations import CORRECTIONS, OF_MODELS, OPERATIONS, Correction
from distsim.calibration.probe_times import (
    busy_all_reduce_seconds,
    busy_reduce_scatter_seconds,
    ddp_seconds,
    hand_over_seconds,
    model_seconds,
    server_seconds,
    wake_seconds,
)
from distsim.calibration.samples import Corrected, Sample
from distsim.errors import InputError
from distsim.policies import Ddp, Programmed
from distsim.scenario import Scenario
from distsim.trace import Trace
from distsim.units import write
from distsim.workload import FLOAT_BYTES, TRAINING_SAMPLES, Model, Workload

PASSES = 2  # over all launches, so that a slow minute disturbs more than one of them
MODEL_TIMES = 3  # within a launch: a virtual machine's cores may lose a third of their pace for some seconds
SHORTEST_PAUSE, LONGEST_PAUSE = 1e-6, 1.0  # in seconds
PIPELINE_MESSAGES = 2  # per step of two stages: an activation, and the gradient back
NOMINAL_LINKS = {"bandwidth": "10 Gbit/s", "latency": "0 s"}  # a scenario needs links; the machine's own are used

Shows = Literal[
    "all_reduce", "ring_schedule", "parameter_server", "point_to_point", "compute", "bucket_mean", "ddp", "units",
    "turn", "schedule_turn", "hand_over",
]  # fmt: skip
BUSY_MODEL: Model = "transformer"  # its backward keeps a core busy for much longer than a small all-reduce takes
BUSY_BATCH = 64  # on links of 200 Mbit/s, the first bucket then still ends before backward


@dataclass(frozen=True)
class Probe:
    """A scenario to measure, and the operation that it shows."""

    shows: Shows
    scenario: Scenario

    def samples(self, trace: Trace) -> Iterator[Sample]:
        """The samples in a trace of this scenario, operation by operation."""
        workers, workload = self.scenario.cluster.workers, self.scenario.workload
        if self.shows not in OPERATIONS:
            return
        if self.shows == "compute":
            yield "compute", workload.known_model, workers, float(workload.batch), model_seconds(trace)
            return
        if self.shows == "ddp":
            yield "ddp", workload.known_model, workers, float(len(buckets(self.scenario))), ddp_seconds(trace)
            return
        if self.shows == "units":
            drawn = trace.scenario.compute_times()(0, 0)  # which the pieces share
            yield "units", workload.known_model, workers, float(forwards(self.scenario)), model_seconds(trace) - drawn
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

    def work(self, trace: Trace) -> Iterator[Sample]:
        """The core-seconds of one rank in the exchanges of a trace of this scenario, where the trace tells them."""
        told = trace.metadata.get("exchange_core_seconds")
        if told and self.shows in ("all_reduce", "ring_schedule", "bucket_mean"):
            amount = exchanged_bytes(self.scenario)
            yield self.shows, None, self.scenario.cluster.workers, amount, np.array(told[WARM_UP_STEPS:])

    def corrections(self, trace: Trace) -> Iterator[Corrected]:
        """All-reduces beside busy cores, of torch or of a schedule, wake-ups, or hand-overs, if the trace has them."""
        found: dict[Correction, Floats] = {}
        match self.shows:
            case "turn":
                found["turn"] = busy_all_reduce_seconds(trace)
            case "schedule_turn":
                # The schedule of an all-reduce is a reduce-scatter, and an all-gather with as many messages.
                found["schedule_turn"] = 2.0 * busy_reduce_scatter_seconds(trace)
                found["wake"] = wake_seconds(trace)
            case "hand_over":
                found["hand_over"] = hand_over_seconds(trace)
        for kind, seconds in found.items():
            if len(seconds):
                yield kind, self.scenario.cluster.workers, self.scenario.workload.layer_bytes[-1], seconds


@dataclass(frozen=True)
class CalibrationPlan:
    """Numbers of workers, sizes in bytes, and models to calibrate with.

    batch: the largest batch; smaller batches are measured too. busy: more numbers of workers, for compute only. pause:
    seconds that every worker sleeps before each exchange and in each step of a model. Take the pause of the runs to be
    predicted, since cores are slower after a sleep. repeats: of each size; those of a model are made in short runs, of
    which the one at the lower quartile counts. bandwidth: bytes/s of every emulated NIC; None for the machine's own
    links. latency: seconds between two emulated NICs. without: what not to measure, where no run to be predicted needs
    it. Raises InputError if no line could be fitted.

    >>> [len(launch) for launch in CalibrationPlan(workers=(1, 2), sizes=(1e5, 1e6), models=()).one_pass()]
    [3, 8, 2, 2]
    >>> [probe.shows for probe in CalibrationPlan(workers=(1,), without=("bucket_mean",)).launches()[0]][:2]
    ['compute', 'compute']
    """

    workers: tuple[int, ...] = (1, 2, 4)
    sizes: tuple[float, ...] = (16 * 2.0**10, 64 * 2.0**10, 256 * 2.0**10, 2.0**20, 4 * 2.0**20)
    models: tuple[Model, ...] = ("cnn",)
    batch: int = 32
    busy: tuple[int, ...] = ()
    pause: float = 0.02
    repeats: int = 20
    bandwidth: float | None = None
    latency: float = 0.0
    without: tuple[Shows, ...] = ()

    def __post_init__(self) -> None:
        for name, numbers in (("workers", self.workers), ("busy", self.busy)):
            if any(number < 1 for number in numbers) or len(set(numbers)) < len(numbers):
                raise InputError.of(name, numbers, "must be different whole numbers above 0", "write 1,2,4")
        if not self.workers:
            raise InputError.of("workers", self.workers, "names no number", "write 1,2,4")
        if len(set(self.sizes)) < max(2, len(self.sizes)) or any(size < FLOAT_BYTES for size in self.sizes):
            raise InputError.of(
                "sizes", self.sizes, "must be at least two different sizes of 4 bytes or more: a line needs two points",
                "write '64 KiB,1 MiB,4 MiB'",
            )  # fmt: skip
        if self.batch < 2:
            raise InputError.of("batch", self.batch, "must be at least 2: smaller batches are measured too", "write 32")
        for model in self.models:
            samples = TRAINING_SAMPLES[model]
            most = samples // self.batch
            for name, numbers in (("workers", self.workers), ("busy", self.busy)):
                if any(number > most for number in numbers):
                    rule = f"with batches of {self.batch} needs more than the {samples} training samples of {model}"
                    raise InputError.of(name, numbers, rule, f"take at most {most} workers, or a smaller batch")
        if not SHORTEST_PAUSE <= self.pause <= LONGEST_PAUSE:
            raise InputError.of(
                "pause", self.pause, f"must be from {SHORTEST_PAUSE} to {LONGEST_PAUSE} seconds", "write '20 ms'"
            )
        if self.repeats < PASSES:
            raise InputError.of("repeats", self.repeats, f"must be at least {PASSES}", "write 20")
        known = get_args(Shows)
        if not set(self.without) <= set(known):
            raise InputError.of("without", self.without, f"must be of {', '.join(known)}", 'write ("ddp",)')
        # Corrections come on top of the lines of other probes.
        if all(probe.shows in CORRECTIONS for probe in self._asked()):
            raise InputError.of("without", self.without, "leaves nothing to measure", "name less")

    @property
    def emulated(self) -> bool:
        """Whether the links are emulated."""
        return self.bandwidth is not None

    @property
    def _links(self) -> dict[str, str]:
        if self.bandwidth is None:
            return NOMINAL_LINKS
        return {"bandwidth": write(self.bandwidth, "byte/second"), "latency": write(self.latency, "second")}

    def launches(self) -> list[list[Probe]]:
        """The probes of all passes, launch by launch."""
        return self.one_pass() * PASSES

    def one_pass(self) -> list[list[Probe]]:
        """Each probe once, grouped by their ranks, since probes with the same ranks share a launch.

        A number of workers that only computes has launches of its own before, between and after all others.
        """
        together: dict[tuple[int, int], list[Probe]] = {}
        for probe in self._asked():
            scenario = probe.scenario
            together.setdefault((len(scenario.servers), scenario.cluster.workers), []).append(probe)
        launches = [probes for _, probes in sorted(together.items())]
        computing = [probes for probes in launches if all(probe.shows in OF_MODELS for probe in probes)]
        rest = [probes for probes in launches if probes not in computing]
        first, second, third = ([_third(probes, number) for probes in computing] for number in range(MODEL_TIMES))
        return [*first, *rest[: len(rest) // 2], *second, *rest[len(rest) // 2 :], *third]

    def _asked(self) -> Iterator[Probe]:
        return (probe for probe in self._probes() if probe.shows not in self.without)

    def _probes(self) -> Iterator[Probe]:
        yield from self._computing()
        yield from self._exchanging()
        yield from self._computing()
        yield from self._correcting()
        yield from self._computing()

    def _exchanging(self) -> Iterator[Probe]:
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
            # One worker exchanges nothing: its bucket takes the call of the all-reduce, and the division.
            yield self._probe("bucket_mean", 1, gradient, policy=_ddp_with(size), kind="ring")

    def _correcting(self) -> Iterator[Probe]:
        if max(self.workers) > 1:
            # One worker's sums have no messages: each is handed to the thread that exchanges, and back.
            smallest, tensor = {"model": BUSY_MODEL, "batch": 1}, {"kind": "tensor"}
            yield self._probe("hand_over", 1, smallest, tensor, SHORTEST_PAUSE, kind="ring")
        workload = {"model": BUSY_MODEL, "batch": BUSY_BATCH}
        for workers in self.workers:
            if 1 < workers <= TRAINING_SAMPLES[BUSY_MODEL] // BUSY_BATCH:
                policy = _ddp_with(_bucket_sizes(BUSY_MODEL)[1])
                yield self._probe("turn", workers, workload, policy, SHORTEST_PAUSE, kind="ring")
                sharded = {"kind": "sharded", "stage": 1}
                yield self._probe("schedule_turn", workers, workload, sharded, SHORTEST_PAUSE, kind="ring")

    def _computing(self) -> Iterator[Probe]:
        for model in self.models:
            for batch in sorted({max(1, self.batch // 4), self.batch // 2, self.batch}):
                for workers in sorted({*self.workers, *self.busy}):
                    yield self._probe("compute", workers, {"model": model, "batch": batch}, kind="ring")
            workload = {"model": model, "batch": self.batch}
            for workers in sorted({*self.workers, *self.busy}):
                for bucket in dict.fromkeys(_bucket_sizes(model)):
                    yield self._probe("ddp", workers, workload, policy=_ddp_with(bucket), kind="ring")
            for size in dict.fromkeys(_bucket_sizes(model)) if 1 in (*self.workers, *self.busy) else ():
                sharded = {"kind": "sharded", "stage": 1, "bucket": write(size, "byte")}
                yield self._probe("units", 1, workload, sharded, kind="ring")

    def _probe(
        self, shows: Shows, workers: int, workload: dict[str, Any], policy: dict[str, Any] | None = None,
        pause: float | None = None, **communication: str,
    ) -> Probe:  # fmt: skip
        times = PASSES * (MODEL_TIMES if shows in OF_MODELS else 1)
        scenario = Scenario.of(
            {
                "name": "calibration",
                "steps": WARM_UP_STEPS + -(-self.repeats // times),
                "cluster": {"workers": workers, **self._links},
                "compute": {"mean": write(self.pause if pause is None else pause, "second")},
                "workload": workload,
                "policy": policy or {"kind": "synchronous"},
                "communication": communication,
            }
        )
        return Probe(shows, scenario)


def _third(probes: list[Probe], number: int) -> list[Probe]:
    """One of the times that models are computed."""
    count = len(probes) // MODEL_TIMES
    return probes[number * count : (number + 1) * count]


def _ddp_with(num_bytes: float) -> dict[str, str]:
    """The policy: DDP with buckets of this size."""
    return {"kind": "ddp"} | dict.fromkeys(("bucket", "first_bucket"), write(num_bytes, "byte"))


def _bucket_sizes(model: Model) -> tuple[float, float]:
    """The bytes of a DDP bucket: for the whole gradient in one bucket, and for a bucket per layer.

    >>> _bucket_sizes("mlp")
    (19240.0, 2600.0)
    """
    layer_bytes = Workload(model=model).layer_bytes
    return sum(layer_bytes), min(layer_bytes)


def forwards(scenario: Scenario) -> int:
    """In how many pieces a worker of `scenario` computes forward."""
    assert isinstance(scenario.policy, Programmed)
    return scenario.policy.program(scenario.workload, scenario.cluster.workers).forwards


def buckets(scenario: Scenario) -> list[list[int]]:
    """The layers of each bucket that DDP sends in `scenario`."""
    assert isinstance(scenario.policy, Ddp)
    return scenario.policy.buckets(scenario.workload.layer_bytes)
