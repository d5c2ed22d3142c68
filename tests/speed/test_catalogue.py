"""The list of figures: what each scenario is, that its engine serves it, and that none is far beyond its bound."""

from __future__ import annotations

import pytest

from distsim.engine import selection
from distsim.policies import Ddp
from distsim.simulation import simulate
from distsim.speed.catalogue import DDP, FIGURES, RULES, STALE, training
from distsim.speed.figure import Duration

NAMES = {f"{figure.group}: {figure.name}": figure for figure in FIGURES}
TRIES = 2  # machines are shared: one more try before it counts


def test_every_figure_has_a_name_of_its_own() -> None:
    assert len(NAMES) == len(FIGURES)


def test_buckets_and_links_are_what_the_names_say() -> None:
    ddp = training(DDP, "ring")
    assert isinstance(ddp.policy, Ddp)
    assert ddp.workload.layers == 20
    assert [len(bucket) for bucket in ddp.policy.buckets([ddp.gradient_bytes / 20] * 20)] == [1] * 20
    for kind in ("ring", "parameter_server"):
        cluster = training(STALE if kind == "parameter_server" else DDP, kind, different_nics=True).cluster
        speeds = [speed(worker) for worker in range(64) for speed in (cluster.up, cluster.down)]
        assert len(set(speeds)) == len(speeds) == 128


def test_rules_by_name_run_as_named() -> None:
    for name, policy in RULES.items():
        trace = simulate(training(policy, workers=8, steps=2), engine="loop")
        assert trace.scenario.policy.kind == policy["kind"], name


@pytest.mark.parametrize("different_nics", [False, True])
def test_large_runs_need_no_story(different_nics: bool) -> None:
    for policy in RULES.values():
        assert selection.fastest(training(policy, different_nics=different_nics)) != "story"


@pytest.mark.parametrize(
    "words",
    ["one, 64 ranks", "one, 256 ranks", "server: equal NICs", "backup, story", "backup, loop", "of the quadratic"],
)
def test_no_figure_is_far_beyond_its_bound(words: str) -> None:
    """A generous band for busy machines; `distsim bench` tells the rest."""
    figure = next(figure for name, figure in NAMES.items() if words in name)
    assert isinstance(figure, Duration)
    seen = []
    for _ in range(TRIES):
        result = figure.measure(rounds=2)
        seen.append(result.value / result.bound)
        if seen[-1] <= 5.0:
            return
    pytest.fail(f"{seen} times the bound, at most 5 expected")
