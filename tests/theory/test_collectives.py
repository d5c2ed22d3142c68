"""Costs of collectives against counting by hand, round by round, and against SimGrid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim import collectives
from distsim.accuracy import simgrid
from distsim.accuracy.collectives import LINKS, simulated_seconds
from distsim.cluster import Cluster
from distsim.collectives import COLLECTIVES, Collective
from distsim.errors import InputError
from distsim.theory.collectives import (
    CLOSED_FORMS,
    all_reduce_bytes_per_worker,
    broadcast_seconds,
    halving_doubling_all_reduce_seconds,
    hierarchical_all_reduce_seconds,
    parameter_server_seconds,
    ring_all_reduce_seconds,
    scatter_seconds,
    server_link_bytes,
    tree_all_reduce_seconds,
)

ALL_REDUCES = [
    case for case in simgrid.read()["cases"] if case["algorithm"] in ("ring", "ps1") and not case["link_capacities"]
]

workers = st.integers(1, 64)
sizes = st.floats(0, 1e12)
speeds = st.floats(1e3, 1e12)
latencies = st.floats(0, 10)


def ring_by_hand(n: float, p: int, speed: float, latency: float) -> tuple[float, np.ndarray, list[set[int]]]:
    """Passes chunks around: when the last rank is done, the bytes each has sent, and which parts its chunk 0 sums."""
    clock, sent = np.zeros(p), np.zeros(p)
    parts = [[{rank} for _ in range(p)] for rank in range(p)]
    for number in range(2 * (p - 1)):
        reducing = number < p - 1
        chunks = [(rank - number + (0 if reducing else p)) % p for rank in range(p)]
        moving = [set(parts[rank][chunks[rank]]) for rank in range(p)]
        for rank in range(p):
            target = parts[(rank + 1) % p]
            target[chunks[rank]] = (target[chunks[rank]] | moving[rank]) if reducing else moving[rank]
        sent += n / p
        clock = np.maximum(clock, np.roll(clock, 1)) + latency + n / p / speed
    return float(clock.max()), sent, [chunks[0] for chunks in parts]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16])
def test_ring_against_passing_chunks_by_hand(p: int) -> None:
    n, speed, latency = 3e7, 1.25e9, 5e-5
    seconds, sent, sums = ring_by_hand(n, p, speed, latency)
    assert sums == [set(range(p))] * p
    assert ring_all_reduce_seconds(n, p, speed, latency) == pytest.approx(seconds, rel=1e-9, abs=1e-15)
    assert sent == pytest.approx([all_reduce_bytes_per_worker(n, p)] * p, rel=1e-9)


@pytest.mark.parametrize("p", [1, 2, 3, 8])
def test_parameter_server_against_a_fluid_by_hand(p: int) -> None:
    """Shares the server's link among those still sending, in 1000 slices of the size."""
    n, speed, latency = 3e7, 1.25e9, 5e-5
    remaining, clock, through = np.full(p, n), latency, 0.0
    while remaining.max() > 1e-6:
        rate = speed / (remaining > 1e-6).sum()
        slice_seconds = n / 1000 / rate
        moved = np.minimum(rate * slice_seconds, remaining)
        remaining, clock, through = remaining - moved, clock + slice_seconds, through + moved.sum()
    assert parameter_server_seconds(n, p, speed, latency) == pytest.approx(2 * clock, rel=1e-9)
    assert server_link_bytes(n, p) == pytest.approx(through, rel=1e-9)


@pytest.mark.parametrize("case", ALL_REDUCES, ids=lambda case: case["case"])
def test_all_reduces_against_simgrid(case: dict[str, float]) -> None:
    formula = ring_all_reduce_seconds if case["algorithm"] == "ring" else parameter_server_seconds
    seconds = formula(case["S_bytes"], case["N"], case["B_bytes_per_s"], 2 * case["L_s_per_link"])
    assert seconds == pytest.approx(case["makespan_s"], rel=1e-9)


def test_simgrid_covers_both_algorithms() -> None:
    assert {case["algorithm"] for case in ALL_REDUCES} == {"ring", "ps1"}


@given(sizes, workers, speeds, latencies)
def test_the_ring_moves_the_fewest_bytes_possible(n: float, p: int, speed: float, latency: float) -> None:
    without_latency = ring_all_reduce_seconds(n, p, speed, 0.0)
    assert without_latency == pytest.approx(all_reduce_bytes_per_worker(n, p) / speed, rel=1e-9)
    seconds = ring_all_reduce_seconds(n, p, speed, latency)
    assert seconds == pytest.approx(without_latency + 2 * (p - 1) * latency, rel=1e-9)


@given(sizes, speeds, latencies)
def test_one_worker_has_nobody_to_talk_to_but_a_server(n: float, speed: float, latency: float) -> None:
    assert ring_all_reduce_seconds(n, 1, speed, latency) == 0
    assert all_reduce_bytes_per_worker(n, 1) == 0
    assert parameter_server_seconds(n, 1, speed, latency) == pytest.approx(2 * (n / speed + latency), rel=1e-12)


def test_a_server_needs_p_times_the_rings_bandwidth() -> None:
    """2 p n / B against 2 (p - 1) / p n / B: the ratio is p^2 / (p - 1), whatever n and B are."""
    for p in (2, 4, 16):
        ratio = parameter_server_seconds(1e8, p, 1e9, 0.0) / ring_all_reduce_seconds(1e8, p, 1e9, 0.0)
        assert ratio == pytest.approx(p * p / (p - 1), rel=1e-12)


