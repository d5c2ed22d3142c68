"""FlexRR: pieces by hand, work conserved, its place between the other policies, and the invariants of every trace."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.engine.flexrr import FlexRRStory
from distsim.engine.helped_pieces import Range, by_ranges
from distsim.metrics import worker_seconds
from distsim.policies import FlexRR
from distsim.policies.flexrr_plan import Piece
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import COMPUTE_KINDS, FOR_ANOTHER, Contributions, SpanKind, Trace, violations

HELPED = {"kind": "flexrr", "group": 1}
FREE = {"bandwidth": "1000 Gbit/s", "latency": "0 s"}


def scenario(workers: int = 2, steps: int = 2, policy: dict[str, Any] | None = None, **tables: Any) -> Scenario:
    """The last worker is three times as slow; communication is free."""
    table: dict[str, Any] = {
        "steps": steps,
        "seed": 3,
        "cluster": {"workers": workers} | FREE,
        "compute": {"mean": "8 ms", "slow": {str(workers - 1): 3.0}},
        "workload": {"gradient": "0 B"},
        "policy": policy or HELPED,
        "communication": {"kind": "parameter_server"},
    }
    return Scenario.of(table | tables)


def ranges(trace: Trace, worker: int, step: int) -> list[tuple[int, int]]:
    rows = trace.contributions
    own = rows.where((rows.worker == worker) & (rows.step == step))
    return sorted(zip(own.first_item.tolist(), own.items.tolist(), strict=True))


def test_two_workers_by_hand() -> None:
    """A piece takes worker 0 1 ms and worker 1 3 ms. Worker 0 is through at 8 ms, when worker 1 does its third.

    Worker 0 does items 7, 6, 5 and 4 by 12 ms, when worker 1 has done items 0 to 3: total work / total speed.
    """
    trace = simulate(scenario())
    assert trace.updates.time_seconds == pytest.approx(np.array([8, 12, 20, 24]) * 1e-3, rel=1e-9)
    assert ranges(trace, 0, 0) == [(0, 8)]
    assert ranges(trace, 1, 0) == [(0, 4), (4, 4)]
    helped = trace.spans.where(np.char.startswith(trace.spans.label, FOR_ANOTHER))
    assert helped.worker.tolist() == [0] * 8
    assert helped.label.tolist()[:4] == [f"for worker 1: item {item} of step 0" for item in (7, 6, 5, 4)]
    assert helped.start_seconds[:4] == pytest.approx(np.array([8, 9, 10, 11]) * 1e-3, rel=1e-9)
    sums = trace.transfers.where((trace.transfers.source == 0) & (trace.transfers.target == 1))
    assert sums.start_seconds == pytest.approx([12e-3, 24e-3], rel=1e-9)  # one for the four pieces of a step


def test_who_is_through_with_all_steps_helps_on() -> None:
    """Worker 0 does a piece for worker 1, twice as slow, after each step of its own, at 8 and 17 ms, and ends at 26.

    Worker 1 does the others of steps 0 and 1 by 14 and 28 ms; at 26 none of them is left to begin. Of step 2 worker 0
    does items 7 to 3 from 28 to 33 ms, and worker 1 items 0 to 2 until 34.
    """
    policy = HELPED | {"staleness": 3, "stop": "per_worker"}
    trace = simulate(scenario(steps=3, policy=policy, compute={"mean": "8 ms", "slow": {"1": 2.0}}))
    assert trace.updates.time_seconds == pytest.approx(np.array([8, 14, 17, 26, 28, 34]) * 1e-3, rel=1e-9)
    assert [ranges(trace, 1, step) for step in range(3)] == [[(0, 7), (7, 1)], [(0, 7), (7, 1)], [(0, 3), (3, 5)]]


def test_a_worker_helps_on_where_its_next_step_would_end_at_the_bound() -> None:
    """Worker 0 ends step 0 at 8 ms and has its answer at once. With staleness 1 the answer after step 1 would wait.

    So worker 0 does items 7 to 4 by 12 ms, as with staleness 0, and both begin the next step together. With staleness 2
    worker 0 does item 7 alone and begins step 1 at 9 ms. At 17 ms it is at that bound, too, and does item 6, the only
    one left. Then both begin a step at 18 ms, and worker 0 does four items of worker 1's from 26 ms on.
    """
    one, two = (simulate(scenario(steps=3, policy=HELPED | {"staleness": staleness})) for staleness in (1, 2))
    assert one.updates.time_seconds == pytest.approx(np.array([8, 12, 20, 24, 32, 36]) * 1e-3, rel=1e-9)
    assert [ranges(one, 1, step) for step in range(3)] == [[(0, 4), (4, 4)]] * 3
    assert two.updates.time_seconds == pytest.approx(np.array([8, 17, 18, 26, 30, 38]) * 1e-3, rel=1e-9)
    assert [ranges(two, 1, step) for step in range(2)] == [[(0, 6), (6, 1), (7, 1)], [(0, 4), (4, 4)]]


@pytest.mark.parametrize(("seed", "staleness", "slow"), [(0, 1, 1.6), (4, 1, 1.6), (7, 1, 2.5), (1, 2, 2.5)])
def test_a_fraction_of_a_millisecond_changes_little(seed: int, staleness: int, slow: float) -> None:
    """With a persistent straggler and these seeds, the server's work could once make a run longer by a quarter.

    It decided when all workers but the straggler came to the bound, and how long all then waited for it in each step.
    """
    found = scenario(
        workers=4,
        steps=30,
        seed=seed,
        policy={"kind": "flexrr", "staleness": staleness},
        cluster={"workers": 4, "bandwidth": "1 Gbit/s", "latency": "100 us"},
        compute={"distribution": "lognormal", "mean": "80 ms", "cv": 0.2, "slow": {"2": slow}},
        workload={"gradient": "1 MiB"},
    )
    seconds = [simulate(found, apply_seconds=apply).total_seconds for apply in (0.0, 0.2e-3, 0.4e-3, 0.6e-3, 0.8e-3)]
    assert max(seconds) < 1.04 * min(seconds)


def test_the_one_furthest_behind_is_helped_first_and_of_equals_the_first() -> None:
    plan = FlexRR(items=3, group=2).plan(workers=3)
    for worker in range(3):
        plan.begin(worker, step=0)
    for item in range(3):
        assert plan.own(2) == Piece(2, 0, item)
        plan.done(Piece(2, 0, item))
    assert plan.hand_over(2) == Piece(0, 0, 2)
    plan.done(Piece(0, 0, 2))
    assert plan.hand_over(2) == Piece(1, 0, 2)
    plan.begin(1, step=1)
    assert plan.hand_over(2) == Piece(0, 0, 1)
    assert plan.hand_over(0) is None  # it has done nothing itself


@given(st.integers(1, 9), st.data())
def test_items_told_at_once_are_as_good_as_one_by_one(items: int, data: st.DataObject) -> None:
    """Worker 1 has done all of its own, and takes some of worker 0's, which tells now and then how far it has come."""
    at_once, one_by_one = (FlexRR(items=items, group=1, threshold=1e-6).plan(workers=2) for _ in range(2))
    for plan in (at_once, one_by_one):
        for worker in (1, 0):
            plan.begin(worker, step=0)
            plan.own(worker)
    assert at_once.on_its_own(1, items) == items
    for item in range(items):
        one_by_one.done(Piece(1, 0, item))
        one_by_one.own(1)
    done = 0
    while at_once.left(0):
        if data.draw(st.booleans()):
            assert at_once.hand_over(1) == one_by_one.hand_over(1) != None  # noqa: E711
        else:
            before, done = done, done + data.draw(st.integers(0, items - done))
            assert at_once.on_its_own(0, done) == at_once.on_its_own(0, done)  # telling it again changes nothing
            for item in range(before, at_once.on_its_own(0, done)):
                one_by_one.done(Piece(0, 0, item))
                one_by_one.own(0)
        assert at_once.left(0) == one_by_one.left(0)
        assert at_once.undone == one_by_one.undone
    assert at_once.hand_over(1) is at_once.own(0) is one_by_one.own(0) is None


