"""A class of six: a tuned backup count, an own rule, an own schedule, and three that break the rules."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distsim.contest.problem import Problem, Rules
from distsim.contest.race import Result, check_updates, prediction_points, race, speed_points
from distsim.errors import InputError
from distsim.simulation import simulate
from tests.contest.conftest import RING, Write

ENTRIES = Path(__file__).parent / "entries"
SEEDS = 2
BROKEN = {
    "conjures_bytes": "lacks the part of worker",
    "faster_cluster": "entry.toml changes cluster",
    "loses_work": "has no gradient in it",
}
Run = Callable[..., tuple[int, str, str]]


def raced(run: Run, *options: object) -> dict[str, Any]:
    code, out, err = run("contest", ENTRIES, "--seeds", SEEDS, "--json", *options)
    assert (code, err) == (0, "")
    return dict(json.loads(out))


@pytest.mark.real
@pytest.mark.more
def test_four_kinds_are_ranked_rightly_and_twice_the_same(run: Run, tmp_path: Path) -> None:
    first = raced(run, "--out", tmp_path / "race.html")
    assert raced(run) == first
    assert "own_schedule" in (tmp_path / "race.html").read_text("utf-8")
    entries = {one["name"]: one for one in first["entries"]}
    times = {one["name"]: one["mean_seconds"] for one in [*first["entries"], *first["references"]]}
    assert times["own_schedule"] < times["ring"] < times["server"]  # the tree sends less over the slow NIC at a time
    assert times["own_rule"] < times["tuned_backups"] < times["ring"]
    assert [one["name"] for one in first["references"]] == sorted(
        (one["name"] for one in first["references"]), key=times.__getitem__
    )
    for name, one in entries.items():
        if name in BROKEN:
            assert one["points"] == 0
            assert BROKEN[name] in one["broken"]
        else:
            assert one["points"] == one["speed_points"] + one["prediction_points"] > 0
            error = one["prediction_seconds"] / np.mean(one["seconds"]) - 1
            assert one["prediction_error_pct"] == pytest.approx(100 * error)
    assert {one["name"] for one in first["entries"][-3:]} == set(BROKEN)
    points = [one["points"] for one in first["entries"]]
    assert points == sorted(points, reverse=True)
    assert first["seeds"] == Problem.at(ENTRIES.parents[2] / "labs" / "15_contest").seeds(SEEDS)


def test_the_seeds_are_held_out_and_drawn_from_the_number_of_the_class(problem: Problem) -> None:
    seeds = problem.seeds(50)
    assert len(set(seeds)) == 50
    assert problem.scenario.seed not in seeds
    other = Problem(problem.scenario, problem.rules.model_copy(update={"held_out": 7}), problem.references)
    assert set(other.seeds(50)) != set(seeds)
    assert problem.seeds(10) == seeds[:10]
    unlucky = Problem(problem.scenario.replacing({"seed": seeds[3]}), problem.rules, problem.references)
    assert unlucky.seeds(10) == [seed for seed in seeds[:11] if seed != seeds[3]]


def test_another_number_draws_other_seeds(run: Run, tmp_path: Path) -> None:
    entry = tmp_path / "class" / "[bold]a\x1b[31m"
    entry.mkdir(parents=True)
    shutil.copy(ENTRIES / "faster_cluster" / "entry.toml", entry)
    code, out, err = run("contest", tmp_path / "class", "--seeds", 1, "--held-out", 7)
    assert (code, err) == (0, "")
    assert "[bold]a\\x1b[31m" in out.replace("\n", "")
    assert "\x1b[31m" not in out
    assert "published number" not in out
    assert "published number" in run("contest", tmp_path / "class", "--seeds", 1)[1]
    code, out, _ = run("contest", tmp_path / "class", "--seeds", 3, "--held-out", 7, "--json")
    assert json.loads(out)["seeds"] == Problem.at(ENTRIES.parents[2] / "labs" / "15_contest").drawing_from(7).seeds(3)


def test_points_for_speed() -> None:
    def points(seconds: float) -> float:
        return speed_points(seconds, fastest=12.5, slowest=40.0, most=12.0)

    assert [points(40.0), points(10.0), points(1.0), points(100.0)] == [0.0, 12.0, 12.0, 0.0]
    assert points(20.0) == pytest.approx(6.0)
    assert 9.0 < points(12.5) < 12.0  # as fast as the fastest reference: there is more to win
    assert speed_points(8.0, 10.0, 10.0, 12.0) == 12.0
    assert speed_points(10.0, 10.0, 10.0, 12.0) == 0.0


@pytest.mark.parametrize(
    ("error", "points"), [(None, 0.0), (0.0, 8.0), (-5.0, 8.0), (15.0, 4.0), (-15.0, 4.0), (25.0, 0.0), (90.0, 0.0)]
)
def test_points_for_a_prediction(error: float | None, points: float) -> None:
    assert prediction_points(error, Rules(target=0.3, most_hosts=9, held_out=1)) == pytest.approx(points)


def test_a_run_that_never_arrives_has_no_time_and_no_points() -> None:
    found = Result("slow", "backup", (3.0, math.inf), 5.0)
    assert not found.reaches
    assert (found.mean_seconds, found.interval, found.error_pct, found.points) == (math.inf, None, None, 0.0)


def test_an_update_without_a_gradient_is_found(problem: Problem) -> None:
    trace = simulate(problem.scenario.replacing({"steps": 3}))
    check_updates(trace)
    trace.contributions.applied[trace.contributions.version == 2] = False
    with pytest.raises(InputError, match="update = 2: has no gradient in it"):
        check_updates(trace)


@pytest.mark.real
def test_an_entry_that_is_too_slow_has_points_for_nothing_but_stays_in_the_race(
    written: Write, problem: Problem
) -> None:  # fmt: skip
    found = race(problem, [written(RING, rate="0.0001", name="slow"), written(RING, rate="0.65", name="ada")], [1])
    assert [one.name for one in found.entries] == ["ada", "slow"]
    assert [one.points > 0 for one in found.entries] == [True, False]
    assert [one.reaches for one in found.entries] == [True, False]
    assert found.entries[1].broken is None


@pytest.mark.parametrize(
    ("asked", "told"), [("nowhere", "is no folder"), ("", "holds no entry")], ids=["missing", "empty"]
)
def test_a_folder_without_entries_is_told(run: Run, tmp_path: Path, asked: str, told: str) -> None:
    code, out, err = run("contest", tmp_path / asked)
    assert (code, out) == (2, "")
    assert told in err


def test_a_picture_needs_a_name_that_says_its_kind(run: Run, tmp_path: Path) -> None:
    code, _, err = run("contest", ENTRIES, "--out", tmp_path / "race.gif")
    assert code == 2
    assert "must end in .png or .svg or .html" in err


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("contest.toml", "target = 0.3\nmost_hosts = 9\n", "held_out is missing"),
        ("contest.toml", "target = 0.0\nmost_hosts = 9\nheld_out = 1\n", "target = 0.0"),
        ("contest.toml", "target = 0.3\nmost_hosts = 9\nheld_out = 1\nbeyond_pct = 2.0\n", "must be above within_pct"),
        (
            "references/ring/entry.toml",
            "rate = 1.0\n",
            "reference ring: entry.toml has 2 problems:\n  policy is missing",
        ),
        ("references/ring/entry.toml", f"rate = 0.000001\n{RING}", "reference = 'ring': does not reach the target"),
        ("contest.toml", "target = 5.0\nmost_hosts = 9\nheld_out = 1\n", "is reached before any training"),
        ("scenario.toml", "steps = 3\n", "scenario.toml"),
    ],
)
def test_a_wrong_problem_is_told(run: Run, tmp_path: Path, problem: Problem, file: str, text: str, told: str) -> None:
    folder = tmp_path / "problem"
    shutil.copytree(problem.references[0].parents[1], folder)
    (folder / file).write_text(text)
    code, _, err = run("contest", ENTRIES, "--problem", folder, "--seeds", 1, "--trust")
    assert code == 2
    assert told in err