# Every schedule, simulated on equal links


def flat(p: int, speed: float, latency: float, **more: object) -> Cluster:
    return Cluster(workers=p, bandwidth=f"{speed!r} B/s", latency=f"{latency!r} s", **more)


@pytest.mark.parametrize(("n", "speed", "latency"), LINKS)
def test_a_heap_of_any_size_against_simulating_it(n: float, speed: float, latency: float) -> None:
    for p in range(18, 67):
        expected = simulated_seconds(collectives.tree(p), n, flat(p, speed, latency))
        assert tree_all_reduce_seconds(n, p, speed, latency) == pytest.approx(expected, rel=1e-9), p


@pytest.mark.parametrize("depth", range(5))
def test_a_full_tree_sends_two_messages_over_each_parents_link(depth: int) -> None:
    seconds = tree_all_reduce_seconds(1e6, 2 ** (depth + 1) - 1, 1e9, 3e-3)
    assert seconds == pytest.approx(2 * depth * (2 * 1e-3 + 3e-3), rel=1e-12)


def test_one_tier_is_a_ring_whichever_it_is() -> None:
    link, fast = (1.25e9, 5e-5), (3e10, 2e-6)
    for p in (1, 4, 7):
        alone = hierarchical_all_reduce_seconds(
            3e7, p, *link, per_node=1, node_bytes_per_second=3e10, node_latency_seconds=2e-6
        )
        inside = hierarchical_all_reduce_seconds(
            3e7, p, *link, per_node=p, node_bytes_per_second=3e10, node_latency_seconds=2e-6
        )
        assert alone == pytest.approx(ring_all_reduce_seconds(3e7, p, *link), rel=1e-12, abs=1e-15)
        assert inside == pytest.approx(ring_all_reduce_seconds(3e7, p, *fast), rel=1e-12, abs=1e-15)


def busiest_link(collective: str, p: int) -> Fraction:
    """The bytes of the busiest link direction when every part is sent once to whom it is for; the vector is 1."""
    part = Fraction(1, p)
    out = [Fraction(0)] * p
    into = [Fraction(0)] * p

    def send(source: int, target: int, size: Fraction) -> None:
        if source != target:
            out[source] += size
            into[target] += size

    ranks = range(p)
    match collective:
        case "scatter":
            for target in ranks:
                send(0, target, part)
        case "gather":
            for source in ranks:
                send(source, 0, part)
        case "all_to_all" | "all_gather" | "reduce_scatter":
            for source in ranks:
                for target in ranks:
                    send(source, target, part)
        case "all_reduce":  # every part goes to its owner to be added up, and the sum to all others
            for _ in range(2):
                for source in ranks:
                    for target in ranks:
                        send(source, target, part)
        case "broadcast" | "reduce":  # along a chain
            for source in range(p - 1):
                send(source, source + 1, Fraction(1))
    return max(*out, *into)


@pytest.mark.parametrize("row", COLLECTIVES.values(), ids=COLLECTIVES)
def test_no_collective_of_ours_beats_its_links(row: Collective) -> None:
    if row.needs_nodes:
        return
    for p in (2, 3, 4, 8, 13):
        least = float(busiest_link("all_reduce" if row.all_reduce else row.kind, p))
        assert CLOSED_FORMS[row.kind](1e9, p, 1e9, 1e-9) >= least


def test_every_collective_of_the_table_has_a_closed_form_and_no_other() -> None:
    assert set(CLOSED_FORMS) == set(COLLECTIVES)


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: ring_all_reduce_seconds(-1.0, 4, 1e9, 0.0), "num_bytes = -1.0"),
        (lambda: ring_all_reduce_seconds(float("nan"), 4, 1e9, 0.0), "num_bytes = nan"),
        (lambda: ring_all_reduce_seconds(1.0, 0, 1e9, 0.0), "workers = 0"),
        (lambda: parameter_server_seconds(1.0, 4, 0.0, 0.0), "bytes_per_second = 0.0"),
        (lambda: parameter_server_seconds(1.0, 4, 1e9, -1e-6), "latency_seconds = -1e-06"),
        (lambda: all_reduce_bytes_per_worker(1.0, 0), "workers = 0"),
        (lambda: server_link_bytes(1.0, -3), "workers = -3"),
        (lambda: tree_all_reduce_seconds(1.0, 0, 1e9, 0.0), "workers = 0"),
        (lambda: halving_doubling_all_reduce_seconds(1.0, 0, 1e9, 0.0), "workers = 0"),
        (lambda: scatter_seconds(-1.0, 2, 1e9, 0.0), "num_bytes = -1.0"),
        (lambda: broadcast_seconds(1.0, 2, 0.0, 0.0), "bytes_per_second = 0.0"),
        (lambda: parameter_server_seconds(1.0, 4, 1e9, 0.0, servers=0), "servers = 0"),
        (lambda: parameter_server_seconds(1.0, 4, 1e9, 0.0, servers=5, colocated=True), "servers = 5"),
        (lambda: hierarchical_all_reduce_seconds(1.0, 6, 1e9, 0.0, 4, 1e9, 0.0), "per_node = 4"),
        (lambda: hierarchical_all_reduce_seconds(1.0, 6, 1e9, 0.0, 2, 0.0, 0.0), "node_bytes_per_second = 0.0"),
        (lambda: hierarchical_all_reduce_seconds(1.0, 6, 1e9, 0.0, 2, 1e9, 0.0, "host"), "nic_per = 'host'"),
    ],
)
def test_numbers_that_make_no_sense(call: object, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)
