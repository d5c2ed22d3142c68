"""Scenario files: what is read, what is left out, and that writing and reading loses nothing."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim.errors import InputError
from distsim.examples import NAMES, example
from distsim.experiment import predict_and_emulate, predict_and_measure
from distsim.policies import Backup, Synchronous
from distsim.runtime.measure import measure
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.sweep import sweep
from distsim.units import write

GOOD: dict[str, Any] = {
    "steps": 50,
    "cluster": {"workers": 4, "bandwidth": "1 Gbit/s", "latency": "100 us"},
    "compute": {"mean": "50 ms"},
    "workload": {"gradient": "4 MiB"},
    "policy": {"kind": "backup", "backups": 1},
    "communication": {"kind": "parameter_server"},
}

# What is read


@pytest.mark.parametrize("given", ["run.toml", Path("run.toml"), GOOD, None])
@pytest.mark.parametrize(
    "run", [simulate, measure, predict_and_measure, predict_and_emulate, lambda given: sweep(given, {"steps": [1]})]
)
def test_a_path_or_a_table_is_no_scenario(run: Callable[[Any], object], given: Any) -> None:
    with pytest.raises(InputError, match=r"is no Scenario\. Cure: read it by Scenario\.load, loads or of"):
        run(given)


def test_a_file_says_everything_about_a_run(tmp_path: Path) -> None:
    path = tmp_path / "two-tier.toml"
    path.write_text(
        """
        steps = 20
        seed = 3
        [cluster]
        workers = 3
        bandwidth = "1 Gbit/s"
        latency = "100 us"
        nic = { 2 = { up = "100 Mbit/s" }, server = { down = "10 Gbit/s" } }
        [compute]
        distribution = "lognormal"
        mean = "50 ms"
        cv = 0.3
        slow = { 1 = 2.0 }
        pauses = { probability = 0.02, duration = "500 ms" }
        [workload]
        gradient = "4 MiB"
        batch = 32
        [policy]
        kind = "backup"
        backups = 1
        cancel = true
        [communication]
        kind = "parameter_server"
        receive = "fifo"
        """,
        "utf-8",
    )
    scenario = Scenario.load(path)
    assert scenario.name == "two-tier"
    assert (scenario.steps, scenario.seed, scenario.ranks, scenario.servers) == (20, 3, 4, (3,))
    cluster = scenario.cluster
    assert [cluster.up(host) for host in range(4)] == [1.25e8, 1.25e8, 1.25e7, 1.25e8]
    assert [cluster.down(host) for host in range(4)] == [1.25e8, 1.25e8, 1.25e8, 1.25e9]
    assert cluster.latency_seconds == 1e-4
    assert scenario.compute.slow == {1: 2.0}
    assert scenario.compute.pauses is not None
    assert (scenario.compute.pauses.probability, scenario.compute.pauses.duration_seconds) == (0.02, 0.5)
    assert (scenario.gradient_bytes, scenario.workload.batch) == (4.0 * 2**20, 32)
    assert scenario.policy == Backup(backups=1, cancel=True)
    assert scenario.receive == "fifo"
    assert scenario.compute_times()(1, 5) == scenario.compute_times()(1, 5)


def test_what_is_left_out_takes_its_default() -> None:
    scenario = Scenario.of(GOOD)
    assert (scenario.name, scenario.seed, scenario.workload.batch) == ("scenario", 0, 1)
    assert scenario.compute.distribution == "constant"
    assert scenario.policy == Backup(backups=1, cancel=False)
    communication = scenario.communication
    assert (communication.sends, communication.implementation, scenario.receive) == (
        "rendezvous", "backend", "concurrent",
    )  # fmt: skip
    ring = Scenario.of(GOOD | {"policy": {"kind": "synchronous"}, "communication": {"kind": "ring"}})
    assert (ring.policy, ring.servers, ring.ranks) == (Synchronous(), (), 4)


def test_a_name_in_the_file_wins_over_the_files_own(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text(Scenario.of(GOOD | {"name": "inner"}).dumps(), "utf-8")
    assert Scenario.load(path).name == "inner"


def test_files_are_looked_for_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("0.1 0.2 0.3 0.4\n", "utf-8")
    path = tmp_path / "replay.toml"
    table = GOOD | {"compute": {"distribution": "replay", "file": "times.csv"}}
    path.write_text(
        Scenario.of(table, folder=tmp_path).dumps().replace(str(tmp_path / "times.csv"), "times.csv"), "utf-8"
    )
    scenario = Scenario.load(path)
    assert scenario.compute_times()(3, 0) == 0.4
    assert Scenario.loads(scenario.dumps()).compute == scenario.compute


def test_a_scenario_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Scenario.of(GOOD).steps = 3  # type: ignore[misc]


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_scenarios(name: str) -> None:
    assert Scenario.loads(example(name).dumps()) == example(name)


# What is written


def quantities(unit: str, **bounds: Any) -> st.SearchStrategy[str]:
    return st.floats(allow_nan=False, allow_infinity=False, **bounds).map(lambda value: write(value, unit))


rates = quantities("byte/second", min_value=1e-3, max_value=1e15)
seconds = quantities("second", min_value=1e-12, max_value=1e9)
seconds_or_none_at_all = quantities("second", min_value=0.0, max_value=1e9)
sizes = quantities("byte", min_value=0.0, max_value=1e15)
factors = st.floats(1e-6, 1e6)


def optional(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keys)


@st.composite
def compute_tables(draw: st.DrawFn, workers: int) -> dict[str, Any]:
    kind = draw(st.sampled_from(["constant", "uniform", "exponential", "shifted_exponential", "lognormal", "pareto"]))
    table: dict[str, Any] = {} if kind == "constant" and draw(st.booleans()) else {"distribution": kind}
    table |= draw(
        st.fixed_dictionaries({"mean": seconds})
        | st.fixed_dictionaries({"fixed": seconds}, optional={"per_sample": seconds_or_none_at_all})
        | st.fixed_dictionaries({"per_sample": seconds})
    )
    match kind:
        case "uniform":
            table["cv"] = draw(st.floats(1e-9, 3**-0.5))
        case "shifted_exponential":
            table["cv"] = draw(st.floats(1e-9, 1.0) | st.just(1))
        case "lognormal":
            table["cv"] = draw(st.floats(1e-9, 1e3))
        case "pareto":
            table |= draw(
                st.fixed_dictionaries({"alpha": st.floats(1.0, 100.0, exclude_min=True)})
                | st.fixed_dictionaries({"cv": st.floats(1e-3, 1e3)})
            )
    ranks = st.integers(0, workers - 1).map(str)
    return table | draw(
        optional(
            slow=st.dictionaries(ranks, factors, max_size=4),
            pauses=st.fixed_dictionaries({"probability": st.floats(0, 1), "duration": seconds_or_none_at_all}),
        )
    )


@st.composite
def scenario_tables(draw: st.DrawFn) -> dict[str, Any]:
    workers = draw(st.integers(1, 40))
    policy = draw(
        st.just({"kind": "synchronous"})
        | st.fixed_dictionaries(
            {"kind": st.just("backup"), "backups": st.integers(0, workers - 1)}, optional={"cancel": st.booleans()}
        )
    )
    kinds = ["parameter_server"] if policy["kind"] == "backup" else ["ring", "parameter_server"]
    kind = draw(st.sampled_from(kinds))
    hosts = st.integers(0, workers - 1).map(str)
    communication: dict[str, Any] = {"kind": kind} | draw(optional(sends=st.sampled_from(["rendezvous", "eager"])))
    if kind == "parameter_server":
        hosts |= st.just("server")
        communication |= draw(optional(receive=st.sampled_from(["concurrent", "fifo"]), servers=st.just(1)))
    nics = st.dictionaries(hosts, optional(up=rates, down=rates), max_size=4)
    cluster = {"workers": workers, "bandwidth": draw(rates), "latency": draw(seconds_or_none_at_all)} | draw(
        optional(nic=nics)
    )
    return {
        "steps": draw(st.integers(1, 30_000)),
        "cluster": cluster,
        "compute": draw(compute_tables(workers)),
        "workload": {"gradient": draw(sizes)} | draw(optional(batch=st.integers(1, 10**6))),
        "policy": policy,
        "communication": communication,
    } | draw(optional(name=st.text(max_size=12), seed=st.integers(0, 2**63 - 1)))  # fmt: skip


@given(scenario_tables())
def test_writing_and_reading_loses_nothing(table: dict[str, Any]) -> None:
    scenario = Scenario.of(table)
    text = scenario.dumps()
    again = Scenario.loads(text)
    assert again == scenario
    assert again.dumps() == text
    # Not only equal to itself: what stands in the file is what the table said.
    written = tomllib.loads(text)
    assert written["steps"] == table["steps"]
    assert (
        written["policy"].items()
        >= {key: value for key, value in table["policy"].items() if value is not False}.items()
    )
    cluster = scenario.cluster
    for host, speeds in table["cluster"].get("nic", {}).items():
        rank = cluster.workers if host == "server" else int(host)
        assert write(cluster.up(rank), "byte/second") == speeds.get("up", table["cluster"]["bandwidth"])
        assert write(cluster.down(rank), "byte/second") == speeds.get("down", table["cluster"]["bandwidth"])
    assert {str(worker): factor for worker, factor in scenario.compute.slow.items()} == table["compute"].get("slow", {})


def test_defaults_are_not_written() -> None:
    assert Scenario.of(GOOD).table() == GOOD


def test_a_copy_with_changes_is_validated_anew() -> None:
    scenario = Scenario.of(GOOD)
    other = scenario.replacing({"policy.backups": 2, "compute.slow": {"1": 3.0}, "seed": 9})
    assert (other.policy, other.compute.slow, other.seed) == (Backup(backups=2), {1: 3.0}, 9)
    assert scenario.policy == Backup(backups=1)
    with pytest.raises(InputError, match=r"policy\.backups = 4.*backups = 4 must be fewer"):
        scenario.replacing({"policy.backups": 4})
