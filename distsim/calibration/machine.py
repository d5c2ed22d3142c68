"""The calibration of a machine: measured times, the lines through them, and the links of any scenario."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le, MinLen
from pydantic import ConfigDict, Field, model_validator

from distsim.calibration.exchange import Exchange, Time, exchanged_bytes
from distsim.calibration.fitted_line import POOR_MISS, Line
from distsim.calibration.imposed import Imposed
from distsim.calibration.operations import (
    ALL_AT_ONCE,
    BESIDE_A_SERVER,
    NOT_OVERSUBSCRIBED,
    TITLES,
    Operation,
    Oversubscription,
    message_amount,
    oversubscription,
    terms,
)
from distsim.cores import Cores, in_words
from distsim.errors import InputError
from distsim.policies import Ddp, Mesh, Pipeline, Programmed, Tensor
from distsim.scenario import Scenario
from distsim.units import BOUNDS
from distsim.validated_table import Count, ValidatedTable
from distsim.workload import Model, Workload

OTHERS = "Predictions that use none of these are not concerned"  # ends a warning about some of them
FASTEST_BYTES_PER_SECOND = 1e13  # the bandwidth if more bytes took no longer; no memory copy reaches it

SHORTEST_SECONDS, LONGEST_SECONDS = BOUNDS["second"]
Seconds = Annotated[float, Ge(SHORTEST_SECONDS), Le(LONGEST_SECONDS)]
Amount = Annotated[float, Ge(BOUNDS["byte"][0]), Le(BOUNDS["byte"][1])]


class _OfOperation(ValidatedTable):
    model_config = ConfigDict(populate_by_name=True)

    operation: Operation = Field(validation_alias="family", serialization_alias="family")
    model: Model | None = None


class Measured(_OfOperation):
    """The repeats of one size. amount: bytes of the gradient or message, samples of a batch, buckets, or units.

    seconds: the median of the repeats. quartiles: of the repeats.
    """

    workers: Count
    amount: Amount
    seconds: Seconds
    quartiles: tuple[Seconds, Seconds]
    repeats: Count


class Fit(_OfOperation):
    """The line of an operation at some numbers of workers, fitted to the rows of `operations.terms`."""

    workers: Annotated[tuple[Count, ...], MinLen(1)]
    line: Line

    @property
    def title(self) -> str:
        """The operation's name in tables."""
        return title_of(self.operation, self.model)


def title_of(operation: Operation, model: Model | None) -> str:
    """The operation's name in tables and messages."""
    return TITLES[operation] if model is None else f"{TITLES[operation]}, {model}"


