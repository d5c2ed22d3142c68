"""How large a run gets is told beforehand: the estimate holds against runs, and what fits no memory is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim import trace_size
from distsim.errors import InputError
from distsim.groups import GroupExchange
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace.trace import TABLES
from distsim.trace_size import largest_rows, rows, transfers

SERVER, RING = {"kind": "parameter_server"}, {"kind": "ring"}
NODES = {"per_node": 2, "bandwidth": "100 GB/s", "latency": "2 us"}
COLLECTIVES: list[dict[str, Any]] = [
    {"kind": "ring"},
    {"kind": "tree"},
    {"kind": "halving_doubling"},
    {"kind": "hierarchical"},
    {"kind": "parameter_server"},
    {"kind": "parameter_server", "servers": 3},
    {"kind": "parameter_server", "servers": 3, "colocated": True},
]
RUNS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({"kind": "synchronous"}, communication) for communication in COLLECTIVES),
    *(({"kind": "local_sgd", "period": 3}, communication) for communication in COLLECTIVES[:5]),
    *(({"kind": "ddp", "accumulate": 2, "bucket": "1 MiB"}, communication) for communication in COLLECTIVES[:4]),
    ({"kind": "backup", "backups": 2}, SERVER),
    ({"kind": "backup", "backups": 2}, {"kind": "parameter_server", "servers": 2}),
    ({"kind": "backup", "backups": 2, "cancel": True}, SERVER),
    ({"kind": "asynchronous"}, SERVER),
    ({"kind": "stale_synchronous", "staleness": 1, "stop": "per_worker"}, SERVER),
    ({"kind": "flexrr"}, SERVER),
    ({"kind": "flexrr", "items": 1, "group": 5}, SERVER),
    *(({"kind": "sharded", "stage": stage}, RING) for stage in (1, 3)),
    *(({"kind": "tensor"}, communication) for communication in COLLECTIVES[:4]),
    ({"kind": "pipeline", "micro_batches": 1}, RING),
    ({"kind": "pipeline", "micro_batches": 5, "schedule": "1f1b"}, RING),
]


def scenario(policy: dict[str, Any], communication: dict[str, Any], workers: int = 6, **more: Any) -> Scenario:
    nodes = {"nodes": NODES} if communication["kind"] == "hierarchical" else {}
    return Scenario.of(
        {
            "steps": 11,
            "cluster": {"workers": workers, "bandwidth": "1 Gbit/s", "latency": "100 us"} | nodes,
            "compute": {"distribution": "exponential", "mean": "50 ms"},
            "workload": {"gradient": "4 MiB", "activation": "1 MiB"},
            "policy": policy,
            "communication": communication,
        }
        | more
    )


@pytest.mark.parametrize(("policy", "communication"), RUNS, ids=str)
def test_no_run_has_more_rows_than_told_and_most_have_half(
    policy: dict[str, Any], communication: dict[str, Any]
) -> None:
    run = scenario(policy, communication)
    trace = simulate(run)
    found = sum(len(getattr(trace, name)) for name in TABLES)
    told = rows(run, derived=False)
    assert told / 2.5 <= found <= told
    kept = found - len(trace.transfers) * (trace.transfers.derivation is not None)
    assert rows(run) / 2.5 <= kept <= told


@pytest.mark.parametrize(
    "policy", [{"kind": "sharded", "stage": 3}, {"kind": "tensor"}, {"kind": "synchronous"}], ids=str
)
def test_rings_of_thousands_are_simulated(policy: dict[str, Any]) -> None:
    """Their schedules are kept without transfers."""
    assert simulate(scenario(policy, RING, workers=4096, steps=1)).metadata["engine"] == "recurrence"


@pytest.mark.parametrize("communication", COLLECTIVES, ids=str)
@given(workers=st.integers(3, 40))
def test_an_all_reduce_has_as_many_transfers_as_told(communication: dict[str, Any], workers: int) -> None:
    run = scenario({"kind": "synchronous"}, communication, 2 * workers)
    assert transfers(run) == sum(1 for _ in run.schedule().transfers())


TOO_LARGE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "steps": ({"kind": "asynchronous"}, SERVER, {"steps": 10**9}, "steps = 1000000000 on 6 workers"),
    "workers": (
        {"kind": "synchronous"},
        RING,
        {"cluster": {"workers": 10**6, "bandwidth": "1 Gbit/s", "latency": "0 s"}, "steps": 100},
        "on 1000000 workers",
    ),
    "servers": ({"kind": "synchronous"}, SERVER | {"servers": 10**6}, {"steps": 3}, "'synchronous' make"),
    "items": ({"kind": "flexrr", "items": 10**7}, SERVER, {}, "'flexrr' make"),
    "micro-batches": ({"kind": "pipeline", "micro_batches": 10**6}, RING, {}, "'pipeline' make"),
    "buckets": (
        {"kind": "ddp", "bucket": "1 B", "first_bucket": "1 B"},
        RING,
        {"workload": {"gradient": "4 MiB", "layers": 10**5}, "steps": 100},
        "'ddp' make",
    ),
}


@pytest.fixture
def machine_of_10_gb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_size, "memory_bytes", lambda: 10**10)


@pytest.mark.usefixtures("machine_of_10_gb")
@pytest.mark.parametrize(("policy", "communication", "more", "quoted"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_fits_no_memory_is_refused_at_once(
    policy: dict[str, Any], communication: dict[str, Any], more: dict[str, Any], quoted: str
) -> None:
    start = time.monotonic()
    with pytest.raises(InputError, match=r"million rows, .*B of memory, and this machine has 10 GB\. Cure: ") as caught:
        scenario(policy, communication, **more)
    assert quoted in str(caught.value)
    assert time.monotonic() - start < 5.0


@pytest.mark.usefixtures("machine_of_10_gb")
def test_the_cure_is_one() -> None:
    with pytest.raises(InputError, match="Cure: write steps = 1000000 or fewer"):
        scenario({"kind": "asynchronous"}, SERVER, steps=10**7)
    cured = scenario({"kind": "asynchronous"}, SERVER, steps=10**6)
    assert largest_rows() / 2 < rows(cured) <= largest_rows()


def test_a_schedule_that_fits_no_memory_is_not_made() -> None:
    large = scenario({"kind": "synchronous"}, RING, workers=4000, steps=1)
    with pytest.raises(InputError, match=r"ring' = 4000: make 3\.2e\+07 transfers in one all-reduce.*Cure: ") as caught:
        large.schedule()
    cure = str(caught.value).partition("Cure: take fewer workers, or kind = ")[2]
    assert {'"tree"', '"halving_doubling"'} <= set(cure.split(" or "))
    assert '"ring"' not in cure
    sharded = scenario({"kind": "sharded", "stage": 1}, RING, workers=4000, steps=1)
    with pytest.raises(InputError, match=r"make 1\.6e\+07 transfers in one all-gather.*Cure: take fewer workers$"):
        sharded.schedule(GroupExchange("all_gather"))
