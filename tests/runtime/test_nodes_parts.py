"""The parts of a run on several machines that need none: who runs where, whose clock says what, what is refused."""

from __future__ import annotations

import random
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from distsim import Scenario
from distsim.cli.node_options import done_here, node_of
from distsim.errors import InputError, NotAvailableYetError
from distsim.runtime.launch.node import RANKS_VARIABLE, Node, shares, take_rank
from distsim.runtime.measure import measure_on_node
from distsim.runtime.recording.clock_offset import Offset, between, estimated
from distsim.runtime.recording.recorder import TABLES, Recorder, load

AHEAD = 1234.5  # seconds that rank 0's clock is ahead


def scenario(policy: dict[str, Any], workers: int = 4, **communication: Any) -> Scenario:
    return Scenario.of(
        {
            "name": "divided",
            "steps": 3,
            "cluster": {"workers": workers, "bandwidth": "1 Gbit/s", "latency": "0 s"},
            "compute": {"mean": "10 ms"},
            "workload": {"gradient": "4 KiB", "batch": 1},
            "policy": policy,
            "communication": {"kind": "parameter_server"} | communication,
        }
    )


SYNCHRONOUS = {"kind": "synchronous"}


@pytest.mark.parametrize("nodes", range(1, 7))
def test_ranks_are_divided_in_order_and_evenly(nodes: int) -> None:
    found = shares(scenario(SYNCHRONOUS, workers=5), 6, nodes)
    assert [rank for ranks in found for rank in ranks] == list(range(6))
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_a_colocated_server_goes_where_its_worker_is() -> None:
    together = scenario(SYNCHRONOUS, colocated=True, servers=2)
    assert shares(together, 6, 2) == [[0, 1, 4, 5], [2, 3]]
    assert shares(together, 6, 4) == [[0, 4], [1, 5], [2], [3]]


def test_a_machine_without_a_rank_is_refused() -> None:
    with pytest.raises(InputError, match="--nnodes = 6: is more than the 5 hosts of the scenario"):
        shares(scenario(SYNCHRONOUS), 5, 6)


def test_the_agent_tells_each_rank_which_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert take_rank() == 1
    monkeypatch.setenv(RANKS_VARIABLE, "2 5")
    assert take_rank() == 5
    monkeypatch.delenv(RANKS_VARIABLE)
    assert take_rank() == 5, "torch reads the same number"


def test_the_offset_is_found_within_its_uncertainty_whatever_the_ways_take() -> None:
    draws = random.Random(4)
    for _ in range(200):
        trips = []
        for number in range(80):
            there, back = (1e-4 + draws.expovariate(1 / 3e-4) for _ in range(2))
            trips.append((float(number), number + there + AHEAD, number + there + back))
        found = estimated(trips)
        assert abs(found.seconds - AHEAD) <= found.uncertainty_seconds
        assert found.uncertainty_seconds < 3e-4, "the slow trips do not count"
        assert abs(found.seconds - AHEAD) < 1.5e-4


def test_a_drift_widens_the_uncertainty() -> None:
    found = between(Offset(AHEAD, 1e-4), Offset(AHEAD + 0.002, 2e-4))
    assert found.seconds == pytest.approx(AHEAD + 0.001)
    assert found.uncertainty_seconds == pytest.approx(0.0012)


def test_a_record_is_written_on_the_clock_of_rank_0(tmp_path: Path) -> None:
    recorder = Recorder()
    for name, columns in TABLES.items():
        recorder.table(name)(tuple(10.0 + number for number in range(len(columns))))
    recorder.facts["left_barrier"] = 2.0
    recorder.save(tmp_path, 0, 0)
    recorder.save(tmp_path, 0, 1, Offset(AHEAD, 1e-4))
    plain, moved = (load(tmp_path, 0, rank) for rank in (0, 1))
    shifted = {
        (name, column)
        for name, columns in TABLES.items()
        for place, column in enumerate(columns)
        if not np.array_equal(plain.tables[name][:, place], moved.tables[name][:, place])
    }
    numbers = {
        "step", "read_version", "update", "call", "transfer", "micro", "backward", "server", "version", "worker",
        "item", "own_step", "loss", "core_seconds", "number",
    }  # fmt: skip
    assert shifted == {
        (name, column) for name, columns in TABLES.items() for column in columns if column not in numbers
    }
    assert moved.rows("arrivals")[0][-2:] == [13.0 + AHEAD, 14.0 + AHEAD]
    assert moved.facts["left_barrier"] == 2.0 + AHEAD
    assert moved.facts["clock"] == {"offset_seconds": AHEAD, "uncertainty_seconds": 1e-4}


