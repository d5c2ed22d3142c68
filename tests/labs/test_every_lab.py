"""Labs have power: a solution has full marks, a stub none, and each wrong solution fails what is meant for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from distsim.grading.lab import RANKS, Lab, all_labs
from distsim.grading.metadata import problems
from distsim.grading.real import FUNCTION, SECONDS, UNWRITTEN
from distsim.grading.release import release
from distsim.grading.result import Result
from distsim.grading.stub import up_to_date
from distsim.testbed import Testbed

LABS = Path(__file__).parents[2] / "labs"
KEYS = [lab.key for lab in all_labs(LABS)]
CAUGHT = re.compile(r"# caught by: (?P<checks>\w+(, \w+)*)\n")
WRONG = [(key, path.stem) for key in KEYS for path in sorted((LABS / key / "wrong").glob("*.py"))]
FEWEST_WRONG = 3


@cache
def caught_by(key: str, name: str) -> set[str]:
    """The checks that a wrong solution's first line names."""
    found = CAUGHT.match((LABS / key / "wrong" / f"{name}.py").read_text())
    assert found, f"the first line of {name}.py does not say which checks catch it"
    return set(found["checks"].split(", "))


def first_of_their_kind(key: str) -> list[tuple[str, str]]:
    """Wrong solutions of a lab, each caught by a check which catches none of those before."""
    seen: set[str] = set()
    found = []
    for name in (name for lab, name in WRONG if lab == key):
        if not caught_by(key, name) <= seen:
            found.append((key, name))
        seen |= caught_by(key, name)
    return found


FIRST = {one for key in dict(WRONG) for one in first_of_their_kind(key)[:3]}
FIRST_LAB = KEYS[0]
GRADED = [pytest.param(key, marks=() if key == FIRST_LAB else pytest.mark.more) for key in KEYS]


def when(key: str, name: str) -> Sequence[pytest.MarkDecorator]:
    """The mark of the stage that grades this wrong solution; `make test` grades two of the first lab."""
    if (key, name) in first_of_their_kind(FIRST_LAB)[:2]:
        return ()
    return [pytest.mark.more if (key, name) in FIRST else pytest.mark.thorough]


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    with Testbed(tmp_path_factory.mktemp("lab")) as bed:
        yield bed


def graded(testbed: Testbed, key: str, tasks: str, names: Collection[str] = ()) -> dict[str, Result]:
    """What the checks of a lab find in this tasks.py: those named, or all of them."""
    lab = Lab.at(LABS / key)
    for path in lab.pristine:
        (testbed.folder / path.name).write_bytes(path.read_bytes())
    (testbed.folder / "tasks.py").write_text(tasks)
    return {name: check.judged(testbed) for name, check in lab.checks.items() if not names or name in names}


@cache
def kept(key: str, name: str) -> float:
    """The points that a wrong solution keeps: some checks give a part for right results at too high a price."""
    wrong = (LABS / key / "wrong" / f"{name}.py").read_text()
    with TemporaryDirectory() as folder, Testbed(Path(folder)) as bed:
        return sum(result.points for result in graded(bed, key, f"{solution(key)}\n\n{wrong}").values())


def solution(key: str) -> str:
    return (LABS / key / "solution.py").read_text()


def told(results: dict[str, Result]) -> str:
    return "\n".join(result.text() for result in results.values() if not result.full)


@pytest.mark.real
@pytest.mark.parametrize("key", GRADED)
@pytest.mark.parametrize("file", ["solution.py", "other.py"])
def test_a_right_solution_has_full_marks(testbed: Testbed, key: str, file: str) -> None:
    results = graded(testbed, key, (LABS / key / file).read_text())
    assert all(result.full for result in results.values()), told(results)


@pytest.mark.real
@pytest.mark.parametrize("key", GRADED)
def test_the_stub_has_nothing_and_each_check_says_what_to_write(testbed: Testbed, key: str) -> None:
    results = graded(testbed, key, (LABS / key / "tasks.py").read_text())
    for result in results.values():
        assert result.points == 0.0, result.text()
        assert "NotImplementedError: write " in result.observed, result.text()
        assert "tasks.py:" in result.observed


@pytest.mark.real
@pytest.mark.parametrize(("key", "name"), [pytest.param(*one, marks=when(*one)) for one in WRONG])
def test_a_wrong_solution_loses_what_is_meant_for_it_and_keeps_the_rest(
    testbed: Testbed, key: str, name: str, whole: Callable[[int, int], int]
) -> None:
    """Reduced, three of a lab are tried, on the checks that catch them and one more; whole, all on all."""
    wrong, caught = (LABS / key / "wrong" / f"{name}.py").read_text(), caught_by(key, name)
    others = [check for check in Lab.at(LABS / key).checks if check not in caught]
    names = [*caught, *others[: whole(1, len(others))]]
    results = graded(testbed, key, f"{solution(key)}\n\n{wrong}", names)
    assert {result.check for result in results.values() if not result.full} == caught, told(results)
    assert not any("could not be judged" in result.observed for result in results.values()), told(results)


@pytest.mark.parametrize("key", KEYS)
def test_a_lab_is_whole(key: str) -> None:
    lab = Lab.at(LABS / key)
    assert 4 <= len(lab.checks) <= 8
    assert 10 <= lab.points <= 20
    assert up_to_date(lab), f"tasks.py is not what solution.py gives: distsim lab stub {lab.number}"
    assert problems(lab) == []


@pytest.mark.parametrize("key", KEYS)
def test_lab_run_has_every_argument_that_it_must_give(key: str) -> None:
    """`distsim lab run` gives `real` no argument but tasks, seconds and unwritten."""
    tree = ast.parse((LABS / key / RANKS).read_text())
    for found in (node.args for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION):
        needed = [one.arg for one in found.args[: len(found.args) - len(found.defaults)]]
        needed += [one.arg for one, value in zip(found.kwonlyargs, found.kw_defaults, strict=True) if value is None]
        assert {*needed} <= {"tasks", SECONDS, UNWRITTEN}


@pytest.mark.parametrize("key", KEYS)
def test_every_check_has_a_wrong_solution_that_it_catches(key: str) -> None:
    names = [name for one, name in WRONG if one == key]
    assert len(names) >= FEWEST_WRONG
    assert set().union(*(caught_by(key, name) for name in names)) == set(Lab.at(LABS / key).checks)


def table() -> Iterator[str]:
    """The rows of the table in labs/README.md."""
    checks = {key: list(Lab.at(LABS / key).checks) for key in KEYS}
    for key, name in WRONG:
        caught = ", ".join(f"`{check}`" for check in checks[key] if check in caught_by(key, name))
        yield f"| {key} | {name.replace('_', ' ')} | {caught} |"


def test_the_instructors_table_is_this_one() -> None:
    page = (LABS / "README.md").read_text().splitlines()
    rows = list(table())
    assert [row for row in rows if row not in page] == []
    assert "\n".join(rows) in "\n".join(page)


def test_all_of_them_can_be_released_together(tmp_path: Path) -> None:
    """A driver of one lab may hold a line of another one's solution."""
    assert release(all_labs(LABS), tmp_path / "out")
