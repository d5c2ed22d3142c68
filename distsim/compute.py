"""How long one step takes on one worker: a distribution, persistent stragglers and transient pauses.

    time(worker, draw) = factor(worker) x draw of the distribution + (a pause, with its probability) + added

`ComputeTimes` holds the draws. The simulation and the real run get the same number for the same (worker, index).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, model_validator

from distsim import files
from distsim.arrays import Floats
from distsim.distributions import DISTRIBUTIONS, Distribution, Empirical
from distsim.errors import InputError
from distsim.random_streams import Purpose, stream
from distsim.units import BOUNDS, Seconds
from distsim.validated_table import Factor, ValidatedTable, rank_keys

if TYPE_CHECKING:
    DistributionName = str
else:
    DistributionName = Literal[(*DISTRIBUTIONS, "replay")]  # a replay takes its times from a file
SPREADS = {"cv": 0.3, "alpha": 2.5}  # the keys that say how far times spread, with an example of each
LARGEST_MEGABYTES = 100  # of a table of times


class Pauses(ValidatedTable):
    """Transient stragglers: with this probability a step takes `duration` longer."""

    probability: Annotated[float, Field(ge=0.0, le=1.0, examples=[0.02])]
    duration_seconds: Seconds = Field(alias="duration", examples=["500 ms"])


class Compute(ValidatedTable):
    """The `[compute]` table: seconds of one step on one worker.

    mean_seconds: 0 where a model or a profile computes and nothing is drawn. added_seconds: added to every step of
    every worker; a calibration puts a model's measured forward and backward here. The content of `file` is read with
    the table and travels with the object; the scenario of a saved trace reads it when it is used.

    >>> compute = Compute(distribution="lognormal", mean="50 ms", cv=0.3, slow={3: 2.0})
    >>> compute.of_worker(0, batch=32).mean_seconds
    0.05
    >>> compute.slow_factor(3)
    2.0
    """

    distribution: DistributionName = "constant"
    mean_seconds: Seconds | None = Field(default=None, alias="mean")
    fixed_seconds: Seconds | None = Field(default=None, alias="fixed")
    per_sample_seconds: Seconds | None = Field(default=None, alias="per_sample")
    cv: Annotated[float, Field(ge=1e-9, le=1e3)] | None = None
    alpha: Annotated[float, Field(gt=1.0, le=1e9)] | None = None
    file: str | None = None
    slow: Annotated[dict[Annotated[int, Field(ge=0)], Factor], BeforeValidator(rank_keys)] = Field(default={})
    pauses: Pauses | None = None
    added_seconds: Seconds = Field(default=0.0, alias="added")
    _content: bytes | None = PrivateAttr(default=None)  # of the file

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Compute:
        scaled = self.fixed_seconds is not None or self.per_sample_seconds is not None
        if self.distribution == "replay":
            self._check_replay(scaled)
            folder = (info.context or {}).get("folder", Path())
            object.__setattr__(self, "file", str(folder / str(self.file)))
            if not (info.context or {}).get("recorded"):
                self._content = _content(Path(str(self.file)))
                _times(self._content, str(self.file))
            return self
        if self.file is not None:
            raise ValueError(f'file = {self.file!r} goes with distribution = "replay" alone. Cure: remove it')
        if scaled == (self.mean_seconds is not None):
            found = "both" if scaled else "neither"
            raise ValueError(
                f"has {found} a mean and fixed or per_sample; the mean of one step is either given or "
                'fixed + per_sample x batch. Cure: write mean = "50 ms", or fixed = "5 ms" and per_sample = "1.4 ms"'
            )
        if scaled and not self.fixed_seconds and not self.per_sample_seconds:
            raise ValueError(
                'fixed = "0 s" and per_sample = "0 s" make steps that take no time; their sum must be above 0. '
                'Cure: write fixed = "5 ms"'
            )
        if self.mean_seconds == 0.0:
            self._check_nothing_drawn()
        self._check_spread()
        return self

    def _check_nothing_drawn(self) -> None:
        for key, value, default in (("distribution", self.distribution, "constant"), ("slow", self.slow, {})):
            if value != default:
                raise ValueError(
                    f"{key} = {value!r} would change nothing, since the mean of the drawn times is 0 s. "
                    f'Cure: remove {key}, or write mean = "50 ms"'
                )

    def _check_replay(self, scaled: bool) -> None:
        if self.file is None:
            raise ValueError('distribution = "replay" needs a file of times in seconds. Cure: write file = "times.csv"')
        if scaled or self.mean_seconds is not None or self.cv is not None or self.alpha is not None:
            raise ValueError(
                'distribution = "replay" takes its times from the file, so mean, fixed, per_sample, cv and alpha would '
                "change nothing. Cure: remove them"
            )

    def _check_spread(self) -> None:
        kind, entry = self.distribution, DISTRIBUTIONS[self.distribution]
        given = self._spread
        for key, value in given.items():
            if key not in entry.keys:
                takers = " or ".join(name for name, other in DISTRIBUTIONS.items() if key in other.keys)
                raise ValueError(
                    f'{key} = {value} would change nothing with distribution = "{kind}". '
                    f"Cure: remove it, or write distribution as {takers}"
                )
        if len(given) != bool(entry.keys):
            *others, last = entry.keys
            keys = f"either {', '.join(others)} or {last}" if others else last
            raise ValueError(
                f'distribution = "{kind}" needs {keys} (cv: standard deviation / mean). '
                f"Cure: write {last} = {SPREADS[last]}"
            )
        if self.cv is not None and self.cv > entry.largest_cv:
            raise ValueError(
                f'cv = {self.cv} must be at most {entry.largest_cv:.4g} with distribution = "{kind}", or times would '
                "be negative. Cure: lower it, or take lognormal"
            )

    @property
    def _spread(self) -> dict[str, float]:
        """The keys that say how far times spread, and their values."""
        found = {key: getattr(self, key) for key in SPREADS}
        return {key: value for key, value in found.items() if value is not None}

    @property
    def content(self) -> bytes | None:
        """What the file of times held when the scenario was read; None without a file, or of a saved trace."""
        return self._content

    @property
    def _table(self) -> Floats | None:
        if self.file is None:
            return None
        return read_times(Path(self.file)) if self._content is None else _times(self._content, self.file)

    def mean_of_batch(self, batch: int) -> float:
        """The mean seconds of one undisturbed step on `batch` samples."""
        table = self._table
        if table is not None:
            return float(table.mean())
        if self.mean_seconds is not None:
            return self.mean_seconds
        return (self.fixed_seconds or 0.0) + (self.per_sample_seconds or 0.0) * batch

    def of_worker(self, worker: int, batch: int) -> Distribution:
        """The distribution of one undisturbed step: before the slow factor, without pauses.

        A replayed table with a column per worker is summarised by that column's empirical distribution.
        """
        table = self._table
        if table is not None:
            column = worker if table.shape[1] > 1 else 0
            return Empirical(tuple(table[:, column]))
        return DISTRIBUTIONS[self.distribution].make(self.mean_of_batch(batch), **self._spread)

    def slow_factor(self, worker: int) -> float:
        """How many times longer this worker takes than the others (1.0 for a normal one)."""
        return self.slow.get(worker, 1.0)

    def replayed(self, worker: int, *, alone: bool) -> Floats | None:
        """The times in seconds that this worker replays in order, or None where its times are drawn.

        alone: whether there is no other worker, so that a single column is its own.
        """
        table = self._table
        return None if table is None or (table.shape[1] == 1 and not alone) else table[:, worker]

    def check_workers(self, workers: int) -> None:
        """Raises ValueError where the table, or the file of times, names workers that the cluster does not have."""
        absent = [worker for worker in self.slow if worker >= workers]
        if absent:
            raise ValueError(
                f"slow names worker {absent[0]}, but workers count 0 to {workers - 1}. Cure: name one of those"
            )
        table = None if self._content is None else self._table  # a saved trace's file may be missing
        if table is not None and table.shape[1] not in (1, workers):
            raise ValueError(
                f"file = {self.file!r} has {table.shape[1]} columns; it needs one per worker ({workers}), "
                "or a single one that all draw from. Cure: add or remove columns"
            )


class ComputeTimes:
    """The seconds of each worker's work, drawn once per (worker, index) from the scenario's seed.

    `times(worker, index)` may be called in any order and always returns the same.

    >>> compute = Compute(distribution="exponential", mean="1 s")
    >>> one, other = ComputeTimes(compute, seed=7, batch=1), ComputeTimes(compute, seed=7, batch=1)
    >>> _ = other.first(2, 1000)
    >>> one(2, 5) == other(2, 5)
    True
    """

    def __init__(self, compute: Compute, seed: int, batch: int, *, alone: bool = False) -> None:
        """alone: whether the cluster has one worker."""
        self._compute = compute
        self._alone = alone
        self._batch = batch
        self._seed = seed
        self._drawn: dict[int, Floats] = {}
        self._seconds: dict[int, list[float]] = {}  # the same draws, for calls with one index
        self._generators: dict[tuple[Purpose, int], np.random.Generator] = {}

    def __call__(self, worker: int, index: int) -> float:
        """Seconds of this worker's piece of work number `index`, which counts from 0."""
        try:
            return self._seconds[worker][index]
        except (KeyError, IndexError):
            self._seconds[worker] = self.first(worker, index + 1).tolist()
        return self._seconds[worker][index]

    def first(self, worker: int, count: int) -> Floats:
        """The worker's first times in seconds, shape (at least `count`,)."""
        drawn = self._drawn.get(worker, np.empty(0))
        if len(drawn) < count:
            more = max(count - len(drawn), len(drawn), 64)
            drawn = np.concatenate([drawn, self._draw(worker, len(drawn), more)])
            self._drawn[worker] = drawn
        return drawn

    def _draw(self, worker: int, start: int, count: int) -> Floats:
        compute = self._compute
        replayed = compute.replayed(worker, alone=self._alone)
        if replayed is not None:
            times = replayed[np.arange(start, start + count) % len(replayed)]
        else:
            times = compute.of_worker(worker, self._batch).sample(self._generator(Purpose.COMPUTE, worker), count)
        times = times * compute.slow_factor(worker)
        if compute.pauses is not None:
            paused = self._generator(Purpose.PAUSE, worker).random(count) < compute.pauses.probability
            times = times + paused * compute.pauses.duration_seconds
        return times + compute.added_seconds

    def _generator(self, purpose: Purpose, worker: int) -> np.random.Generator:
        key = purpose, worker
        if key not in self._generators:
            self._generators[key] = stream(self._seed, purpose, worker)
        return self._generators[key]


