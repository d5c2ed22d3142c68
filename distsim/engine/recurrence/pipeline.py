"""Pipeline parallelism: `engine.pipeline` as arrays over all steps.

A flush ends each step, so steps differ only in their drawn times. The pieces and messages of a step are computed
one after the other, each in all steps at once. This is exact where no link carries two messages at once. In GPipe no
link does: all forwards have ended when the first gradient leaves. In 1F1B an activation and a gradient may meet on a
link. The times are first computed as if no messages met. They are right up to the first meeting, so they show whether
messages meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from distsim.arrays import Flags, Floats, Indices
from distsim.cluster import Cluster, LinkName
from distsim.collective_times.max_plus_rounds import Routes
from distsim.engine.recurrence.rows import SpanRows, drawn_seconds, finished, tell_updates
from distsim.policies import Pipeline
from distsim.policies.pipeline import Piece
from distsim.profile import stage_times
from distsim.scenario import Scenario
from distsim.trace import NO_COLLECTIVE, SpanKind, Trace, TraceBuilder, Transfers

MEETING = 1e-12  # messages that meet for a smaller share of their step meet only by rounding

Wire = tuple[int, int]  # from one stage to a neighbour


@dataclass(frozen=True)
class Timeline:
    """A row for each piece, and for each message, of a step.

    stage, forward, micro: of the pieces; starts, ends: in seconds from the start of each step, shape (pieces, steps).
    source, target, carried: of the messages, with the micro-batch; turned, sent, arrived: when the target waits for
    the message, and when the message leaves and arrives, (messages, steps). over: each stage's end, (stages, steps).
    """

    stage: Indices
    forward: Flags
    micro: Indices
    starts: Floats
    ends: Floats
    source: Indices
    target: Indices
    carried: Indices
    turned: Floats
    sent: Floats
    arrived: Floats
    over: Floats


def wires(stages: int) -> list[Wire]:
    """The wires between neighbours, in both directions."""
    return [wire for left in range(stages - 1) for wire in ((left, left + 1), (left + 1, left))]


def message_bytes(scenario: Scenario) -> float:
    """Bytes of one micro-batch's activation, and of its gradient."""
    assert isinstance(scenario.policy, Pipeline)
    return (scenario.workload.handed_on_bytes or 0.0) / scenario.policy.micro_batches


def pieces_in_order(policy: Pipeline, stages: int) -> Iterator[tuple[int, Piece]]:
    """All pieces of a step with their stages. Each piece comes after the pieces that it needs.

    >>> [stage for stage, _ in pieces_in_order(Pipeline(micro_batches=1), stages=3)]
    [0, 1, 2, 2, 1, 0]
    """
    left = [policy.order(stage, stages)[::-1] for stage in range(stages)]
    done: set[tuple[int, Piece]] = set()
    reached = [0]  # stages that a message may let go on; the first one needs none
    while reached:
        stage = reached.pop()
        pieces = left[stage]
        while pieces:
            source, target = source_of(stage, pieces[-1]), target_of(stage, pieces[-1])
            if 0 <= source < stages and (source, pieces[-1]) not in done:
                break
            done.add((stage, pieces[-1]))
            if 0 <= target < stages:
                reached.append(target)
            yield stage, pieces.pop()


def source_of(stage: int, piece: Piece) -> int:
    """The stage whose message a piece waits for, or a number outside the stages if it waits for no message."""
    return stage - 1 if piece[0] == "forward" else stage + 1


def target_of(stage: int, piece: Piece) -> int:
    """The stage to which a piece's message goes, or a number outside the stages if it has no message."""
    return stage + 1 if piece[0] == "forward" else stage - 1


def timeline(scenario: Scenario) -> Timeline:
    """Each piece starts as soon as its stage is free and its message has arrived, as if messages never met."""
    policy, stages, steps = scenario.policy, scenario.cluster.workers, scenario.steps
    assert isinstance(policy, Pipeline)
    share, eager = scenario.workload.backward_share, scenario.communication.sends == "eager"
    seconds = np.ascontiguousarray(drawn_seconds(scenario).T) / policy.micro_batches
    added = np.array(stage_times(scenario.workload.profile, stages, policy.stage_layers or ())) / policy.micro_batches
    work = {
        "forward": (1.0 - share) * seconds + added[:, :1],
        "backward": share * seconds + added[:, 1:],
    }
    ways = wires(stages)
    source, target = np.array(ways, dtype=np.int32).reshape(-1, 2).T
    on_wire = dict(zip(ways, Routes.of(scenario.cluster, source, target).seconds(message_bytes(scenario)), strict=True))
    pieces = list(pieces_in_order(policy, stages))
    place = {piece: row for row, piece in enumerate(pieces)}
    starts, ends = np.empty((2, len(pieces), steps))
    turned, sent, arrived = np.empty((3, len(ways) * policy.micro_batches, steps))
    messages: list[tuple[int, int, int]] = []
    over, wire_free = np.zeros((stages, steps)), dict.fromkeys(ways, np.zeros(steps))
    for row, (stage, piece) in enumerate(pieces):
        begin, source_stage = over[stage], source_of(stage, piece)
        if 0 <= source_stage < stages:
            wire, number = (source_stage, stage), len(messages)
            messages.append((*wire, piece[1]))
            turned[number] = begin
            # With rendezvous sends the wire is free: the target already had the message before this one.
            free = wire_free[wire] if eager else begin
            np.maximum(ends[place[source_stage, piece]], free, out=sent[number])
            wire_free[wire] = np.add(sent[number], on_wire[wire], out=arrived[number])
            begin = np.maximum(begin, arrived[number])
        starts[row] = begin
        over[stage] = np.add(begin, work[piece[0]][stage], out=ends[row])
    source, target, carried = np.array(messages, dtype=np.int32).reshape(-1, 3).T
    return Timeline(
        stage=np.array([stage for stage, _ in pieces], dtype=np.int32),
        forward=np.array([way == "forward" for _, (way, _) in pieces]),
        micro=np.array([micro for _, (_, micro) in pieces], dtype=np.int32),
        starts=starts, ends=ends,
        source=source, target=target, carried=carried, turned=turned, sent=sent, arrived=arrived, over=over,
    )  # fmt: skip


