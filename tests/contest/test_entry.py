"""What an entry may bring, and the sentence for everything else."""

from __future__ import annotations

import os

import pytest

from distsim.contest.entry import Entry
from distsim.contest.problem import Problem
from distsim.errors import InputError
from tests.contest.conftest import ASYNCHRONOUS, RING, SERVER, Write

RULE = "class Mine:\n    def arrived(self, worker, step, read_version):\n        return None\n"


def test_it_brings_its_policy_and_all_else_is_given(written: Write, problem: Problem) -> None:
    entry = Entry.at(written(SERVER.format(kind="backup").replace("\n\n", "\nbackups = 2\n\n", 1)), problem)
    assert (entry.name, entry.kind, entry.prediction_seconds, entry.rate) == ("ada", "backup", 20.0, 0.5)
    given = entry.scenario.replacing({"policy": {"kind": "synchronous"}, "communication": {"kind": "ring"}})
    assert given == problem.scenario


@pytest.mark.parametrize(
    ("keys", "tables", "told"),
    [
        ({"prediction": None}, RING, "prediction is missing"),
        ({"prediction": '"soon"'}, RING, "prediction = 'soon'"),
        ({"prediction": '"0 s"'}, RING, "must be above 0 s"),
        ({"prediction": "20"}, RING, "entry.toml: prediction = 20"),
        ({"rate": "0"}, RING, "entry.toml: rate = 0"),
        ({"rate": "nan"}, RING, "entry.toml: rate = nan"),
        ({"rate": None}, RING, "entry.toml: rate is missing"),
        ({"rates": "1.0"}, RING, "rates = 1.0: is not a key .+ Cure: write rate"),
        ({"seed": "7"}, RING, "entry.toml changes seed"),
        ({"steps": "7"}, RING, "entry.toml changes steps"),
        ({}, RING + '[compute]\nmean = "1 ms"\n', "entry.toml changes compute"),
        ({}, RING + '[workload]\ngradient = "1 B"\n', "entry.toml changes workload"),
        ({}, RING + "[cluster]\nworkers = 1\n", "entry.toml changes cluster"),
        ({}, ASYNCHRONOUS + "servers = 2\n", "makes no sense|makes 10 hosts"),
        ({}, SERVER.format(kind="synchronous") + "servers = 2\n", "makes 10 hosts, and the budget has 9"),
        ({}, RING.replace("ring", "star"), "star"),
        ({}, "", "policy is missing"),
        ({}, RING.replace('"synchronous"', '"pipeline"'), "has workers that share a batch"),
        ({}, RING.replace('"synchronous"', '"tensor"'), "has workers that share a batch"),
        ({}, RING.replace('"synchronous"', '"ddp"\ncompression = 0.5'), "would change the gradients"),
        ({"rule": '"rule.py:Mine"'}, RING, "needs a parameter server"),
        ({"rule": '"none.py:Mine"'}, ASYNCHRONOUS, "names no class in a file beside entry.toml"),
        ({"rule": '"../ada/rule.py:Mine"'}, ASYNCHRONOUS, "names no class in a file beside entry.toml"),
        ({"rule": '"rule.py"'}, ASYNCHRONOUS, "names no class in a file beside entry.toml"),
        ({"rule": '"rule.py:Mine"'}, SERVER.format(kind="flexrr"), "does its own bookkeeping"),
        ({"schedule": '"../schedule.toml"'}, RING, "must be a file beside entry.toml"),
        ({"schedule": '"schedule.toml"'}, RING, "cannot be read"),
    ],
)
def test_each_fault_is_told(
    keys: dict[str, object], tables: str, told: str, written: Write, problem: Problem
) -> None:  # fmt: skip
    folder = written(tables, code=RULE, **({"rule": None} | keys))
    with pytest.raises(InputError, match=told):
        Entry.at(folder, problem)


def test_colocated_servers_are_within_the_budget(written: Write, problem: Problem) -> None:
    tables = SERVER.format(kind="synchronous") + "servers = 8\ncolocated = true\n"
    assert len(Entry.at(written(tables), problem).scenario.servers) == 8


def test_a_named_pipe_is_no_entry(written: Write, problem: Problem) -> None:
    folder = written()
    (folder / "entry.toml").unlink()
    os.mkfifo(folder / "entry.toml")
    with pytest.raises(InputError, match="is no file"):
        Entry.at(folder, problem)


def test_a_reference_need_not_predict(written: Write, problem: Problem) -> None:
    folder = written(prediction=None)
    assert Entry.at(folder, problem, predicts=False).prediction_seconds is None


def test_an_entry_without_its_file_is_told(problem: Problem, written: Write) -> None:
    folder = written()
    (folder / "entry.toml").unlink()
    with pytest.raises(InputError, match="cannot be read"):
        Entry.at(folder, problem)
