"""The metrics of a trace: step time, waiting, communication, staleness, bytes. Real and simulated runs share them.

`table` has a row for each metric. The other modules compute them: `worker_time`, `steps`, `gradients`, `links`.
`regime` tells what the time of a prediction consists of.
"""

from __future__ import annotations

from distsim.metrics.gradients import UnavailableError, dropped_gradients, mean_staleness, staleness_histogram
from distsim.metrics.gradients import throughput_samples_per_second as throughput_samples_per_second
from distsim.metrics.links import bytes_per_link
from distsim.metrics.regime import REGIMES, regime, regime_words
from distsim.metrics.steps import StepDurations, step_durations
from distsim.metrics.table import METRICS, Metric, Summary, percent_error, summary
from distsim.metrics.worker_time import PARTS, covered_seconds, goodput, paused_seconds, worker_seconds

__all__ = [
    "METRICS",
    "PARTS",
    "REGIMES",
    "Metric",
    "StepDurations",
    "Summary",
    "UnavailableError",
    "bytes_per_link",
    "covered_seconds",
    "dropped_gradients",
    "goodput",
    "mean_staleness",
    "paused_seconds",
    "percent_error",
    "regime",
    "regime_words",
    "staleness_histogram",
    "step_durations",
    "summary",
    "throughput_samples_per_second",
    "worker_seconds",
]