def test_what_ends_at_an_instant_is_done_at_that_instant() -> None:
    """When worker 0 is through, worker 1 has just done its second item of four: it is two behind, not three.

    At every step: also where the clock reads a sum of rounded times.
    """
    policy = HELPED | {"items": 4, "threshold": 0.6}
    for mean in ("8 s", "0.7 s"):
        alone = simulate(scenario(steps=20, policy=policy, compute={"mean": mean, "slow": {"1": 2.0}}))
        assert [ranges(alone, 1, step) for step in range(20)] == [[(0, 4)]] * 20


def test_who_has_its_answer_at_the_instant_another_begins_has_work_of_its_own() -> None:
    """Workers 0 and 1 wait for worker 2, and go on when it does: none takes a piece of the others' next step."""
    trace = simulate(scenario(3, 4, {"kind": "flexrr", "items": 2, "group": 2, "threshold": 0.3}))
    beginnings = trace.updates.time_seconds[2::3]
    helped = trace.spans.where(np.char.startswith(trace.spans.label, FOR_ANOTHER))
    assert len(helped)
    assert not np.isclose(helped.start_seconds[:, None], beginnings, rtol=1e-9).any()


def test_rows_are_cut_where_another_worker_or_version_begins_and_nowhere_else() -> None:
    whole = Contributions.of_rows([(1, 2, 1, 0, 0, 0, 1, True, False), (2, 2, 0, 0, 0, 0, 1, False, False)])
    done = [(1, 0, 5, 1, 0, 3), (1, 0, 3, 1, 0, 4), (1, 0, 4, 1, 0, 3), (1, 0, 0, 3, 1, 4), (0, 0, 0, 6, 0, 2)]
    cut = by_ranges(whole, [Range(*row) for row in done])
    rows = zip(*(column.tolist() for column in cut.columns().values()), strict=True)
    assert list(rows) == [
        (1, 2, 1, 0, 4, 0, 3, True, False),
        (1, 2, 1, 0, 4, 3, 1, True, False),
        (1, 2, 1, 0, 3, 4, 2, True, False),
        (2, 2, 0, 0, 2, 0, 6, False, False),
    ]


