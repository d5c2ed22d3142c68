"""Any table is a scenario that runs, or an `InputError`: never a traceback, never a hang."""

from __future__ import annotations

import copy
import datetime
import math
import time
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distsim.compute import DistributionName
from distsim.errors import InputError
from distsim.metrics import summary
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace_size import rows
from tests.counts import reduced
from tests.test_profile import profile_of

SLOW_SECONDS = 20.0  # of a scenario with a few steps, on a busy machine
MOST_ROWS = 20_000  # of a run that the test waits for

SERVER, RING = {"kind": "parameter_server"}, {"kind": "ring"}
KINDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "synchronous"}, RING),
    ({"kind": "synchronous"}, SERVER),
    ({"kind": "synchronous"}, {"kind": "tree"}),
    ({"kind": "synchronous"}, {"kind": "halving_doubling", "sends": "eager"}),
    ({"kind": "synchronous"}, {"kind": "parameter_server", "servers": 2, "colocated": True}),
    ({"kind": "backup", "backups": 1}, SERVER),
    ({"kind": "backup", "backups": 1, "cancel": True}, SERVER | {"receive": "fifo"}),
    ({"kind": "asynchronous", "touched": 0.5}, SERVER),
    ({"kind": "asynchronous", "stop": "per_worker"}, SERVER | {"receive": "concurrent"}),
    ({"kind": "stale_synchronous", "staleness": 1}, SERVER),
    ({"kind": "flexrr", "items": 3, "group": 1, "threshold": 0.2}, SERVER),
    ({"kind": "local_sgd", "period": 2}, RING),
    ({"kind": "ddp", "bucket": "1 MiB", "first_bucket": "1 MiB", "accumulate": 1, "compression": 0.5}, RING),
    ({"kind": "pipeline", "micro_batches": 3, "schedule": "1f1b"}, RING),
]
COMPUTE: list[dict[str, Any]] = [
    {"mean": "50 ms", "slow": {"1": 2.0}},
    {"distribution": "lognormal", "mean": "50 ms", "cv": 0.3},
    {"distribution": "uniform", "fixed": "5 ms", "per_sample": "1 ms", "cv": 0.3},
    {"distribution": "shifted_exponential", "mean": "50 ms", "cv": 0.3},
    {"distribution": "exponential", "mean": "50 ms", "pauses": {"probability": 0.5, "duration": "1 s"}},
    {"distribution": "pareto", "mean": "50 ms", "alpha": 2.5},
    {"distribution": "pareto", "mean": "50 ms", "cv": 0.5},
]
NODES = {"per_node": 2, "bandwidth": "100 GB/s", "latency": "2 us", "nic_per": "node"}
PROFILE = profile_of().as_dict()
FAILURES = {"mean_time_between": "1 s", "checkpoint_every": "100 ms", "checkpoint_cost": "1 ms", "restart_cost": "1 ms"}


def tables() -> st.SearchStrategy[dict[str, Any]]:
    """Good tables of every kind."""
    return st.builds(
        lambda kind, compute, nodes, failures, steps: {
            "steps": steps,
            "seed": 7,
            "cluster": {"workers": 4, "bandwidth": "1 Gbit/s", "latency": "100 us", "nic": {"1": {"up": "1 MB/s"}}}
            | ({"nodes": NODES | {"nic_per": "worker"}} if nodes else {}),
            "compute": compute,
            "workload": {"gradient": "4 MiB", "batch": 32, "layers": 4, "backward_share": 0.6, "activation": "1 MiB"},
            "policy": kind[0],
            "communication": kind[1],
        }
        | ({"failures": FAILURES} if failures else {}),
        st.sampled_from(KINDS), st.sampled_from(COMPUTE), st.booleans(), st.booleans(), st.integers(1, 3),
    ).map(copy.deepcopy)  # fmt: skip


# What stands in the place of a good value: the extremes of its own type, or anything.

COUNTS = [0, 1, 2, 3, 4, 5, 100, 10**5, 10**6, 10**9, 10**9 + 1, 2**63 - 1, 2**63, 10**400, 10**5000, -1]
FLOATS = [
    0.0, -0.0, 5e-324, 1e-320, 1e-9, 1e-6, 0.01, 0.5, 3**-0.5, 0.99, 1.0, 1.0000000000000002, 1.5, 10.0, 1e3, 1e6, 1e9,
    1e200, 1e308, math.inf, -math.inf, math.nan,
]  # fmt: skip
SIZES = ["0", "-1", "1", "1e-12", "0.001", "1e-320", "1e-400", "5", "1e9", "1e12", "1e15", "1e18", "1e308", "1e400",
         "9" * 400, "nan", "inf", "2*3", "1,5", ""]  # fmt: skip
OTHERS = [
    None, True, False, "", "x", "x" * 10_000, "\0", "\ud800", "grüße 🏎", [], [1], {}, {"a": 1}, {"9" * 5000: 1.0},
    NODES, FAILURES, {"price_per_hour": 1e12}, datetime.date(2024, 1, 1), "replay", "/dev/zero", *COUNTS, *FLOATS,
]  # fmt: skip


