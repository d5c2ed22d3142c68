"""Real runs on an emulated cluster: every policy goes at the pace of the scenario's links, not the machine's."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distsim import Scenario
from distsim.calibration import Calibration, CalibrationPlan, Imposed, exchange_of, fitted
from distsim.cli.main import main
from distsim.errors import InputError, NotAvailableYetError
from distsim.experiment import predict_and_emulate, predict_emulated
from distsim.runtime.calibrate import calibrate
from distsim.runtime.emulation.coordination import imposed
from distsim.runtime.emulation.plan import Host, NetworkPlan
from distsim.runtime.emulation.report import describe, earlier, predicted_on
from distsim.runtime.emulation.shaping import COARSE, FINE, Grain
from distsim.runtime.launch.launcher import Launch, launched
from distsim.runtime.machine import core_of_rank
from distsim.runtime.measure import measure_all
from distsim.simulation import simulate
from distsim.trace import Trace

real = pytest.mark.real
iproute2 = pytest.mark.iproute2
RANKS = Path(__file__).parent / "ranks"
WORKERS, STEPS = 3, 6
LATEST, LATEST_BESIDE_OTHERS = 1.6, 4.0  # times the simulated time
Whole = Callable[[float, float], float]


def scenario(policy: dict[str, Any], communication: dict[str, Any], **cluster: Any) -> Scenario:
    """Its links take several times longer than its compute, and many times longer than the machine's own."""
    return Scenario.of(
        {
            "name": policy["kind"],
            "steps": STEPS,
            "seed": 5,
            "cluster": {"workers": WORKERS, "bandwidth": "40 Mbit/s", "latency": "0 s"} | cluster,
            "compute": {"distribution": "lognormal", "mean": "20 ms", "cv": 0.3},
            "workload": {"gradient": "256 KiB", "batch": 8},
            "policy": policy,
            "communication": communication,
        }
    )


SERVER, RING = {"kind": "parameter_server"}, {"kind": "ring"}
GROUPS = {
    "with a server": [
        scenario({"kind": "synchronous"}, SERVER),
        scenario({"kind": "backup", "backups": 1}, SERVER),
        scenario({"kind": "asynchronous"}, SERVER),
        scenario({"kind": "stale_synchronous", "staleness": 1}, SERVER),
    ],
    "among peers": [
        scenario({"kind": "synchronous"}, RING),
        scenario({"kind": "local_sgd", "period": 2}, RING),
        scenario({"kind": "ddp", "bucket": "64 KiB", "first_bucket": "64 KiB"}, RING),
    ],
}


def at_the_pace(scenarios: list[Scenario], whole: Whole) -> list[Trace]:
    """Real runs on emulated links, which take about as long as simulated ones. All are run once more if one does not.

    Without its links a run takes a third of that; gloo's messages and others' work come on top, the latter without a
    bound: `make test-all`, for a machine that is left alone, judges how late a run is.
    """
    latest = whole(LATEST_BESIDE_OTHERS, LATEST)
    for last in (False, True):
        runs = measure_all(scenarios, emulate=True)
        ends = {
            one.name: [run.updates.time_seconds[-1] for run in (measured, simulate(one))]
            for one, measured in zip(scenarios, runs, strict=True)
        }
        wrong = {name: pair for name, pair in ends.items() if not 0.85 < pair[0] / pair[1] < latest}
        assert not (wrong and last), wrong
        if not wrong:
            break
    return runs


@real
@pytest.mark.more
@pytest.mark.alone
@iproute2
@pytest.mark.parametrize("group", GROUPS)
def test_every_policy_goes_at_the_pace_of_the_links(group: str, whole: Whole) -> None:
    scenarios = GROUPS[group]
    for one, measured in zip(scenarios, at_the_pace(scenarios, whole), strict=True):
        emulation = measured.metadata["emulation"]
        assert emulation["latency_seconds"] == 0.0
        assert {host["up_bytes_per_second"] for host in emulation["hosts"]} == {5e6}
        decided = bool(one.servers) and one.policy.kind != "local_sgd"
        assert ("warm_up" in measured.metadata) == decided
        assert not decided or 0.0 < measured.metadata["warm_up"]["apply_seconds"] < 0.1


