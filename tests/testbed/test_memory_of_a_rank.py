"""What the memory of a rank holds: its own file and its own arguments, and nothing of the grader or of other ranks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from distsim.testbed import Testbed
from tests.testbed import search
from tests.testbed.confined import confining

pytestmark = [confining, pytest.mark.real]
LAB = Path(__file__).parent / "lab"


def test_a_ranks_memory_holds_its_own_file_and_arguments_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has power, since it finds what is the rank's own."""
    monkeypatch.setenv("DISTSIM_TEST_TOKEN", search.secret("environment"))
    (tmp_path / "ranks.py").write_bytes((LAB / "ranks.py").read_bytes())
    (tmp_path / "tasks.py").write_text(f"{Path(search.__file__).read_text()}\n# {search.secret('own')}\n")
    for name in ("checks", "solution"):
        (tmp_path / f"{name}.py").write_text(f"# {search.secret(name)}\n")
    secret = os.open(tmp_path / "solution.py", os.O_RDONLY)
    os.set_inheritable(secret, True)
    with Testbed(tmp_path) as testbed:
        earlier, run = (
            testbed.run("searched", [{"argument": search.secret(kind)} for kind in kinds], deadline_seconds=200.0)
            for kinds in (("earlier", "earlier"), ("first", "second"))
        )
    os.close(secret)
    assert (earlier.failure, run.failure) == (None, None)
    assert [result["memory"] for result in run.results] == [["first", "own"], ["own", "second"]]
    assert [(result["processes"], result["loaded"]) for result in run.results] == [(["own"], [])] * 2  # its folder's


SUBMISSION = '''
"""Takes the functions of the solution from wherever they can be read."""
import os, pathlib, sys
import distsim
from distsim import material

KNOWN = {known!r}
package = pathlib.Path(distsim.__file__).parent
places = [*KNOWN, *os.environ.values(), "/proc/1/cwd", "/proc/1/root", "/proc/self/cwd", os.getcwd()]
places += [package.parent, package, material.home(), *sys.path]
below = ["", "labs/03_ring/solution.py", "03_ring/solution.py", "solution.py", "other.py"]
files = [pathlib.Path(place) / name for place in places for name in below]
files += [pathlib.Path(f"/proc/self/fd/{{number}}") for number in range(3, 100)]
for file in files:
    try:
        text = file.read_text()
    except (OSError, ValueError):
        continue
    if "def ring_all_reduce" in text and "KNOWN" not in text and "NotImplementedError" not in text:
        exec(text, globals())
        break
'''


@pytest.mark.more
@pytest.mark.parametrize("trusted", [False, True])
def test_a_solution_that_is_read_gives_no_points(tmp_path: Path, trusted: bool) -> None:
    """Without confinement it gives points: the submission finds it."""
    from distsim.grading.lab import Lab

    lab = Lab.at(Path(__file__).parents[2] / "labs" / "03_ring")
    classmate, own = tmp_path / "ada" / "tasks.py", tmp_path / "bob"
    for folder in (classmate.parent, own):
        folder.mkdir()
    classmate.write_bytes((lab.folder / "solution.py").read_bytes())
    for path in lab.pristine:
        (own / path.name).write_bytes(path.read_bytes())
    (own / "tasks.py").write_text(SUBMISSION.format(known=[str(classmate), str(lab.folder / "solution.py")]))
    names = ["chunks_are_even_views", "predictions"] if trusted else list(lab.checks)
    with Testbed(own, trusted=trusted) as testbed:
        points = [lab.checks[name].judged(testbed).points for name in names]
    assert all(points) if trusted else not any(points)
