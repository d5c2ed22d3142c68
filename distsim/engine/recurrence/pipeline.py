"""Pipeline parallelism: `engine.pipeline` as arrays over all steps.

A flush ends each step, so steps differ only in their drawn times. The pieces, messages and exchanges of a step are
computed one after the other, each in all steps and for all workers of a stage at once. This is exact where no link
carries two messages at once, and no message beside an exchange. In GPipe with stages of one worker no messages meet:
all forwards have ended when the first gradient leaves. In 1F1B an activation and a gradient may meet on a link. The
times are first computed as if no messages met. They are right up to the first meeting, so they show whether messages
meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from distsim.arrays import Flags, Floats, Indices
from distsim.cluster import Cluster, LinkName
from distsim.collective_times.call_site import calls_of
from distsim.collective_times.max_plus_rounds import Routes
from distsim.engine.recurrence.all_reduce_sequence import tell_exchanges, transfers
from distsim.engine.recurrence.peers import call_site, why_not
from distsim.engine.recurrence.rows import SpanRows, drawn_seconds, finished, tell_updates
from distsim.groups import GroupExchange
from distsim.pipeline_stages import Stages, stages_of
from distsim.policies import Pipeline
from distsim.policies.pipeline import Piece
from distsim.scenario import Scenario
from distsim.trace import NO_COLLECTIVE, SpanKind, Trace, TraceBuilder, Transfers

MEETING = 1e-12  # messages that meet for a smaller share of their step meet only by rounding

Wire = tuple[int, int]  # from one worker to the one with its place in a neighbouring stage


@dataclass(frozen=True)
class Timeline:
    """A row for each part of a piece, for each message, and for each exchange of a step; lanes: a stage's workers.

    stage, forward, micro: of the parts; starts, ends: in seconds from the start of each step, (parts, lanes, steps).
    source, target, carried: of the messages: the stages, and the micro-batch; turned, sent, arrived: when a target
    waits for a message, and when the message leaves and arrives, (messages, lanes, steps). joined, left: when workers
    join and leave each exchange, 0 for those that do not join, (exchanges, steps, workers). over: each worker's end,
    (workers, steps).
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
    joined: Floats
    left: Floats
    over: Floats


def wires(workers: int, width: int) -> list[Wire]:
    """The wires between workers of neighbouring stages, in both directions. width: workers of a stage."""
    return [wire for left in range(workers - width) for wire in ((left, left + width), (left + width, left))]


