"""The engines against each other: one scenario, one meaning, whoever works it out."""

# ruff: noqa: ARG002 - rules here have the signature that engines call

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from distsim.engine import loop, recurrence, story
from distsim.engine.selection import fastest
from distsim.errors import InputError
from distsim.policies import Decision
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import NO_SERVER, SpanKind, Trace, TraceBuilder
from distsim.trace.tables import Table
from distsim.trace.trace import TABLES
from tests.counts import reduced


def in_order(table: Table) -> Table:
    """The rows by their whole numbers and texts, then by their times, rounded so that engines agree on the order."""
    keys = [name for name, dtype in table.dtypes.items() if dtype is not np.float64]
    times = [np.round(getattr(table, name), 7) for name, dtype in table.dtypes.items() if dtype is np.float64]
    return table.where(np.lexsort([*times[::-1], *(getattr(table, name) for name in keys[::-1])]))


def assert_same(one: Trace, other: Trace) -> None:
    """The same rows, times to 1e-9."""
    for name in TABLES:
        expected, found = in_order(getattr(one, name)), in_order(getattr(other, name))
        assert len(found) == len(expected), name
        for key, dtype in expected.dtypes.items():
            mine, theirs = getattr(found, key), getattr(expected, key)
            if dtype is np.float64:
                assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-12), (name, key)
            else:
                assert np.array_equal(mine, theirs), (name, key)


POLICIES: list[dict[str, Any]] = [
    {"kind": "synchronous"},
    {"kind": "backup", "backups": 1},
    {"kind": "backup", "backups": 2, "cancel": True},
    {"kind": "asynchronous"},
    {"kind": "asynchronous", "stop": "per_worker"},
    {"kind": "stale_synchronous", "staleness": 0},
    {"kind": "stale_synchronous", "staleness": 2},
    {"kind": "stale_synchronous", "staleness": 1, "stop": "per_worker"},
]
COMPUTE: list[dict[str, Any]] = [
    {"mean": "10 ms"},
    {"mean": "10 ms", "slow": {"1": 2.37}},
    {"distribution": "lognormal", "mean": "10 ms", "cv": 0.5},
    {"distribution": "exponential", "mean": "10 ms", "pauses": {"probability": 0.1, "duration": "50 ms"}},
]


@st.composite
def with_a_server(draw: st.DrawFn) -> Scenario:
    """Any rule with one server; at most 10 steps, beyond which a concurrent asynchronous server is chaotic."""
    workers = draw(st.integers(3, 8))
    speed = st.floats(20.0, 2000.0).map(lambda value: f"{value:.3f} MB/s")
    nic = draw(st.dictionaries(st.sampled_from([*map(str, range(workers)), "server"]),
        st.dictionaries(st.sampled_from(["up", "down"]), speed, min_size=1)))  # fmt: skip
    cluster = {
        "workers": workers,
        "bandwidth": draw(st.sampled_from(["1 GB/s", "100 MB/s"])),
        "latency": draw(st.sampled_from(["0 s", "100 us", "3 ms"])),
    }
    return Scenario.of(
        {
            "steps": draw(st.integers(1, 10)),
            "seed": draw(st.integers(0, 999)),
            "cluster": cluster | ({"nic": nic} if nic else {}),
            "compute": draw(st.sampled_from(COMPUTE)),
            "workload": {"gradient": draw(st.sampled_from(["0 B", "1 MB", "300 kB"]))},
            "policy": draw(st.sampled_from([*POLICIES, {"kind": "backup", "backups": workers - 1}])),
            "communication": {
                "kind": "parameter_server",
                "receive": draw(st.sampled_from(["fifo", "concurrent"])),
                "sends": draw(st.sampled_from(["eager", "rendezvous"])),
            },
        }
    )


@st.composite
def with_servers(draw: st.DrawFn) -> Scenario:
    """The same with up to four servers, where the policy allows several."""
    found = draw(with_a_server())
    several = not found.policy.single_server and not getattr(found.policy, "cancel", False)
    return found.replacing({"communication.servers": draw(st.integers(1, 4))}) if several else found


@settings(max_examples=reduced(250))
@given(with_servers(), st.sampled_from([0.0, 1.7e-3]))
def test_the_loop_means_what_the_story_means(scenario: Scenario, apply_seconds: float) -> None:
    assert_same(story.run(scenario, apply_seconds), loop.run(scenario, apply_seconds))


