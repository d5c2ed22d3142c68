"""The best and the worst way that a plan finds for two workers, really run on emulated links, are in that order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from distsim import Scenario
from distsim.cli.main import distsim
from distsim.metrics import summary
from distsim.runtime.measure import measure_all

BUILT_IN = """
import torch

from distsim.learning.problems import problem
from distsim.workload import Workload


class WithLoss(torch.nn.Module):
    def __init__(self, found):
        super().__init__()
        self.model, self._loss = found.model, found.loss

    def forward(self, inputs, targets):
        return self._loss(self.model(inputs), targets)


def build():
    found = problem(Workload(model="transformer", layers=4, width=128, batch=32), 0)
    return WithLoss(found), (found.training.inputs[:32], found.training.targets[:32])
"""
CLUSTER = """
[cluster]
workers = 2
bandwidth = "200 Mbit/s"
latency = "1 ms"
"""

pytestmark = [pytest.mark.real, pytest.mark.iproute2, pytest.mark.more]


def run(*command: str) -> str:
    found = CliRunner().invoke(distsim, command)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_best_and_the_worst_way_are_in_that_order(tmp_path: Path) -> None:
    """The worst sends half as much again as the best, and hides less of it."""
    (tmp_path / "built_in.py").write_text(BUILT_IN)
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    profile, cluster, ways = (str(tmp_path / name) for name in ("profile.json", "cluster.toml", "ways"))
    run("profile", f"{tmp_path}/built_in.py:build", "--steps", "5", "--busy", "1", "--out", profile)
    planned = run("plan", profile, "--cluster", cluster, "--optimizer", "sgd", "--scenarios", ways, "--json")
    told = {row["way"]: row["seconds_per_sample"] for row in json.loads(planned)["ways"]}
    found = [Scenario.load(path) for path in sorted((tmp_path / "ways").glob("*.toml"))]
    on_two = [scenario for scenario in found if scenario.cluster.workers == 2]
    best, worst = on_two[0], on_two[-1]
    assert worst.policy.kind == "sharded"
    assert told[worst.name] > 1.4 * told[best.name]
    runs = measure_all([best.replacing({"steps": 6}), worst.replacing({"steps": 6})], emulate=True)
    steps = [summary(run).step_seconds for run in runs]
    assert steps[0] is not None
    assert steps[1] is not None
    assert steps[1].median > steps[0].median