def quantities(unit: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(SIZES).map(lambda size: f"{size} {unit}")


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values).map(copy.deepcopy)


TIMES, BYTES, RATES, WHOLE, REAL = quantities("s"), quantities("B"), quantities("B/s"), one_of(*COUNTS), one_of(*FLOATS)
SENDS = one_of("eager", "rendezvous")
KEYS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "": {
        "name": st.text(max_size=5), "steps": WHOLE, "seed": WHOLE, "stesp": WHOLE,
        "cost": one_of({"price_per_hour": 1e12}),
        "failures": one_of(FAILURES, {"mean_time_between": "1e-12 s", "checkpoint_every": "1e12 s"},
                           {"mean_time_between": "1 s", "checkpoint_every": "1e-12 s", "checkpoint_cost": "1 s"}),
    },
    "cluster": {
        "workers": WHOLE, "bandwidth": RATES, "latency": TIMES,
        "nic": one_of({"2": {"up": "1e18 B/s"}}, {"server": {"down": "0.001 B/s"}}, {"server": {"up": "1e18 B/s"}}, {}),
        "nodes": one_of(NODES, NODES | {"per_node": 4}, NODES | {"per_node": 10**9}, NODES | {"latency": "1e12 s"},
                        NODES | {"bandwidth": "0.001 B/s", "nic_per": "worker"}),
    },
    "compute": {
        "distribution": one_of(*get_args(DistributionName)), "file": one_of("/dev/zero", "\0"),
        "mean": TIMES, "fixed": TIMES, "per_sample": TIMES, "cv": REAL, "alpha": REAL,
        "slow": one_of({"0": 1e6, "1": 1e-6}, {"-1": 2.0}, {"3": 1e308}),
        "pauses": one_of({"probability": 1.0, "duration": "1e12 s"}, {"probability": 5e-324, "duration": "0 s"}),
    },
    "workload": {
        "gradient": BYTES, "batch": WHOLE, "samples": WHOLE, "layers": WHOLE, "backward_share": REAL,
        "activation": BYTES, "input": BYTES, "output": BYTES, "width": WHOLE,
        "model": one_of("mlp", "transformer", "my_model.py:build", ":", "\0.py:build"),
        "profile": one_of("/dev/zero", "\0", {}, PROFILE, PROFILE | {"batch": 32}, profile_of((0.0,), (0.0,)).as_dict(),
                          profile_of((1e12,), (1e12,)).as_dict()),
    },
    "policy": {
        "kind": one_of("synchronous", "backup"), "backups": WHOLE, "cancel": st.booleans(), "period": WHOLE,
        "bucket": BYTES, "first_bucket": BYTES, "accumulate": WHOLE, "compression": REAL, "touched": REAL,
        "stop": one_of("total", "per_worker"), "staleness": WHOLE, "items": WHOLE, "group": WHOLE, "threshold": REAL,
        "schedule": one_of("gpipe", "1f1b"), "micro_batches": WHOLE,
        "stage_layers": one_of(2, [], [1, 1], [0, 2], ["1"], [10**12, 1]),
    },
    "communication": {
        "kind": one_of("hierarchical", "tree", "ring", "parameter_server", "halving_doubling"), "servers": WHOLE,
        "colocated": st.booleans(), "sends": SENDS, "receive": one_of("fifo", "concurrent"),
    },
    "failures": dict.fromkeys(FAILURES, TIMES),
}  # fmt: skip


@st.composite
def hostile_tables(draw: st.DrawFn) -> dict[str, Any]:
    table = draw(tables())
    for _ in range(draw(st.integers(1, 4))):
        outer = draw(st.sampled_from(list(KEYS)))
        inner = table.get(outer) if outer else table
        if not isinstance(inner, dict):
            continue
        own = [key for key in inner if key in KEYS[outer]]
        key = draw(st.sampled_from(own if own and draw(st.integers(0, 3)) else list(KEYS[outer])))
        match draw(st.integers(0, 19)):
            case 0:
                inner.pop(key, None)
            case 1:
                inner[key] = draw(one_of(*OTHERS))
            case _:
                inner[key] = draw(KEYS[outer][key])
    return table


@settings(max_examples=reduced(600), suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
@given(hostile_tables())
def test_any_table_is_a_scenario_that_runs_or_an_input_error(or_input_error: Any, table: dict[str, Any]) -> None:
    start = time.monotonic()
    with or_input_error():
        scenario = Scenario.of(table)
        assert Scenario.loads(scenario.dumps()) == scenario
        if rows(scenario) <= MOST_ROWS:
            found = summary(simulate(scenario))
            assert np.isfinite(found.total_seconds)
    assert time.monotonic() - start < SLOW_SECONDS


@pytest.mark.parametrize("table", [None, 1, "text", [], {1: 2}, {"steps": {}}, {"\0": 1}])
def test_what_is_no_table_is_an_input_error(table: Any) -> None:
    with pytest.raises(InputError, match="Cure: "):
        Scenario.of(table)
