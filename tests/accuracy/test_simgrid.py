"""Agreement with SimGrid's own results, and that a difference would be seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from distsim.accuracy.simgrid import SHIPPED, relative_error, validate
from distsim.errors import InputError

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
    assert validate(tmp_path / "unknown.json") == {"algorithms": {"telepathy": row}}


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
