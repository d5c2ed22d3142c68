"""The calibration of a machine: measured times, and the lines through them."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le, MinLen
from pydantic import ConfigDict, Field, model_validator

from distsim.calibration.exchange import Time
from distsim.calibration.fitted_line import POOR_MISS, Line
from distsim.calibration.imposed import Imposed
from distsim.calibration.operations import (
    ALL_AT_ONCE,
    BESIDE_A_SERVER,
    TITLES,
    Operation,
    Oversubscription,
    message_amount,
    oversubscription,
    terms,
)
from distsim.cores import in_words
from distsim.errors import InputError
from distsim.units import BOUNDS
from distsim.validated_table import Count, ValidatedTable
from distsim.workload import Model

OTHERS = "Predictions that use none of these are not concerned"  # ends a warning about some of them
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

    def seconds(self, operation: Operation, workers: int, amount: float, model: Model | None = None) -> float:
        """Seconds of any amount at any number of workers: the line, corrected by its relative error."""
        fit = self.fit_of(operation, workers, model)
        return self.on_line(fit, workers, amount) * self.miss(fit, workers, amount)

    def on_line(self, fit: Fit, workers: int, amount: float) -> float:
        """Seconds by the line alone."""
        messages, carried = terms(fit.operation, workers, amount, self.oversubscribed(fit.operation, workers))
        return messages * fit.line.fixed_seconds + carried * fit.line.unit_seconds

    def miss(self, fit: Fit, workers: int, amount: float) -> float:
        """Measured seconds / seconds by the line, near this message. Large messages leave the caches and bend the line.

        The ratio is interpolated over the logarithm of a message, and constant beyond the measured messages.
        """
        misses: dict[float, list[float]] = {}
        for found in self.points(fit):
            told = max(self.on_line(fit, found.workers, found.amount), SHORTEST_SECONDS)
            message = message_amount(fit.operation, found.workers, found.amount)
            misses.setdefault(message, []).append(math.log(found.seconds / told))
        messages = sorted(misses)
        means = [sum(misses[known]) / len(misses[known]) for known in messages]
        asked = max(message_amount(fit.operation, workers, amount), 1.0)
        return math.exp(float(np.interp(math.log(asked), np.log(messages), means))) if messages else 1.0

    def points(self, fit: Fit) -> list[Measured]:
        """The measurements that `fit` was fitted to."""
        return [
            found
            for found in self.measured
            if (found.operation, found.model) == (fit.operation, fit.model) and found.workers in fit.workers
        ]

    def oversubscribed(self, operation: Operation, ranks: int) -> Oversubscription:
        return oversubscription(operation, ranks, self.cores, emulated=self.emulated)

    def fit_of(self, operation: Operation, workers: int, model: Model | None = None) -> Fit:
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
