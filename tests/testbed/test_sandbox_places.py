"""What a rank can read wherever the repository and the class lie, for root and for an ordinary user."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import distsim
from distsim.errors import InputError
from distsim.grading.trust import check_unseen
from distsim.testbed import linux_calls
from distsim.testbed.namespaces import python_places
from tests.testbed import search
from tests.testbed.confined import confining

pytestmark = [confining]

PACKAGES = sysconfig.get_path("purelib")
PLACES = ("/opt", "/srv", "/home/teacher", "/tmp/class")
SECRETS = {
    "solution": "repository/labs/03_ring/solution.py",
    "history": "repository/.git/objects/5a/7e",
    "classmate": "class/ada/tasks.py",
    "grade": "grades/results/ada.json",
    "checks": "class/bob/checks.py",
    "neighbour": "note.txt",
}
ORDINARY = 1234  # a user id that nobody has

PROGRAM = """
import json, os, sys
from pathlib import Path
import distsim
from distsim.testbed.capped_output import Capped
from distsim.testbed.sandbox import Sandbox
from tests.testbed import search

place, paths, trusted = Path(sys.argv[1]), sys.argv[2].split(":"), len(sys.argv) > 3
assert distsim.__file__ == str(place / "repository/distsim/__init__.py"), distsim.__file__
opened = os.open(place / "note.txt", os.O_RDONLY)
os.set_inheritable(opened, True)

def body():
    package = os.path.dirname(distsim.__file__)
    beside = [f"{package}/../labs/03_ring/solution.py", f"{package}/course_and_labs/labs/03_ring/solution.py"]
    import wave, zoneinfo, msgpack.fallback  # what a rank may import is there
    print(json.dumps({
        "user": os.getuid(),
        "files": sorted(search.in_files([*paths, *beside])),
        "processes": [] if trusted else sorted(search.in_processes()),
        "work": sorted(os.listdir(".")),
    }))

with Sandbox.start([body], folder=place / "class/bob", names=["tasks.py"], trusted=trusted) as sandbox:
    output = Capped(sandbox.outputs[0])
    output.read_all()
    sandbox.wait(60.0)
print(os.getuid(), output.text)
"""


def _installed(place: Path) -> None:
    """Lays the repository, a class and its grades in an empty file system at this place. In the test's own process."""
    linux_calls.mount_new("tmpfs", str(place if place.is_dir() else place.parent), "mode=755")
    package = place / "repository/distsim"
    package.mkdir(parents=True)
    linux_calls.mount_again(distsim.__path__[0], str(package))
    (place / "repository/pyproject.toml").touch()
    for kind, name in SECRETS.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(f"# {search.secret(kind)}\n")
    (place / "class/bob/tasks.py").write_text("answer = 42\n")


def _open_the_way() -> None:
    """Makes Python and these tests reachable for an ordinary user, as they are where such a user has installed them."""
    tests = os.path.dirname(os.path.dirname(search.__file__))
    sources = {place: os.open(place, os.O_PATH) for place in (*python_places(), tests)}
    above = {folder for place in sources for folder in Path(place).parents}
    for folder in sorted(str(folder) for folder in above if not folder.stat().st_mode & stat.S_IXOTH):
        linux_calls.mount_new("tmpfs", folder, "mode=755")
        for place, source in sources.items():
            if place.startswith(f"{folder}/") and stat.S_ISDIR(os.fstat(source).st_mode):
                os.makedirs(place, exist_ok=True)
                linux_calls.mount_again(f"/proc/self/fd/{source}", place)


def _prepare(place: Path, user: int) -> None:
    """Turns the process, before it becomes the program, into one of a machine on which all that is installed."""
    if os.getuid() == 0:
        linux_calls.unshare(linux_calls.NEW_MOUNT)
    else:
        linux_calls.unshare(linux_calls.NEW_USER | linux_calls.NEW_MOUNT)
        for name, number in (("uid_map", user), ("gid_map", os.getgid())):
            if name == "gid_map":
                Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self", name).write_text(f"{number} {number} 1")
    linux_calls.mount_apart()
    if user != os.getuid():
        _open_the_way()
    _installed(place)
    if user != os.getuid():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    os.environ["HOME"] = str(place)


def _found(place: Path, user: int, *further: str) -> dict[str, list[str]]:
    program = [sys.executable, "-c", PROGRAM, str(place), ":".join(str(place / name) for name in SECRETS.values())]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{place}/repository:{Path(search.__file__).parents[2]}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "DISTSIM_TEST_TOKEN": search.secret("environment"),
    }
    ended = subprocess.run(
        [*program, *further], capture_output=True, text=True, env=environment, check=False, cwd="/",
        preexec_fn=lambda: _prepare(place, user),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    started_by, _, text = ended.stdout.partition(" ")
    assert int(started_by) == user
    assert text.startswith("{"), text
    return json.loads(text)


USERS = [0, ORDINARY] if os.getuid() == 0 else [os.getuid()]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("place", PLACES)
def test_labs_submissions_and_grades_do_not_exist_for_a_rank(place: str, user: int) -> None:
    found = _found(Path(place), user)
    assert (found["files"], found["processes"], found["work"]) == ([], [], ["tasks.py"])


def test_a_repository_among_pythons_packages_does_not_exist_and_a_class_there_is_refused() -> None:
    place = Path(PACKAGES, "pip")
    found = _found(place, os.getuid())
    assert set(found["files"]) == {"classmate", "grade", "neighbour"}
    with pytest.raises(InputError, match=r"--all = .*pip': lies in .*, which ranks can read"):
        check_unseen("--all", place)
    check_unseen("--all", Path("/opt"))


@pytest.mark.parametrize("user", USERS)
def test_the_search_finds_what_is_there(user: int) -> None:
    found = _found(Path("/opt"), user, "trusted")
    assert set(found["files"]) == set(SECRETS)  # or the test above has no power
