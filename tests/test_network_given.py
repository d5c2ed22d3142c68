"""Flows on the network, kept by link or in columns: the rates at every instant, SimGrid, and both ways compared."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from distsim.network import Flow, Network, flow_columns, max_min_rates, network
from distsim.network.flow_columns import filled
from tests.counts import reduced

Floats = NDArray[np.float64]
Problem = tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats, Floats]
Life = tuple[tuple[int, ...], float, float, float, float]  # path, start, latency, bytes, seconds until it is aborted
CASES = files("distsim.accuracy") / "simgrid_cases.json"
NEVER = math.inf
BY_LINK, SOME, IN_COLUMNS = 10**9, 5, 0  # the number of flows that are many: SOME go to and fro


each_way = pytest.mark.parametrize("many", [BY_LINK, SOME, IN_COLUMNS])


@contextmanager
def are_many(flows: int) -> Iterator[None]:
    """So many flows are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "MANY", flows)
        yield


def check_every_instant(capacities: dict[int, float], lives: list[Life]) -> None:
    """At the end of each instant every flow has the rate of progressive filling, and at its end all its bytes."""
    environment = simpy.Environment()
    carrying = Network(environment, capacities)
    started: dict[int, Flow] = {}
    aborted: set[int] = set()
    received = [0.0] * len(lives)
    ends: dict[int, float] = {}

    def live(number: int, path: tuple[int, ...], start: float, latency: float, size: float, lasts: float):  # type: ignore[no-untyped-def]
        yield environment.timeout(start)
        flow = started[number] = carrying.transfer(path, size, latency)
        if lasts < NEVER:
            yield environment.timeout(lasts)
            if not flow.triggered:
                carrying.abort(flow)
                aborted.add(number)

    for number, life in enumerate(lives):
        environment.process(live(number, *life))
    rates: dict[int, float] = {}
    steps = 0
    while environment.peek() < NEVER:
        before, now = environment.now, environment.peek()
        for number, rate in rates.items():
            received[number] += rate * (now - before)
        while environment.peek() == now:
            environment.step()
            steps += 1
            assert steps < 100 * len(lives), "the network wakes up again and again"
        for number, flow in started.items():
            if flow.triggered and number not in ends:
                ends[number] = now
                assert received[number] == pytest.approx(lives[number][3], rel=1e-9)
        latencies_over = [number for number, flow in started.items() if now >= flow.start_seconds + lives[number][2]]
        under_way = [number for number in latencies_over if number not in ends and number not in aborted]
        right = max_min_rates([lives[number][0] for number in under_way], capacities)
        rates = dict(zip(under_way, right, strict=True))
        assert [started[number].rate for number in under_way] == pytest.approx(right, rel=1e-10)
    assert len(ends) + len(aborted) == len(lives)


@st.composite
def few_lives(draw: st.DrawFn) -> tuple[dict[int, float], list[Life]]:
    """Few different speeds, times and sizes, so that shares, joins, ends and aborts coincide."""
    link = st.integers(0, 5)
    path = st.lists(link, min_size=1, max_size=draw(st.integers(1, 3)), unique=True).map(tuple)
    time = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 2.0))
    size = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(0.1, 9.0))
    lasts = st.one_of(st.just(NEVER), st.sampled_from([0.0, 0.5, 1.0]))
    lives = st.lists(st.tuples(path, time, time, size, lasts), min_size=1, max_size=16)
    return {number: draw(st.sampled_from([1.0, 2.0, 3.0])) for number in range(6)}, draw(lives)


@each_way
@settings(max_examples=reduced(500))
@given(problem=few_lives())
def test_every_instant_has_the_rates_of_progressive_filling(
    many: int, problem: tuple[dict[int, float], list[Life]]
) -> None:
    with are_many(many):
        check_every_instant(*problem)


@each_way
@pytest.mark.parametrize("crowd", [0, 80])
def test_a_flow_may_be_aborted_at_the_moment_of_its_end(many: int, crowd: int) -> None:
    """The abort comes first: its process began before the flow had a rate, and so an end. Others share its links."""
    lives: list[Life] = [((4, 5), 0.5, 0.0, 1.0, 1.0), *[((0, 4, 5), 0.0, 0.5, 2.0, NEVER)] * (1 + crowd)]
    capacities = {0: 1.0 + crowd, 4: 2.0 + crowd, 5: 2.0 + crowd}
    with are_many(many):
        check_every_instant(capacities, lives)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("many", [BY_LINK, 60, IN_COLUMNS])
def test_so_has_every_instant_of_a_crowd(many: int, seed: int) -> None:
    """Some 200 flows at once between 8 hosts; flows come, several at once or one by one, are aborted, and go."""
    generator = np.random.default_rng(seed)
    capacities = dict(enumerate(generator.choice([1.0, 2.5, 10.0], 16).tolist()))
    lives: list[Life] = []
    for number in range(300):
        source, further = int(generator.integers(0, 8)), int(generator.integers(1, 8))
        path = (source, (source + further) % 8 + 8)
        lasts = float(generator.uniform(0.0, 20.0)) if generator.random() < 0.2 else NEVER
        start, latency = float(generator.uniform(0.0, 20.0)), float(generator.choice([0.0, 0.5]))
        start = round(2 * start) / 2 if number % 2 else start
        lives.append((path, start, latency, float(generator.lognormal(0.0, 1.0)), lasts))
    with are_many(many):
        check_every_instant(capacities, lives)


