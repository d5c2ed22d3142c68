"""The table of metrics: one row for each number that is reported about a run.

`summary`, JSON, printed tables, the columns of a sweep and heat maps all read `METRICS`. To add a metric, add a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from distsim.arrays import Floats
from distsim.metrics.gradients import dropped_gradients, mean_staleness
from distsim.metrics.links import busiest_link_bytes
from distsim.metrics.steps import step_durations
from distsim.metrics.worker_time import goodput, paused_seconds, worker_seconds
from distsim.trace import PAUSE_KINDS, SpanKind, Trace
from distsim.units import alike

Value = float | int | None
ROUNDING = 1e-12  # a share of the time below this is what rounding left of two equal times


class Run:
    """A trace, and the numbers that several metrics share, each computed once."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def _step_seconds(self) -> Floats:
        return step_durations(self.trace).seconds

    @cached_property
    def _worker_shares(self) -> dict[Any, float]:
        """The mean share of a worker's time by part, and by kind of pause."""
        total = self.trace.total_seconds
        if total <= 0.0:
            return {}
        seconds: dict[Any, Any] = dict.fromkeys(PAUSE_KINDS, 0.0)
        seconds |= paused_seconds(self.trace) | worker_seconds(self.trace)
        shares = {part: float(np.mean(found) / total) for part, found in seconds.items()}
        return {part: share if share > ROUNDING else 0.0 for part, share in shares.items()}

    def of_steps(self, statistic: Callable[[Floats], Any]) -> float | None:
        """A statistic of the steps' seconds; None where no step ended."""
        return float(statistic(self._step_seconds)) if len(self._step_seconds) else None

    def share(self, part: str | SpanKind) -> float | None:
        """The share of the workers' time until the last update; None where no update took time."""
        return self._worker_shares.get(part)

    def failures(self) -> int:
        """The number of times that all workers had to start again."""
        restarts = self.trace.spans.of_kind(SpanKind.RESTART)
        return int(np.bincount(restarts.worker).max()) if len(restarts) else 0

    def price(self) -> float | None:
        """The price of all hosts until the last update."""
        cost, hosts = self.trace.scenario.cost, self.trace.scenario.hosts
        return None if cost is None else cost.price_per_hour * hosts * self.trace.total_seconds / 3600.0


@dataclass(frozen=True)
class Unit:
    """How the values of a metric are written.

    name: the unit of a column or an axis. scale: a value times `scale` is a number in this unit. texts: values that
    stand side by side as texts, with one prefix of the unit that suits their size.
    """

    name: str
    scale: float
    texts: Callable[[Sequence[Any]], list[str]]


def _each(form: Callable[[Any], str]) -> Callable[[Sequence[Any]], list[str]]:
    return lambda values: [form(value) for value in values]


MILLISECONDS = Unit("ms", 1e3, lambda values: alike(values, "second"))
SECONDS = Unit("s", 1.0, lambda values: alike(values, "second"))
MEGABYTES = Unit("MB", 1e-6, lambda values: alike(values, "byte"))
PERCENT = Unit("%", 100.0, _each(lambda value: f"{100 * value:z.1f} %"))
UPDATES = Unit("updates", 1.0, _each(lambda value: f"{value:.2f}"))
COUNT = Unit("", 1.0, _each(str))
CURRENCY = Unit("", 1.0, _each(lambda value: f"{value:.4g}"))


@dataclass(frozen=True)
class Metric:
    """One row of the table.

    name: an attribute of `Summary`, and a key of JSON; with a dot, a key of an inner object.
    words: the name in tables and figures. value: computes the metric; None where the trace does not give it.
    error: how a prediction is judged: by predicted - measured in percent of the measurement, in percentage points or as
    a count, or not at all. heading: of its column in the printed table of a sweep; "": no column there.
    part_of: the words of the metric of which this metric is a part. Tables show the part under the whole.
    applies: whether the metric applies to a run; None for all runs. Summaries of other runs leave the metric out.
    """

    name: str
    words: str
    unit: Unit
    value: Callable[[Run], Value]
    error: Literal["percent", "points", "count"] | None = None
    heading: str = ""
    part_of: str = ""
    applies: Callable[[Trace], bool] | None = None

    @property
    def column(self) -> str:
        """The name of its column in a sweep's table."""
        return self.name.replace(".", "_")

    @property
    def label(self) -> str:
        """Its row in a printed table."""
        return f"of it {self.words}" if self.part_of else self.words

    @property
    def title(self) -> str:
        """Its name where it stands alone."""
        return f"{self.part_of}: {self.words}" if self.part_of else self.words


def _may_fail(trace: Trace) -> bool:
    return trace.scenario.failures is not None