def read_times(path: Path) -> Floats:
    """A table of times in seconds, shape (rows, columns): text, one row per step, separated by commas or spaces.

    One per worker: worker i replays column i from the top, and starts again after the end. One column for several
    workers: every worker draws from it at random, with replacement. Raises InputError.
    """
    return _times(_content(path), str(path))


def _content(path: Path) -> bytes:
    try:
        return _read(path, files.changed(path))
    except OSError as error:
        raise InputError(
            f"file = {str(path)!r} cannot be read ({error.strerror}). Cure: give the path of a table of times"
        ) from None


@lru_cache(maxsize=8)
def _read(path: Path, changed: int) -> bytes:  # noqa: ARG001 - a changed file is read anew
    return files.read(path, LARGEST_MEGABYTES)


@lru_cache(maxsize=8)
def _times(content: bytes, name: str) -> Floats:
    """The table that a file of this name holds."""
    try:
        rows: list[list[Any]] = [line.replace(",", " ").split() for line in content.decode("utf-8").splitlines()]
        table = np.array([row for row in rows if row], dtype=float)
    except ValueError:
        raise InputError(
            f"file = {name!r} is not a table of numbers with rows of equal length. Cure: write one row per step, "
            "seconds separated by commas"
        ) from None
    longest = BOUNDS["second"][1]
    if table.ndim != 2 or table.size == 0 or not ((table >= 0) & (table <= longest)).all():
        raise InputError(
            f"file = {name!r} needs at least one row of finite times of at least 0, and at most "
            f"{longest:.0e} seconds. Cure: correct it"
        )
    table.flags.writeable = False
    return table