@st.composite
def with_a_recurrence(draw: st.DrawFn) -> Scenario:
    """Synchronous and cancelling backup with one server, or a ring."""
    table = draw(with_a_server()).table() | {"steps": draw(st.integers(1, 25))}
    nic = table["cluster"].get("nic", {})
    kind = draw(st.sampled_from(["synchronous", "cancelling backup", "ring"]))
    table["policy"] = {"kind": "synchronous"}
    if kind == "ring":
        nic.pop("server", None)
        table["communication"] = {"kind": "ring", "sends": table["communication"].get("sends", "rendezvous")}
    elif table["communication"].get("receive") == "concurrent":
        for exception in nic.values():
            if len(exception) > 1 or "down" in exception:
                exception.pop("up", None)
        nic = {host: exception for host, exception in nic.items() if host == "server" or "up" not in exception}
    if kind == "cancelling backup":
        nic = {host: exception for host, exception in nic.items() if host == "server"}
        table["policy"] = {"kind": "backup", "backups": draw(st.integers(0, 2)), "cancel": True}
    table["cluster"]["nic"] = nic
    return Scenario.of(table)


@settings(max_examples=reduced(250))
@given(with_a_recurrence(), st.sampled_from([0.0, 1.7e-3]))
def test_recurrences_mean_what_the_story_means(scenario: Scenario, apply_seconds: float) -> None:
    assert recurrence.cannot(scenario) is None
    assert_same(story.run(scenario, apply_seconds), recurrence.run(scenario, apply_seconds))


LINKS: list[dict[str, Any]] = [
    {},
    {"nodes": {"per_node": 2, "bandwidth": "5 GB/s", "latency": "2 us"}},
    {"nodes": {"per_node": 3, "bandwidth": "5 GB/s", "latency": "2 us", "nic_per": "node"}},
]


@st.composite
def clusters(draw: st.DrawFn, *, server: bool = False) -> dict[str, Any]:
    """Up to nine workers whose NICs may all be unequal, with a fast tier inside nodes or without."""
    nodes = {} if server else draw(st.sampled_from(LINKS))
    workers = draw(st.integers(1, 9))
    per_nic = nodes["nodes"]["per_node"] if nodes and "nic_per" in nodes["nodes"] else 1
    speed = st.floats(20.0, 2000.0).map(lambda value: f"{value:.3f} MB/s")
    hosts = [*map(str, range(0, workers, per_nic)), *(["server"] if server else [])]
    nic = draw(
        st.dictionaries(st.sampled_from(hosts), st.dictionaries(st.sampled_from(["up", "down"]), speed, min_size=1))
    )
    return {
        "workers": workers,
        "bandwidth": draw(st.sampled_from(["1 GB/s", "100 MB/s"])),
        "latency": draw(st.sampled_from(["0 s", "100 us", "3 ms"])),
        **nodes,
        **({"nic": nic} if nic else {}),
    }


@st.composite
def among_peers(draw: st.DrawFn, policies: st.SearchStrategy[dict[str, Any]]) -> Scenario:
    """All-reduces of any kind on any links, or one server that averages."""
    policy = draw(policies)
    kinds = ["ring", "tree", "halving_doubling", "hierarchical"]
    kind = draw(st.sampled_from([*kinds, *(["parameter_server"] if policy["kind"] == "local_sgd" else [])]))
    cluster = draw(clusters(server=kind == "parameter_server"))
    if kind == "hierarchical":
        assume(cluster["workers"] % cluster.setdefault("nodes", LINKS[1]["nodes"])["per_node"] == 0)
    receive = {"receive": draw(st.sampled_from(["fifo", "concurrent"]))} if kind == "parameter_server" else {}
    workload = {"gradient": draw(st.sampled_from(["0 B", "1 MB", "300 kB"]))}
    if policy["kind"] == "ddp":
        workload |= {"layers": draw(st.integers(1, 6)), "backward_share": draw(st.sampled_from([0.4, 2 / 3]))}
    return Scenario.of(
        {
            "steps": draw(st.integers(policy.get("accumulate", 1), 12)),
            "seed": draw(st.integers(0, 999)),
            "cluster": cluster,
            "compute": draw(st.sampled_from([found for found in COMPUTE if "slow" not in found])),
            "workload": workload,
            "policy": policy,
            "communication": {"kind": kind, "sends": draw(st.sampled_from(["eager", "rendezvous"])), **receive},
        }
    )


