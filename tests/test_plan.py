"""The plan: all ways are tried, those that fit are ranked, and the winner is what a search by hand finds."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise, product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from distsim.cli.main import distsim
from distsim.cli.plan import _left_out, _table
from distsim.errors import InputError
from distsim.figures import plan as drawn
from distsim.memory import held
from distsim.metrics import summary
from distsim.plan import TOO_LARGE, Way, distinct, frontier, plan, ranked, verdict, ways
from distsim.policies import Mesh, Pipeline, Sharded
from distsim.profile import Profile
from distsim.runtime.limits import check_available
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.transformer_profile import transformer_profile

CLUSTER: dict[str, Any] = {"workers": 4, "bandwidth": "10 Gbit/s", "latency": "20 us"}
LARGE = {
    "workers": 64, "bandwidth": "200 Gbit/s", "latency": "5 us",
    "nodes": {"per_node": 8, "bandwidth": "300 GB/s", "latency": "2 us"},
}  # fmt: skip


@pytest.fixture(scope="module")
def small() -> Profile:
    """Of 0.1 billion parameters."""
    return transformer_profile(12, 768, 12, 50257, 1024, 4, 50e12)


def gpt(layers: int, width: int, heads: int) -> Profile:
    return transformer_profile(layers, width, heads, 51200, 2048, 2, 150e12, recompute=True)


def test_the_winner_is_what_a_search_by_hand_finds(small: Profile) -> None:
    """Every policy of a small space, simulated one by one, and the one with the least time a sample."""
    found = list(plan(ways(small, CLUSTER)))
    times = {}
    for workers, kind in product((2, 4), ("ring", "halving_doubling")):
        size = f"{small.gradient_bytes} B"
        for bucket, first in (("5 MiB", "1 MiB"), ("25 MiB", "1 MiB"), ("100 MiB", "1 MiB"), (size, size)):
            times[workers, kind, bucket] = by_hand(
                small, workers, kind, {"kind": "ddp", "bucket": bucket, "first_bucket": first}
            )
        times[workers, kind, "synchronous"] = by_hand(small, workers, kind, {"kind": "synchronous"})
        parts = [f"{math.ceil(small.gradient_bytes / part / 1e6)} MB" for part in (8, 2, 1)]
        for bucket in ("1 B", "5 MiB", "25 MiB", "100 MiB", *parts):
            number, unit = bucket.split()
            together = units_by_hand(small, float(number) * {"B": 1, "MB": 1e6, "MiB": 2**20}[unit])
            for stage, prefetch in product((1, 2, 3), (1, 2)):
                if prefetch < max(2, len(together)):
                    policy = {"kind": "sharded", "stage": stage, "prefetch": prefetch, "bucket": bucket}
                    times[workers, stage, prefetch, str(together)] = by_hand(small, workers, "ring", policy)
    times[1,] = by_hand(small, 1, "ring", {"kind": "synchronous"})
    assert len(found) == len(times)
    assert ranked(found)[0].seconds_per_sample == pytest.approx(min(times.values()), rel=1e-12)
    assert sorted(way.seconds_per_sample or 0.0 for way in found) == pytest.approx(sorted(times.values()), rel=1e-9)


def units_by_hand(profile: Profile, bucket: float) -> list[int]:
    """How many layers each unit has, the first gradient first: a unit is full as soon as it has `bucket` bytes."""
    counts, held = [0], 0.0
    for layer in profile.layers:
        if held >= bucket:
            counts, held = [*counts, 0], 0.0
        counts[-1] += 1
        held += layer.bytes
    return counts


def by_hand(profile: Profile, workers: int, kind: str, policy: dict[str, Any]) -> float:
    trace = simulate(
        Scenario.of(
            {
                "steps": 3, "cluster": CLUSTER | {"workers": workers}, "compute": {"mean": "0 s"},
                "workload": {"profile": profile}, "policy": policy, "communication": {"kind": kind},
            }
        )
    )  # fmt: skip
    steps = summary(trace).step_seconds
    assert steps is not None
    return steps.median / (workers * profile.batch)


def test_a_large_model_takes_what_fits() -> None:
    """16 bytes a parameter: 1.3 billion fit into 80 GB whole, 13 billion do not."""
    fits = ways(gpt(24, 2048, 16), LARGE, 80e9, "mixed_adam")
    assert not any(way.missing_bytes for way in fits)
    assert ranked(list(plan(fits)))[0].scenario.policy.kind == "ddp"
    found = list(plan(ways(gpt(40, 5120, 40), LARGE, 80e9, "mixed_adam")))
    for way in found:
        kept = held(way.scenario, "mixed_adam").total
        assert way.missing_bytes == max(kept - 80e9, 0.0)
        assert (way.seconds_per_sample is None) == (kept > 80e9)
    whole = [way for way in found if way.scenario.policy.kind in ("ddp", "synchronous")]
    assert whole
    assert all(way.missing_bytes for way in whole)
    assert ranked(found)[0].scenario.policy.kind == "sharded"
    assert verdict(found).startswith("Fastest: sharded, stage ")


def test_nothing_beats_the_frontier(small: Profile) -> None:
    found = list(plan(ways(small, CLUSTER)))
    best = frontier(found)
    assert best[0] == ranked(found)[0]
    for faster, slower in pairwise(best):
        assert (faster.seconds_per_sample or 0.0) < (slower.seconds_per_sample or 0.0)
        assert faster.held.total > slower.held.total
    for way in found:
        assert any(
            (one.seconds_per_sample or 0.0) <= (way.seconds_per_sample or 0.0) * (1 + 1e-11)
            and one.held.total <= way.held.total
            for one in best
        )
    assert len({(way.seconds_per_sample, way.held.total) for way in distinct(ranked(found))}) == len(
        distinct(ranked(found))
    )


def test_the_frontier_of_prices_is_another_one(small: Profile) -> None:
    """Four workers are twice as fast as one and hold as much, so they cost twice as much."""
    priced = ways(small, CLUSTER, cost={"price_per_hour": 2.0})
    one, *_, four = [way for way in priced if way.scenario.policy.kind == "synchronous"]
    found = [replace(one, seconds_per_sample=1.0, exposed_share=0.0), replace(four, seconds_per_sample=0.5)]
    assert four.scenario.cluster.workers == 4
    assert [way.scenario.cluster.workers for way in frontier(found)] == [4]
    assert [way.scenario.cluster.workers for way in frontier(found, "price")] == [1]


def test_pipelines_are_tried_where_an_activation_is_known(small: Profile) -> None:
    assert not any(way.scenario.policy.kind == "pipeline" for way in ways(small, CLUSTER))
    found = [way for way in ways(small, CLUSTER, activation="3 MB") if way.scenario.policy.kind == "pipeline"]
    assert {way.scenario.cluster.workers for way in found} == {2, 4}
    assert all(way.samples == small.batch * way.scenario.policy.batches(4) for way in found)


def test_pipelines_of_meshes_are_tried_where_blocks_can_be_shared(small: Profile) -> None:
    """Of 12 blocks; a stage has as many, and a group is a node or a part of it. 1F1B holds less than GPipe."""
    found = [way for way in ways(small, LARGE, activation="3 MB") if isinstance(way.scenario.policy, Pipeline)]
    shapes = set()
    for way in found:
        workers, policy = way.scenario.cluster.workers, way.scenario.policy
        assert isinstance(policy, Pipeline)
        stages = workers // policy.width
        assert stages > 1
        assert policy.stage == 0 or policy.data > 1
        assert policy.schedule == "1f1b" or policy.width == 1
        shapes.add((policy.data, policy.tensor, stages))
    expected = {
        (data, tensor, stages)
        for data in (1, 2, 4, 8, 16, 32) for tensor in (1, 2, 4, 8) for stages in range(2, 14)
        if 64 % (data * tensor * stages) == 0 and (tensor == 1 or 12 % stages == 0)
    }  # fmt: skip
    assert shapes == expected
    alone = [replace(small, model="my_model.py:build"), replace(small, batch=3)]
    own, few = ([way.scenario.policy for way in ways(one, LARGE, activation="3 MB")] for one in alone)
    assert {policy.tensor for policy in own if isinstance(policy, Pipeline)} == {1}
    assert {policy.micro_batches for policy in few if isinstance(policy, Pipeline)} == {3}
    micro = {way.scenario.policy.micro_batches for way in ways(replace(small, batch=6), LARGE, activation="3 MB")
             if isinstance(way.scenario.policy, Pipeline)}  # fmt: skip
    assert micro == {2, 6}, "each has as many samples"
    prime = [way.scenario.policy for way in ways(replace(small, batch=10_007), LARGE, activation="3 MB")]
    most = max(policy.micro_batches for policy in prime if isinstance(policy, Pipeline))
    assert most == 4 * 8, "not one for each of 10,007 samples"


@pytest.mark.parametrize("parameters", [1_000, 1_000_000, 100_000_000])
def test_small_parameters_are_also_gathered_together(parameters: int) -> None:
    """Of a model of any size: 32 layers, of which each second one is a bias of 1 kB or less."""
    template = transformer_profile(1, 64, 4, 1000, 16, 4, 1e12).layers[0]
    layers = tuple(
        replace(template, name=f"layer {number}", bytes=size, ready_seconds=1e-4 * number)
        for number, size in enumerate([min(1000, parameters // 4), parameters // 4] * 16)
    )
    profile = replace(transformer_profile(4, 64, 4, 1000, 16, 4, 1e12), model="my_model.py:build", layers=layers)
    found = [way.scenario.policy for way in ways(profile, CLUSTER) if way.scenario.policy.kind == "sharded"]
    counts = {
        len(policy.units([layer.bytes for layer in reversed(layers)]))
        for policy in found
        if isinstance(policy, Sharded)
    }
    assert {1, 2, 32} < counts
    assert any(4 <= count <= 16 for count in counts)


def test_on_slow_links_a_product_with_a_pipeline_wins() -> None:
    """13 billion parameters in 16 GB: what a pipeline hands on is less than what any other way exchanges."""
    cluster = LARGE | {"bandwidth": "10 Gbit/s"}
    found = list(plan(ways(gpt(40, 5120, 40), cluster, 16e9, "mixed_adam", activation="42 MB")))
    best = ranked(found)[0]
    policy = best.scenario.policy
    assert isinstance(policy, Pipeline)
    assert policy.width > 1
    assert best.name.endswith(", ring, 64 workers")
    again = summary(simulate(best.scenario)).step_seconds
    assert again is not None
    assert best.step_seconds == pytest.approx(again.median, rel=1e-12)
    assert max(held(best.scenario, "mixed_adam").total, best.held.total) < 16e9


def test_meshes_of_a_transformer_are_tried_where_an_activation_is_known(small: Profile) -> None:
    """Within nodes of 8; a worker of a mesh of 8 x 8 holds an eighth of what it holds alone, without activations."""
    assert not any(way.scenario.policy.kind == "mesh" for way in ways(small, LARGE))
    assert not any(
        way.scenario.policy.kind == "mesh"
        for way in ways(replace(small, model="my_model.py:build"), LARGE, activation="3 MB")
    )
    found = [way for way in ways(small, LARGE, activation="3 MB") if isinstance(way.scenario.policy, Mesh)]
    shapes = {(way.scenario.policy.data, way.scenario.policy.tensor) for way in found}  # type: ignore[attr-defined]
    assert shapes == {(1 << data, 1 << tensor) for data in range(7) for tensor in range(1, 4) if data + tensor <= 6}
    [one] = [way for way in found if way.name == "mesh, data 8, tensor 8, ring, 64 workers"]
    assert one.samples == 8 * small.batch
    alone = held(ways(small, CLUSTER)[0].scenario, "adam")
    kept = held(one.scenario, "adam")
    assert [8 * kept.parameters, 8 * kept.gradients, 8 * kept.optimizer, 8 * kept.activations] == pytest.approx(
        [alone.parameters, alone.gradients, alone.optimizer, alone.activations]
    )
    sharded = held(one.scenario.replacing({"policy.stage": 1}), "adam")
    assert sharded.optimizer == pytest.approx(kept.optimizer / 8, rel=1e-6)
    assert sharded.activations == kept.activations


@pytest.mark.parametrize(("per_node", "expected"), [(6, {2, 3, 6}), (3, {3}), (None, {2, 4})])
def test_workers_that_share_blocks_fill_a_node_or_a_part_of_it(
    small: Profile, per_node: int | None, expected: set[int]
) -> None:
    nodes = {"nodes": LARGE["nodes"] | {"per_node": per_node}} if per_node else {}
    cluster = CLUSTER | {"workers": 12 if per_node else 4} | nodes
    policies = [one.scenario.policy for one in ways(small, cluster, activation="3 MB")]
    meshes = [policy for policy in policies if isinstance(policy, Mesh)]
    assert {policy.tensor for policy in meshes} == expected
    assert all(policy.stage == 0 or policy.data > 1 for policy in meshes)


def test_where_nothing_fits_the_nearest_way_is_named(small: Profile) -> None:
    found = list(plan(ways(small, CLUSTER, 1e9)))
    with pytest.raises(InputError, match=r"--memory = '1 GB': is too little for every way: .* needs least, and lacks"):
        verdict(found)
    with pytest.raises(InputError, match=r"--memory = '1 GB'"):
        drawn(found)
    with pytest.raises(InputError, match="no way that was simulated"):
        verdict([])


@pytest.mark.parametrize(
    ("room", "activation", "cure"),
    [
        (1e8, None, "more memory, take more of them, profile a smaller batch, or add --activation, for pipelines"),
        (1e6, None, "take devices with more memory, profile a smaller batch, or add --activation, for pipelines"),
        (1e6, "3 MB", "take devices with more memory, or profile a smaller batch"),
    ],
)
def test_the_cures_for_too_little_memory_are_those_that_can_help(
    small: Profile, room: float, activation: str | None, cure: str
) -> None:
    """More devices do not divide activations of 60 MB, except in a pipeline."""
    large = replace(small, peak_bytes=2 * small.gradient_bytes + 60_000_000)
    with pytest.raises(InputError) as raised:
        verdict(list(plan(ways(large, CLUSTER, room, activation=activation))))
    assert str(raised.value).endswith(cure)


def test_real_runs_take_every_way_of_single_workers(small: Profile) -> None:
    """A profile's all-reduces that are no rings follow a schedule, since no backend has them."""
    for way in ways(small, CLUSTER):
        check_available(way.scenario)
    assert {way.scenario.communication.implementation for way in ways(small, CLUSTER)} == {"backend", "schedule"}