def introduced(jobs: list[dict[str, Any]], ranks: list[int]) -> list[str]:
    """What the processes of these ranks say, after they have all introduced themselves."""
    from torch.distributed import HashStore  # type: ignore[attr-defined] # torch

    from distsim.runtime.transport.backend import Meeting
    from distsim.runtime.transport.gathering import introduce

    store = HashStore()

    def one(job: dict[str, Any], rank: int) -> str:
        context: Any = SimpleNamespace(rank=rank, job=job)
        try:
            introduce(context, Meeting(store, rank, len(ranks)))
        except InputError as error:
            return str(error)
        return "fine"

    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(one, jobs, ranks))


def test_all_ranks_find_out_where_the_machines_were_started_differently() -> None:
    job = {"scenarios": [scenario(SYNCHRONOUS).table()], "rules": [None], "machines": [[0, 1], [2]], "node": 1}
    other = job | {"scenarios": [scenario(SYNCHRONOUS).table() | {"seed": 99}]}
    assert introduced([job] * 3, [2, 0, 1]) == ["fine"] * 3
    assert all("different scenarios" in said for said in introduced([job, job, other], [0, 1, 2]))
    assert all("--node-rank = 1: was given to two nodes" in said for said in introduced([job] * 3, [0, 1, 1]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((2, None, "a:1"), "--nnodes = 2: needs --node-rank too"),
        ((2, 1, None), "needs --rdzv-endpoint too"),
        ((2, 2, "a:1"), "--node-rank = 2: is not one of 2 nodes, which count from 0. Cure: write 0 to 1"),
        ((1, 1, "a:1"), "--node-rank = 1: is not one of 1 nodes"),
        ((2, 0, "a"), "is not HOST:PORT"),
        ((2, 0, "a:http"), "is not HOST:PORT"),
        ((2, 0, ":29500"), "is not HOST:PORT"),
        ((2, 0, "a:70000"), "is not HOST:PORT"),
    ],
)
def test_options_that_name_no_machine_are_refused(options: tuple[Any, Any, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        node_of(*options)
    assert words in str(caught.value)


def test_one_machine_needs_no_meeting_point() -> None:
    assert node_of(1, None, None) is None
    assert node_of(1, 0, "a:1") is None
    assert node_of(2, 1, "[fe80::1]:7") == Node(1, 2, "fe80::1", 7)
    assert Node(1, 2, "fe80::1", 7).endpoint == "[fe80::1]:7"
    assert done_here(Node(1, 2, "a", 1), [3]) == "node 1 of 2: rank 3 has ended well; node 0 has the trace"


def test_what_shares_files_keeps_to_one_machine() -> None:
    node = Node(0, 2, "127.0.0.1", 29500)
    with pytest.raises(NotAvailableYetError, match="cannot be spread over several machines yet"):
        measure_on_node(scenario({"kind": "flexrr"}), node)
    failing = scenario(SYNCHRONOUS, kind="ring").table() | {
        "failures": {
            "mean_time_between": "100 s",
            "checkpoint_every": "2 s",
            "checkpoint_cost": "0 s",
            "restart_cost": "9 s",
        }
    }
    with pytest.raises(NotAvailableYetError, match=r"failures.*remove \[failures\], or leave --nnodes out"):
        measure_on_node(Scenario.of(failing), node)


def test_a_meeting_point_that_cannot_be_used_is_refused_before_anything_starts() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taken = Node(0, 2, "127.0.0.1", listener.getsockname()[1])
        with pytest.raises(InputError, match="node 0 cannot listen there"):
            taken.check()
        Node(1, 2, "127.0.0.1", taken.port).check()
    with pytest.raises(InputError, match="cannot be reached from here"):
        Node(1, 2, "no.such.host.invalid", 29500).check()
