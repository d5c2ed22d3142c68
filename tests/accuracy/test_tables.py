"""Every row of every table holds, and a simulator that is a little off would be seen in each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from distsim.accuracy import (
    checkpoints,
    collectives,
    contention,
    flexrr,
    local_sgd,
    order_statistics,
    pipelines,
    references,
    staleness,
)
from distsim.accuracy.claim import Claim
from distsim.accuracy.tables import TABLES
from distsim.trace import Trace

NAMES = [table.name for table in TABLES]


@pytest.fixture(scope="module")
def found() -> dict[str, list[Claim]]:
    return {table.name: table.claims() for table in TABLES}


@pytest.mark.parametrize("name", NAMES)
def test_all_rows_hold(found: dict[str, list[Claim]], name: str) -> None:
    assert found[name]
    assert [claim for claim in found[name] if not claim.holds] == []
    assert len({claim.case for claim in found[name]}) == len(found[name])
    assert all(claim.expression > 0 for claim in found[name])


@pytest.mark.parametrize("name", NAMES)
def test_rows_as_plain_values(found: dict[str, list[Claim]], name: str) -> None:
    table = next(table for table in TABLES if table.name == name)
    for claim in found[name]:
        row = table.row(claim)
        assert list(row) == ["case", "expression", table.beside, "difference", "allowed", "at_most", "holds"]
        assert row["holds"] is True
        assert all(type(row[key]) is float for key in ("expression", table.beside, "difference", "allowed"))


def test_flexrr_gains_a_quarter_and_staleness_0_nothing(found: dict[str, list[Claim]]) -> None:
    rows = {claim.case: claim for claim in found["flexrr"]}
    for staleness_bound in flexrr.STALENESS:
        claim = rows[f"FlexRR({staleness_bound}) ≤ stale synchronous({staleness_bound})"]
        assert claim.found < 0.75 * claim.expression
    zero = rows["stale synchronous(0) ≤ synchronous"]
    assert zero.found == pytest.approx(zero.expression, rel=1e-9)


def test_the_rules_of_checkpoints_are_better_by_percents_than_three_times_off(found: dict[str, list[Claim]]) -> None:
    bounds = [claim for claim in found["checkpoints"] if claim.at_most]
    assert len(bounds) == 2 * len(checkpoints.SYSTEMS)
    assert all(claim.found < 0.97 * claim.expression for claim in bounds)


# A simulator that is off


def slower(simulate: Callable[..., Trace]) -> Callable[..., Trace]:
    """Everything takes half as long again."""

    def simulated(*arguments: Any, **options: Any) -> Trace:
        trace = simulate(*arguments, **options)
        spans, updates = trace.spans, trace.updates
        return replace(
            trace,
            spans=replace(spans, start_seconds=1.5 * spans.start_seconds, end_seconds=1.5 * spans.end_seconds),
            updates=replace(updates, time_seconds=1.5 * updates.time_seconds),
        )

    return simulated


SMALLER = {"SEEDS": 25, "ROUNDS": 100, "RING_STEPS": 200}


@pytest.mark.parametrize("module", [order_statistics, local_sgd, pipelines, checkpoints, staleness])
def test_runs_that_take_longer_are_seen(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setattr(module, "simulate", slower(module.simulate))
    for size, reduced in SMALLER.items():
        monkeypatch.setattr(module, size, reduced, raising=False)
    claims = [claim for claim in module.claims() if not claim.at_most]
    wrong = [claim for claim in claims if not claim.holds]
    # Shares and counts do not change where all times do, nor do two runs that are compared with each other.
    free_of_it = ("share", "staleness", "is synchronous", "is asynchronous")
    timed = [claim for claim in claims if not any(words in claim.case for words in free_of_it)]
    assert wrong
    assert set(wrong) == set(timed)


def test_collectives_off_by_a_millionth_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = collectives.simulated_seconds
    monkeypatch.setattr(collectives, "simulated_seconds", lambda *given: simulated(*given) * (1 + 1e-6))
    assert not any(claim.holds for claim in collectives.claims())


def test_transfers_off_by_a_millionth_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = contention.ends_seconds
    monkeypatch.setattr(contention, "ends_seconds", lambda flows: [end * (1 + 1e-6) for end in ends(flows)])
    assert not any(claim.holds for claim in contention.claims())


def test_helpers_that_hinder_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    mean = flexrr.mean_step_seconds
    monkeypatch.setattr(
        flexrr, "mean_step_seconds", lambda policy: mean(policy) * (3.0 if policy["kind"] == "flexrr" else 1.0)
    )
    assert [claim.holds for claim in flexrr.claims()] == [False, True] * 3


def test_limits_of_stale_synchronous_training_that_are_missed_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = staleness._limit

    def off(policy: dict[str, Any], receive: str) -> Any:
        return limit(policy | {"staleness": 1} if policy["kind"] == "stale_synchronous" else policy, receive)

    monkeypatch.setattr(staleness, "_limit", off)
    assert not any(claim.holds for claim in staleness._limits())


def test_a_wrong_digit_is_seen() -> None:
    for case, value, digits in (("cut off", 1.6666, "1.666"), ("rounded up", 1.6661, "1.667")):
        assert not references.printed(case, value, digits).holds
