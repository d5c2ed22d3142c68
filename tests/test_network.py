"""The fluid network: fairness by its definition, known contention examples, and what settles together."""

from __future__ import annotations

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from distsim.network import Flow, Network, max_min_rates
from distsim.network.link import Link

LINKS = ["a", "b", "c", "d", "e"]


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[list[str]], dict[str, float]]:
    capacities = {link: draw(st.floats(0.5, 100.0)) for link in LINKS}
    path = st.lists(st.sampled_from(LINKS), min_size=1, max_size=3, unique=True)
    return draw(st.lists(path, min_size=1, max_size=12)), capacities


@given(problems())
def test_rates_are_max_min_fair(problem: tuple[list[list[str]], dict[str, float]]) -> None:
    """Bertsekas and Gallager: every flow has a full link on which nobody is faster."""
    paths, capacities = problem
    rates = max_min_rates(paths, capacities)
    load = {link: sum(rate for rate, path in zip(rates, paths, strict=True) if link in path) for link in LINKS}
    for link in LINKS:
        assert load[link] <= capacities[link] * (1 + 1e-12)
    for rate, path in zip(rates, paths, strict=True):
        assert any(
            load[link] >= capacities[link] * (1 - 1e-9)
            and rate >= max(r for r, p in zip(rates, paths, strict=True) if link in p) * (1 - 1e-12)
            for link in path
        )


def ends(capacities: dict[str, float], flows: list[tuple[list[str], float, float, float]]) -> list[float]:
    """End times of (path, bytes, latency, start)."""
    environment = simpy.Environment()
    network = Network(environment, dict(capacities))
    found = [0.0] * len(flows)

    def carry(number: int, path: list[str], num_bytes: float, latency: float, start: float):  # type: ignore[no-untyped-def]
        yield environment.timeout(start)
        yield network.transfer(tuple(path), num_bytes, latency)
        found[number] = environment.now

    for number, flow in enumerate(flows):
        environment.process(carry(number, *flow))
    environment.run()
    return found


def test_two_equal_flows_share_a_link() -> None:
    """eduWRENCH: 100 MB each over 40 MB/s, own legs of 30 and 40 MB/s, 200 us."""
    capacities = {"leg 1": 30e6, "leg 2": 40e6, "shared": 40e6}
    flows = [(["leg 1", "shared"], 100e6, 200e-6, 0.0), (["leg 2", "shared"], 100e6, 200e-6, 0.0)]
    assert ends(capacities, flows) == pytest.approx([100e6 / 20e6 + 200e-6] * 2, rel=1e-12)


def test_the_rest_is_faster_when_one_has_left() -> None:
    """eduWRENCH: 50 MB and 100 MB; after the first has gone the second has its leg's 40 MB/s."""
    capacities = {"leg 1": 30e6, "leg 2": 40e6, "shared": 40e6}
    flows = [(["leg 1", "shared"], 50e6, 200e-6, 0.0), (["leg 2", "shared"], 100e6, 200e-6, 0.0)]
    first = 50e6 / 20e6 + 200e-6
    second = first + (100e6 - 50e6) / 40e6
    assert ends(capacities, flows) == pytest.approx([first, second], rel=1e-12)


def test_a_late_flow_slows_the_one_under_way() -> None:
    flows = [(["link"], 10.0, 0.0, 0.0), (["link"], 10.0, 0.0, 4.0)]
    # 4 s alone at 1 B/s leave 6; both at 0.5 B/s until 16; then the second's last 4 alone.
    assert ends({"link": 1.0}, flows) == pytest.approx([16.0, 20.0], rel=1e-12)


def test_nothing_to_carry_takes_the_latency() -> None:
    assert ends({"link": 1.0}, [(["link"], 0.0, 0.25, 1.0)]) == [1.25]


def test_an_aborted_flow_frees_the_link_and_never_happens() -> None:
    environment = simpy.Environment()
    network = Network(environment, {"link": 1.0})
    kept, dropped = network.transfer(("link",), 10.0, 0.0), network.transfer(("link",), 10.0, 0.0)
    in_latency = network.transfer(("link",), 10.0, 3.0)

    def abort():  # type: ignore[no-untyped-def]
        yield environment.timeout(2.0)
        network.abort(dropped)
        network.abort(in_latency)

    environment.process(abort())
    environment.run(kept)
    assert environment.now == pytest.approx(2.0 + (10.0 - 1.0), rel=1e-12)
    environment.run()
    assert not dropped.triggered
    assert not in_latency.triggered