@real
@pytest.mark.alone
@iproute2
def test_a_slow_nic_sets_the_pace_of_a_ring(whole: Whole) -> None:
    slow = scenario({"kind": "synchronous"}, RING, bandwidth="200 Mbit/s", nic={"1": {"up": "20 Mbit/s"}})
    at_the_pace([slow], whole)


@real
@pytest.mark.more
@pytest.mark.alone
@iproute2
def test_compare_predicts_with_the_links_that_were_imposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(scenario({"kind": "synchronous"}, RING, latency="300 ms").dumps())
    monkeypatch.setattr(sys, "argv", ["distsim", "compare", str(file), "--emulate", "--json"])
    main()
    (found,) = json.loads(capsys.readouterr().out)
    with_latency = simulate(Scenario.load(file)).updates.time_seconds[-1]
    if found["measured"]["total_seconds"] < 0.5 * with_latency:  # the kernel could not impose it
        assert found["predicted"]["total_seconds"] < 0.5 * with_latency
    assert abs(found["error_pct"]["total"]) < 40


@real
@pytest.mark.more
@pytest.mark.alone
@iproute2
@pytest.mark.thorough
def test_a_calibration_of_emulated_links_predicts_another_number_of_workers() -> None:
    plan = CalibrationPlan(workers=(1, 2), sizes=(64e3, 512e3), models=(), repeats=4, bandwidth=5e6)
    machine = calibrate(plan)
    assert machine.emulated
    assert machine.imposed is not None
    assert machine.imposed.bandwidth_bytes_per_second == 5e6
    assert machine.imposed.latency_seconds in {0.0, None}
    run = scenario({"kind": "synchronous"}, RING)
    assert exchange_of(machine, run).bandwidth_bytes_per_second == pytest.approx(5e6, rel=0.25)
    found = predict_and_emulate(run, Calibration(machine=machine))
    assert 0.6 < found.predicted.total_seconds / found.measured.total_seconds < 1.6
    older = Calibration(machine=machine.model_copy(update={"imposed": None}))
    unnamed = "does not name its emulated links"
    assert unnamed in predict_and_emulate(run, older).notes[-1]
    assert not any(unnamed in note for note in found.notes)


def test_a_calibration_of_other_links_is_refused_with_emulation() -> None:
    asked = scenario({"kind": "synchronous"}, RING)
    loopback = fitted([("all_reduce", None, 2, size, np.full(3, size / 1e9)) for size in (1e5, 1e6)], cores=2)
    with pytest.raises(InputError, match="distsim calibrate --emulate --bandwidth '40 Mbit/s' --latency '0 s' --out"):
        predict_and_emulate(asked, Calibration(machine=loopback))
    imposed = loopback.model_copy(update={"emulated": True})
    with pytest.raises(InputError, match=r"cluster\.nic"):
        predict_and_emulate(asked.replacing({"cluster.nic": {"1": {"up": "20 Mbit/s"}}}), Calibration(machine=imposed))


