"""Links without a clock, against the network of flows."""

from __future__ import annotations

import numpy as np
import pytest
import simpy
from hypothesis import assume, given
from hypothesis import strategies as st

from distsim.engine.shared_link import EqualLink, UnequalLink, shared_link
from distsim.network import Network

MEGABYTE = 1e6


@st.composite
def runs(draw: st.DrawFn) -> tuple[float, list[float], list[tuple[float, int]], dict[int, float]]:
    """Capacity, limits, (start, worker) of each transfer, one at most per worker, and when some are aborted."""
    workers = draw(st.integers(1, 8))
    speeds = draw(st.sampled_from([[5e6], [1e6, 5e6], None]))
    limit = st.floats(2e5, 2e7) if speeds is None else st.sampled_from(speeds)
    limits = [draw(limit) for _ in range(workers)]
    start = st.one_of(st.sampled_from([0.0, 0.5]), st.floats(0.0, 3.0))
    starts = [(draw(start), worker) for worker in range(workers)]
    aborts = {worker: start + draw(st.floats(0.01, 1.0)) for start, worker in starts if draw(st.integers(0, 3)) == 0}
    return draw(st.floats(1e6, 1e7)), limits, starts, aborts


def by_the_network(
    capacity: float, limits: list[float], starts: list[tuple[float, int]], aborts: dict[int, float]
) -> dict[int, float]:
    environment = simpy.Environment()
    network = Network(environment, {"shared": capacity} | dict(enumerate(limits)))
    ends = {}

    def carry(worker: int, start: float):  # type: ignore[no-untyped-def]
        yield environment.timeout(start)
        flow = network.transfer((worker, "shared"), MEGABYTE, 0.0)
        aborted = environment.timeout(aborts[worker] - start) if worker in aborts else environment.event()
        yield flow | aborted
        if flow.triggered:
            ends[worker] = environment.now
        else:
            network.abort(flow)

    for start, worker in starts:
        environment.process(carry(worker, start))
    environment.run()
    return ends


def by_the_link(
    capacity: float, limits: list[float], starts: list[tuple[float, int]], aborts: dict[int, float], told: float
) -> dict[int, float]:
    """told: how long before it begins a link is told of a transfer."""
    link = shared_link(capacity, limits, MEGABYTE)
    begins = {worker: start for start, worker in starts}
    joins = [(max(start - told, 0.0), 1, worker) for start, worker in starts]
    changes = sorted([*joins, *((at, 0, worker) for worker, at in aborts.items())])
    ends: dict[int, float] = {}
    for at, begin, worker in [*changes, (np.inf, 0, 0)]:
        while link.next_end <= at and link.next_end < np.inf:
            now = link.next_end
            ends |= dict.fromkeys(link.end(now), now)
        if begin:
            link.join(begins[worker], [worker])
        elif at < np.inf:
            link.leave(at, [worker])
    return ends


@given(runs(), st.sampled_from([0.0, 0.7, 5.0]))
def test_ends_are_those_of_the_network(
    run: tuple[float, list[float], list[tuple[float, int]], dict[int, float]], told: float
) -> None:
    expected, found = by_the_network(*run), by_the_link(*run, told)
    for worker, at in run[3].items():  # a transfer that is aborted at the very moment of its end may have either fate
        assume(all(ends.get(worker) != pytest.approx(at, rel=1e-9) for ends in (expected, found)))
    assert found.keys() == expected.keys()
    for worker, end in expected.items():
        assert found[worker] == pytest.approx(end, rel=1e-9)


def test_the_kind_of_link_follows_the_limits() -> None:
    assert isinstance(shared_link(1.0, [2.0, 2.0], 1.0), EqualLink)
    assert isinstance(shared_link(1.0, [2.0, 3.0], 1.0), UnequalLink)


@pytest.mark.parametrize("limits", [[1e6] * 3, [1e6, 2e6, 3e6]])
def test_nothing_to_carry_ends_in_the_order_of_joining(limits: list[float]) -> None:
    link = shared_link(1e6, limits, 0.0)
    link.join(1.0, [2, 0])
    link.join(1.0, [1])
    assert link.next_end == 1.0
    assert link.end(1.0) == [2, 0, 1]
    assert link.next_end == np.inf


@pytest.mark.parametrize("limits", [[4e6, 4e6], [4e6, 5e6]])
def test_a_busy_link_does_not_drift(limits: list[float]) -> None:
    """Two at a time, 20,000 of them, never idle: the link ends when its bytes are through."""
    link = shared_link(3e6, limits, MEGABYTE)
    link.join(0.0, [0, 1])
    left, now = 20_000 - 2, 0.0
    while link.next_end < np.inf:
        now = link.next_end
        for worker in link.end(now):
            if left:
                link.join(now, [worker])
                left -= 1
    assert now == pytest.approx(20_000 / 3, rel=1e-11)