def test_only_what_can_change_is_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links of 10, 20 and 90 bytes/s with 10 flows each have rates of 1, 2 and 9; a flow on the second is aborted."""
    solved: list[int] = []
    monkeypatch.setattr(
        flow_columns, "filled", lambda links, free: solved.append(links.shape[1]) or filled(links, free)  # type: ignore[func-returns-value]
    )  # fmt: skip
    environment = simpy.Environment()
    carrying = Network(environment, {"a": 10.0, "b": 20.0, "c": 90.0, "wide": 1e3})
    with are_many(IN_COLUMNS):
        flows = [carrying.transfer((link, "wide"), 1e6, 0.5) for link in "abc" for _ in range(10)]
        environment.run(1.0)
        carrying.abort(flows[10])
        environment.run(2.0)
        carrying.transfer(("c", "wide"), 1e6, 0.0)  # against 10 flows of 9, it reaches 90 / 11
        environment.run(3.0)
    assert solved == [30, 19, 11]
    assert [flow.rate for flow in flows[::15]] == pytest.approx([1.0, 20 / 9])


def test_flows_that_are_many_for_a_while_end_as_by_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real number of flows that are many: they go into columns, and come back."""
    problem = random_flows(600, 8, seed=3)
    kept: list[str] = []
    for name in ("_keep_in_columns", "_keep_by_link"):
        keep = getattr(Network, name)
        monkeypatch.setattr(Network, name, lambda *args, name=name, keep=keep: kept.append(name) or keep(*args))
    ends = network_ends(*problem)
    assert kept[:2] == ["_keep_in_columns", "_keep_by_link"]
    with are_many(BY_LINK):
        assert ends == pytest.approx(network_ends(*problem), rel=1e-12)


def test_many_flows_to_one_server_stay_by_link_beside_coupled_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Network] = []
    monkeypatch.setattr(Network, "_keep_in_columns", lambda carrying, _: kept.append(carrying))
    environment = simpy.Environment()
    carrying = Network(environment, {"server": 400.0, "a": 2.0, "b": 1.0})
    flows = [carrying.transfer(path, 5.0, 0.5) for path in [("server",)] * 400 + [("a", "b")] * 2]
    environment.run(1.0)
    assert not kept
    assert [flow.rate for flow in flows] == [1.0] * 400 + [0.5] * 2


def network_ends(source: Floats, target: Floats, capacities: Floats, joins: Floats, num_bytes: Floats) -> Floats:
    environment = simpy.Environment()
    carrying = Network(environment, dict(enumerate(capacities.tolist())))
    ends = np.full(len(joins), np.nan)

    def carry(flow: int, path: tuple[int, int], start: float, size: float):  # type: ignore[no-untyped-def]
        yield environment.timeout(start)
        yield carrying.transfer(path, size, 0.0)
        ends[flow] = environment.now

    paths = zip(source.tolist(), target.tolist(), strict=True)
    for flow, row in enumerate(zip(paths, joins.tolist(), num_bytes.tolist(), strict=True)):
        environment.process(carry(flow, *row))
    environment.run()
    return ends


def random_flows(flows: int, hosts: int, seed: int) -> Problem:
    """As those of the SimGrid cases: three speeds, sizes of mean 30 MB, and as many a second for each host."""
    generator = np.random.default_rng(seed)
    source = generator.integers(0, hosts, flows)
    return (
        source,
        (source + generator.integers(1, hosts, flows)) % hosts + hosts,
        generator.choice([1.25e9, 3.125e9, 1.25e10], 2 * hosts),
        generator.uniform(0.0, flows / hosts * 6.4e-3, flows),
        generator.lognormal(np.log(18e6), 1.0, flows),
    )


@pytest.mark.parametrize("seed", range(24))
def test_links_with_the_same_share_end_alike(seed: int) -> None:
    """With three speeds shares coincide by and by, but for rounding."""
    problem = random_flows(60, 4, seed)
    with are_many(BY_LINK):
        by_link = network_ends(*problem)
    for many in (SOME, IN_COLUMNS):
        with are_many(many):
            assert network_ends(*problem) == pytest.approx(by_link, rel=1e-12)


@each_way
@pytest.mark.parametrize("name", ["flows_4_10.txt", "flows_8_50.txt", "flows_16_200.txt"])
def test_ends_are_simgrids(many: int, name: str) -> None:
    document = json.loads(CASES.read_text())
    case = next(case for case in document["cases"] if case["input"] == name)
    count, *rest = document["inputs"][name].split()
    numbers = np.array(rest, dtype=np.float64)
    capacities, rows = numbers[: -4 * int(count)], numbers[-4 * int(count) :].reshape(-1, 4)
    source, target = rows[:, :2].astype(np.int64).T
    joins = rows[:, 2] + 2 * case["L_s_per_link"]
    with are_many(many):
        ends = network_ends(source, target + case["N"], capacities, joins, rows[:, 3])
    assert ends == pytest.approx(np.array(case["finish_s"]), rel=1e-9)