@pytest.mark.parametrize(
    ("bandwidth", "latency", "same"),
    [(5e6, 0.0, True), (5e6, None, True), (125e6, 0.0, False), (5e6, 1e-3, False), (125e6, None, False)],
)
def test_a_calibration_of_other_emulated_links_is_refused(
    bandwidth: float, latency: float | None, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = Imposed(bandwidth_bytes_per_second=bandwidth, latency_seconds=latency)
    samples = [("all_reduce", None, WORKERS, size, np.full(3, size / 1e9)) for size in (1e5, 1e6)]
    known = Calibration(machine=fitted(samples, cores=2, emulated=True, imposed=links))
    started = []

    def begins(*_arguments: Any, **_named: Any) -> None:
        started.append(True)
        raise RuntimeError("the run begins")

    monkeypatch.setattr("distsim.experiment.measure", begins)
    with pytest.raises((InputError, RuntimeError)) as raised:
        predict_and_emulate(scenario({"kind": "synchronous"}, RING), known)
    assert bool(started) == same
    if not same:
        assert "says nothing of this scenario's links, 40 Mbit/s and 0 s" in str(raised.value)
        assert "Cure: make one with distsim calibrate --emulate --bandwidth '40 Mbit/s'" in str(raised.value)


HOST = {"ranks": [0], "up_bytes_per_second": 5e6, "down_bytes_per_second": 5e6}


def test_the_prediction_takes_the_measured_latency_where_none_was_imposed() -> None:
    asked = scenario({"kind": "synchronous"}, RING, latency="2 ms")
    without = {"hosts": [HOST], "latency_seconds": None, "measured_latency_seconds": 4e-5}
    assert predicted_on(asked, without).cluster.latency_seconds == pytest.approx(4e-5)
    assert "latency not imposed, since this kernel has no netem" in describe(without)
    imposed = without | {"latency_seconds": 0.002}
    assert predicted_on(asked, imposed) == asked
    assert "latency 2 ms; a message without content took 40 us" in describe(imposed)


@pytest.mark.parametrize(
    ("grain", "bandwidth", "gradient", "mean", "told"),
    [
        (COARSE, 125e6, "64 kB", "1 ms", "5.12 ms in all, 34% of"),  # 32 kB take 256 us; as much may pass at once
        (COARSE, 125e6, "64 kB", "10 ms", None),
        (COARSE, 125e6, "1 MB", "1 ms", "10.1 ms in all, 11% of"),  # rank 0: a packet of 35 frames, 203 us, and 300 us
        (COARSE, 125e6, "25 MB", "1 ms", None),
        (FINE, 125e6, "64 kB", "1 ms", "3.71 ms in all, 25% of"),  # rank 1: 164 us at once, and 92 us at 1.3 times
        (FINE, 125e6, "1 MB", "1 ms", "5.09 ms in all, 6% of"),  # each by 254 us
        (FINE, 125e6, "1 MB", "10 ms", None),
        # Two frames, one of a packet and one of a bucket, take 2.3 ms, and half of the message takes 12.8 ms.
        (FINE, 1.25e6, "32 kB", "40 ms", "46.3 ms in all, 12% of"),
    ],
)
def test_a_run_of_short_messages_is_told_how_early_they_may_arrive_on_emulated_links(
    grain: Grain, bandwidth: float, gradient: str, mean: str, told: str | None
) -> None:
    asked = Scenario.of(
        {
            "name": "short", "steps": 10, "cluster": {"workers": 2, "bandwidth": "1 Gbit/s", "latency": "0 s"},
            "compute": {"mean": mean}, "workload": {"gradient": gradient}, "policy": {"kind": "synchronous"},
            "communication": RING,
        }
    )  # fmt: skip
    nics = [{"ranks": [rank], "up_bytes_per_second": 2 * bandwidth / (1 + rank)} for rank in (1, 0)]
    found = earlier(simulate(asked), {"hosts": nics, "grain": asdict(grain)})
    assert (f"up to {told} the run" in found[0]) if told else found == []


def test_the_prediction_takes_the_servers_work_of_the_warm_up() -> None:
    """Each of the four updates comes 20 ms later, and nothing else does."""
    asked = scenario({"kind": "synchronous"}, SERVER).replacing({"steps": 4})
    metadata = {"emulation": {"hosts": [HOST], "latency_seconds": 0.0}}
    without = predict_emulated(asked, metadata)
    found = predict_emulated(asked, metadata | {"warm_up": {"apply_seconds": 0.02}})
    assert found.total_seconds - without.total_seconds == pytest.approx(4 * 0.02)


def test_the_plan_has_a_host_for_each_worker_and_server_unless_they_share_one() -> None:
    nic = {"1": {"up": "20 Mbit/s"}, "server": {"down": "80 Mbit/s"}}
    plan = NetworkPlan.of(scenario({"kind": "synchronous"}, SERVER, nic=nic))
    assert plan.hosts == (
        Host((0,), 5e6, 5e6), Host((1,), 2.5e6, 5e6), Host((2,), 5e6, 5e6), Host((3,), 5e6, 10e6)
    )  # fmt: skip
    together = NetworkPlan.of(scenario({"kind": "asynchronous"}, SERVER | {"colocated": True}))
    assert [host.ranks for host in together.hosts] == [(0, 3), (1,), (2,)]
    assert [together.home_of(rank) for rank in range(4)] == [0, 1, 2, 0]
    assert not plan.alike
    assert not together.alike
    assert NetworkPlan.of_table(json.loads(json.dumps(plan.table()))) == plan
    asked = scenario({"kind": "synchronous"}, RING)
    stages = asked.replacing({"policy": {"kind": "pipeline", "micro_batches": 3}, "workload.activation": "1 MiB"})
    assert NetworkPlan.of(asked).alike
    assert not NetworkPlan.of_launch([asked, stages]).alike  # while one stage computes, another may wait


def plan_of(workers: int, servers: int = 0, *, colocated: bool = False) -> NetworkPlan:
    served = {"kind": "parameter_server", "servers": servers, "colocated": colocated}
    kind = "asynchronous" if servers else "synchronous"
    return NetworkPlan.of(scenario({"kind": kind}, served if servers else RING, workers=workers))


@pytest.mark.parametrize(
    ("workers", "servers", "colocated", "cores", "each"),
    [
        (2, 0, False, 2, 1), (2, 0, False, 5, 2), (3, 0, False, 2, 0), (4, 0, False, 2, 1), (6, 0, False, 2, 1),
        (4, 0, False, 3, 0), (2, 0, False, 1, 1), (2, 1, False, 2, 0), (3, 1, False, 2, 0), (2, 1, False, 3, 1),
        (3, 2, True, 5, 0), (3, 2, True, 6, 2), (3, 3, True, 7, 2), (2, 2, True, 2, 0),
    ],
)  # fmt: skip
def test_hosts_share_cores_equally_or_all_of_them(
    workers: int, servers: int, colocated: bool, cores: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers beside workers do other work than these, so such hosts have cores of their own only if each rank has."""
    plan, usable = plan_of(workers, servers, colocated=colocated), range(10, 10 + cores)
    found = plan.cores_of_hosts(usable)
    assert [len(own) for own in found] == [each] * (len(plan.hosts) if each else 0)
    hosts_of = Counter(core for own in found for core in own)
    assert len({*hosts_of.values()}) <= 1, "one core has more hosts than another"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {*usable})
    pinned = {rank: core_of_rank(rank) for rank in range(workers + servers)}
    assert all(core in found[plan.home_of(rank)] for rank, core in pinned.items() if each), "on another host's core"


@real
@iproute2
@pytest.mark.parametrize("plan", [plan_of(2), plan_of(3), plan_of(4), plan_of(2, 1)], ids=str)
def test_each_rank_runs_on_the_cores_of_its_host(plan: NetworkPlan, two_cores: list[int]) -> None:
    ranks = range(sum(len(host.ranks) for host in plan.hosts))
    roles = [f"worker {rank}" for rank in ranks]
    with launched(Launch("cores", roles, (str(RANKS / "cores.py"),), {}, 60.0, network=plan)) as folder:
        found = [json.loads((folder / f"cores-{rank}.json").read_text()) for rank in ranks]
        facts = imposed(folder)
    own = len(ranks) != 3
    assert found == [[two_cores[rank % 2]] if own else two_cores for rank in ranks]
    assert facts is not None
    assert facts["cores"] == (found if own else [])
    assert facts["grain"] == asdict(FINE if len(ranks) == 2 else COARSE)


@pytest.fixture
def two_cores() -> Iterator[list[int]]:
    """The cores of this process, which are two meanwhile."""
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("needs two cores")
    cores = sorted(before)[:2]
    os.sched_setaffinity(0, cores)
    yield cores
    os.sched_setaffinity(0, before)


def test_a_fast_tier_cannot_be_emulated_and_a_launch_has_one_network() -> None:
    nodes = {"per_node": 3, "bandwidth": "1 GB/s", "latency": "1 us"}
    with pytest.raises(NotAvailableYetError, match="no fast tier inside a node"):
        NetworkPlan.of(scenario({"kind": "synchronous"}, RING, nodes=nodes))
    others = [scenario({"kind": "synchronous"}, RING, bandwidth=rate) for rate in ("1 Gbit/s", "2 Gbit/s")]
    with pytest.raises(InputError, match="different links"):
        measure_all(others, emulate=True)
