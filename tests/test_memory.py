"""The bytes that a worker holds, against a count of the tensors that training needs at each moment."""

from __future__ import annotations

import json
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from click.testing import CliRunner

from distsim.cli.main import distsim as command
from distsim.errors import InputError
from distsim.memory import OPTIMIZERS, held
from distsim.memory_over_time import held_over_time
from distsim.profile import CoreSeconds, Layer, Profile
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.sharding import sharded_state_bytes
from distsim.transformer_profile import transformer_profile

SIZES = (5, 1, 3, 7, 2)  # MB of the layers, in the order of forward


def profile(activations: int = 9_000_000, passing: int = 0, frozen: int = 0) -> Profile:
    """Layers of unequal sizes. passing, frozen: what the peak has more than that."""
    layers = tuple(
        Layer(f"layer {number}", size * 10**6, 1e-3, 1e-3 * (place + 1), (1e-3, 1e-3), (1e-3, 1e-3))
        for place, (number, size) in enumerate(reversed(list(enumerate(SIZES))))
    )
    peak = 2 * 10**6 * sum(SIZES) + activations + passing + frozen
    return Profile(
        "m.py:build", layers, 1e-3, (1e-3, 1e-3), CoreSeconds(0.0, 0.0, 0.0), peak, 8, "cpu", "2.9", 5,
        passing_bytes=passing, frozen_bytes=frozen,
    )  # fmt: skip


def scenario(policy: dict[str, Any], workers: int = 3, **more: int) -> Scenario:
    table: dict[str, Any] = {
        "steps": 2, "cluster": {"workers": workers, "bandwidth": "1 GB/s", "latency": "0 s"},
        "compute": {"mean": "0 s"}, "workload": {"profile": profile(**more), "activation": "1 MB"},
        "policy": policy, "communication": {"kind": "ring"},
    }  # fmt: skip
    return Scenario.of(table)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_data_parallel_workers_hold_all(optimizer: str) -> None:
    found = held(scenario({"kind": "ddp"}), optimizer)
    assert (found.parameters, found.gradients, found.activations) == (18e6, 18e6, 9e6)
    assert found.optimizer == OPTIMIZERS[optimizer] * 18e6
    assert found.total == sum((found.parameters, found.gradients, found.optimizer, found.activations))


def whole_at_once(prefetch: int) -> float:
    """The most MB of whole layers while forward goes through them: the one that computes, and those ahead."""
    return max(sum(SIZES[now : now + 1 + prefetch]) for now in range(len(SIZES)))


@pytest.mark.parametrize("prefetch", [0, 1, 2, 9])
def test_sharded_workers_hold_their_part_and_the_units_under_way(prefetch: int) -> None:
    first, second, third = (
        held(scenario({"kind": "sharded", "stage": stage, "prefetch": prefetch}), "adam") for stage in (1, 2, 3)
    )
    assert [one.optimizer for one in (first, second, third)] == pytest.approx([12e6] * 3, rel=1e-5)
    assert [one.parameters for one in (first, second)] == [18e6] * 2
    assert third.parameters == pytest.approx(6e6 + 1e6 * whole_at_once(prefetch), rel=1e-5)
    assert first.gradients == 18e6
    assert second.gradients == pytest.approx(6e6 + 10e6, rel=1e-5), "two neighbours are whole at once"
    alone = 6e6 + 1e6 * max(SIZES)  # a gather stands between the gradients of two units, where nothing is ahead
    assert third.gradients == pytest.approx(second.gradients if prefetch else alone, rel=1e-5)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_with_many_small_units_the_state_is_what_zero_says(stage: int) -> None:
    """Mixed precision with Adam; whole units are a thousandth of the model."""
    workers, parameters = 8, 1e9
    table: dict[str, Any] = {
        "steps": 2, "cluster": {"workers": workers, "bandwidth": "1 GB/s", "latency": "0 s"},
        "compute": {"mean": "1 ms"}, "workload": {"gradient": "2 GB", "layers": 4000},
        "policy": {"kind": "sharded", "stage": stage, "prefetch": 0}, "communication": {"kind": "ring"},
    }  # fmt: skip
    found = held(Scenario.of(table), "mixed_adam").total
    assert found == pytest.approx(sharded_state_bytes(parameters, workers, stage), rel=2e-3)
    assert found >= sharded_state_bytes(parameters, workers, stage)


def test_a_pipeline_holds_the_largest_stage_and_its_micro_batches() -> None:
    """Two stages of three and two layers: 9 and 9 MB. The first one has all micro-batches, or two of four."""
    cut = {"kind": "pipeline", "micro_batches": 4, "stage_layers": [3, 2]}
    for schedule, share in (("gpipe", 1.0), ("1f1b", 0.5)):
        found = held(scenario(cut | {"schedule": schedule}, workers=2), "adam")
        assert (found.parameters, found.gradients, found.optimizer) == (9e6, 9e6, 18e6)
        assert found.activations == pytest.approx(9e6 * 3 / 5 * share)