@st.composite
def with_several_servers(draw: st.DrawFn) -> Scenario:
    """Synchronous training with some servers, on hosts of their own or on workers', few of whose NICs differ."""
    workers, colocated = draw(st.integers(1, 8)), draw(st.booleans())
    speeds = st.sampled_from(["20 MB/s", "333.3 MB/s", "2 GB/s"])
    hosts = [*map(str, range(workers)), *([] if colocated else ["server"])]
    nic = draw(
        st.dictionaries(
            st.sampled_from(hosts), st.dictionaries(st.sampled_from(["up", "down"]), speeds, min_size=1), max_size=3
        )
    )
    table: dict[str, Any] = {
        "steps": draw(st.integers(1, 8)),
        "seed": draw(st.integers(0, 999)),
        "cluster": {
            "workers": workers,
            "bandwidth": draw(st.sampled_from(["1 GB/s", "100 MB/s"])),
            "latency": draw(st.sampled_from(["0 s", "100 us", "3 ms"])),
            **({"nic": nic} if nic else {}),
        },
        "compute": draw(st.sampled_from([found for found in COMPUTE if workers > 1 or "slow" not in found])),
        "workload": {"gradient": draw(st.sampled_from(["0 B", "1 MB", "300 kB"]))},
        "policy": {"kind": "synchronous"},
        "communication": {
            "kind": "parameter_server",
            "servers": draw(st.integers(1, workers if colocated else 5)),
            "colocated": colocated,
            "receive": draw(st.sampled_from(["concurrent", "fifo"])),
            "sends": draw(st.sampled_from(["eager", "rendezvous"])),
        },
    }
    return Scenario.of(table)


LOCAL_SGD = st.builds(lambda period: {"kind": "local_sgd", "period": period}, st.integers(1, 5))
DDP = st.fixed_dictionaries(
    {
        "kind": st.just("ddp"),
        "bucket": st.sampled_from(["1 B", "150 kB", "400 kB", "5 MB"]),
        "first_bucket": st.sampled_from(["1 B", "100 kB"]),
        "accumulate": st.integers(1, 3),
        "compression": st.sampled_from([1.0, 0.3]),
    }
)


@st.composite
def pipelines(draw: st.DrawFn) -> Scenario:
    """Stages of any schedule on any links."""
    micro_batches = draw(st.integers(1, 6))
    schedule = draw(st.sampled_from(["gpipe", "1f1b"]))
    return Scenario.of(
        {
            "steps": draw(st.integers(1, 8)),
            "seed": draw(st.integers(0, 999)),
            "cluster": draw(clusters()),
            "compute": draw(st.sampled_from([found for found in COMPUTE if "slow" not in found])),
            "workload": {
                "activation": draw(st.sampled_from(["0 B", "1 MB", "300 kB"])),
                "backward_share": draw(st.sampled_from([0.4, 2 / 3])),
            },
            "policy": {"kind": "pipeline", "schedule": schedule, "micro_batches": micro_batches},
            "communication": {"kind": "ring", "sends": draw(st.sampled_from(["eager", "rendezvous"]))},
        }
    )


def assert_same_or_refused(scenario: Scenario, apply_seconds: float = 0.0) -> None:
    """The recurrence gives the story's trace, or says what it has no formula for."""
    missing = recurrence.cannot(scenario)
    if missing is None:
        assert_same(story.run(scenario, apply_seconds), recurrence.run(scenario, apply_seconds))
        return
    with pytest.raises(InputError) as caught:
        recurrence.run(scenario, apply_seconds)
    assert missing in str(caught.value)
    assert fastest(scenario) != "recurrence"


@settings(max_examples=reduced(300))
@given(with_several_servers(), st.sampled_from([0.0, 1.7e-3]))
def test_several_servers_by_recurrence_mean_what_the_story_means(scenario: Scenario, apply_seconds: float) -> None:
    assert_same_or_refused(scenario, apply_seconds)


@settings(max_examples=reduced(150))
@given(among_peers(LOCAL_SGD), st.sampled_from([0.0, 1.7e-3]))
def test_local_sgd_by_recurrence_means_what_the_story_means(scenario: Scenario, apply_seconds: float) -> None:
    assert_same_or_refused(scenario, apply_seconds)


@settings(max_examples=reduced(150))
@given(among_peers(DDP))
def test_ddp_by_recurrence_means_what_the_story_means(scenario: Scenario) -> None:
    assert_same_or_refused(scenario)


@settings(max_examples=reduced(150))
@given(pipelines())
def test_pipelines_by_recurrence_mean_what_the_story_means(scenario: Scenario) -> None:
    assert_same_or_refused(scenario)


class CancelsAll:
    """A user's own rule: the first gradient in wins, all others are cancelled, wherever they are."""

    cancel = True

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.version = 0

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        self.version += 1
        return Decision(self.version, answers=tuple((worker, self.version) for worker in range(self.workers)))


class GoesOnBeforeItIsApplied:
    """A user's own rule: workers are answered at once, every third gradient makes an update, worker 1's are dropped."""

    def __init__(self) -> None:
        self.version = 0
        self.held = 0

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        if worker == 1:
            return Decision(applied=False, answers=((worker, self.version),))
        self.held += 1
        if self.held < 3:
            return Decision(answers=((worker, self.version),))
        self.held, self.version = 0, self.version + 1
        return Decision(self.version, answers=((worker, self.version),))


