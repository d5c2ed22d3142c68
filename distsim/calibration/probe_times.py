"""The times in the trace of a calibration's scenario: of a model, of exchanges beside busy cores, and of a server."""

from __future__ import annotations

import numpy as np

from distsim.arrays import Floats
from distsim.calibration.exchange import WARM_UP_STEPS
from distsim.trace import SpanKind, Spans, Trace


def ddp_seconds(trace: Trace) -> Floats:
    """Seconds from one update until all workers have handed over the next update's last bucket, without the warm-up.

    The drawn time is subtracted. Forward, backward, DDP's own work and the wait for a core remain.
    """
    handed_over = _latest(trace, trace.spans.of_kind(SpanKind.BACKWARD))
    before = np.concatenate([[0.0], trace.updates.time_seconds[:-1]])
    drawn = trace.scenario.compute_times()(0, 0)  # probes have constant compute times
    return np.asarray((handed_over - before - drawn)[WARM_UP_STEPS:])


def model_seconds(trace: Trace) -> Floats:
    """Forward and backward of the slowest worker, per step, without the warm-up."""
    work = trace.spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
    seconds = np.zeros((trace.scenario.steps, trace.workers))
    np.add.at(seconds, (work.step, work.worker), work.end_seconds - work.start_seconds)
    return np.asarray(seconds.max(axis=1)[WARM_UP_STEPS:])


def busy_all_reduce_seconds(trace: Trace) -> Floats:
    """Seconds of each step's first bucket, without the warm-up; none where most of them outlast a worker's backward."""
    sums = trace.spans.of_kind(SpanKind.ALL_REDUCE)
    first = sums.where(sums.label == "bucket 0")
    begun = np.full(trace.scenario.steps, -np.inf)
    np.maximum.at(begun, first.step, first.start_seconds)
    ended = _latest(trace, first)
    return (ended - begun)[WARM_UP_STEPS:] if np.median(_computed(trace) - ended) > 0.0 else np.zeros(0)


def busy_reduce_scatter_seconds(trace: Trace) -> Floats:
    """Mean seconds of a step's sums of one layer that end before a worker's backward, without the warm-up.

    A sum begins when the sum before has ended, and all workers have computed its gradients. So this is how long a sum
    among others takes, with the wait of the thread that calls it. None where in most steps no sum ends so early.
    """
    sums, backward = trace.spans.of_kind(SpanKind.REDUCE_SCATTER), trace.spans.of_kind(SpanKind.BACKWARD)
    order = backward.where((backward.step == 0) & (backward.worker == 0))
    layers = order.label[np.argsort(order.start_seconds)]
    ready, ended = (
        np.array([_latest(trace, spans.where(spans.label == layer)) for layer in layers]) for spans in (backward, sums)
    )
    begun = np.maximum(ready, np.vstack([ready[:1], ended[:-1]]))
    early = (ended < _computed(trace))[:, WARM_UP_STEPS:]
    seconds, found = np.where(early, (ended - begun)[:, WARM_UP_STEPS:], 0.0).sum(axis=0), early.sum(axis=0)
    return seconds[found > 0] / found[found > 0] if np.median(found) > 0.0 else np.zeros(0)


def hand_over_seconds(trace: Trace) -> Floats:
    """Mean seconds between two pieces that the only worker computes, for each step, without the warm-up.

    It computes the next piece when another thread has made the exchange between both.
    """
    pieces = trace.spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
    order = np.lexsort((pieces.start_seconds, pieces.step))
    starts, ends = (
        seconds[order].reshape(trace.scenario.steps, -1) for seconds in (pieces.start_seconds, pieces.end_seconds)
    )
    return np.asarray((starts[:, 1:] - ends[:, :-1]).mean(axis=1)[WARM_UP_STEPS:])


def wake_seconds(trace: Trace) -> Floats:
    """Mean seconds from the end of a gather until the forward that waited for it begins, for each step with such waits.

    Without the warm-up. Each unit is gathered once and has one forward.
    """
    gathers, forwards = trace.spans.of_kind(SpanKind.ALL_GATHER), trace.spans.of_kind(SpanKind.FORWARD)
    shape = trace.scenario.steps, trace.workers, -1
    gathered, begun, ended = (
        seconds[np.lexsort((spans.start_seconds, spans.worker, spans.step))].reshape(shape)
        for spans, seconds in (
            (gathers, gathers.end_seconds), (forwards, forwards.start_seconds), (forwards, forwards.end_seconds)
        )
    )  # fmt: skip
    waited = gathered[..., 1:] > ended[..., :-1]
    seconds = np.where(waited, begun[..., 1:] - gathered[..., 1:], 0.0).sum(axis=(1, 2))[WARM_UP_STEPS:]
    found = waited.sum(axis=(1, 2))[WARM_UP_STEPS:]
    return np.asarray(seconds[found > 0] / found[found > 0])


def _computed(trace: Trace) -> Floats:
    """When the first worker has ended its backward, for each step."""
    backward = trace.spans.of_kind(SpanKind.BACKWARD)
    computed = np.full((trace.workers, trace.scenario.steps), -np.inf)
    np.maximum.at(computed, (backward.worker, backward.step), backward.end_seconds)
    return np.asarray(computed.min(axis=0))


def server_seconds(trace: Trace) -> tuple[Floats, Floats, Floats]:
    """Seconds per step of the gather (last compute to last push), the server's own work, and the broadcast."""
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
    """When the last of these spans ended, for each step."""
    ends = np.full(trace.scenario.steps, -np.inf)
    np.maximum.at(ends, spans.step, spans.end_seconds)
    return ends
