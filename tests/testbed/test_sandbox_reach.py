"""What a hostile body can reach outside of its sandbox: nothing."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

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
        print(sorted(os.listdir()), Path("deep/data.txt").read_text())
        Path("tasks.py").write_text("answer = 43")
        for name in os.listdir():
            shutil.rmtree(name) if Path(name).is_dir() else os.remove(name)
        shutil.rmtree(".", ignore_errors=True)

    ((ending, text),) = enclosed(destroy, folder=folder, trusted=trusted)
    assert (ending, text) == (ProcessEnd(code=0), "['deep', 'tasks.py'] data\n")
    assert _tree(folder) == before


@confining
def test_a_link_in_the_folder_opens_nothing(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("solution")
    (folder / "link").symlink_to(secret)
    assert "FileNotFoundError" in answer_of(Path("link").read_text, folder)
    assert "FileNotFoundError" in answer_of(secret.read_text, folder)


@confining
def test_hidden_folders_are_empty(folder: Path) -> None:
    assert answer_of(lambda: len(os.listdir("/usr/share")) > 0, folder) == "True"
    assert answer_of(lambda: os.listdir("/usr/share"), folder, hidden=[Path("/usr/share")]) == "[]"
    assert "Errno" in answer_of(lambda: Path("/usr/share/x").write_text("x"), folder, hidden=[Path("/usr/share")])


@confining
def test_python_and_its_packages_are_seen_below_a_hidden_folder(folder: Path) -> None:
    def imports() -> object:
        import wave

        from scipy import fft

        return wave.__name__, fft.__name__

    assert (
        answer_of(imports, folder, hidden=[Path(sys.prefix), Path(sys.base_prefix).parent]) == "('wave', 'scipy.fft')"
    )


@TRUST
def test_the_environment_is_clean(folder: Path, trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTSIM_TEST_TOKEN", "secret")
    answer = answer_of(lambda: sorted(os.environ), folder, trusted=trusted)
    assert answer == "['HOME', 'LANG', 'OMP_NUM_THREADS', 'PATH']"


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