def test_who_is_not_far_enough_behind_gets_no_help() -> None:
    """At 8 and 9 ms items 2 to 7 and 3 to 6 are not done; at 10 ms only 3 to 5, less than half of the step."""
    trace = simulate(scenario(steps=1, policy=HELPED | {"threshold": 0.5}))
    assert ranges(trace, 1, 0) == [(0, 6), (6, 2)]
    assert trace.total_seconds == pytest.approx(18e-3, rel=1e-9)
    alone = simulate(scenario(steps=1, policy=HELPED | {"threshold": 0.8}))
    assert ranges(alone, 1, 0) == [(0, 8)]
    assert alone.total_seconds == pytest.approx(24e-3, rel=1e-9)


def test_the_helped_worker_waits_for_its_helpers() -> None:
    """Worker 0 begins item 1 of two at 8 ms and ends it at 12; it is worker 1 that began item 0 first, until 12.

    The sum then takes 1 + 2 ms to worker 1, whose push takes as long.
    """
    network = {"workers": 2, "bandwidth": "1 GB/s", "latency": "1 ms"}
    trace = simulate(scenario(steps=1, policy=HELPED | {"items": 2}, cluster=network, workload={"gradient": "2 MB"}))
    receive = trace.spans.where((trace.spans.worker == 1) & (trace.spans.kind == SpanKind.RECEIVE))
    assert receive.label[0] == "from worker 0"
    assert receive.start_seconds[0] == pytest.approx(12e-3, rel=1e-9)
    assert receive.end_seconds[0] == pytest.approx(15e-3, rel=1e-9)
    assert trace.total_seconds == pytest.approx(18e-3, rel=1e-9)


def test_without_help_it_is_stale_synchronous() -> None:
    compute = {"distribution": "exponential", "mean": "10 ms"}
    never = simulate(scenario(5, 10, HELPED | {"staleness": 1, "threshold": 99.0}, compute=compute))
    stale = simulate(scenario(5, 10, {"kind": "stale_synchronous", "staleness": 1}, compute=compute))
    assert never.updates.time_seconds == pytest.approx(stale.updates.time_seconds, rel=1e-9)
    assert never.contributions.read_version.tolist() == stale.contributions.read_version.tolist()


def test_a_larger_group_comes_closer_to_total_work_over_total_speed() -> None:
    """Seven workers of speed 1 and one of 1/6 share 8 steps: at best 8 / (7 + 1/6) of a step's time."""
    best = 8e-3 * 8 / (7 + 1 / 6)
    seconds = []
    for group in (1, 2, 4, 7):
        policy = {"kind": "flexrr", "group": group, "items": 96, "threshold": 0.01}
        found = scenario(8, 3, policy, compute={"mean": "8 ms", "slow": {"0": 6.0}})
        seconds.append(simulate(found).total_seconds / 3)
    assert all(later < earlier for earlier, later in pairwise(seconds))
    assert all(total >= best * (1 - 1e-9) for total in seconds)
    piece = 6 * 8e-3 / 96  # what the straggler has begun when all else is done
    assert seconds[-1] <= best + piece


