"""The door of real runs: what it refuses, and that it needs no torch itself."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys

import pytest

from distsim import InputError
from distsim.examples import example
from distsim.runtime.measure import estimated_seconds, measure, measure_all


def test_importing_it_imports_no_torch() -> None:
    check = "import distsim.runtime.measure, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_without_torch_the_cure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distsim.extras.find_spec", lambda _name: None)
    with pytest.raises(InputError, match=r'pip install "distsim-course\[labs\]"'):
        measure(example("synchronous_ring"))
    assert importlib.util.find_spec("torch") is not None


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e308, math.inf, math.nan])
def test_a_deadline_must_be_a_time(seconds: float) -> None:
    with pytest.raises(InputError, match=r"deadline_seconds = .*above 0"):
        measure(example("synchronous_ring"), deadline_seconds=seconds)


def test_one_launch_has_one_number_of_ranks() -> None:
    with pytest.raises(InputError, match=r"ranks of the scenarios = \[4, 6\]"):
        measure_all([example("synchronous_ring"), example("backup_server")])


def test_nothing_to_measure_gives_nothing() -> None:
    assert measure_all([]) == []


def test_the_estimated_deadline_grows_with_what_is_asked() -> None:
    scenario = example("backup_server")
    base = estimated_seconds([scenario])
    slowest = sum(max(scenario.compute_times()(worker, step) for worker in range(5)) for step in range(50))
    assert base > 3 * slowest
    assert estimated_seconds([scenario, scenario]) > base
    assert estimated_seconds([scenario.replacing({"workload.gradient": "1 GiB"})]) > base + 50 * 2 * 5 * 2**30 / 1e9
    assert estimated_seconds([scenario.replacing({"compute.slow": {"2": 100.0}})]) > 100 * 50 * 0.05
