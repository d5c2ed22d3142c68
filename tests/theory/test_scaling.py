"""Speed-ups against adding up the work, against each other, and against what the bytes of a collective say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim.errors import InputError
from distsim.theory.collectives import parameter_server_seconds, ring_all_reduce_seconds
from distsim.theory.scaling import (
    GROWTHS,
    amdahl_speed_up,
    efficiency,
    ring_speed_up,
    server_speed_up,
    share_of_speed_up,
    speed_up,
    strong_speed_up,
    universal_speed_up,
    weak_speed_up,
)


@given(st.floats(0.0, 1.0), st.integers(1, 1000))
def test_amdahl_and_gustafson_say_the_same_of_one_run(serial: float, workers: int) -> None:
    """s of the time on p workers is s / (s + (1 - s) p) of the time on one (Gustafson 1988: p - s (p - 1))."""
    of_one = serial / (serial + (1 - serial) * workers)
    assert workers - serial * (workers - 1) == pytest.approx(amdahl_speed_up(of_one, workers), rel=1e-9)
    assert speed_up("serial", serial, workers) == pytest.approx(amdahl_speed_up(serial, workers), rel=1e-9)


def test_amdahls_limit() -> None:
    assert amdahl_speed_up(0.05, 10**9) == pytest.approx(20, rel=1e-6)
    assert amdahl_speed_up(0.0, 7) == 7
    assert amdahl_speed_up(1.0, 7) == 1


@given(st.floats(0.0, 1.0), st.floats(1e-6, 1.0), st.integers(2, 1000))
def test_pairs_cost_more_than_amdahl_says_until_more_workers_are_slower(
    serial: float, pairwise: float, workers: int
) -> None:
    assert universal_speed_up(serial, 0.0, workers) == pytest.approx(amdahl_speed_up(serial, workers), rel=1e-9)
    lost = workers / universal_speed_up(serial, pairwise, workers) - workers / amdahl_speed_up(serial, workers)
    pairs = workers * (workers - 1) / 2
    assert lost == pytest.approx(2 * pairwise * pairs, rel=1e-6)
    best = ((1 - serial) / pairwise) ** 0.5  # Gunther 2008
    if best > 2 and workers > best:
        assert universal_speed_up(serial, pairwise, workers + 1) < universal_speed_up(serial, pairwise, workers)


def test_samples_per_second_counted() -> None:
    """Batch 32 in 0.3 s on one worker; 0.1 s of communication on four."""
    alone = 32 / 0.3
    assert weak_speed_up(0.3, 0.1, 4) == pytest.approx((4 * 32 / 0.4) / alone, rel=1e-12)
    assert strong_speed_up(0.3, 0.1, 4) == pytest.approx((32 / (0.3 / 4 + 0.1)) / alone, rel=1e-12)
    assert weak_speed_up(0.3, 0.0, 4) == strong_speed_up(0.3, 0.0, 4) == pytest.approx(4)
    assert efficiency(weak_speed_up(0.3, 0.1, 4), 4) == pytest.approx(0.75)


@given(st.floats(0.01, 10.0), st.floats(0.0, 1e9), st.integers(1, 256))
def test_growths_are_the_bytes_of_the_collectives(compute: float, num_bytes: float, workers: int) -> None:
    share = num_bytes / (1e9 * compute)
    ring = ring_speed_up(compute, num_bytes, workers, 1e9, 0.0)
    assert ring == pytest.approx(speed_up("ring", share, workers), rel=1e-9)
    assert ring >= workers / (1 + 2 * share) * (1 - 1e-9)
    server = server_speed_up(compute, num_bytes, workers, 1e9, 0.0)
    assert server == pytest.approx(speed_up("server", share, workers), rel=1e-9)
    assert server * 2 * share <= 1 + 1e-9


def test_latency_counts() -> None:
    link = (1e7, 8, 1e9, 1e-3)
    assert ring_speed_up(0.1, *link) == pytest.approx(8 * 0.1 / (0.1 + ring_all_reduce_seconds(*link)))
    assert server_speed_up(0.1, *link) == pytest.approx(8 * 0.1 / (0.1 + parameter_server_seconds(*link)))


@given(st.sampled_from(sorted(GROWTHS)), st.integers(2, 512), st.floats(0.01, 1.0))
def test_a_fitted_share_gives_back_what_it_was_fitted_to(growth: str, workers: int, reached: float) -> None:
    share = share_of_speed_up(growth, reached * workers, workers)
    assert speed_up(growth, share, workers) == pytest.approx(reached * workers, rel=1e-9)
    assert speed_up(growth, share, 2 * workers) < 2 * reached * workers * (1 + 1e-9)


@pytest.mark.parametrize(("growth", "gain"), [("ring", 0.92), ("server", 0.60), ("serial", 0.50)])
def test_from_three_times_on_four_workers_to_eight(growth: str, gain: float) -> None:
    share = share_of_speed_up(growth, 3.0, 4)
    assert speed_up(growth, share, 8) / 3 == pytest.approx(1 + gain, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: amdahl_speed_up(1.1, 4), "serial_share = 1.1"),
        (lambda: universal_speed_up(0.1, -0.1, 4), "pairwise_share = -0.1"),
        (lambda: weak_speed_up(0.0, 0.1, 4), "compute_seconds = 0.0"),
        (lambda: strong_speed_up(0.1, -0.1, 4), "communication_seconds = -0.1"),
        (lambda: efficiency(3.0, 0), "workers = 0"),
        (lambda: speed_up("tree", 0.1, 4), "growth = 'tree'"),
        (lambda: speed_up("ring", -0.1, 4), "share = -0.1"),
        (lambda: share_of_speed_up("ring", 5.0, 4), "speed_up = 5.0"),
        (lambda: share_of_speed_up("ring", 1.0, 1), "workers = 1"),
    ],
)
def test_numbers_that_make_no_sense(call: object, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)
