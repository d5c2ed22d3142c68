"""Compute times: stragglers, pauses, replayed tables, and draws that depend on nothing but the seed."""

from __future__ import annotations

import math
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from distsim.compute import Compute, ComputeTimes, read_times
from distsim.distributions import Constant, Empirical, Exponential, Lognormal, Pareto, ShiftedExponential, Uniform
from distsim.random_streams import Purpose, stream

LOGNORMAL = {"distribution": "lognormal", "mean": "50 ms", "cv": 0.3}


def times(seed: int = 7, batch: int = 1, **table: object) -> ComputeTimes:
    return ComputeTimes(Compute(**table), seed, batch)


# The distribution


@pytest.mark.parametrize(
    ("table", "distribution"),
    [
        ({"mean": "50 ms"}, Constant(0.05)),
        ({"distribution": "uniform", "mean": "50 ms", "cv": 0.3}, Uniform(0.05, 0.3)),
        ({"distribution": "exponential", "mean": "50 ms"}, Exponential(0.05)),
        ({"distribution": "shifted_exponential", "mean": "50 ms", "cv": 0.3}, ShiftedExponential(0.05, 0.3)),
        (LOGNORMAL, Lognormal(0.05, 0.3)),
        ({"distribution": "pareto", "mean": "50 ms", "alpha": 2.5}, Pareto(0.05, 2.5)),
        ({"distribution": "pareto", "mean": "50 ms", "cv": 0.5}, Pareto.of_cv(0.05, 0.5)),
        ({"fixed": "5 ms", "per_sample": "1.4 ms"}, Constant(0.005 + 0.0014 * 32)),
        ({"fixed": "5 ms"}, Constant(0.005)),
        ({"per_sample": "1.4 ms"}, Constant(0.0014 * 32)),
    ],
)
def test_the_table_names_a_distribution(table: dict[str, object], distribution: object) -> None:
    compute = Compute(**table)
    assert compute.of_worker(0, batch=32) == distribution
    assert compute.mean_of_batch(32) == pytest.approx(distribution.mean_seconds, rel=1e-12)
    drawn = ComputeTimes(compute, seed=1, batch=32).first(0, 10)
    assert drawn[:10].tolist() == distribution.sample(stream(1, Purpose.COMPUTE, 0), 10).tolist()


# Stragglers


def test_a_slow_worker_takes_its_factor_longer_on_the_very_same_draws() -> None:
    plain, slowed = times(**LOGNORMAL), times(**LOGNORMAL, slow={"3": 2.0})
    assert slowed.first(3, 100).tolist() == (2.0 * plain.first(3, 100)).tolist()
    assert slowed.first(2, 100).tolist() == plain.first(2, 100).tolist()
    assert Compute(**LOGNORMAL, slow={"3": 2.0}).slow_factor(2) == 1.0


def test_pauses_add_their_duration_with_their_probability() -> None:
    plain = times(**LOGNORMAL).first(0, 40_000)[:40_000]
    paused = times(**LOGNORMAL, pauses={"probability": 0.3, "duration": "500 ms"}).first(0, 40_000)[:40_000]
    extra = paused - plain
    hit = extra > 0.25
    assert extra[~hit].tolist() == [0.0] * int((~hit).sum())
    assert extra[hit] == pytest.approx(0.5, rel=1e-12)
    assert abs(hit.mean() - 0.3) <= 4 * math.sqrt(0.3 * 0.7 / len(hit))


@pytest.mark.parametrize(("probability", "share"), [(0.0, 0.0), (1.0, 1.0), (1, 1.0)])
def test_pauses_that_never_or_always_come(probability: float, share: float) -> None:
    paused = times(mean="1 s", pauses={"probability": probability, "duration": "250 ms"}).first(0, 100)
    assert (paused == 1.25).mean() == share


def test_pauses_are_not_stretched_by_the_slow_factor() -> None:
    paused = times(mean="1 s", slow={0: 3.0}, pauses={"probability": 1.0, "duration": "500 ms"})
    assert paused(0, 0) == 3.5


# Draws


def test_streams_differ_by_purpose_worker_and_seed() -> None:
    keys = [(seed, purpose, worker) for seed in (0, 1, 2**40) for purpose in Purpose for worker in range(4)]
    drawn = {key: stream(*key).random(10_000) for key in keys}
    for one, other in combinations(keys, 2):
        correlation = np.corrcoef(drawn[one], drawn[other])[0, 1]
        assert abs(correlation) <= 4 / math.sqrt(10_000), (one, other)


def test_streams_stay_what_they_were() -> None:
    """A seed names a run for good: the same numbers on every machine and in every version."""
    assert stream(7, Purpose.COMPUTE, 2).bit_generator.random_raw(2).tolist() == [
        5714753203973567835,
        2340408845656272596,
    ]
    assert (Purpose.COMPUTE, Purpose.PAUSE) == (0, 1)


def test_pauses_move_no_other_draw() -> None:
    """Steps that happen not to pause take exactly as long as without pauses."""
    plain, paused = times(**LOGNORMAL), times(**LOGNORMAL, pauses={"probability": 0.5, "duration": "1 h"})
    same = paused.first(1, 1000)[:1000] == plain.first(1, 1000)[:1000]
    assert 0.4 < same.mean() < 0.6


