"""What a hostile body can reach outside of its sandbox: nothing."""

from __future__ import annotations

import ast
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from distsim.testbed.namespaces import _needed, python_places
from distsim.testbed.process_end import ProcessEnd
from tests.testbed.confined import TRUST, answer_of, confining, enclosed

pytestmark = pytest.mark.usefixtures("nothing_left")


def _tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in (folder, *folder.rglob("*"))
    }


@confining
@pytest.mark.parametrize("place", ["/", "/etc", "/usr/lib", "/root", "/home", "/run", "/dev", "/var/tmp", "/proc/sys"])
def test_nothing_outside_can_be_written(folder: Path, place: str) -> None:
    assert "Error" in answer_of(lambda: Path(place, "distsim_was_here").write_text("x"), folder)
    assert not os.path.exists(f"{place}/distsim_was_here")


@confining
def test_packages_cannot_be_changed(folder: Path) -> None:
    place = Path(psutil.__file__)
    assert "Read-only file system" in answer_of(lambda: place.write_text("raise SystemExit"), folder)
    assert "Read-only file system" in answer_of(place.unlink, folder)


@TRUST
def test_the_folder_of_the_caller_stays_as_it_is(folder: Path, trusted: bool) -> None:
    before = _tree(folder)

    def destroy() -> None:
        print(sorted(os.listdir()), Path("tasks.py").read_text())
        Path("tasks.py").write_text("answer = 43")
        for name in os.listdir():
            shutil.rmtree(name) if Path(name).is_dir() else os.remove(name)
        shutil.rmtree(".", ignore_errors=True)

    ((ending, text),) = enclosed(destroy, folder=folder, trusted=trusted)
    assert (ending, text) == (ProcessEnd(code=0), "['tasks.py'] answer = 42\n\n")
    assert _tree(folder) == before


@confining
def test_a_link_in_the_folder_opens_nothing(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("solution")
    (folder / "link").symlink_to(secret)
    assert "FileNotFoundError" in answer_of(Path("link").read_text, folder)
    assert "FileNotFoundError" in answer_of(secret.read_text, folder)


@confining
def test_material_among_pythons_packages_is_empty_and_what_python_needs_below_it_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = Path(sysconfig.get_path("purelib"))
    monkeypatch.setattr("distsim.testbed.sandbox.material_places", lambda: [packages / "click", packages.parent])

    def looks() -> object:
        import wave

        from scipy import fft

        return sorted(os.listdir(packages.parent)), os.listdir(packages / "click"), wave.__name__, fft.__name__

    assert answer_of(looks, folder) == "(['site-packages'], [], 'wave', 'scipy.fft')"
    assert "Read-only file system" in answer_of((packages / "click" / "x").touch, folder)


@confining
def test_little_of_the_machine_exists(folder: Path) -> None:
    places = {Path(place).parts[1] for place in python_places()}
    assert set(ast.literal_eval(answer_of(lambda: os.listdir("/"), folder))) == {"dev", "etc", "proc", "tmp", *places}
    assert answer_of(lambda: pwd.getpwuid(os.getuid()).pw_name, folder) == "student"
    assert answer_of(socket.gethostname, folder) == "localhost"
    for place in ("/sys", "/var", "/etc/shadow", "/usr/src", "/usr/share/doc", *map(str, Path.home().glob(".bash*"))):
        assert answer_of(lambda place=place: os.path.lexists(place), folder) == "False"


def test_mounts_are_made_where_the_machine_has_something_else() -> None:
    sources = {"/a": 1, "/a/b": 2, "/a/c": None, "/a/c/d": 3, "/a/c/d/e": 4, "/a/c/f": None, "/g": None}
    assert list(_needed(sources)) == ["/a", "/a/c", "/a/c/d"]


@TRUST
def test_the_environment_is_clean(folder: Path, trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTSIM_TEST_TOKEN", "secret")
    answer = answer_of(lambda: sorted(os.environ), folder, trusted=trusted)
    assert answer == "['HOME', 'LANG', 'OMP_NUM_THREADS', 'PATH', 'TMPDIR']"


READS_ITS_MEMORY = """
import ctypes, os, sys
from pathlib import Path
from distsim.testbed.sandbox import Sandbox
def where():
    return [int(field) for field in Path("/proc/self/stat").read_text().rpartition(")")[2].split()[47:49]]
start, end = where()
assert b"DISTSIM_TEST_TOKEN=secret" in ctypes.string_at(start, end - start)
def search():
    assert where() in ([start, end], [0, 0]), where()
    print(set(ctypes.string_at(start, end - start)))
with Sandbox.start([search], folder=Path(sys.argv[1])) as sandbox:
    sandbox.wait()
    print(os.read(sandbox.outputs[0], 10000).decode())
"""


@confining
def test_the_first_environment_is_gone_from_memory(folder: Path) -> None:
    environment = {**os.environ, "DISTSIM_TEST_TOKEN": "secret"}
    program = [sys.executable, "-c", READS_ITS_MEMORY, str(folder)]
    said = subprocess.run(program, capture_output=True, text=True, env=environment, check=True).stdout
    assert said.strip() == "{0}"


@confining
def test_the_machine_has_no_network(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        for loopback in (False, True):
            answer = answer_of(lambda: socket.create_connection(address, 2), folder, loopback=loopback)
            assert answer.startswith("ConnectionRefusedError" if loopback else "OSError [Errno 101]")


@confining
@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (lambda: _unshare(0x10000000), "No space left"),
        (lambda: _unshare(0x00020000), "Operation not permitted"),
        (lambda: os.setuid(0), "Errno"),
        (lambda: os.kill(1, signal.SIGKILL) or os.listdir("/proc/1"), "["),  # it lives on
        (lambda: Path("/proc/1/environ").read_bytes(), "Permission denied"),
        (lambda: os.open("/proc/1/mem", os.O_RDONLY), "Permission denied"),
        (lambda: os.open("/dev/tty", os.O_RDWR), "No such file"),
        (lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), "Operation not permitted"),
        (lambda: Path("/proc/sys/user/max_user_namespaces").write_text("9"), "Permission denied"),
    ],
)
def test_no_right_is_left(folder: Path, body: Callable[[], object], refusal: str) -> None:
    assert refusal in answer_of(body, folder)


def _unshare(kinds: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(kinds):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
