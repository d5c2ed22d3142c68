"""One machine, calibrated: what was measured, the lines through it, and the links they give to any scenario."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le, MinLen
from pydantic import model_validator

from distsim.arrays import Floats
from distsim.calibration.exchange import Exchange, exchanged_bytes
from distsim.calibration.families import FAMILIES, TITLES, Crowd, Family, crowd_of, terms
from distsim.calibration.imposed import Imposed
from distsim.calibration.line import POOR_MISS, Line, fit_line
from distsim.description import Count, Description
from distsim.errors import InputError
from distsim.policies import Ddp, Pipeline, WithServer
from distsim.scenario import Scenario
from distsim.units import BOUNDS
from distsim.workload import Model, Workload

# Where more bytes took no longer, a bandwidth has to be told all the same: one that no memory copy reaches.
FASTEST_BYTES_PER_SECOND = 1e13

SHORTEST_SECONDS, LONGEST_SECONDS = BOUNDS["second"]
Seconds = Annotated[float, Ge(SHORTEST_SECONDS), Le(LONGEST_SECONDS)]
Amount = Annotated[float, Ge(BOUNDS["byte"][0]), Le(BOUNDS["byte"][1])]


class Measured(Description):
    """The repeats of one size. amount: bytes of the gradient or message, or samples of a batch.

    seconds: their median. quartiles: of the repeats.
    """

    family: Family
    model: Model | None = None
    workers: Count
    amount: Amount
    seconds: Seconds
    quartiles: tuple[Seconds, Seconds]
    repeats: Count


class Fit(Description):
    """The line of a family at some numbers of workers, in the terms of `families.terms`."""

    family: Family
    model: Model | None = None
    workers: Annotated[tuple[Count, ...], MinLen(1)]
    line: Line

    @property
    def title(self) -> str:
        """What was fitted, for tables."""
        return title_of(self.family, self.model)


def title_of(family: Family, model: Model | None) -> str:
    """What people call what is measured."""
    return TITLES[family] if model is None else f"{TITLES[family]}, {model}"


class MachineCalibration(Description):
    """What `distsim calibrate` found. cores: usable ones. emulated: whether the links were imposed.

    imposed: which links those were; None where they were not emulated, and in files of earlier versions.
    fits: of each family, one at each number of workers, and one at all of them together for those not measured.
    """

    cores: Count
    emulated: bool
    imposed: Imposed | None = None
    measured: tuple[Measured, ...]
    fits: Annotated[tuple[Fit, ...], MinLen(1)]

    @model_validator(mode="after")
    def _imposed_where_emulated(self) -> MachineCalibration:
        if self.imposed is not None and not self.emulated:
            raise ValueError("tells imposed links, and that none were emulated")
        return self

    @property
    def links(self) -> str:
        """Which links were measured, in words."""
        if not self.emulated:
            return "the machine's own links"
        return "emulated links" if self.imposed is None else f"emulated links of {self.imposed}"

    def exchange(self, scenario: Scenario) -> Exchange:
        """The links, and the time of server and model, that `scenario` has on this machine, whatever its size.

        Raises InputError where nothing like its exchange has been measured.
        """
        family, amount = family_of(scenario), carried_at_once(scenario)
        workers = scenario.cluster.workers
        links = self._fit(family, workers)
        crowd, miss = self._crowd(family, scenario.ranks), self._miss(links, amount)
        return Exchange(
            kind=scenario.communication.kind,
            workers=workers,
            bandwidth_bytes_per_second=bytes_per_second(links.line.unit_seconds * crowd.byte * miss),
            latency_seconds=links.line.fixed_seconds * crowd.message * miss,
            apply_seconds=self.seconds("apply", workers, amount) if decides(scenario) else 0.0,
            points=tuple(
                (found.amount, found.seconds) for found in self._points(links) if found.workers == links.workers[-1]
            ),
            model_seconds=self._model_seconds(scenario),
            measured_workers=links.workers,
        )

    def seconds(self, family: Family, workers: int, amount: float, model: Model | None = None) -> float:
        """What any amount takes at any number of workers: the line, and between measured amounts what it misses."""
        fit = self._fit(family, workers, model)
        return self.on_line(fit, workers, amount) * self._miss(fit, amount)

    def on_line(self, fit: Fit, workers: int, amount: float) -> float:
        """What the line alone says."""
        messages, carried = terms(fit.family, workers, amount, self._crowd(fit.family, workers))
        return messages * fit.line.fixed_seconds + carried * fit.line.unit_seconds

    def _miss(self, fit: Fit, amount: float) -> float:
        """Measured / line near this amount: memory is no straight line, and large messages leave the caches.

        Interpolated over the amounts' logarithms, and beyond the measured ones that of the last.
        """
        misses: dict[float, list[float]] = {}
        for found in self._points(fit):
            told = max(self.on_line(fit, found.workers, found.amount), SHORTEST_SECONDS)
            misses.setdefault(found.amount, []).append(math.log(found.seconds / told))
        amounts = sorted(misses)
        means = [sum(misses[known]) / len(misses[known]) for known in amounts]
        return math.exp(float(np.interp(math.log(max(amount, 1.0)), np.log(amounts), means))) if amounts else 1.0

    def _points(self, fit: Fit) -> list[Measured]:
        """What `fit` was fitted to."""
        return [
            found
            for found in self.measured
            if (found.family, found.model) == (fit.family, fit.model) and found.workers in fit.workers
        ]

    def _crowd(self, family: Family, ranks: int) -> Crowd:
        return crowd_of(family, ranks, self.cores, emulated=self.emulated)

    def _fit(self, family: Family, workers: int, model: Model | None = None) -> Fit:
        """The line at exactly so many workers, or else the one at most numbers of them."""
        fits = [fit for fit in self.fits if (fit.family, fit.model) == (family, model)]
        if not fits:
            title = title_of(family, model)
            known = "; ".join(dict.fromkeys(fit.title for fit in self.fits))
            cure = f"--model {model}" if model else "--workers 1,2"
            raise InputError.of(
                "calibration of", title, f"the calibration holds {known}", f"run distsim calibrate {cure}"
            )
        return max(fits, key=lambda fit: (fit.workers == (workers,), len(fit.workers)))

    def _model_seconds(self, scenario: Scenario) -> float:
        model = scenario.workload.model
        if model is None:
            return 0.0
        if scenario.workload != scenario.workload.model_copy(update=default_shape(model)):
            raise InputError.of(
                "calibration for a transformer of width", scenario.workload.width,
                "the calibration holds transformers of the default width and layers", "leave both out",
            )  # fmt: skip
        workers, batch = scenario.cluster.workers, float(scenario.workload.batch)
        alone = self.seconds("compute", workers, batch, model)
        if not isinstance(scenario.policy, Ddp) or not any(fit.family == "ddp" for fit in self.fits):
            return alone
        buckets = len(scenario.policy.buckets(scenario.workload.layer_bytes))
        largest = max(found.amount for found in self.measured if (found.family, found.model) == ("compute", model))
        under_ddp = self.seconds("ddp", workers, float(buckets), model)
        return max(alone + under_ddp - self.seconds("compute", workers, largest, model), SHORTEST_SECONDS)

    def warnings(self) -> list[str]:
        """What a reader should know before trusting a prediction."""
        found = []
        most = max(fit.workers[-1] + (fit.family == "parameter_server") for fit in self.fits)
        if most > self.cores:
            found.append(
                f"up to {most} ranks shared {self.cores} {'core' if self.cores == 1 else 'cores'} and took turns: "
                "times vary, and at other numbers of workers they are taken to grow with ranks per core"
            )
        poor = {fit.title: max(f.line.largest_miss for f in self.fits if f.title == fit.title) for fit in self.fits}
        worst = [f"{title} {100 * miss:.0f} %" for title, miss in poor.items() if miss > POOR_MISS]
        if worst:
            found.append(
                f"poor fits (a line more than {100 * POOR_MISS:.0f} % off a measured time): {', '.join(worst)}; "
                "predictions follow the measured times between the sizes measured, and are not to be trusted beyond"
            )
        return found


def default_shape(model: Model) -> dict[str, int]:
    """The layers and width that a calibration of `model` has measured."""
    workload = Workload(model=model)
    return {"layers": workload.layers, "width": workload.width}


def decides(scenario: Scenario) -> bool:
    """Whether a server of `scenario` applies updates."""
    return bool(scenario.servers) and isinstance(scenario.policy, WithServer)


def carried_at_once(scenario: Scenario) -> float:
    """Bytes of one exchange: of a bucket where gradients leave in buckets."""
    whole = exchanged_bytes(scenario)
    return min(whole, scenario.policy.bucket_bytes) if isinstance(scenario.policy, Ddp) else whole


def family_of(scenario: Scenario) -> Family:
    """The measured family that carries the bytes of `scenario`."""
    if isinstance(scenario.policy, Pipeline):
        return "point_to_point"
    if decides(scenario):
        return "parameter_server"
    backend = scenario.communication.implementation == "backend" and not scenario.servers
    return "all_reduce" if backend else "ring_schedule"


def bytes_per_second(seconds_per_byte: float) -> float:
    """The bandwidth, finite where bytes cost nothing that could be seen."""
    return max(1.0 / max(seconds_per_byte, 1.0 / FASTEST_BYTES_PER_SECOND), BOUNDS["byte/second"][0])


Sample = tuple[Family, Model | None, int, float, Floats]  # family, model, workers, amount, seconds of the repeats


def fitted(
    samples: Iterable[Sample], cores: int, *, emulated: bool = False, imposed: Imposed | None = None
) -> MachineCalibration:
    """The machine that these samples show; those of the same family, workers and amount count together.

    >>> import numpy as np
    >>> one = [("point_to_point", None, 2, size, np.full(20, 1e-4 + size / 1e9)) for size in (1e4, 1e5, 1e6)]
    >>> machine = fitted(one, cores=2)
    >>> round(machine.seconds("point_to_point", 2, 5e6), 9)
    0.0051
    """
    together: dict[tuple[Family, Model | None, int, float], list[Floats]] = {}
    for family, model, workers, amount, seconds in samples:
        together.setdefault((family, model, workers, amount), []).append(seconds)
    order = sorted(together, key=lambda key: (FAMILIES.index(key[0]), key[1] or "", *key[2:]))
    repeats = {key: np.concatenate(together[key]) for key in order}
    fits = []
    for family, model in dict.fromkeys((family, model) for family, model, _, _ in repeats):
        own = {key: seconds for key, seconds in repeats.items() if key[:2] == (family, model)}
        numbers = sorted({workers for _, _, workers, _ in own})
        for at in [(number,) for number in numbers] + ([tuple(numbers)] if len(numbers) > 1 else []):
            points = {key: seconds for key, seconds in own.items() if key[2] in at}
            rows = [
                terms(family, workers, amount, crowd_of(family, workers, cores, emulated=emulated))
                for _, _, workers, amount in points
            ]
            fits.append(Fit(family=family, model=model, workers=at, line=fit_line(rows, list(points.values()))))
    return MachineCalibration(
        cores=cores, emulated=emulated, imposed=imposed, fits=tuple(fits),
        measured=tuple(_measured(*key, seconds) for key, seconds in repeats.items()),
    )  # fmt: skip


def _measured(family: Family, model: Model | None, workers: int, amount: float, seconds: Floats) -> Measured:
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75])
    return Measured(
        family=family, model=model, workers=workers, amount=amount, seconds=float(middle),
        quartiles=(float(low), float(high)), repeats=len(seconds),
    )  # fmt: skip
