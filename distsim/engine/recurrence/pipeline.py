"""Pipeline parallelism: `engine.pipeline` as arrays over all steps.

It holds where no link carries two messages at once. In GPipe none does: all forwards are over when the first gradient
leaves. In 1F1B a stage's activation may meet its gradient on the way out; whether it does shows in the times worked
out as if it never did, since up to the first such meeting these are true.
"""

from __future__ import annotations

import numpy as np

from distsim.engine.recurrence.drawn import Floats
from distsim.engine.recurrence.rows import SpanRows, finished, tell_updates
from distsim.engine.recurrence.timeline import Timeline, crowded_links, first_meeting, message_bytes, timeline
from distsim.policies import Pipeline
from distsim.scenario import Scenario
from distsim.trace import NO_COLLECTIVE, SpanKind, Trace, TraceBuilder, Transfers


def cannot(scenario: Scenario) -> str | None:
    """What of `scenario`, a pipeline, has no recurrence; None where there is one."""
    assert isinstance(scenario.policy, Pipeline)
    links = crowded_links(scenario.cluster)
    if scenario.policy.schedule == "gpipe" or not links or not message_bytes(scenario):
        return None
    found = timeline(scenario)
    for link, users in links.items():
        step = first_meeting(found, scenario.cluster, users)
        if step is not None:
            return f"policy.schedule = '1f1b', whose messages meet on the {link[0]}-link of host {link[1]} in step {step}"
    return None


def run(scenario: Scenario) -> Trace:
    """Works `scenario` out."""
    found = timeline(scenario)
    seconds = found.over.max(axis=0)
    updates = seconds.cumsum()
    zero = (updates - seconds)[:, None]  # of each step
    rows, builder = SpanRows(), TraceBuilder()
    _tell_stages(rows, found, zero)
    _tell_messages(rows, found, zero, message_bytes(scenario))
    builder.extend("spans", **rows.columns())
    tell_updates(builder, updates, scenario.cluster.workers, 1, scenario.steps)
    return finished(builder, scenario, _transfers(found, zero, message_bytes(scenario)))


def _tell_stages(rows: SpanRows, found: Timeline, zero: Floats) -> None:
    """Forward and backward, and waiting for the flush; shape (steps, …)."""
    step = np.arange(len(zero))[:, None]
    kind = np.where(found.forward, SpanKind.FORWARD, SpanKind.BACKWARD)
    labels = [f"micro-batch {micro}" for micro in range(found.micro.max() + 1)]
    rows.add(kind, found.stage, step, found.starts.T + zero, found.ends.T + zero, label=(found.micro, labels))
    over = found.over.T + zero
    rows.add_waits(np.arange(len(found.over)), step, over, np.broadcast_to(over.max(axis=1, keepdims=True), over.shape))


def _tell_messages(rows: SpanRows, found: Timeline, zero: Floats, num_bytes: float) -> None:
    """Waiting until a message's way begins, and the way; shape (steps, messages)."""
    step, sent, arrived = np.arange(len(zero))[:, None], found.sent.T + zero, found.arrived.T + zero
    rows.add_waits(found.target, step, found.turned.T + zero, sent)
    origins, aims = ([f"{way} worker {stage}" for stage in range(len(found.over))] for way in ("from", "to"))
    rows.add(SpanKind.SEND, found.source, step, sent, arrived, num_bytes, (found.target, aims))
    rows.add(SpanKind.RECEIVE, found.target, step, sent, arrived, num_bytes, (found.source, origins))


def _transfers(found: Timeline, zero: Floats, num_bytes: float) -> Transfers:
    steps, count = len(zero), found.sent.size
    return Transfers(
        np.tile(found.source, steps), np.tile(found.target, steps), np.full(count, num_bytes),
        (found.sent.T + zero).ravel(), (found.arrived.T + zero).ravel(), np.tile(found.carried, steps),
        np.full(count, NO_COLLECTIVE),
    )  # fmt: skip