def stages(scenario: Scenario) -> Stages:
    """What the stages of `scenario` compute and exchange."""
    assert isinstance(scenario.policy, Pipeline)
    return stages_of(scenario.policy, scenario.workload, scenario.cluster.workers)


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
    """Each piece starts as soon as its worker is free and its message has arrived, as if messages never met."""
    policy, steps, workers, own = scenario.policy, scenario.steps, scenario.cluster.workers, stages(scenario)
    assert isinstance(policy, Pipeline)
    width, count, eager = own.width, len(own.of), scenario.communication.sends == "eager"
    seconds = np.ascontiguousarray(drawn_seconds(scenario).T)
    exchanges = [call.exchange for call in own.calls]
    calls = calls_of(scenario.cluster, scenario.communication, exchanges, [call.num_bytes for call in own.calls], steps)
    joined, left = np.zeros((2, len(calls), steps, workers))
    on_wire = _wire_seconds(scenario, own)
    starts: list[Floats] = []
    ends: list[Floats] = []
    labels: list[tuple[int, bool, int]] = []
    done: dict[tuple[int, Piece], Floats] = {}
    turned: list[Floats] = []
    sent: list[Floats] = []
    arrived: list[Floats] = []
    messages: list[tuple[int, int, int]] = []
    of_stage = [slice(stage * width, (stage + 1) * width) for stage in range(count)]
    over = [np.full((width, steps), stage.apply_seconds) for stage in own.of]
    wire_free = dict.fromkeys(on_wire, np.zeros((width, steps)))

    def exchange(number: int, stage: int) -> None:
        """The workers of a stage join a call. The groups of other stages join at other times, or not at all."""
        rows = of_stage[stage]
        joined[number, :, rows] = over[stage].T
        left[number, :, rows] = calls[number].ends(joined[number])[:, rows]
        over[stage] = left[number, :, rows].T

    for stage, piece in pieces_in_order(policy, count):
        begin, source = over[stage], source_of(stage, piece)
        if 0 <= source < count:
            wire = (source, stage)
            messages.append((*wire, piece[1]))
            turned.append(begin)
            # With rendezvous sends the wire is free: the target already had the message before this one.
            sent.append(np.maximum(done[source, piece], wire_free[wire] if eager else begin))
            wire_free[wire] = sent[-1] + on_wire[wire]
            arrived.append(wire_free[wire])
            begin = np.maximum(begin, arrived[-1])
        over[stage], place = begin, 0
        for part in own.of[stage].parts(piece[0]):
            starts.append(over[stage])
            labels.append((stage, piece[0] == "forward", piece[1]))
            over[stage] = over[stage] + (part.share * seconds[of_stage[stage]] + part.added_seconds)
            ends.append(over[stage])
            if part.summed:
                exchange(own.sum_number(*piece, place), stage)
                place += 1
        done[stage, piece] = over[stage]
    for stage in range(count) if own.gradients else ():
        if stage:  # its last message goes to the stage before
            over[stage] = np.maximum(over[stage], wire_free[stage, stage - 1])
        for place in range(len(own.gradients)):
            exchange(own.gradient_number(stage, place), stage)
    of_part = np.array(labels, dtype=np.int32).T
    source_stage, target_stage, carried = np.array(messages, dtype=np.int32).reshape(-1, 3).T
    turns, departures, arrivals = (np.array(times).reshape(-1, width, steps) for times in (turned, sent, arrived))
    return Timeline(
        stage=of_part[0], forward=of_part[1].astype(bool), micro=of_part[2],
        starts=np.array(starts), ends=np.array(ends),
        source=source_stage, target=target_stage, carried=carried,
        turned=turns, sent=departures, arrived=arrivals,
        joined=joined, left=left, over=np.concatenate(over),
    )  # fmt: skip


