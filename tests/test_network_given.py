"""Given flows: the network of flows on a clock, SimGrid, and the two ways of working them out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.resources import files

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from distsim.network import Network, flow_ends
from distsim.network.offline_flows import WORTH_COMPILING, in_columns
from tests.counts import reduced

Floats = NDArray[np.float64]
Problem = tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats, Floats]
CASES = files("distsim.accuracy") / "simgrid_cases.json"


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def ends_of(request: pytest.FixtureRequest) -> Callable[..., Floats]:
    if request.param == "numpy":
        return in_columns
    pytest.importorskip("numba")
    from distsim.network import offline_flows_compiled

    return offline_flows_compiled.ends_of


def by_the_network(source: Floats, target: Floats, capacities: Floats, joins: Floats, num_bytes: Floats) -> Floats:
    environment = simpy.Environment()
    network = Network(environment, dict(enumerate(capacities.tolist())))
    ends = np.full(len(joins), np.nan)

    def carry(flow: int, path: tuple[int, int], start: float, size: float):  # type: ignore[no-untyped-def]
        yield environment.timeout(start)
        yield network.transfer(path, size, 0.0)
        ends[flow] = environment.now

    paths = zip(source.tolist(), target.tolist(), strict=True)
    for flow, row in enumerate(zip(paths, joins.tolist(), num_bytes.tolist(), strict=True)):
        environment.process(carry(flow, *row))
    environment.run()
    return ends


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Few different speeds, times and sizes, so that shares, joins and ends coincide."""
    hosts = draw(st.integers(2, 5))
    count = draw(st.integers(1, 20))
    host = st.lists(st.integers(0, hosts - 1), min_size=count, max_size=count)
    time = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 2.0))
    size = st.one_of(st.sampled_from([0.0, 1e6, 2e6]), st.floats(1e5, 5e6))
    speed = st.sampled_from([1e6, 2e6, 3e6])
    return (
        np.array(draw(host)),
        np.array(draw(host)) + hosts,
        np.array(draw(st.lists(speed, min_size=2 * hosts, max_size=2 * hosts))),
        np.array(draw(st.lists(time, min_size=count, max_size=count))),
        np.array(draw(st.lists(size, min_size=count, max_size=count))),
    )


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


@settings(max_examples=reduced(150))
@given(problem=problems())
def test_ends_are_those_of_the_network_on_a_clock(ends_of: Callable[..., Floats], problem: Problem) -> None:
    assert ends_of(*problem) == pytest.approx(by_the_network(*problem), rel=1e-12)


@pytest.mark.parametrize("seed", range(24))
def test_links_with_the_same_share_end_as_on_the_network(ends_of: Callable[..., Floats], seed: int) -> None:
    """With three speeds shares coincide by and by, but for rounding."""
    problem = random_flows(60, 4, seed)
    assert ends_of(*problem) == pytest.approx(by_the_network(*problem), rel=1e-12)


@pytest.mark.parametrize("name", ["flows_4_10.txt", "flows_8_50.txt", "flows_16_200.txt"])
def test_ends_are_simgrids(ends_of: Callable[..., Floats], name: str) -> None:
    document = json.loads(CASES.read_text())
    case = next(case for case in document["cases"] if case["input"] == name)
    count, *rest = document["inputs"][name].split()
    numbers = np.array(rest, dtype=np.float64)
    capacities, rows = numbers[: -4 * int(count)], numbers[-4 * int(count) :].reshape(-1, 4)
    source, target = rows[:, :2].astype(np.int64).T
    joins = rows[:, 2] + 2 * case["L_s_per_link"]
    ends = ends_of(source, target + case["N"], capacities, joins, rows[:, 3].copy())
    assert ends == pytest.approx(np.array(case["finish_s"]), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_compiled_or_not_is_the_same(seed: int) -> None:
    compiled = pytest.importorskip("distsim.network.offline_flows_compiled", exc_type=ImportError)
    problem = random_flows(1500, 32, seed)
    assert compiled.ends_of(*problem) == pytest.approx(in_columns(*problem), rel=1e-12)


def test_many_flows_need_no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target, capacities, joins, num_bytes = random_flows(WORTH_COMPILING, 64, seed=1)
    expected = flow_ends(np.stack([source, target], axis=1), capacities, joins, num_bytes)
    monkeypatch.setitem(sys.modules, "distsim.network.offline_flows_compiled", None)
    found = flow_ends(np.stack([source, target], axis=1), capacities, joins, num_bytes)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_path_has_two_links() -> None:
    with pytest.raises(ValueError, match="two different links"):
        flow_ends([[0, 0]], [1.0], 0.0, 1.0)


def test_no_flows_have_no_ends() -> None:
    assert flow_ends(np.empty((0, 2)), [1.0], 0.0, 1.0).tolist() == []
