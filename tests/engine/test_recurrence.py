"""Recurrences: rings against the simulated schedule, and what has no formula."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim.cluster import Cluster
from distsim.collective_times.max_plus_rounds import Rounds, matrix_of, ring_ends, ring_round_times
from distsim.collectives import ring
from distsim.engine import collective, recurrence, story
from distsim.engine.recurrence.peers import call_site
from distsim.errors import InputError
from distsim.policies import Asynchronous
from distsim.scenario import Scenario
from tests.engine.test_engines import assert_same


@given(st.integers(2, 9), st.booleans(), st.integers(0, 999))
def test_one_ring_with_unequal_starts_and_links_is_the_simulated_schedule(ranks: int, eager: bool, seed: int) -> None:
    generator = np.random.default_rng(seed)
    starts, speeds = generator.exponential(0.5, ranks), generator.uniform(1e6, 9e6, (ranks, 2))
    nic = {rank: {"up": f"{up!r} B/s", "down": f"{down!r} B/s"} for rank, (up, down) in enumerate(speeds.tolist())}
    cluster = Cluster(workers=ranks, bandwidth="1 MB/s", latency="1 ms", nic=nic)
    seconds = 1e-3 + 1e6 / ranks / np.minimum(speeds[:, 0], np.roll(speeds[:, 1], -1))
    simulated = collective.run(ring(ranks), cluster, 1e6, starts.tolist(), "eager" if eager else "rendezvous")
    rounds = 2 * (ranks - 1)
    ends = ring_ends(starts, seconds, rounds, eager=eager)
    assert ends == pytest.approx(simulated.ends_seconds, rel=1e-9)
    matrix = matrix_of(lambda begun: ring_round_times(begun, seconds, rounds, eager=eager), ranks)
    assert (matrix + starts[:, None]).max(axis=0) == pytest.approx(ends, rel=1e-12)


def test_a_late_rank_is_felt_as_far_away_as_rounds_have_passed() -> None:
    """By hand: rank 2 of 5 joins at 10; with rendezvous its neighbours feel it after one round, the next after two."""
    starts, seconds = np.array([0.0, 0.0, 10.0, 0.0, 0.0]), np.ones(5)
    assert ring_ends(starts, seconds, 1, eager=False).tolist() == [1.0, 11.0, 11.0, 11.0, 1.0]
    assert ring_ends(starts, seconds, 2, eager=False).tolist() == [12.0] * 5
    assert ring_ends(starts, seconds, 1, eager=True).tolist() == [1.0, 1.0, 11.0, 11.0, 1.0]


def scenario(policy: dict[str, Any], cluster: dict[str, Any] | None = None, **communication: Any) -> Scenario:
    return Scenario.of(
        {
            "steps": 5,
            "cluster": {"workers": 4, "bandwidth": "1 GB/s", "latency": "100 us"} | (cluster or {}),
            "compute": {"mean": "10 ms"},
            "workload": {"gradient": "1 MB", "activation": "1 MB"},
            "policy": policy,
            "communication": {"kind": "parameter_server"} | communication,
        }
    )


SYNCHRONOUS = {"kind": "synchronous"}
CANCELLING = {"kind": "backup", "backups": 1, "cancel": True}
NODES = {"nodes": {"per_node": 2, "bandwidth": "300 GB/s", "latency": "2 us"}}
SEVEN_KINDS = {"workers": 7, "nic": {str(rank): {"up": f"{rank} MB/s"} for rank in range(1, 7)}}


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        (scenario({"kind": "asynchronous"}), "policy.kind = 'asynchronous'"),
        (scenario({"kind": "backup", "backups": 1}), "policy.kind = 'backup' without cancel"),
        (scenario(SYNCHRONOUS, NODES, kind="tree"), "communication.kind = 'tree' with cluster.nodes"),
        (scenario(SYNCHRONOUS, kind="halving_doubling", sends="eager"), "may share the down-link of host 0"),
        (scenario(SYNCHRONOUS, NODES, servers=2), "cluster.nodes"),
        (scenario(SYNCHRONOUS, colocated=True, receive="fifo"), 'colocated = true and receive = "fifo"'),
        (scenario(SYNCHRONOUS, SEVEN_KINDS, colocated=True), "colocated = true and workers of 7 kinds"),
        (
            scenario(SYNCHRONOUS, colocated=True).replacing({"compute.distribution": "exponential"}),
            "colocated = true and times that are drawn",
        ),
        (scenario({"kind": "flexrr"}), "policy.kind = 'flexrr'"),
        (scenario(SYNCHRONOUS, {"nic": {"1": {"up": "1 MB/s"}}}), "different up-links"),
        (scenario(CANCELLING, {"nic": {"1": {"down": "1 MB/s"}}}), "different down-links"),
    ],
)
def test_what_has_no_formula_is_named(found: Scenario, missing: str) -> None:
    with pytest.raises(InputError, match=r'has no formula for .* Cure: take engine = "auto"') as caught:
        recurrence.run(found)
    assert missing in str(caught.value)


@pytest.mark.parametrize("nic", [{}, {"nic": {"5": {"up": "300 MB/s"}}}], ids=["equal links", "a slow up-link"])
def test_few_calls_among_many_workers_are_computed_without_a_matrix(nic: dict[str, Any]) -> None:
    links = {"workers": 72, "bandwidth": "1 GB/s", "latency": "100 us", **nic}
    found = scenario(SYNCHRONOUS, links, kind="halving_doubling").replacing({"compute.distribution": "exponential"})
    (call,) = call_site(found).all_reduces([1e6], updates=5)
    assert isinstance(call, Rounds)
    assert not call.by_matrix
    assert_same(story.run(found), recurrence.run(found))


def test_a_users_own_rule_has_no_formula() -> None:
    with pytest.raises(InputError, match="a rule of your own"):
        recurrence.run(scenario(SYNCHRONOUS), rule=Asynchronous().rule(4))


@pytest.mark.parametrize(("sends", "receive"), list(itertools.product(["eager", "rendezvous"], ["fifo", "concurrent"])))
def test_one_worker_pushes_and_pulls(sends: str, receive: str) -> None:
    found = scenario(SYNCHRONOUS, {"workers": 1}, sends=sends, receive=receive)
    step = 10e-3 + 2 * (100e-6 + 1e-3)
    assert recurrence.run(found).updates.time_seconds == pytest.approx(11.1e-3 + step * np.arange(5), rel=1e-12)


def median_seconds(found: Scenario) -> float:
    """Of the processor, for a whole run with all its rows."""
    taken = []
    for _ in range(5):
        start = time.process_time()
        assert len(recurrence.run(found).transfers.end_seconds)  # which are worked out when they are asked for
        taken.append(time.process_time() - start)
    return statistics.median(taken)


LOCAL_SGD = {"kind": "local_sgd", "period": 2}
DDP = {"kind": "ddp", "bucket": "300 kB", "first_bucket": "1 B"}
PIPELINE = {"kind": "pipeline", "micro_batches": 2}
UNEQUAL = {"workers": 4, "nic": {"1": {"up": "300 MB/s"}, "3": {"down": "700 MB/s"}}}


@pytest.mark.parametrize(
    "found",
    [
        scenario(SYNCHRONOUS, UNEQUAL, kind="ring"),
        scenario(SYNCHRONOUS, servers=2),
        scenario(LOCAL_SGD, UNEQUAL, kind="halving_doubling"),
        scenario(LOCAL_SGD, UNEQUAL),
        scenario(LOCAL_SGD, UNEQUAL, receive="fifo"),
        scenario(DDP, kind="ring"),
        scenario(DDP, UNEQUAL, kind="tree"),
        scenario(PIPELINE, kind="ring"),
    ],
    ids=lambda found: f"{found.policy.kind}-{found.communication.kind}-{found.receive}",
)
def test_ten_times_the_steps_take_ten_times_as_long(found: Scenario) -> None:
    """What is worked out once makes it less; a square would make it a hundred. A busy machine has a second try."""
    few, many = found.replacing({"steps": 1000}), found.replacing({"steps": 10_000})
    recurrence.run(few).transfers.end_seconds.sum()
    assert any(median_seconds(many) < 20 * median_seconds(few) for _ in range(2))