def test_changes_of_one_instant_are_settled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 50 flows the first is alone until the instant is over; at the end none is left to be told of a rate."""
    rates: list[float] = []
    set_rate, alone = Link.set_rate, Link.carry_alone
    monkeypatch.setattr(
        Link, "set_rate", lambda link, now, rate: rates.append(rate) or set_rate(link, now, rate)  # type: ignore[func-returns-value]
    )  # fmt: skip
    monkeypatch.setattr(
        Link, "carry_alone", lambda link, now, flow: rates.append(link.capacity) or alone(link, now, flow)  # type: ignore[func-returns-value]
    )  # fmt: skip
    ends({"link": 1.0}, [(["link"], 5.0, 0.5, 0.0)] * 50)
    assert rates == [1.0, 1.0 / 50]


def test_the_latency_of_flows_that_start_together_is_one_event() -> None:
    environment = simpy.Environment()
    network = Network(environment, {"link": 1.0})
    flows = [network.transfer(("link",), 5.0, latency) for latency in (0.5, 0.5, 0.5, 0.25, 0.25)]
    assert sorted(event[0] for event in environment._queue) == [0.25, 0.5]
    network.abort(flows[1])
    environment.run(0.5)
    later = network.transfer(("link",), 5.0, 0.5)
    environment.run(1.25)
    assert [flow.rate for flow in (*flows, later)] == [0.2, 0.0, 0.2, 0.2, 0.2, 0.2]


def test_a_component_is_filled_once_in_an_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows that share two links each; they end together too."""
    filled: list[int] = []
    fill = Network._fill
    monkeypatch.setattr(Network, "_fill", lambda *args: filled.append(len(args[2])) or fill(*args))  # type: ignore[func-returns-value]
    assert ends({"a": 1.0, "b": 2.0}, [(["a", "b"], 5.0, 0.5, 0.0)] * 4) == pytest.approx([20.5] * 4, rel=1e-12)
    assert filled == [2]


@st.composite
def lives(draw: st.DrawFn) -> tuple[dict[str, float], list[tuple[tuple[str, ...], float, float]], list[float]]:
    """Capacities, (path, start, how long it may last) of flows too large to end, and when to look at their rates."""
    time = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0])
    path = st.lists(st.sampled_from(LINKS), min_size=1, max_size=draw(st.integers(1, 3)), unique=True).map(tuple)
    capacity = st.sampled_from([1.0, 3.0, 8.0, 12.0])
    flows = draw(st.lists(st.tuples(path, time, st.sampled_from([0.5, 1.0, 9.0])), min_size=1, max_size=12))
    return {link: draw(capacity) for link in LINKS}, flows, [0.25, 0.75, 1.25, 1.75, 2.25]


@given(lives())
def test_rates_under_way_are_those_of_progressive_filling(
    life: tuple[dict[str, float], list[tuple[tuple[str, ...], float, float]], list[float]],
) -> None:
    """Whatever joined and left before: what settles a part of the network settles it as a whole."""
    capacities, flows, looks = life
    environment = simpy.Environment()
    network = Network(environment, capacities)
    under_way: dict[int, Flow] = {}

    def live(number: int, path: tuple[str, ...], start: float, seconds: float):  # type: ignore[no-untyped-def]
        yield environment.timeout(start)
        under_way[number] = network.transfer(path, 1e9, 0.0)
        yield environment.timeout(seconds)
        network.abort(under_way.pop(number))

    for number, flow in enumerate(flows):
        environment.process(live(number, *flow))
    for look in looks:
        environment.run(look)
        rates = [flow.rate for flow in under_way.values()]
        paths = [flows[number][0] for number in under_way]
        assert rates == pytest.approx(max_min_rates(paths, capacities), rel=1e-12)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("ulps", "together"), [(5, True), (6, False)])
def test_what_takes_a_quadrillionth_of_the_time_now_is_over(shared: bool, ulps: int, together: bool) -> None:
    """At 1 s that is 1e-15 s, which rounds to five units in the last place of a second, or of a byte."""
    capacities = {"a": 2.0} if shared else {"a": 1.0, "b": 1.0}
    flows = [(["a"], 1.0, 0.0, 0.0), (["a" if shared else "b"], 1.0 + ulps * np.finfo(float).eps, 0.0, 0.0)]
    first, second = ends(capacities, flows)
    assert first == 1.0
    assert (second == first) == together


def test_many_random_flows_conserve_work() -> None:
    """A link that is never idle between its first and last flow ends when its bytes are through."""
    generator = np.random.default_rng(5)
    flows = [(["link"], float(size), 0.0, 0.0) for size in generator.uniform(1, 100, 200)]
    assert max(ends({"link": 7.0}, flows)) == pytest.approx(sum(flow[1] for flow in flows) / 7.0, rel=1e-11)