def test_pauses_come_whether_a_step_is_long_or_short() -> None:
    """Uniform times and pauses are both made of uniform numbers: of the same ones, were their streams one."""
    table = {"distribution": "uniform", "mean": "1 s", "cv": 0.5}
    plain = times(**table).first(1, 10_000)[:10_000]
    paused = times(**table, pauses={"probability": 0.5, "duration": "1 h"}).first(1, 10_000)[:10_000] > plain
    assert abs(np.corrcoef(plain, paused)[0, 1]) <= 4 / math.sqrt(len(plain))


def test_more_workers_move_no_draw_of_the_others() -> None:
    few, many = times(**LOGNORMAL), times(**LOGNORMAL)
    for worker in range(64):
        many.first(worker, 10)
    assert few.first(2, 10).tolist() == many.first(2, 10).tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), min_size=1, max_size=40), st.integers(0, 2**63))
def test_the_order_of_asking_does_not_matter(asked: list[tuple[int, int]], seed: int) -> None:
    table = {**LOGNORMAL, "slow": {1: 2.0}, "pauses": {"probability": 0.1, "duration": "1 s"}}
    one, other = times(seed, **table), times(seed, **table)
    whole = {worker: other.first(worker, 401) for worker in range(4)}
    assert [one(worker, index) for worker, index in asked] == [whole[worker][index] for worker, index in asked]


def test_another_seed_draws_other_times() -> None:
    assert times(seed=1, **LOGNORMAL)(0, 0) != times(seed=2, **LOGNORMAL)(0, 0)
    assert times(seed=1, **LOGNORMAL)(0, 0) == times(seed=1, **LOGNORMAL)(0, 0)


# Replayed tables


def table_file(folder: Path, text: str, name: str = "times.csv") -> str:
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


def test_a_column_per_worker_is_replayed_in_order_and_starts_over(tmp_path: Path) -> None:
    file = table_file(tmp_path, "0.1, 1.0\n0.2, 2.0\n\n0.3, 3.0\n")
    replayed = times(distribution="replay", file=file, slow={1: 2.0})
    assert [replayed(0, index) for index in range(7)] == [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.1]
    assert [replayed(1, index) for index in (4, 0, 130)] == [4.0, 2.0, 4.0]
    compute = Compute(distribution="replay", file=file)
    assert compute.of_worker(1, batch=1) == Empirical((1.0, 2.0, 3.0))
    assert compute.mean_of_batch(1) == pytest.approx(1.1)


def test_one_column_is_drawn_from_by_every_worker(tmp_path: Path) -> None:
    file = table_file(tmp_path, "0.1\n0.2\n0.4\n")
    alone = ComputeTimes(Compute(distribution="replay", file=file), seed=7, batch=1, alone=True)
    assert alone.first(0, 4)[:4].tolist() == [0.1, 0.2, 0.4, 0.1]
    replayed = times(distribution="replay", file=file)
    drawn = np.stack([replayed.first(worker, 3000)[:3000] for worker in range(2)])
    assert set(drawn.ravel()) == {0.1, 0.2, 0.4}
    for time in (0.1, 0.2, 0.4):
        assert abs((drawn == time).mean() - 1 / 3) <= 4 * math.sqrt(2 / 9 / drawn.size)
    assert (drawn[0] != drawn[1]).any()


def test_a_table_may_be_separated_by_spaces_and_is_read_anew_when_it_changes(tmp_path: Path) -> None:
    path = Path(table_file(tmp_path, "1 2\n3 4\n"))
    assert read_times(path).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    path.write_text("5 6\n", "utf-8")
    os.utime(path, ns=(1, 1))
    assert read_times(path).tolist() == [[5.0, 6.0]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "at least one row"),
        ("\n\n", "at least one row"),
        ("0.1, 0.2\n0.3\n", "rows of equal length"),
        ("time\n0.1\n", "not a table of numbers"),
        ("0.1, x\n", "not a table of numbers"),
        ("0.1\n-0.2\n", "at least 0"),
        ("nan\n", "finite"),
        ("inf\n", "finite"),
    ],
)
def test_a_table_that_cannot_be_replayed(tmp_path: Path, text: str, reason: str) -> None:
    file = table_file(tmp_path, text)
    with pytest.raises(ValidationError, match=reason) as caught:
        Compute(distribution="replay", file=file)
    assert "times.csv" in str(caught.value)
    assert "Cure:" in str(caught.value)


def test_a_table_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    for name, reason in [("none.csv", "cannot be read"), (".", "cannot be read"), ("binary.csv", "not a table")]:
        with pytest.raises(ValidationError, match=reason):
            Compute(distribution="replay", file=str(tmp_path / name))


def test_a_table_needs_a_column_per_worker(tmp_path: Path) -> None:
    compute = Compute(distribution="replay", file=table_file(tmp_path, "0.1, 0.2\n"))
    compute.check_workers(2)
    with pytest.raises(ValueError, match=r"has 2 columns; it needs one per worker \(3\)"):
        compute.check_workers(3)