def test_links_without_a_formula_are_simulated_event_by_event_on_few_workers(small: Profile) -> None:
    """Ranks of a node that share its NIC, where halving and doubling meet on a link."""
    shared = CLUSTER | {"nodes": {"per_node": 2, "bandwidth": "9 GB/s", "latency": "0 s", "nic_per": "node"}}
    found = list(plan(ways(small, shared)))
    assert not any(way.untried for way in found)
    assert all(way.seconds_per_sample for way in found)
    many = ways(small, shared | {"workers": 32})
    untried = [way for way in many if way.untried]
    assert {way.scenario.cluster.workers for way in untried} == {32}
    assert {way.scenario.communication.kind for way in untried} == {"halving_doubling", "hierarchical"}
    assert list(plan(untried)) == untried


def test_a_way_too_large_to_simulate_is_untried_and_the_others_are_planned(
    small: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distsim.trace_size.memory_bytes", lambda: 100_000)
    found = list(plan(ways(small, CLUSTER)))
    assert {way.untried for way in found} == {TOO_LARGE, ""}
    assert all((way.seconds_per_sample is None) == bool(way.untried) for way in found)
    with pytest.raises(InputError, match=r"cluster\.bandwidth = '10 GBit/s'"):
        ways(small, CLUSTER | {"bandwidth": "10 GBit/s"})


def test_a_way_whose_schedule_is_too_long_is_untried(small: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distsim.trace_size.LARGEST_SCHEDULE", 10)
    untried = [way for way in ways(small, CLUSTER) if way.untried]
    assert {(way.scenario.cluster.workers, way.untried) for way in untried} == {(4, TOO_LARGE)}
    assert {way.scenario.policy.kind for way in untried} == {"ddp", "synchronous"}, "sharded training is all rings"


def test_on_fewer_workers_the_nics_of_the_others_are_left_out(small: Profile) -> None:
    slow = CLUSTER | {"nic": {3: {"up": "1 Gbit/s"}, "server": {"up": "1 Gbit/s"}}}
    assert {len(way.scenario.cluster.nic) for way in ways(small, slow)} == {0, 1}


@pytest.fixture
def files(small: Profile, tmp_path: Path) -> Path:
    small.save(tmp_path / "profile.json")
    (tmp_path / "cluster.toml").write_text(
        '[cluster]\nworkers = 4\nbandwidth = "10 Gbit/s"\nlatency = "20 us"\n[cost]\nprice_per_hour = 2.0\n'
    )
    return tmp_path


def run(folder: Path, *options: str) -> Any:
    return CliRunner().invoke(
        distsim, ["plan", str(folder / "profile.json"), "--cluster", str(folder / "cluster.toml"), *options]
    )


def test_the_command_prints_a_table_and_draws(files: Path) -> None:
    result = run(files, "--memory", "80GB", "--out", str(files / "plan.html"))
    assert result.exit_code == 0, result.output
    assert "Fastest: " in result.output
    assert "price of a million" in result.output
    assert (files / "plan.html").stat().st_size > 10_000


def test_the_cheapest_way_comes_first_where_prices_decide(files: Path, small: Profile) -> None:
    result = run(files, "--by", "price", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    prices = [row["price_per_sample"] for row in document["ways"]]
    assert prices == pytest.approx(sorted(prices), rel=1e-11)
    assert document["ways"][0]["workers"] == 1, "more workers also wait for each other"
    assert document["verdict"].startswith("Cheapest: synchronous, 1 worker, a million samples cost ")
    assert "times the price, on more workers" in document["verdict"]
    held = [row["held_bytes"]["total"] for row in document["ways"] if row["frontier"]]
    assert held == sorted(held, reverse=True), "what costs more holds less"
    assert document["ways"][0]["frontier"]
    assert all(
        row["step_seconds"] == pytest.approx(row["seconds_per_sample"] * row["workers"] * small.batch)
        for row in document["ways"]
        if row["policy"]["kind"] == "synchronous"
    )


def test_without_prices_no_way_is_cheapest(files: Path) -> None:
    (files / "cluster.toml").write_text('[cluster]\nworkers = 4\nbandwidth = "10 Gbit/s"\nlatency = "20 us"\n')
    result = run(files, "--by", "price")
    assert isinstance(result.exception, InputError)
    assert "--by = 'price': needs a price, and" in str(result.exception)


@pytest.mark.parametrize(
    ("same", "told"), [(13, "the first 12 and those with * of the 13"), (10, "the 10"), (12, "the 12")]
)
def test_the_note_tells_how_many_ways_the_table_shows(small: Profile, same: int, told: str) -> None:
    way = ways(small, CLUSTER | {"workers": 1})[0]
    found = [
        replace(way, seconds_per_sample=float(max(number, 14 - same)), exposed_share=0.0) for number in range(1, 14)
    ]
    notes = [note for note in _left_out(found, None, "time") if note.startswith("of ")]
    assert notes == [f"of 13 ways that fit, {told} that differ in time or memory; --json lists all"]
    shown = _table("a model", found)
    assert list(shown.columns[0].cells) == [f"{number:03d}" for number in range(1, 1 + min(same, 12))]
    assert not any(note.startswith("of ") for note in _left_out(found[-5:], None, "time"))


def test_ways_that_no_other_beats_are_in_the_table_wherever_they_stand(small: Profile) -> None:
    way = ways(small, CLUSTER | {"workers": 1})[0]

    def holding(number: int) -> Way:
        """The slower ones hold more, but for two of them."""
        size = way.held.parameters / number if number in (15, 18) else way.held.parameters * number
        return replace(
            way, held=replace(way.held, parameters=size), seconds_per_sample=float(number), exposed_share=0.0
        )

    shown = _table("a model", [holding(number) for number in range(1, 20)])
    assert list(shown.columns[0].cells) == [*(f"{number:03d}" for number in range(1, 13)), "015", "018"]
    assert [row.end_section for row in shown.rows].index(True) == 11


def test_an_interrupted_plan_says_that_it_is_one(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(asked: list[Way], *_: object) -> Iterator[Way]:
        yield from islice(plan(asked), 5)
        raise KeyboardInterrupt

    monkeypatch.setattr("distsim.cli.plan.plan", interrupted)
    result = run(files)
    assert result.exit_code != 0
    fitting = len(
        ways(Profile.load(files / "profile.json"), tomllib.loads((files / "cluster.toml").read_text())["cluster"])
    )
    assert f"interrupted: 5 of the {fitting} ways that fit are simulated, and others may be better" in " ".join(
        result.stdout.split()
    )


def test_the_command_prints_json(files: Path) -> None:
    result = run(files, "--memory", "7GB", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["complete"] is True
    assert document["memory_bytes"] == 7e9
    times = [row["seconds_per_sample"] for row in document["ways"] if row["fits"]]
    assert times == pytest.approx(sorted(times), rel=1e-11)
    assert all(row["missing_bytes"] > 0 for row in document["ways"] if not row["fits"])
    first = document["ways"][0]
    assert first["price_per_sample"] == pytest.approx(2.0 * first["workers"] * first["seconds_per_sample"] / 3600)


def test_each_way_can_be_written_as_a_scenario(files: Path) -> None:
    """The fastest first; simulated again, each takes the time that the plan says."""
    result = run(files, "--memory", "7GB", "--scenarios", str(files / "ways"), "--json")
    assert result.exit_code == 0, result.output
    ways_told = {row["way"]: row for row in json.loads(result.stdout)["ways"] if row["fits"]}
    written = [Scenario.load(path) for path in sorted((files / "ways").glob("*.toml"))]
    times = [ways_told[scenario.name]["seconds_per_sample"] for scenario in written]
    assert times == pytest.approx(sorted(times), rel=1e-11)
    assert len(written) > 5
    for scenario, seconds in zip(written, times, strict=True):
        steps = summary(simulate(scenario.replacing({"steps": 3}))).step_seconds
        assert steps is not None
        assert steps.median / scenario.samples_per_step == pytest.approx(seconds, rel=1e-9)


def test_a_scenario_of_the_plan_names_the_model_where_its_file_is_known(files: Path, small: Profile) -> None:
    replace(small, model="my_model.py:build").save(files / "profile.json")
    (files / "my_model.py").write_text("")
    assert run(files, "--scenarios", str(files / "ways")).exit_code == 0
    first = Scenario.load(files / "ways" / "001.toml")
    assert Path(str(first.workload.model).rpartition(":")[0]).resolve() == files / "my_model.py"


def test_a_folder_with_something_in_it_is_left_alone(files: Path) -> None:
    with pytest.raises(InputError, match=r"--scenarios = .*: is a folder that is not empty\. Cure: name a new folder"):
        raise run(files, "--scenarios", str(files)).exception


def test_where_nothing_fits_json_still_tells_what_is_missing(files: Path) -> None:
    result = run(files, "--memory", "1GB", "--json", "--out", str(files / "plan.html"))
    assert isinstance(result.exception, InputError)
    document = json.loads(result.stdout)
    assert document["verdict"] is None
    assert all(row["missing_bytes"] > 0 for row in document["ways"])
    assert not (files / "plan.html").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--memory", "80"), "--memory = '80': "),
        (("--memory", "1 MB"), "--memory = '1 MB': is too little for every way"),
        (("--activation", "three"), "--activation = 'three': "),
        (("--out", "plan.pdf"), "--out = 'plan.pdf': must end in .png or .svg or .html"),
        (("--batch", "8"), "--batch = 8: does not go with a profile, whose batch is"),
    ],
)
def test_bad_input_has_one_message_with_its_cure(files: Path, options: tuple[str, ...], words: str) -> None:
    result = run(files, *options)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(words)
    assert "Cure: " in str(result.exception)


def test_a_cluster_file_without_its_table_is_refused(files: Path) -> None:
    (files / "cluster.toml").write_text("steps = 3\n")
    result = run(files)
    assert isinstance(result.exception, InputError)
    assert "has no [cluster] table with workers" in str(result.exception)


def test_the_picture_has_a_point_for_each_way(small: Profile) -> None:
    found = list(plan(ways(small, CLUSTER)))
    shown = drawn(found, 80e9)
    points = sum(len(trace.x) for trace in shown.figure.data if trace.mode == "markers")
    assert points == len(shown.table) == len(found)


@pytest.mark.parametrize(("room", "lines"), [(1.0, 1), (2.5, 1), (50.0, 0)])
def test_a_device_far_larger_than_the_ways_does_not_squeeze_the_picture(
    small: Profile, room: float, lines: int
) -> None:
    """room: of a device, as a multiple of what the largest way holds."""
    found = list(plan(ways(small, CLUSTER)))
    most = max(way.held.total for way in found)
    shown = drawn(found, room * most)
    assert len(shown.figure.layout.shapes) == lines
    right = shown.figure.layout.xaxis.range[1]
    assert right == pytest.approx(1.06 * (room if lines else 1.0) * most / 1e9)
    assert ("far more than is drawn" in shown.summary) == (not lines)


@pytest.mark.parametrize("first", [0.00201, 0.00501, 0.112])
@pytest.mark.parametrize("ratio", [1.0, 1.3, 4.0, 9.99, 10.0, 37.0, 1e4])
def test_the_axis_of_time_has_numbers_wherever_the_ways_lie(small: Profile, first: float, ratio: float) -> None:
    times = zip(ways(small, CLUSTER)[:2], (first, first * ratio), strict=True)
    found = [replace(way, seconds_per_sample=seconds, exposed_share=0.0) for way, seconds in times]
    axis = drawn(found).figure.layout.yaxis
    if axis.type == "log":
        assert sum(1e3 * first <= tick <= 1e3 * first * ratio for tick in axis.tickvals) >= 3
    else:
        assert axis.range[0] == 0.0
        assert axis.range[1] < 11.0 * 1e3 * first


def test_the_picture_shows_prices_where_they_decide(small: Profile) -> None:
    found = list(plan(ways(small, CLUSTER, cost={"price_per_hour": 2.0})))
    shown = drawn(found, by="price")
    (line,) = [trace for trace in shown.figure.data if trace.mode == "lines"]
    assert line.y == pytest.approx([1e6 * way.price_per_sample for way in frontier(found, "price")])
    assert shown.figure.layout.yaxis.title.text == "price of a million samples"


@pytest.mark.parametrize(
    ("ratio", "told"), [(1.031, "3.1 % slower"), (1.99, "99 % slower"), (13.5, "13.5 times the time"),
                        (4e5, "more than 1000 times the time")],
)  # fmt: skip
def test_the_runner_up_is_told_in_words_that_fit(small: Profile, ratio: float, told: str) -> None:
    way = ways(small, CLUSTER | {"workers": 1})[0]
    found = [replace(way, seconds_per_sample=seconds, exposed_share=0.0) for seconds in (2.0, 2.0 * ratio)]
    assert told in verdict(found)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ((2.0, 0.5), (3.0, 0.6), "communication that nothing hides takes 1 s of a sample against 1.8 s."),
        ((2.0, 0.5), (3.0, 0.4), "computing and waiting take 1 s of a sample against 1.8 s."),
        ((2.0, 0.5), (3.0, 0.1), "computing and waiting take 1 s of a sample against 2.7 s."),  # and it exposes less
        ((2.0, 0.1), (3.0, 0.4), "communication that nothing hides takes 200 ms of a sample against 1.2 s."),
    ],
)
def test_the_reason_is_what_differs_most(
    small: Profile, first: tuple[float, float], second: tuple[float, float], told: str
) -> None:
    way = ways(small, CLUSTER | {"workers": 1})[0]
    found = [replace(way, seconds_per_sample=seconds, exposed_share=share) for seconds, share in (first, second)]
    assert verdict(found).endswith(f": {told}")


@pytest.mark.parametrize(("by", "word"), [("time", "faster"), ("price", "cheaper")])
@pytest.mark.parametrize(("ratio", "near"), [(1.009, True), (1.011, False)])
def test_no_reason_is_given_for_a_difference_that_predictions_cannot_tell(
    small: Profile, by: Any, word: str, ratio: float, near: bool
) -> None:
    priced = ways(small, CLUSTER, cost={"price_per_hour": 2.0})
    alone, *_ = (way for way in priced if way.scenario.cluster.workers == 1)
    one, other, *_ = (way for way in priced if way.scenario.cluster.workers == 4)
    for first, second in ((one, other), (alone, one)):
        first, second = (replace(way, seconds_per_sample=2.0, exposed_share=0.0) for way in (first, second))
        dearer = (second.price_per_sample or 0.0) / (first.price_per_sample or 1.0) if by == "price" else 1.0
        told = verdict([first, replace(second, seconds_per_sample=2.0 * ratio / dearer)], by)
        assert told.endswith(f"too near to tell which is {word} in a real run.") == near
        assert f", {100 * (ratio - 1):.3g} %" in told


def test_a_bucket_for_all_layers_is_one_bucket(small: Profile) -> None:
    names = [way.name for way in ways(small, CLUSTER) if way.scenario.policy.kind == "ddp"]
    assert "ddp, one bucket, ring, 4 workers" in names
    assert len(set(names)) == len(names)
