"""Mutants are tried on the checks, and those named equivalent are compared with the solution."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from distsim.cli.main import main
from distsim.errors import InputError, RunError
from distsim.grading.lab import Lab
from distsim.grading.power import score
from distsim.grading.power.equivalent import EQUIVALENT, equivalents
from distsim.grading.power.evidence import called, difference, fitting, seen
from distsim.grading.power.mutant import all_mutants
from distsim.grading.power.score import Outcome, Trial, power
from distsim.testbed import Collective, Log, Message, Run
from distsim.testbed.log import Note

WAIT_DROPPED = "solution:total:7:drop_wait"
WRONG = "solution:Counter.add:1:other_operator"
FEWER_ROUNDS = "solution:total:3:first_turn_alone#2"
ONE_BARRIER_MORE = "solution:total:0:needless_exchange"
ENTRY = '["{key}"]\nline = {line}\nreason = "A number for testing."\ndiffers = {differs}\n'


def entry(lab: Lab, key: str, *differs: str) -> None:
    """Names a mutant in the lab's equivalent.toml."""
    (lab.folder / EQUIVALENT).write_text(
        ENTRY.format(key=key, line=json.dumps(all_mutants(lab)[key].line), differs=json.dumps(differs))
    )


def test_an_entry_names_a_mutant_its_line_and_a_reason(lab: Lab) -> None:
    made = all_mutants(lab)
    assert equivalents(lab, made) == {}
    entry(lab, WAIT_DROPPED)
    assert equivalents(lab, made)[WAIT_DROPPED].line == "sending.wait()"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["solution:total:7:drop_weight"]\nline = "a"\nreason = "There is one."', "is the key of no mutant"),
        (f'["{WAIT_DROPPED}"]\nline = "sent.wait()"\nreason = "Nobody waits."', r"there it is 'sending.wait\(\)' now"),
        (f'["{WAIT_DROPPED}"]\nline = "sending.wait()"', "Field required"),
        (f'["{WAIT_DROPPED}"]\nline = "sending.wait()"\nreason = ""', "at least 10 characters"),
        (f'["{WAIT_DROPPED}', "is not TOML"),
    ],
)
def test_a_wrong_entry_is_refused(lab: Lab, text: str, words: str) -> None:
    (lab.folder / EQUIVALENT).write_text(text)
    with pytest.raises(InputError, match=words):
        equivalents(lab, all_mutants(lab))


def run(results: object = 1, ended: float = 2.0, num_bytes: int = 8, seconds: float = 3.0) -> Run:
    log = Log(
        messages=[Message(0, 1, 0, num_bytes, 0.0, 1.0, ended)],
        collectives=[Collective("barrier", (0, 1), 0, (0.0, 0.0), 0.0, 0.0)],
        notes=[Note(0, "called", "total", 0.0), Note(0, "other", "count", 0.0)],
    )
    return Run([results], [None], log=log, seconds=seconds)


@pytest.mark.parametrize(
    ("other", "differing"),
    [
        (run(), ""),
        (run(2), "the results of run 1"),
        (run(ended=2.5), "the messages of run 1"),
        (run(num_bytes=4), "the messages of run 1"),
        (run(seconds=3.5), "the virtual time of run 1"),
        (run(seconds=3.0 + 1e-14), ""),
    ],
)
def test_whatever_checks_could_see_is_compared(other: Run, differing: str) -> None:
    assert difference(seen([run()]), seen([other])) == differing


def test_what_a_lab_leaves_to_students_may_differ() -> None:
    other = run(ended=2.5, seconds=3.5)
    assert difference(seen([run()]), seen([other]), ["messages", "virtual time"]) == ""
    assert difference(seen([run()]), seen([other]), ["messages"]) == "the virtual time of run 1"


def test_the_only_exchange_is_told_as_one() -> None:
    silent = Run([1], [None])
    assert difference(seen([silent]), seen([run()])) == "the messages of run 1"
    assert difference(seen([silent]), seen([run()]), ["messages", "collectives", "virtual time"]) == ""


def test_one_more_run_or_collective_is_a_difference() -> None:
    more = run()
    more.log.collectives *= 2
    assert difference(seen([run()]), seen([more])) == "the collectives of run 1"
    assert difference(seen([run()]), seen([run(), run()])) == "the number of runs"