@pytest.mark.parametrize("workers", [4, 8, 16, 32])
def test_messages_per_step_grow_as_workers_times_group(workers: int) -> None:
    """Each worker asks those it helps, once a step; and a step has so many pieces that can be handed over."""
    group, items, steps = 3, 8, 4
    compute = {"distribution": "exponential", "mean": "8 ms"}
    found = scenario(workers, steps, {"kind": "flexrr", "group": group, "items": items}, compute=compute)
    assert isinstance(found.policy, FlexRR)
    story = FlexRRStory(found, [found.policy.rule(workers)], 0.0)
    trace = story.run()
    handed = int(np.char.startswith(trace.spans.label, FOR_ANOTHER).sum())
    assert story.plan.messages == workers * group * steps + handed
    assert 0 < handed <= workers * items * steps / 2
    assert len(trace.transfers) - 2 * workers * steps <= handed
    for helper, label in zip(trace.spans.worker.tolist(), trace.spans.label.tolist(), strict=True):
        if label.startswith(FOR_ANOTHER):
            helped = int(label.removeprefix(FOR_ANOTHER).split(":")[0])
            assert 1 <= (helper - helped) % workers <= group


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    workers = draw(st.integers(2, 6))
    nics = draw(st.dictionaries(st.integers(0, workers - 1), st.sampled_from(["20 MB/s", "300 MB/s"]), max_size=2))
    return scenario(
        steps=draw(st.integers(1, 5)),
        policy={
            "kind": "flexrr",
            "staleness": draw(st.integers(0, 3)),
            "items": draw(st.integers(1, 9)),
            "group": draw(st.integers(1, workers - 1)),
            "threshold": draw(st.sampled_from([0.01, 0.2, 0.6])),
            "stop": draw(st.sampled_from(["total", "per_worker"])),
        },
        seed=draw(st.integers(0, 1000)),
        cluster={
            "workers": workers,
            "bandwidth": "200 MB/s",
            "latency": draw(st.sampled_from(["0 s", "1 ms"])),
            "nic": {str(host): {draw(st.sampled_from(["up", "down"])): speed} for host, speed in nics.items()},
        },
        compute={"distribution": "pareto", "mean": "20 ms", "alpha": 1.5, "slow": {"0": draw(st.floats(0.5, 6.0))}},
        workload={"gradient": draw(st.sampled_from(["0 B", "4 kB", "3 MB"]))},
        communication={
            "kind": "parameter_server",
            "sends": draw(st.sampled_from(["rendezvous", "eager"])),
            "receive": draw(st.sampled_from(["concurrent", "fifo"])),
            "colocated": draw(st.booleans()),
        },
    )


@settings(max_examples=100)
@given(scenarios())
def test_every_trace_is_sound_and_no_piece_is_lost_or_done_twice(found: Scenario) -> None:
    trace = simulate(found)
    workers, policy = found.cluster.workers, found.policy
    assert isinstance(policy, FlexRR)
    assert violations(trace) == []
    assert len(trace.updates) == found.steps * workers
    parts = worker_seconds(trace)
    assert sum(parts.values()) == pytest.approx(np.full(workers, trace.total_seconds), rel=1e-9)

    done = pieces(trace)
    assert len({key for key, *_ in done}) == len(done)
    ends = {key: end for key, _, _, end in done}
    times = found.compute_times()
    for _, (doer, step), start, end in done:
        assert end - start == pytest.approx(times(doer, step) / policy.items, rel=1e-9, abs=1e-12)

    rows = trace.contributions
    applied = dict(zip(trace.updates.version.tolist(), trace.updates.time_seconds.tolist(), strict=True))
    steps = set(zip(rows.worker.tolist(), rows.step.tolist(), strict=True))
    for worker, step in steps:
        covered = [item for first, count in ranges(trace, worker, step) for item in range(first, first + count)]
        assert covered == list(range(policy.items))
        of_step = rows.where((rows.worker == worker) & (rows.step == step))
        assert len(set(of_step.version.tolist())) == 1
        assert max(ends[worker, step, item] for item in covered) <= applied[int(of_step.version[0])] + 1e-12
    assert len(steps) == found.steps * workers

    doers = {key: doer for key, doer, *_ in done}
    versions = [column.tolist() for column in (rows.worker, rows.step, rows.first_item, rows.read_version)]
    own = {(w, s): v for w, s, item, v in zip(*versions, strict=True) if doers[w, s, item] == (w, s)}
    for worker, step, item, version in zip(*versions, strict=True):
        doer = doers[worker, step, item]
        if doer[1] + 1 < found.steps or policy.stop == "total":
            assert version == own.get(doer, version)
        else:  # it may have read parameters after its last step
            assert version >= own.get(doer, 0)
    if policy.stop == "per_worker":
        assert steps == {(worker, step) for worker in range(workers) for step in range(found.steps)}


def pieces(trace: Trace) -> list[tuple[tuple[int, int, int], tuple[int, int], float, float]]:
    """(worker, step, item), (who did it, in which step of its own), start and end, read from the spans' labels."""
    found = []
    spans = trace.spans.of_kind(*COMPUTE_KINDS)
    columns = (spans.label, spans.worker, spans.step, spans.start_seconds, spans.end_seconds)
    for label, doer, step, start, end in zip(*(column.tolist() for column in columns), strict=True):
        words = label.replace(":", "").split()
        if label.startswith(FOR_ANOTHER):
            found.append(((int(words[2]), int(words[7]), int(words[4])), (doer, step), start, end))
        else:
            found.append(((doer, step, int(words[1])), (doer, step), start, end))
    return found
