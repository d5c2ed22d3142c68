"""Distributed data parallel training, which sends buckets of gradients during backward: `engine.ddp` as arrays."""

from __future__ import annotations

from math import fsum

import numpy as np

from distsim.engine.recurrence.all_reduce_sequence import in_sequence, tell_exchanges, transfers
from distsim.engine.recurrence.peers import call_site
from distsim.engine.recurrence.rows import SpanRows, drawn_seconds, finished, tell_updates
from distsim.policies import Ddp
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


def run(scenario: Scenario) -> Trace:
    """Simulates `scenario`."""
    policy, workload, steps, workers = scenario.policy, scenario.workload, scenario.steps, scenario.cluster.workers
    assert isinstance(policy, Ddp)
    layer_bytes = workload.layer_bytes
    buckets = policy.buckets(layer_bytes)
    layers = np.array([len(bucket) for bucket in buckets])
    added = workload.added_times(layers.tolist())
    updates, together = policy.updates(steps, workers), policy.accumulate

    # The steps of each update (only the last step communicates) and the steps left over: (…, accumulate, workers)
    drawn = np.zeros((-(-steps // together), together, workers))
    drawn.reshape(-1, workers)[:steps] = drawn_seconds(scenario)
    optimizer = np.zeros((together, 1))  # after the update before
    optimizer[0] = added.optimizer
    whole = drawn + (optimizer + added.computed)
    before = whole.cumsum(axis=1) - whole
    parts = 1.0 - workload.backward_share * (1.0 - layers.cumsum() / workload.layers)  # of a step, before each bucket
    ready = before[:updates, -1:] + drawn[:updates, -1:] * parts[:, None]
    ready = ready + (optimizer[-1] + added.forward + np.cumsum(added.buckets)[:, None])

    bucket_bytes = np.array([fsum(layer_bytes[layer] for layer in bucket) for bucket in buckets])
    bucket_bytes = bucket_bytes * policy.compression
    calls = call_site(scenario).all_reduces(bucket_bytes.tolist(), updates)
    arrivals, ends = in_sequence(calls, ready)

    rows, worker, step = SpanRows(), np.arange(workers), np.arange(steps)[:, None]
    begins = np.concatenate([np.zeros((1, workers)), ends[:, -1]])[: len(drawn), None]
    forward = begins + before
    backward = forward + (1.0 - workload.backward_share) * drawn + (optimizer + added.forward)
    computed = forward + whole
    forward_of, backward_of, computed_of = (
        times.reshape(-1, workers)[:steps] for times in (forward, backward, computed)
    )
    rows.add(SpanKind.FORWARD, worker, step, forward_of, backward_of)
    rows.add(SpanKind.BACKWARD, worker, step, backward_of, computed_of)
    last_steps = np.arange(1, updates + 1)[:, None, None] * together - 1
    # A worker does not wait while its backward goes on.
    idle_from = np.maximum(arrivals, computed[:updates, -1:])
    labels = np.arange(len(layers))[:, None], [f"bucket {number}" for number in range(len(layers))]
    tell_exchanges(rows, last_steps, arrivals, ends, idle_from, bucket_bytes[:, None], labels)
    builder = TraceBuilder()
    builder.extend("spans", **rows.columns())
    tell_updates(builder, ends[:, -1].max(axis=1), workers, together, updates * together)
    return finished(builder, scenario, transfers(scenario, bucket_bytes.tolist(), arrivals))