def test_results_that_are_a_matter_of_chance_are_not_compared() -> None:
    one, other = replace(run(1), by_chance=True), replace(run(2), by_chance=True)
    assert difference(seen([one]), seen([other])) == ""


def test_the_functions_that_runs_call() -> None:
    assert called([run(), Run([1], [None])]) == {"total"}


def test_checks_fit_that_call_a_function_or_its_callers() -> None:
    called_by: dict[str, set[str]] = {"sums": {"total"}, "counts": {"count"}, "on_gloo": set()}
    callers = {"add": {"add", "total"}, "count": {"count"}}
    assert fitting(called_by, callers, "add") == ["sums", "on_gloo"]
    assert fitting(called_by, callers, "module") == ["sums", "counts", "on_gloo"]


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(600)
def test_outcomes_of_a_tiny_lab(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that a fitting check catches, one that changes nothing, and one that is only said to change nothing."""
    monkeypatch.setattr(score, "selected", lambda made: [one for one in made if one.key in (WRONG, WAIT_DROPPED)])
    doings: list[str] = []

    def tried() -> dict[str, Outcome]:
        with ThreadPoolExecutor(1) as pool:
            trial = Trial.of(lab, keys=[], sample=None)
            found = power(trial, pool, tmp_path, seed=None, report=lambda phase: doings.append(phase.doing))
        assert found.holds == (not {"survivor", "differs"} & {one.kind for one in found.outcomes})
        return {one.mutant.key: one for one in found.outcomes}

    with closing(score._bed(str(lab.folder), lab.key, str(tmp_path))[0]):  # the pool's, since its thread is in here
        first = tried()
        assert {key: one.kind for key, one in first.items()} == {WRONG: "killed", WAIT_DROPPED: "survivor"}
        assert (first[WRONG].check, first[WRONG].said) == ("the_counter_counts", "[-2, -5, -10]")
        assert doings[-1] == "mutant 2 of 2"
        entry(lab, WAIT_DROPPED)
        assert tried()[WAIT_DROPPED].kind == "equivalent"
        entry(lab, ONE_BARRIER_MORE, "messages", "virtual time")
        assert tried()[ONE_BARRIER_MORE].said.startswith("named equivalent, but the collectives of run 1 differ")
        entry(lab, ONE_BARRIER_MORE, "messages", "virtual time", "collectives")
        assert tried()[ONE_BARRIER_MORE].kind == "allowed"
        entry(lab, FEWER_ROUNDS)
        differing = tried()[FEWER_ROUNDS]
        assert (differing.kind, differing.check) == ("differs", "every_rank_has_the_sum")
        assert differing.said == "named equivalent, but the results of run 1 differ with the seed 0"
        path = lab.folder / "solution.py"
        path.write_text(path.read_text().replace("+ number", "- number"))
        with pytest.raises(RunError, match=r"its own solution\.py loses points"):
            tried()


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(600)
def test_the_command_leaves_nothing_behind(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    arguments = ["lab", "power", "90", "--sample", "2", "--labs", str(shelf), "--json"]
    monkeypatch.setattr(sys, "argv", ["distsim", *arguments])
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    table = json.loads(capsys.readouterr().out)
    assert (table["lab"], table["mutants"]) == ("90_sum", 2)
    assert code == int(any(one["outcome"] in ("survivor", "differs") for one in table["outcomes"]))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_released_lab_has_no_mutants(lab: Lab) -> None:
    (lab.folder / "solution.py").unlink()
    with pytest.raises(InputError, match=r"has no solution\.py"):
        all_mutants(lab)


def test_contents_of_files_stand_beside_the_other_results() -> None:
    def evidence(content: bytes, total: int) -> list[tuple[str, object]]:
        return seen([Run([{"files": {"a": [content]}, "total": total}], [None])])

    same = evidence(b"old", 1)
    assert difference(same, evidence(b"old", 1)) == ""
    assert difference(same, evidence(b"new", 1)) == "the bytes of run 1"
    assert difference(same, evidence(b"new", 1), ["bytes"]) == difference(same, evidence(b"new", 1), ["results"]) == ""
    assert difference(same, evidence(b"old", 2), ["bytes"]) == "the results of run 1"