def crowded_links(cluster: Cluster) -> dict[LinkName, list[Wire]]:
    """The links that would be too slow for messages on all their wires at once, with these wires."""
    capacities = cluster.capacities(cluster.workers)
    wires_of: dict[LinkName, list[Wire]] = {}
    speeds: dict[Wire, float] = {}
    for wire in wires(cluster.workers):
        links = cluster.route(*wire)[0]
        speeds[wire] = min(capacities[link] for link in links)
        for link in links:
            wires_of.setdefault(link, []).append(wire)
    return {link: users for link, users in wires_of.items() if sum(speeds[wire] for wire in users) > capacities[link]}


def first_meeting(sent: Floats, arrived: Floats, slack: Floats) -> int | None:
    """The first step in which messages use their common link at the same time, or None; shape (messages, steps)."""
    order = np.argsort(sent, axis=0)
    sent, arrived = (np.take_along_axis(times, order, axis=0) for times in (sent, arrived))
    meet = (sent[1:] < arrived[:-1] - slack).any(axis=0)
    return int(meet.argmax()) if meet.any() else None


def cannot(scenario: Scenario) -> str | None:
    """The part of `scenario`, a pipeline, that has no recurrence, or None."""
    return _meeting(scenario, timeline(scenario)) if _may_meet(scenario) else None


def attempt(scenario: Scenario, _apply_seconds: float = 0.0) -> Trace | str:
    """The trace of `scenario`, or the part of it that has no recurrence."""
    found = timeline(scenario)
    missing = _meeting(scenario, found) if _may_meet(scenario) else None
    return _told(scenario, found) if missing is None else missing


def _may_meet(scenario: Scenario) -> bool:
    assert isinstance(scenario.policy, Pipeline)
    return scenario.policy.schedule == "1f1b" and message_bytes(scenario) > 0.0


def _meeting(scenario: Scenario, found: Timeline) -> str | None:
    """Where messages first meet on a link that is too slow for them, or None."""
    rows: dict[Wire, list[int]] = {}
    for row, wire in enumerate(zip(found.source.tolist(), found.target.tolist(), strict=True)):
        rows.setdefault(wire, []).append(row)
    longest = MEETING * found.over.max(axis=0)
    for link, users in crowded_links(scenario.cluster).items():
        together = [row for wire in users for row in rows[wire]]
        slack = longest - scenario.cluster.route(*users[0])[1]
        step = first_meeting(found.sent[together], found.arrived[together], slack)
        if step is not None:
            return (
                f"policy.schedule = '1f1b', whose messages meet on the {link[0]}-link of host {link[1]} in step {step}"
            )
    return None


def _told(scenario: Scenario, found: Timeline) -> Trace:
    """The trace of the run."""
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
    """Adds the spans of forward, backward and the wait for the flush; shape (steps, …)."""
    step = np.arange(len(zero))[:, None]
    kind = np.where(found.forward, SpanKind.FORWARD, SpanKind.BACKWARD)
    labels = [f"micro-batch {micro}" for micro in range(found.micro.max() + 1)]
    rows.add(kind, found.stage, step, found.starts.T + zero, found.ends.T + zero, label=(found.micro, labels))
    over = found.over.T + zero
    rows.add_waits(np.arange(len(found.over)), step, over, np.broadcast_to(over.max(axis=1, keepdims=True), over.shape))


def _tell_messages(rows: SpanRows, found: Timeline, zero: Floats, num_bytes: float) -> None:
    """Adds the spans of the wait before a message leaves, and of its transfer; shape (steps, messages)."""
    step, sent, arrived = np.arange(len(zero))[:, None], found.sent.T + zero, found.arrived.T + zero
    rows.add_waits(found.target, step, found.turned.T + zero, sent)
    origins, aims = ([f"{way} worker {stage}" for stage in range(len(found.over))] for way in ("from", "to"))
    rows.add(SpanKind.SEND, found.source, step, sent, arrived, num_bytes, (found.target, aims))
    rows.add(SpanKind.RECEIVE, found.target, step, sent, arrived, num_bytes, (found.source, origins))


def _transfers(found: Timeline, zero: Floats, num_bytes: float) -> Transfers:
    steps, count = len(zero), found.sent.size
    return Transfers(
        np.tile(found.source, steps), np.tile(found.target, steps), np.broadcast_to(num_bytes, count),
        (found.sent.T + zero).ravel(), (found.arrived.T + zero).ravel(), np.tile(found.carried, steps),
        np.broadcast_to(NO_COLLECTIVE, count),
    )  # fmt: skip