@pytest.mark.parametrize(
    ("forward", "share"), [((8e-3, 1e-3, 1e-3, 0.0, 0.0), 10 / 10), ((4e-3, 2e-3, 2e-3, 1e-3, 1e-3), 8 / 10),
                           ((0.0,) * 5, 3 / 5)],
)  # fmt: skip
def test_a_stage_has_its_share_of_the_time_of_forward_of_the_activations(
    forward: tuple[float, ...], share: float
) -> None:
    """Or of the layers, where forward takes no time. The first stage has three of five layers."""
    found = profile(frozen=20_000_000)
    timed = [replace(layer, forward_seconds=one) for layer, one in zip(found.layers, reversed(forward), strict=True)]
    run = scenario({"kind": "pipeline", "micro_batches": 4, "schedule": "gpipe", "stage_layers": [3, 2]}, workers=2)
    kept = held(run.replacing({"workload.profile": replace(found, layers=tuple(timed))}))
    assert kept.activations == pytest.approx(share * 9e6)
    assert kept.parameters == pytest.approx(9e6 + share * 20e6)


PASSING = 6_000_000
WITH_IT = {  # the policy, and what the activations have more where the profile's peak holds a gradient of PASSING bytes
    "ddp": ({"kind": "ddp"}, PASSING),
    "stage 1": ({"kind": "sharded", "stage": 1}, PASSING),
    "stage 2": ({"kind": "sharded", "stage": 2}, PASSING),
    "stage 3": ({"kind": "sharded", "stage": 3}, PASSING),
    "pipeline": ({"kind": "pipeline", "micro_batches": 4, "stage_layers": [3, 2]}, PASSING),  # once, not by micro-batch
}


@pytest.mark.parametrize("policy", WITH_IT)
def test_a_gradient_that_passes_counts_once(policy: str) -> None:
    table, more = WITH_IT[policy]
    without, found = (held(scenario(table, workers=2, passing=passing)) for passing in (0, PASSING))
    assert found.activations - without.activations == pytest.approx(more)
    assert (found.parameters, found.gradients) == (without.parameters, without.gradients)


@pytest.mark.parametrize(
    ("names", "ahead", "prefetch", "whole"),
    [  # of layers of 5, 1, 3, 7 and 2 MB; ahead: how many gradients before its own backward needs a layer
        ("a.w b.w c.w d.w e.w", (0, 0, 0, 0, 0), 0, 7),
        ("a.w b.w c.w d.w e.w", (0, 0, 0, 0, 0), 1, 10),
        ("a.w a.b c.w d.w e.w", (0, 0, 0, 0, 0), 1, 10),
        ("a.w a.b a.c d.w e.w", (0, 0, 0, 0, 0), 1, 16),  # the module's three, and the next layer gathered ahead
        ("a.w b.w c.w d.w e.w", (4, 0, 0, 0, 0), 1, 15),  # the first layer stays; the third and fourth are beside it
        ("a.w b.w c.w d.w e.w", (2, 0, 0, 0, 0), 1, 15),  # it stays here, too
        (
            "a.w b.w c.w d.w e.w",
            (2, 0, 0, 0, 0),
            2,
            17,
        ),  # it is gathered in time; in forward it stays beside the last three
        ("a.w b.w c.w d.w e.w", (1, 0, 0, 0, 0), 0, 12),  # it stays, and is there beside the fourth
        ("a.w b.w c.w d.w e.w", (1, 0, 0, 0, 0), 1, 10),  # it is gathered again in time
        ("a.w a.b a.c a.d a.e", (0, 0, 0, 0, 0), 0, 18),
    ],
)
def test_layers_that_are_needed_together_are_whole_together(
    names: str, ahead: tuple[int, ...], prefetch: int, whole: int
) -> None:
    found = profile()
    named = [
        replace(layer, name=name, needed_ahead=number)
        for layer, name, number in zip(found.layers, reversed(names.split()), reversed(ahead), strict=True)
    ]
    table = {"policy": {"kind": "sharded", "stage": 3, "prefetch": prefetch}}
    run = scenario({"kind": "ddp"}).replacing({"workload.profile": replace(found, layers=tuple(named))} | table)
    assert held(run).parameters == pytest.approx(6e6 + 1e6 * whole, rel=1e-5)
    most = max(held_over_time(simulate(run), worker).held["parameters"].max() for worker in range(3))
    assert most <= 6e6 + 1e6 * whole + 20
    assert most == pytest.approx(6e6 + 1e6 * whole, rel=1e-5) or prefetch > 1


FROZEN = 20_000_000


@pytest.mark.parametrize("policy", WITH_IT)
def test_frozen_parameters_are_held_whole_and_by_a_stage_with_its_layers(policy: str) -> None:
    table, _ = WITH_IT[policy]
    without, found = (held(scenario(table, workers=2, frozen=frozen), "adam") for frozen in (0, FROZEN))
    share = 3 / 5 if policy == "pipeline" else 1
    assert found.parameters - without.parameters == pytest.approx(share * FROZEN)
    assert (found.gradients, found.optimizer, found.activations) == (
        without.gradients, without.optimizer, without.activations
    )  # fmt: skip


