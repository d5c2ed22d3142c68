"""Agreement with SimGrid's own results, and that a difference would be seen."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.accuracy import simgrid
from distsim.accuracy.simgrid import SHIPPED, relative_error, validate
from distsim.errors import InputError
from tests.counts import reduced

ALGORITHMS = (
    "ring", "ring_eager", "ps1", "psN", "rhd", "tree", "train_ps", "train_async", "train_ring",
    "train_ring_eager", "flows",
)  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return validate()["algorithms"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_agrees_to_1e_9(found: dict[str, Any], algorithm: str) -> None:
    assert found[algorithm]["cases"] > 0
    assert found[algorithm]["skipped"] == 0
    assert found[algorithm]["max_relative_error"] <= 1e-9


def test_every_case_is_counted(found: dict[str, Any]) -> None:
    assert sum(row["cases"] for row in found.values()) == len(json.loads(SHIPPED.read_text())["cases"])
    assert found.keys() == set(ALGORITHMS)
    assert all(row["skipped"] == 0 for row in found.values())


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0])
def test_a_reference_that_is_no_time_is_refused(tmp_path: Path, wrong: float) -> None:
    document = json.loads(SHIPPED.read_text())
    document["cases"][0]["makespan_s"] = wrong
    (tmp_path / "wrong.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="not a number of seconds"):
        validate(tmp_path / "wrong.json")


def test_a_time_of_ours_that_is_no_number_is_an_error_without_bound() -> None:
    assert relative_error({"makespan_s": 1.0, "finish_s": [1.0, 1.0]}, [float("nan"), 1.0]) == float("inf")


def test_an_unknown_algorithm_is_skipped(tmp_path: Path) -> None:
    document = json.loads(SHIPPED.read_text())
    document["cases"] = [document["cases"][0] | {"algorithm": "telepathy"}]
    (tmp_path / "unknown.json").write_text(json.dumps(document))
    row = {"cases": 1, "skipped": 1, "max_relative_error": None}
    assert validate(tmp_path / "unknown.json") == {"algorithms": {"telepathy": row}, "slow": {}}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_wrong_figure_is_seen(tmp_path: Path, algorithm: str) -> None:
    document = json.loads(SHIPPED.read_text())
    case = next(case for case in document["cases"] if case["algorithm"] == algorithm)
    if case.get("finish_s"):
        case["finish_s"][1] *= 1.001
    else:
        case["makespan_s"] *= 1.001
    document["cases"] = [case]
    (tmp_path / "wrong.json").write_text(json.dumps(document))
    error = validate(tmp_path / "wrong.json")["algorithms"][algorithm]["max_relative_error"]
    assert error == pytest.approx(0.001, rel=0.01)


def test_a_case_that_lacks_its_input_is_named(tmp_path: Path) -> None:
    document = json.loads(SHIPPED.read_text())
    document["inputs"] = {}
    (tmp_path / "lacking.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"case 'train:train_ps:4:table_4'.*table_4\.txt"):
        validate(tmp_path / "lacking.json")


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"[]", b'{"cases": [{}], "inputs": {}}'])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other.json").write_bytes(content)
    with pytest.raises(InputError, match="is not a file of SimGrid cases"):
        validate(tmp_path / "other.json")


def exact(algorithm: str, workers: int) -> dict[str, Any]:
    """A case of equal links whose time has a closed form, on a number of workers that is a power of two."""
    num_bytes, rate, latency = 1e8, 1.25e9, 5e-6
    seconds = {
        "ring": 2 * (workers - 1) * (num_bytes / workers / rate + 2 * latency),
        "rhd": 2 * (num_bytes * (1 - 1 / workers) / rate + math.log2(workers) * 2 * latency),
        "ps1": 2 * (workers * num_bytes / rate + 2 * latency),
        "psN": 2 * ((workers - 1) * num_bytes / workers / rate + 2 * latency),
    }
    return {
        "case": f"{algorithm} of {workers}", "algorithm": algorithm, "N": workers, "S_bytes": num_bytes,
        "B_bytes_per_s": rate, "L_s_per_link": latency, "input": None, "link_capacities": None,
        "makespan_s": seconds[algorithm],
    }  # fmt: skip


def test_cases_of_thousands_of_hosts_are_recomputed_without_a_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distsim.engine.story.run", None)
    monkeypatch.setattr("distsim.engine.collective.run", None)
    cases = [exact("ring", 512), exact("rhd", 4096), exact("ps1", 4096), exact("psN", 32)]
    (tmp_path / "large.json").write_text(json.dumps({"cases": cases, "inputs": {}}))
    found = validate(tmp_path / "large.json")["algorithms"]
    assert found.keys() == {"ring", "rhd", "ps1", "psN"}
    assert max(row["max_relative_error"] for row in found.values()) <= 1e-9


def test_slow_cases_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    """With a clock that says how long each case took."""
    moments = iter([0.0, 0.5, 1.0, 3.0, 3.0, 7.0])
    monkeypatch.setattr(simgrid, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    cases = [exact("ring", workers) for workers in (2, 4, 8)]
    (tmp_path / "cases.json").write_text(json.dumps({"cases": cases, "inputs": {}}))
    code, out, _ = run("validate", "--simgrid", tmp_path / "cases.json")
    assert code == 0
    notes = [line.strip() for line in out.splitlines() if line.strip().startswith("slow: ")]
    assert notes == ["slow: 'ring of 8' took 4.0 s", "slow: 'ring of 4' took 2.0 s"]


SPOILT: list[tuple[str, str, Any, str]] = [
    ("ring", "N", "4", "N = '4' must be a whole number"),
    ("ring", "N", 4.5, "N = 4.5 must be a whole number"),
    ("ring", "N", 10**9, "N = 1000000000 must be at most 4096"),
    ("ring", "N", -4, "N = -4 must be at least 1"),
    ("tree", "S_bytes", "much", "S_bytes = 'much' must be a number"),
    ("tree", "S_bytes", float("nan"), "S_bytes = nan must be a finite number"),
    ("psN", "L_s_per_link", -1.0, "L_s_per_link = -1.0 must be at least 0"),
    ("psN", "B_bytes_per_s", 0, "B_bytes_per_s = 0 must be at least 0.001"),
    ("train_ps", "input", 5, "input = 5 must be a text"),
    ("train_ring", "link_capacities", ["a"], "link_capacities = ['a'] must be a text"),
    ("rhd", "makespan_s", None, "makespan_s = None must be a number"),
    ("flows", "finish_s", [1, "2"], "finish_s.1 = '2' must be a number"),
    ("flows", "case", None, "case None"),
]


@pytest.mark.parametrize(("algorithm", "key", "value", "message"), SPOILT)
def test_a_value_that_no_case_has_is_named(tmp_path: Path, algorithm: str, key: str, value: Any, message: str) -> None:
    document = json.loads(SHIPPED.read_text())
    case = next(case for case in document["cases"] if case["algorithm"] == algorithm)
    case |= {key: value} if key != "case" else {key: value, "N": None}
    (tmp_path / "spoilt.json").write_text(json.dumps(document | {"cases": [case]}))
    with pytest.raises(InputError, match="Cure: see the file's meta") as caught:
        validate(tmp_path / "spoilt.json")
    assert "spoilt.json" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1e9 1e9 1e9 1e9", "0 flows on a list of 4 numbers"),
        ("1 1e9 1e9 1e9 1e9 0 5 0 1e6", "from 0.0 to 5.0 at 0.0 s among 2 hosts"),
        ("1 1e9 1e9 1e9 1e9 0 0.5 0 1e6", "to 0.5"),
        ("1 1e9 1e9 1e9 1e9 0 1 -1 1e6", "at -1.0 s"),
        ("1 1e9 1e9 1e9 1e9 0 1 nan 1e6", "at nan s"),
        ("1 1e9 1e9 1e9 1e9 0 1 0 -1", "a flow of -1.0 bytes"),
        ("one", "invalid literal"),
        ("", "not enough values"),
    ],
)
def test_flows_that_are_none_are_named(tmp_path: Path, text: str, message: str) -> None:
    document = json.loads(SHIPPED.read_text())
    case = next(case for case in document["cases"] if case["algorithm"] == "flows")
    (tmp_path / "spoilt.json").write_text(json.dumps({"cases": [case], "inputs": {case["input"]: text}}))
    with pytest.raises(InputError, match=re.escape(message)):
        validate(tmp_path / "spoilt.json")


HOSTILE = [
    None, True, -1, 0, 1, 3, 10**400, 0.5, 1e-320, 1e300, float("nan"), float("inf"), "", "x", "ring", [], {}, [1],
]  # fmt: skip


@settings(max_examples=reduced(150))
@given(data=st.data())
def test_a_damaged_file_is_refused_or_recomputed(
    tmp_path_factory: pytest.TempPathFactory, or_input_error: Any, data: st.DataObject
) -> None:
    """One value or one word of an input becomes another; whatever comes of it, there is no traceback."""
    document = json.loads(SHIPPED.read_text())
    case = data.draw(st.sampled_from([case for case in document["cases"] if case["N"] <= 4]))
    document["cases"] = [case]
    match data.draw(st.integers(0, 3)):
        case 0:
            document[data.draw(st.sampled_from(["cases", "inputs"]))] = data.draw(st.sampled_from(HOSTILE))
        case 1 if case["input"]:
            words = document["inputs"][case["input"]].split(" ")
            words[data.draw(st.integers(0, len(words) - 1))] = str(data.draw(st.sampled_from(HOSTILE)))
            document["inputs"][case["input"]] = " ".join(words)
        case _:
            case[data.draw(st.sampled_from(list(case)))] = data.draw(st.sampled_from(HOSTILE))
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_text(json.dumps(document))
    with or_input_error():
        found = validate(path)
        assert sum(row["cases"] for row in found["algorithms"].values()) == len(document["cases"])
