"""What a check is worth, whatever it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from distsim.errors import InputError, RunError
from distsim.grading import Finding, Result, check
from distsim.grading.check import Check, checks_in
from distsim.grading.feedback import feedback
from distsim.grading.grade import Grade
from distsim.grading.lab import all_labs
from distsim.testbed import Testbed


def of(function: Any) -> Check:
    return check(points=4, hint="Think.")(function)


@pytest.mark.parametrize(("share", "points"), [(1.0, 4.0), (0.5, 2.0), (1 / 3, 1.33), (0.0, 0.0)])
def test_points_are_the_share(share: float, points: float) -> None:
    result = of(lambda _: Finding.of(observed=1, expected=2, share=share, where="rank 3")).judged(Testbed(Path()))
    assert (result.points, result.maximum, result.full) == (points, 4.0, share == 1.0)
    assert (result.observed, result.expected, result.where, result.hint) == ("1", "2", "rank 3", "Think.")
    assert Result(**json.loads(json.dumps(result.as_dict()))) == result


def test_a_finding_of_another_rule_has_its_own_hint() -> None:
    function = check(points=4, hint="Think.", how="Like this.")(
        lambda _: Finding.of(observed=1, expected=2, share=0.5, hint="Look there.")
    )
    result = function.judged(Testbed(Path()))
    assert (result.points, result.hint, result.how) == (2.0, "Look there.", "")


@pytest.mark.parametrize("given", [{}, {"passed": True, "share": 1.0}, {"share": 1.5}, {"share": float("nan")}])
def test_a_finding_says_one_thing(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="share"):
        Finding.of(observed=1, expected=1, **given)


def raising(_testbed: object) -> Finding:
    return {}["missing"]


@pytest.mark.parametrize(
    ("function", "words"), [(raising, "KeyError: 'missing'"), (lambda _: True, "a check returns a Finding, not bool")]
)
def test_a_check_that_raises_costs_its_points_and_says_so(function: Any, words: str) -> None:
    result = of(function).judged(Testbed(Path()))
    assert result.points == 0.0
    assert words in result.observed


def test_the_line_of_the_check_is_told(tmp_path: Path) -> None:
    text = "from distsim.grading import check\n\n@check(points=1, hint='h')\ndef one(testbed):\n    return 1 / 0\n"
    (tmp_path / "checks.py").write_text(text)
    assert "(checks.py, line 5)" in checks_in(tmp_path / "checks.py")["one"].judged(Testbed(tmp_path)).observed


def test_checks_may_have_dataclasses(tmp_path: Path) -> None:
    """These look up their own module by name."""
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom distsim.grading import check\n"
        "@dataclass\nclass Trial:\n    world: int\n"
        "@check(points=1, hint='h')\ndef one(testbed):\n    return Trial(2)\n"
    )
    (tmp_path / "checks.py").write_text(text)
    assert "one" in checks_in(tmp_path / "checks.py")


def test_that_no_rank_starts_is_no_fault_of_the_submission() -> None:
    def refused(_testbed: object) -> Finding:
        raise RunError("no ranks")

    with pytest.raises(RunError):
        of(refused).judged(Testbed(Path()))


@pytest.mark.parametrize(
    "given", [{"points": 0, "hint": "h"}, {"points": float("inf"), "hint": "h"}, {"points": 1, "hint": " "}]
)
def test_a_check_has_points_and_a_hint(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        check(**given)


@pytest.mark.parametrize(("text", "words"), [("x = ", "SyntaxError"), ("x = 1", "no function under @check")])
def test_a_file_without_checks_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "checks.py").write_text(text)
    with pytest.raises(InputError, match=words):
        checks_in(tmp_path / "checks.py")


def test_floods_and_control_characters_are_tamed() -> None:
    found = Finding.of(observed="\x1b[2J" + "x" * 10**6 + " the end", expected="", passed=False)
    assert len(found.observed) <= 2000
    assert "\x1b" not in found.observed
    assert found.observed.endswith(" the end")


@pytest.mark.parametrize("points", [0.0, 1.0])
@pytest.mark.parametrize("said", ["write one: Gives 1.", "not for floats"])
def test_of_what_is_still_to_be_written_only_that_is_told(said: str, points: float) -> None:
    """In the terminal and the notebook, which print the text, and in the feedback."""
    result = Result("one", points, 2.0, f"rank 0: NotImplementedError: {said}", "six", "rank 1", "Think.")
    page = feedback(Grade("ada", "90_sum", "ada/tasks.py", "", "", 7, [result], []))
    alone = said.startswith("write") and points == 0.0
    for text in (result.text(), page):
        assert said in text
        for name, reason in (("expected", "six"), ("where", "rank 1"), ("hint", "Think.")):
            assert (f"{name}:" in text.lower()) == (reason in text) == (not alone)


def test_a_check_draws_the_same_from_the_same_seed_and_name_alone() -> None:
    """What other checks draw, before or in between, changes nothing."""
    drawn: dict[str, list[float]] = {}

    def one(testbed: Testbed) -> Finding:
        drawn.setdefault("one", []).append(testbed.rng.random())
        return Finding.of(observed="", expected="", passed=True)

    def two(testbed: Testbed) -> Finding:
        drawn.setdefault("two", []).extend(testbed.rng.random(3))
        return Finding.of(observed="", expected="", passed=True)

    for order, seed in (([one, two], 7), ([two, one, one], 7), ([one, two], 8)):
        testbed = Testbed(Path(), seed=seed)
        for function in order:
            of(function).judged(testbed)
    first, again, third, other = drawn["one"]
    assert first == again == third != other
    assert drawn["two"][:3] == drawn["two"][3:6] != drawn["two"][6:]
    assert first not in drawn["two"]


def test_checks_of_every_lab_are_imported_without_what_ranks_need() -> None:
    """So that labs can be listed where torch is not installed."""
    program = (
        "import sys; from pathlib import Path; from distsim.grading.lab import all_labs\n"
        "sys.modules.update(torch=None, msgpack=None)\n"
        "print(sum(len(lab.checks) > 3 for lab in all_labs(Path(sys.argv[1]))))"
    )
    labs = Path(__file__).parents[2] / "labs"
    done = subprocess.run([sys.executable, "-c", program, str(labs)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(all_labs(labs))