def test_frozen_parameters_are_there_from_the_start_to_the_end() -> None:
    for table, _ in WITH_IT.values():
        without, found = (
            held_over_time(simulate(scenario(table, workers=2, frozen=frozen))).held["parameters"]
            for frozen in (0, FROZEN)
        )
        share = 3 / 5 if table["kind"] == "pipeline" else 1
        assert found - without == pytest.approx(np.full(len(found), share * FROZEN))


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ({"peak_bytes": 0}, ["Activations are not counted, since the profile has no peak of memory."]),
        (None, ["Activations are not counted, since the workload has no profile."]),
        ({}, []),
    ],
)
def test_activations_that_nobody_knows_are_told(tmp_path: Path, lost: dict[str, int] | None, said: list[str]) -> None:
    table = scenario({"kind": "ddp"}).table()
    table |= {"workload": {"gradient": "18 MB"}, "compute": {"mean": "1 ms"}}
    if lost is not None:
        replace(profile(), **lost).save(tmp_path / "p.json")
        table["workload"] = {"profile": "p.json"}
    (tmp_path / "s.toml").write_text(tomli_w.dumps(table), "utf-8")
    (tmp_path / "c.toml").write_text(tomli_w.dumps({"cluster": table["cluster"]}), "utf-8")
    commands = [["simulate", "s.toml", "--memory", "1 TB"]]
    if lost is not None:
        commands.append(["plan", "p.json", "--cluster", "c.toml"])
    for arguments in commands:
        with chdir(tmp_path):
            told = CliRunner().invoke(command, arguments)
        assert told.exit_code == 0, told.output
        assert [one for one in told.stderr.splitlines() if "warning" in one] == [
            f"distsim: warning: {one}" for one in said
        ]


def test_an_unknown_optimizer_is_refused() -> None:
    with pytest.raises(InputError, match=r"optimizer = 'lion': is not known\. Cure: take one of sgd, momentum"):
        held(scenario({"kind": "ddp"}), "lion")


def test_a_computed_profile_has_the_operations_that_papers_count() -> None:
    """Narayanan et al. 2021: 96 B s l h^2 (1 + s / 6 h + V / 16 l h) with recomputing, for B samples of s tokens."""
    layers, width, vocabulary, sequence, batch, speed = 24, 2048, 51200, 2048, 4, 1e14
    found = transformer_profile(layers, width, 16, vocabulary, sequence, batch, speed, recompute=True)
    counted = 96 * batch * sequence * layers * width**2
    counted = counted * (1 + sequence / (6 * width) + vocabulary / (16 * layers * width))
    assert (found.forward_seconds + found.backward_seconds) * speed == pytest.approx(counted, rel=2e-3)


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    """Eight workers that hold 20 MB of parameters each, and 20 MB of gradients."""
    path = tmp_path / "mesh.toml"
    path.write_text(
        """
        steps = 2
        cluster = { workers = 8, bandwidth = "1 GB/s", latency = "0 s" }
        compute = { mean = "10 ms" }
        workload = { gradient = "80 MB", layers = 4, activation = "1 MB" }
        policy = { kind = "mesh", data = 2, tensor = 4 }
        communication = { kind = "ring" }
        """,
        "utf-8",
    )
    return path


def test_a_run_that_does_not_fit_is_refused_with_the_numbers(mesh: Path) -> None:
    refused = CliRunner().invoke(command, ["simulate", str(mesh), "--memory", "79 MB"])
    words = "79 MB': is less than the 80 MB (20 MB of parameters, 20 MB of gradients, 40 MB of optimizer) that the"
    assert words in str(refused.exception)
    fits = CliRunner().invoke(command, ["simulate", str(mesh), "--memory", "80 MB"])
    assert fits.exit_code == 0
    assert "the worker with most holds 80 MB" in fits.output
    told = CliRunner().invoke(
        command, ["simulate", str(mesh), "--memory", "79 MB", "--optimizer", "momentum", "--json"]
    )
    assert json.loads(told.stdout)["held_bytes"] == {
        "parameters": 2e7, "gradients": 2e7, "optimizer": 2e7, "activations": 0.0, "total": 6e7,
    }  # fmt: skip


def test_memory_is_counted_from_a_gradient_that_is_given(mesh: Path) -> None:
    mesh.write_text(
        mesh.read_text("utf-8").replace('gradient = "80 MB", ', "").replace('"mesh", data = 2, tensor = 4', '"tensor"')
    )
    refused = CliRunner().invoke(command, ["simulate", str(mesh), "--memory", "80 MB"])
    assert "workload.gradient" in str(refused.exception)
    assert CliRunner().invoke(command, ["simulate", str(mesh)]).exit_code == 0