class MachineCalibration(ValidatedTable):
    """The result of `distsim calibrate`. cores: usable cores. emulated: whether the links were emulated.

    imposed: the emulated links; None without emulation, and in files of earlier versions.
    fits: for each operation, one at each number of workers, and one over all numbers, for numbers not measured.
    work: for each all-reduce, core-seconds of one rank over all numbers of workers; empty in earlier files.
    other_work: how many cores other programs took on average, in the launch that they disturbed most; 0: none.
    turn_seconds, schedule_turn_seconds: how much longer a message of torch's all-reduce, and of a schedule, takes where
    a worker computes on each core; 0 where that was not measured.
    hand_over_seconds: of handing an exchange to a thread that makes it beside computing, and back; 0: not measured.
    wake_seconds: until a worker that waited for a gather computes, where no core is left over, measured with the fewest
    workers that leave none; shared_wake_seconds: where several workers share a core. 0: not measured.
    """

    cores: Count
    emulated: bool
    imposed: Imposed | None = None
    measured: tuple[Measured, ...]
    fits: Annotated[tuple[Fit, ...], MinLen(1)]
    work: tuple[Fit, ...] = ()
    other_work: Annotated[float, Ge(0.0)] = 0.0
    turn_seconds: Time = 0.0
    schedule_turn_seconds: Time = 0.0
    hand_over_seconds: Time = 0.0
    wake_seconds: Time = 0.0
    shared_wake_seconds: Time = 0.0

    @model_validator(mode="after")
    def _imposed_where_emulated(self) -> MachineCalibration:
        if self.imposed is not None and not self.emulated:
            raise ValueError("has imposed links, but emulated = false")
        return self

    @property
    def links(self) -> str:
        """The measured links, in words."""
        if not self.emulated:
            return "the machine's own links"
        return "emulated links" if self.imposed is None else f"emulated links of {self.imposed}"

    def exchange(self, scenario: Scenario) -> Exchange:
        """The links of `scenario` on this machine, and the seconds of its server and model.

        Raises InputError if the scenario's operation was not measured.
        """
        operation, amount = operation_of(scenario), carried_at_once(scenario)
        workers, cores = scenario.cluster.workers, self._shared_cores(scenario)
        # Beside shared cores the links are those of ranks that do not compete for cores.
        links = self._fit(operation, workers if cores is None else max(2, min(workers, self.cores)))
        shared = self._oversubscription(operation, scenario.ranks) if cores is None else NOT_OVERSUBSCRIBED
        miss = self._miss(links, workers, amount)
        latency = links.line.fixed_seconds * shared.message * miss
        if cores is not None and operation == "all_reduce":  # the cores have the call, so the messages do not
            messages = np.mean([terms(operation, n, 0.0, NOT_OVERSUBSCRIBED)[0] for n in links.workers])
            latency = max(0.0, latency - cores.call_seconds / float(messages))
        return Exchange(
            kind=scenario.communication.kind,
            workers=workers,
            bandwidth_bytes_per_second=bytes_per_second(links.line.unit_seconds * shared.byte * miss),
            latency_seconds=latency,
            apply_seconds=self.seconds("apply", workers, amount) if scenario.server_decides else 0.0,
            points=tuple(
                (found.amount, found.seconds) for found in self._points(links) if found.workers == links.workers[-1]
            ),
            model_seconds=self._model_seconds(scenario, workers) if cores is None else 0.0,
            measured_workers=links.workers,
            cores=cores,
        )

    def seconds(self, operation: Operation, workers: int, amount: float, model: Model | None = None) -> float:
        """Seconds of any amount at any number of workers: the line, corrected by its relative error."""
        fit = self._fit(operation, workers, model)
        return self.on_line(fit, workers, amount) * self._miss(fit, workers, amount)

    def on_line(self, fit: Fit, workers: int, amount: float) -> float:
        """Seconds by the line alone."""
        messages, carried = terms(fit.operation, workers, amount, self._oversubscription(fit.operation, workers))
        return messages * fit.line.fixed_seconds + carried * fit.line.unit_seconds

    def _miss(self, fit: Fit, workers: int, amount: float) -> float:
        """Measured seconds / seconds by the line, near this message. Large messages leave the caches and bend the line.

        The ratio is interpolated over the logarithm of a message, and constant beyond the measured messages.
        """
        misses: dict[float, list[float]] = {}
        for found in self._points(fit):
            told = max(self.on_line(fit, found.workers, found.amount), SHORTEST_SECONDS)
            message = message_amount(fit.operation, found.workers, found.amount)
            misses.setdefault(message, []).append(math.log(found.seconds / told))
        messages = sorted(misses)
        means = [sum(misses[known]) / len(misses[known]) for known in messages]
        asked = max(message_amount(fit.operation, workers, amount), 1.0)
        return math.exp(float(np.interp(math.log(asked), np.log(messages), means))) if messages else 1.0

    def _points(self, fit: Fit) -> list[Measured]:
        """The measurements that `fit` was fitted to."""
        return [
            found
            for found in self.measured
            if (found.operation, found.model) == (fit.operation, fit.model) and found.workers in fit.workers
        ]

    def _oversubscription(self, operation: Operation, ranks: int) -> Oversubscription:
        return oversubscription(operation, ranks, self.cores, emulated=self.emulated)

    def _fit(self, operation: Operation, workers: int, model: Model | None = None) -> Fit:
        """The fit at exactly so many workers, or else the fit over most numbers of workers."""
        fits = [fit for fit in self.fits if (fit.operation, fit.model) == (operation, model)]
        if not fits:
            title = title_of(operation, model)
            known = "; ".join(dict.fromkeys(fit.title for fit in self.fits))
            cure = f"--model {model}" if model else "--workers 1,2"
            raise InputError.of(
                "calibration of", title, f"the calibration holds {known}", f"run distsim calibrate {cure}"
            )
        return max(fits, key=lambda fit: (fit.workers == (workers,), len(fit.workers)))

    def _model_seconds(self, scenario: Scenario, workers: int) -> float:
        """Seconds of a step's forward and backward, in the policy's buckets or units, with so many workers at once.

        The policy divides them by the workers that share a block. They share what grows with the samples, while each of
        them calls all operations, so the seconds of calling count once for each of them.
        """
        model = scenario.workload.known_model
        if model is None or scenario.workload.profile is not None:
            return 0.0
        if scenario.workload != scenario.workload.model_copy(update=_default_shape(model)):
            raise InputError.of(
                "calibration for a transformer of width", scenario.workload.width,
                "the calibration holds transformers of the default width and layers", "leave both out",
            )  # fmt: skip
        batch = float(scenario.workload.batch)
        called = self.on_line(self._fit("compute", workers, model), workers, 0.0)
        alone = self.seconds("compute", workers, batch, model) + (_sharing_a_block(scenario) - 1) * called
        policy = scenario.policy
        if isinstance(policy, Ddp):
            more = self._more_in_parts("ddp", model, workers, len(policy.buckets(scenario.workload.layer_bytes)))
        elif isinstance(policy, Programmed):
            more = self._more_in_parts("units", model, workers, policy.program(scenario.workload, workers).forwards)
        else:
            more = 0.0
        return max(alone + _sharing_a_block(scenario) * more, SHORTEST_SECONDS)

    def _more_in_parts(self, operation: Operation, model: Model, workers: int, parts: int) -> float:
        """By how much a step of the largest batch takes longer in so many buckets or units; 0 in earlier files."""
        measured = {n for fit in self.fits if (fit.operation, fit.model) == (operation, model) for n in fit.workers}
        if not measured:
            return 0.0
        largest = max(found.amount for found in self.measured if (found.operation, found.model) == ("compute", model))
        found = min(measured, key=lambda number: (abs(number - workers), number))
        more = self.seconds(operation, found, float(parts), model) - self.seconds("compute", found, largest, model)
        return more * self._oversubscription("compute", workers).byte / self._oversubscription("compute", found).byte

    def _shared_cores(self, scenario: Scenario) -> Cores | None:
        """The cores that the workers share, if they compute a model, exchange among peers, and their work is known."""
        model, profile = scenario.workload.known_model, scenario.workload.profile
        known = {fit.operation: fit.line for fit in self.work}
        exchange, mean = known.get(operation_of(scenario)), known.get("bucket_mean")
        on_a_cpu = profile.device == "cpu" if profile else model is not None
        if not on_a_cpu or exchange is None or scenario.servers:
            return None
        turn = arrival_turn = call = wake = 0.0
        if operation_of(scenario) == "all_reduce":
            turn, call = self.turn_seconds, mean.fixed_seconds if mean else 0.0
        elif operation_of(scenario) == "ring_schedule":  # a trace shows that both ends wait
            turn = arrival_turn = self.schedule_turn_seconds / 2
            if isinstance(scenario.policy, Ddp | Programmed):  # another thread follows the schedule
                call = self.hand_over_seconds
            if scenario.ranks >= self.cores:
                shared = self.shared_wake_seconds if scenario.ranks > self.cores else 0.0
                wake = shared or self.wake_seconds
        ends = 2  # of a message: a rank that sends one and receives one does both
        return Cores(
            capacity=self.cores * self._busy_pace(scenario),
            step_seconds=self._step_seconds(scenario),
            call_seconds=call,
            message_seconds=exchange.fixed_seconds / ends,
            byte_seconds=exchange.unit_seconds / ends,
            bucket_byte_seconds=mean.unit_seconds if mean else 0.0,
            count=self.cores,
            turn_seconds=turn,
            arrival_turn_seconds=arrival_turn,
            wake_seconds=wake,
        )

    def _step_seconds(self, scenario: Scenario) -> float:
        """Seconds of a step of one worker alone, without exchanges."""
        profile = scenario.workload.profile
        if profile is None:
            return self._model_seconds(scenario, 1)
        in_parts = isinstance(scenario.policy, Ddp | Programmed)
        return (profile.ddp_seconds if in_parts else None) or profile.step_seconds

    def _busy_pace(self, scenario: Scenario) -> float:
        """The pace of a core among busy cores, beside one alone: the profile's own, or that of a measured model."""
        profile = scenario.workload.profile
        if profile and profile.busy:
            shared = profile.busy.shared_pace if scenario.ranks > self.cores else None
            return min(1.0, shared or profile.busy.pace)
        paces = self.busy_paces(None if profile else scenario.workload.known_model, scenario.ranks)
        return min(1.0, float(np.median(paces or [1.0])))

    def busy_paces(self, model: Model | None, ranks: int) -> list[float]:
        """For each measured batch, the pace of a core where `ranks` workers compute at once; with one alone it is 1.

        The measured workers are as many as there are cores, or, where ranks outnumber cores, more, if there are such.
        model: one that was measured; None: all of them. Empty where no batch was measured both ways.
        """
        computed = [found for found in self.measured if found.operation == "compute" and model in (None, found.model)]
        numbers = sorted({found.workers for found in computed})
        busy = max((number for number in numbers if number <= self.cores), default=1)
        if ranks > self.cores:
            busy = min(
                (number for number in numbers if number > self.cores), key=lambda n: abs(n - ranks), default=busy
            )
        alone, together = (
            {(found.model, found.amount): found.seconds for found in computed if found.workers == workers}
            for workers in (1, busy)
        )
        share = max(1.0, busy / self.cores)  # of the workers, for each core
        return [share * alone[key] / together[key] for key in alone if key in together and busy > 1]

    def busy_warnings(self) -> list[str]:
        """A sentence if other programs took cores that the measurement of this machine needed."""
        if not self.other_work:
            return []
        return [
            f"other programs took {self.other_work:.1f} of {in_words(self.cores)} while this machine was calibrated: "
            "do not trust predictions from the calibration; make it again while nothing else runs"
        ]

    def warnings(self) -> list[str]:
        """Warnings about predictions from this calibration."""
        found = self.busy_warnings()
        ranks = [fit.workers[-1] + (fit.operation in BESIDE_A_SERVER) for fit in self.fits]
        crowded = [fit for fit, count in zip(self.fits, ranks, strict=True) if count > self.cores]
        if crowded:
            titles = ", ".join(dict.fromkeys(fit.title for fit in crowded))
            grows = any(fit.operation in ALL_AT_ONCE for fit in crowded)
            grow = ", and all-reduces and steps are predicted to grow with the ranks per core" if grows else ""
            found.append(
                f"up to {max(ranks)} ranks shared {in_words(self.cores)} in {titles}: these times vary{grow}. {OTHERS}"
            )
        misses = {fit.title: max(f.line.largest_miss for f in self.fits if f.title == fit.title) for fit in self.fits}
        poor = [f"{title} {100 * miss:.0f} %" for title, miss in misses.items() if miss > POOR_MISS]
        if poor:
            found.append(
                f"poor fits (a line more than {100 * POOR_MISS:.0f} % off a measured time): {', '.join(poor)}. Between "
                f"the measured sizes predictions follow the measured times; do not trust them beyond. {OTHERS}"
            )
        return found