def _has_price(trace: Trace) -> bool:
    return trace.scenario.cost is not None


METRICS = (
    Metric("step_seconds.median", "step time, median", MILLISECONDS, lambda run: run.of_steps(np.median), "percent",
           heading="step, median (ms)"),
    Metric("step_seconds.mean", "step time, mean", MILLISECONDS, lambda run: run.of_steps(np.mean), "percent"),
    Metric("step_seconds.p90", "step time, 90th percentile", MILLISECONDS,
           lambda run: run.of_steps(lambda seconds: np.quantile(seconds, 0.9)), "percent"),
    # The time of the last update.
    Metric("total_seconds", "total", SECONDS, lambda run: run.trace.total_seconds, "percent", heading="total (s)"),
    Metric("updates", "updates", COUNT, lambda run: len(np.unique(run.trace.updates.version))),
    Metric("dropped_gradients", "dropped gradients", COUNT, lambda run: dropped_gradients(run.trace), "count",
           heading="dropped"),
    Metric("mean_staleness", "mean staleness", UPDATES, lambda run: mean_staleness(run.trace), "percent",
           heading="staleness"),
    Metric("idle_share", "idle share", PERCENT, lambda run: run.share("waiting"), "points", heading="idle (%)"),
    Metric("exposed_communication_share", "exposed communication", PERCENT, lambda run: run.share("communication"),
           "points"),
    # Over the up-links and down-links of all NICs.
    Metric("bytes_per_link_max", "busiest link", MEGABYTES, lambda run: busiest_link_bytes(run.trace)),
    Metric("failures", "failures", COUNT, Run.failures, "count", applies=_may_fail),
    Metric("goodput", "goodput", PERCENT, lambda run: goodput(run.trace), "points", heading="goodput (%)",
           applies=_may_fail),
    *(Metric(f"paused_shares.{kind.text}", kind.words, PERCENT, partial(Run.share, part=kind), "points",
             part_of="idle share", applies=_may_fail) for kind in PAUSE_KINDS),
    Metric("price", "price", CURRENCY, Run.price, "percent", applies=_has_price),
)  # fmt: skip


def in_tables() -> Iterator[Metric]:
    """The metrics in the order of printed tables: a part stands under its whole."""
    for metric in METRICS:
        if not metric.part_of:
            yield metric
            yield from (part for part in METRICS if part.part_of == metric.words)


@dataclass(frozen=True)
class StepSeconds:
    """Seconds per step: the time from one update to the next, or, without a global step, from compute to compute."""

    median: float
    mean: float
    p90: float


@dataclass(frozen=True)
class Summary:
    """The metrics of one run: `values` by name, without those that do not apply to such a run.

    Each is an attribute too, such as `total_seconds`. None: the metric does not apply, or the trace does not hold it.
    """

    values: dict[str, Value]

    @property
    def step_seconds(self) -> StepSeconds | None:
        """None where no step ended."""
        found = self.as_dict()["step_seconds"]
        return None if found is None else StepSeconds(**found)

    def __getattr__(self, name: str) -> Any:
        if name not in KEYS:
            raise AttributeError(f"a summary has no metric {name!r}, only {', '.join(KEYS)}")
        return self.as_dict().get(name)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `distsim simulate --json` prints them."""
        table: dict[str, Any] = {}
        for name, value in self.values.items():
            key, _, part = name.partition(".")
            if part:
                table.setdefault(key, {})[part] = value
            else:
                table[key] = value
        for key, inner in table.items():
            if isinstance(inner, dict) and set(inner.values()) == {None}:
                table[key] = None
        return table


KEYS = tuple(dict.fromkeys(metric.name.partition(".")[0] for metric in METRICS))


def summary(trace: Trace) -> Summary:
    """The metrics of `trace`. Raises InputError where it is a part of a run.

    >>> from distsim import example, simulate
    >>> found = summary(simulate(example("synchronous_ring")))
    >>> found.updates, found.dropped_gradients, found.mean_staleness
    (50, 0, 0.0)
    """
    trace.check_whole("summary(trace)")
    run = Run(trace)
    told = (metric for metric in METRICS if metric.applies is None or metric.applies(trace))
    return Summary({metric.name: metric.value(run) for metric in told})


def percent_error(predicted: Value, measured: Value) -> float | None:
    """Predicted - measured, in percent of the measurement: negative where the prediction is too low.

    None where a value is missing, or the measurement is 0.

    >>> percent_error(0.75, 1.0), percent_error(1.25, 1.0), percent_error(0.0, 0.0)
    (-25.0, 25.0, None)
    """
    if predicted is None or not measured:
        return None
    return 100.0 * (predicted - measured) / measured