def _wire_seconds(scenario: Scenario, own: Stages) -> dict[Wire, Floats]:
    """What a message between two stages takes, by lane; shape (lanes, 1)."""
    ways = wires(scenario.cluster.workers, own.width)
    source, target = np.array(ways, dtype=np.int32).reshape(-1, 2).T
    seconds = Routes.of(scenario.cluster, source, target).seconds(own.message_bytes)
    found: dict[Wire, list[float]] = {}
    for (begin, end), one in sorted(zip(ways, seconds.tolist(), strict=True)):
        found.setdefault((begin // own.width, end // own.width), []).append(one)
    return {wire: np.array(by_lane)[:, None] for wire, by_lane in found.items()}


def crowded_links(cluster: Cluster, width: int) -> dict[LinkName, list[Wire]]:
    """The links that would be too slow for messages on all their wires at once, with these wires."""
    capacities = cluster.capacities(cluster.workers)
    wires_of: dict[LinkName, list[Wire]] = {}
    speeds: dict[Wire, float] = {}
    for wire in wires(cluster.workers, width):
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
    return _unknown(scenario) or (_meeting(scenario, timeline(scenario)) if _may_meet(scenario) else None)


def attempt(scenario: Scenario, _apply_seconds: float = 0.0) -> Trace | str:
    """The trace of `scenario`, or the part of it that has no recurrence."""
    if missing := _unknown(scenario):
        return missing
    found = timeline(scenario)
    missing = _meeting(scenario, found) if _may_meet(scenario) else None
    return _told(scenario, found) if missing is None else missing


def _unknown(scenario: Scenario) -> str | None:
    """An exchange that has no recurrence, or whose transfers may share a link with other bytes, in words, or None."""
    own, cluster = stages(scenario), scenario.cluster
    called = dict.fromkeys(call.exchange for call in own.calls)
    if missing := next(filter(None, (why_not(scenario, one) for one in called)), None):
        return missing
    sums = _links(scenario, own.sums) if own.sums in called else set()
    gradients = set().union(*(_links(scenario, one) for one in own.gradients))
    pairs = np.array(wires(cluster.workers, own.width), dtype=np.int32).reshape(-1, 2).T
    messages = set().union(*(numbers.tolist() for numbers in cluster.route_numbers(*pairs)[:2]))
    # A worker's gradients follow its messages, so that the two share a link only where workers share it, or where a
    # transfer does not wait for its target.
    apart = scenario.communication.sends == "rendezvous" and (
        cluster.nodes is None or cluster.nodes.nic_per == "worker"
    )
    both = sums & (gradients | messages) or (set() if apart else gradients & messages)
    if not both:
        return None
    kind, host = cluster.link_name(min(both))
    return f"policy.kind = 'pipeline', where exchanges and messages may share the {kind}-link of host {host}"


def _links(scenario: Scenario, exchange: GroupExchange) -> set[int]:
    """The numbers of the links that an exchange uses."""
    site = call_site(scenario, exchange)
    numbers = scenario.cluster.route_numbers(*site.collective.schedule(site.topology).pairs)[:2]
    return set().union(*(links.tolist() for links in numbers))


def _may_meet(scenario: Scenario) -> bool:
    assert isinstance(scenario.policy, Pipeline)
    own = stages(scenario)
    return (scenario.policy.schedule == "1f1b" or own.width > 1) and own.message_bytes > 0.0


def _meeting(scenario: Scenario, found: Timeline) -> str | None:
    """Where messages first meet on a link that is too slow for them, or None."""
    width = stages(scenario).width
    rows: dict[Wire, list[int]] = {}
    for row, (source, target) in enumerate(zip(found.source.tolist(), found.target.tolist(), strict=True)):
        for lane in range(width):
            rows.setdefault((source * width + lane, target * width + lane), []).append(row * width + lane)
    sent, arrived = (times.reshape(-1, times.shape[-1]) for times in (found.sent, found.arrived))
    longest = MEETING * found.over.max(axis=0)
    for link, users in crowded_links(scenario.cluster, width).items():
        together = [row for wire in users for row in rows[wire]]
        slack = longest - scenario.cluster.route(*users[0])[1]
        step = first_meeting(sent[together], arrived[together], slack)
        if step is not None:
            assert isinstance(scenario.policy, Pipeline)
            return (
                f"policy.schedule = {scenario.policy.schedule!r}, whose messages meet on the {link[0]}-link of host "
                f"{link[1]} in step {step}"
            )
    return None


def _told(scenario: Scenario, found: Timeline) -> Trace:
    """The trace of the run."""
    own, seconds = stages(scenario), found.over.max(axis=0)
    updates = seconds.cumsum()
    zero = updates - seconds  # of each step
    rows, builder = SpanRows(), TraceBuilder()
    _tell_stages(rows, found, zero, own)
    _tell_messages(rows, found, zero, own)
    joined, left = (times + zero[:, None] for times in (found.joined, found.left))
    step = np.arange(len(zero))[:, None]
    for number, call in enumerate(own.calls):
        label = 0, [call.label]
        tell_exchanges(
            rows, step, joined[number], left[number], joined[number], call.num_bytes, label, call.exchange,
            call.workers(own.width),
        )  # fmt: skip
    builder.extend("spans", **rows.columns())
    tell_updates(builder, updates, scenario.cluster.workers, 1, scenario.steps)
    sent = [_message_rows(found, zero, own), _exchange_rows(scenario, own, joined)]
    columns = [part.columns() for part in sent]
    joint = {name: np.concatenate([one[name] for one in columns]) for name in Transfers.dtypes}
    return finished(builder, scenario, Transfers(**joint))


def _tell_stages(rows: SpanRows, found: Timeline, zero: Floats, own: Stages) -> None:
    """Adds the spans of the update, forward, backward and the wait for the flush; shape (steps, parts, lanes)."""
    lane, step, workers = np.arange(own.width), np.arange(len(zero)), np.arange(len(found.over))
    for number, stage in enumerate(own.of):
        if stage.apply_seconds:
            end = np.broadcast_to((zero + stage.apply_seconds)[:, None], (len(zero), own.width))
            rows.add(SpanKind.APPLY, number * own.width + lane, step[:, None], zero[:, None], end)
    kind = np.where(found.forward, SpanKind.FORWARD, SpanKind.BACKWARD)[:, None]
    worker = found.stage[:, None] * own.width + lane
    label = found.micro[:, None], [f"micro-batch {micro}" for micro in range(found.micro.max() + 1)]
    starts, ends = (_by_step(times, zero) for times in (found.starts, found.ends))
    rows.add(kind, worker, step[:, None, None], starts, ends, label=label)
    over = found.over.T + zero[:, None]
    rows.add_waits(workers, step[:, None], over, np.broadcast_to(over.max(axis=1, keepdims=True), over.shape))


def _tell_messages(rows: SpanRows, found: Timeline, zero: Floats, own: Stages) -> None:
    """Adds the spans of the wait before a message leaves, and of its transfer; shape (steps, messages, lanes)."""
    step, source, target = np.arange(len(zero))[:, None, None], *_ends_of_messages(found, own)
    turned, sent, arrived = (_by_step(times, zero) for times in (found.turned, found.sent, found.arrived))
    rows.add_waits(target, step, turned, sent)
    origins, aims = ([f"{way} worker {worker}" for worker in range(len(found.over))] for way in ("from", "to"))
    rows.add(SpanKind.SEND, source, step, sent, arrived, own.message_bytes, (target, aims))
    rows.add(SpanKind.RECEIVE, target, step, sent, arrived, own.message_bytes, (source, origins))


def _by_step(times: Floats, zero: Floats) -> Floats:
    """The times of a `Timeline` from the start of the run, shape (steps, rows, lanes)."""
    return np.moveaxis(times, -1, 0) + zero[:, None, None]


def _ends_of_messages(found: Timeline, own: Stages) -> tuple[Indices, Indices]:
    """The source and the target of each message, shape (messages, lanes)."""
    lane = np.arange(own.width, dtype=np.int32)
    return found.source[:, None] * own.width + lane, found.target[:, None] * own.width + lane


def _message_rows(found: Timeline, zero: Floats, own: Stages) -> Transfers:
    sent, arrived = (_by_step(times, zero) for times in (found.sent, found.arrived))
    source, target, carried = (
        np.broadcast_to(column, sent.shape).ravel()
        for column in (*_ends_of_messages(found, own), found.carried[:, None])
    )
    num_bytes, none = np.full(sent.size, own.message_bytes), np.full(sent.size, NO_COLLECTIVE)
    return Transfers(source, target, num_bytes, sent.ravel(), arrived.ravel(), carried, none)


def _exchange_rows(scenario: Scenario, own: Stages, joined: Floats) -> Transfers:
    """The transfers of the exchanges; those of a stage's gradients only among its workers."""
    calls = own.calls
    if not calls:
        return Transfers.empty()
    sizes, exchanges = [call.num_bytes for call in calls], [call.exchange for call in calls]
    found = transfers(scenario, sizes, joined.swapaxes(0, 1), exchanges)
    of_stage = np.array([-1 if call.stage is None else call.stage for call in calls])[found.collective % len(calls)]
    return found.where((of_stage < 0) | (found.source // own.width == of_stage))