def _default_shape(model: Model) -> dict[str, int]:
    """The layers and width of `model` in a calibration."""
    workload = Workload(model=model)
    return {"layers": workload.layers, "width": workload.width}


def _sharing_a_block(scenario: Scenario) -> int:
    """How many workers share each block of a transformer; 1 where none do."""
    if isinstance(scenario.policy, Mesh):
        return scenario.policy.tensor
    return scenario.cluster.workers if isinstance(scenario.policy, Tensor) else 1


def carried_at_once(scenario: Scenario) -> float:
    """Bytes of one exchange; under DDP, of one bucket."""
    whole = exchanged_bytes(scenario)
    return min(whole, scenario.policy.bucket_bytes) if isinstance(scenario.policy, Ddp) else whole


def operation_of(scenario: Scenario) -> Operation:
    """The measured operation that is the exchange of `scenario`."""
    if isinstance(scenario.policy, Pipeline):
        return "point_to_point"
    if scenario.server_decides:
        return "parameter_server"
    return "ring_schedule" if scenario.follows_schedule else "all_reduce"


def bytes_per_second(seconds_per_byte: float) -> float:
    """The bandwidth, finite even if bytes cost no measurable time."""
    return max(1.0 / max(seconds_per_byte, 1.0 / FASTEST_BYTES_PER_SECOND), BOUNDS["byte/second"][0])