@settings(max_examples=60)
@given(with_a_server(), st.sampled_from([0.0, 1.7e-3]), st.booleans())
def test_rules_of_a_users_own_run_alike(scenario: Scenario, apply_seconds: float, cancels: bool) -> None:
    if cancels:
        rules = [CancelsAll(scenario.cluster.workers) for _ in range(2)]
        scenario = scenario.replacing({"policy": {"kind": "backup", "backups": 1, "cancel": True}})
    else:
        rules = [GoesOnBeforeItIsApplied() for _ in range(2)]  # type: ignore[misc]
        scenario = scenario.replacing({"policy": {"kind": "synchronous"}})
    assert_same(story.run(scenario, apply_seconds, rules[0]), loop.run(scenario, apply_seconds, rules[1]))


def test_columns_and_single_rows_keep_their_order() -> None:
    """What the engines write at once and what the story writes row by row are one table."""
    builder = TraceBuilder()
    builder.span(0, SpanKind.COMPUTE, 0, 0.0, 1.0)
    builder.extend(
        "spans", worker=[1, 2], kind=[SpanKind.SEND] * 2, step=[3, 4], start_seconds=[1.0, 2.0],
        end_seconds=[1.5, 2.5], bytes=[10.0, 20.0], label=["to worker 0", ""],
    )  # fmt: skip
    builder.span(3, SpanKind.WAIT, 5, 3.0, 4.0, label="cancelled")
    builder.extend("updates", version=[1], server=[NO_SERVER], time_seconds=[9.0])
    trace = builder.build(workers=4, servers=0, producer="simulated")
    assert trace.spans.worker.tolist() == [0, 1, 2, 3]
    assert trace.spans.step.tolist() == [0, 3, 4, 5]
    assert trace.spans.bytes.tolist() == [0.0, 10.0, 20.0, 0.0]
    assert trace.spans.label.tolist() == ["", "to worker 0", "", "cancelled"]
    assert trace.total_seconds == 9.0
    assert builder.build(workers=4, servers=0, producer="simulated") == trace


SCENARIO: dict[str, Any] = {
    "steps": 5,
    "cluster": {"workers": 3, "bandwidth": "1 GB/s", "latency": "100 us"},
    "compute": {"mean": "10 ms"},
    "workload": {"gradient": "1 MB"},
    "policy": {"kind": "synchronous"},
    "communication": {"kind": "parameter_server"},
}
NIC = {"nic": {"1": {"up": "1 MB/s"}}}


@pytest.mark.parametrize(
    ("changes", "engine"),
    [
        ({}, "recurrence"),
        ({"communication": {"kind": "ring"}}, "recurrence"),
        ({"policy": {"kind": "backup", "backups": 1, "cancel": True}}, "recurrence"),
        ({"cluster": SCENARIO["cluster"] | NIC}, "loop"),
        ({"policy": {"kind": "backup", "backups": 1}}, "loop"),
        ({"policy": {"kind": "asynchronous"}}, "loop"),
        ({"communication": {"kind": "tree"}}, "recurrence"),
        ({"policy": {"kind": "local_sgd", "period": 2}}, "recurrence"),
        ({"policy": {"kind": "local_sgd", "period": 2}, "communication": {"kind": "tree"}}, "recurrence"),
        ({"policy": {"kind": "ddp"}, "communication": {"kind": "ring"}}, "recurrence"),
        ({"policy": {"kind": "ddp"}, "communication": {"kind": "halving_doubling", "sends": "eager"}}, "story"),
        ({"communication": {"kind": "parameter_server", "servers": 2}}, "recurrence"),
        ({"communication": {"kind": "parameter_server", "colocated": True}}, "recurrence"),
        ({"communication": {"kind": "parameter_server", "colocated": True, "receive": "fifo"}}, "story"),
        ({"policy": {"kind": "flexrr", "group": 1}}, "story"),
    ],
)
def test_the_fastest_engine_is_taken_and_told(changes: dict[str, Any], engine: str) -> None:
    scenario = Scenario.of(SCENARIO | changes)
    trace = simulate(scenario)
    assert trace.metadata["engine"] == engine
    assert_same(simulate(scenario, engine="story"), trace)


def test_a_users_own_rule_takes_the_loop() -> None:
    assert simulate(Scenario.of(SCENARIO), rule=CancelsAll(3)).metadata["engine"] == "loop"


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match=r"engine = 'warp': is not an engine. Cure: take auto or story or loop"):
        simulate(Scenario.of(SCENARIO), engine="warp")  # type: ignore[arg-type]
