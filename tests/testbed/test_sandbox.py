"""Hostile bodies, each bounded in itself, against the enclosure."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import psutil
import pytest

from distsim.errors import InputError, RunError
from distsim.testbed.ending import OUT_OF_MEMORY, Ending
from distsim.testbed.output import Capped
from distsim.testbed.sandbox import Enclosure, Limits, reason_against

confining = pytest.mark.skipif(reason_against() is not None, reason=str(reason_against()))
MEBIBYTE = 2**20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A submission: two files and a folder."""
    place = tmp_path / "submission"
    (place / "deep").mkdir(parents=True)
    (place / "tasks.py").write_text("answer = 42\n")
    (place / "deep" / "data.txt").write_text("data")
    return place


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test leaves a child, a descriptor, a mount or a temporary folder."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = _traces()
    yield
    assert _traces() == before
    assert list(temporary.iterdir()) == []


def _traces() -> tuple[list[int], list[str], str]:
    mounts = Path("/proc/self/mounts").read_text() if sys.platform == "linux" else ""
    return [child.pid for child in psutil.Process().children()], sorted(os.listdir("/dev/fd"))[:-1], mounts


def _run(*bodies: Callable[[], None], folder: Path, **how: Any) -> list[tuple[Ending | None, str]]:
    """Each body's ending and what it printed."""
    with Enclosure.start(bodies, folder=folder, **how) as enclosure:
        outputs = [Capped(descriptor) for descriptor in enclosure.outputs]
        for output in outputs:
            output.read_all()
        endings = enclosure.wait(60.0)
    return list(zip(endings, [output.text for output in outputs], strict=True))


def _say(body: Callable[[], object]) -> Callable[[], None]:
    """The body that prints what `body` gives, or the kind of its error."""

    def said() -> None:
        try:
            print(body())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            print(type(error).__name__, error)

    return said


def _answer(body: Callable[[], object], folder: Path, **how: Any) -> str:
    ((ending, text),) = _run(_say(body), folder=folder, **how)
    assert ending == Ending(code=0)
    return text.rstrip("\n")


def _tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in (folder, *folder.rglob("*"))
    }


def _await(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.01)
    return true()


TRUST = pytest.mark.parametrize("trusted", [pytest.param(False, marks=confining), True])


# How a body ends


@TRUST
def test_endings_are_reported(folder: Path, trusted: bool) -> None:
    def fails() -> None:
        raise ValueError("wrong chunk")

    found = _run(
        int, lambda: os._exit(0), lambda: sys.exit(3), lambda: sys.exit("a word"), fails, os.abort,
        lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os.kill(os.getpid(), signal.SIGTERM),
        lambda: print(ctypes.string_at(0)), folder=folder, trusted=trusted,
    )  # fmt: skip
    assert [ending for ending, _ in found] == [
        *(Ending(code=code) for code in (0, 0, 3, 1, 1)),
        *(Ending(signal=int(number)) for number in (signal.SIGABRT, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)),
    ]
    assert found[3][1] == "a word\n"
    assert found[4][1].endswith("ValueError: wrong chunk\n")


@TRUST
def test_an_endless_loop_is_killed(folder: Path, trusted: bool) -> None:
    def endless() -> None:
        print("begun")
        while True:
            pass

    with Enclosure.start([endless, int], folder=folder, trusted=trusted) as enclosure:
        assert os.read(enclosure.outputs[0], 100) == b"begun\n"
        assert _await(lambda: enclosure.wait(0.05)[1] == Ending(code=0))
        assert enclosure.wait(0.05) == [None, Ending(code=0)]
        enclosure.kill()
        assert enclosure.endings == [Ending(signal=signal.SIGKILL), Ending(code=0)]
        assert not any(map(psutil.pid_exists, enclosure.pids))


@TRUST
def test_processor_time_is_bound(folder: Path, trusted: bool) -> None:
    def endless() -> None:
        while True:
            pass

    ((ending, _),) = _run(endless, folder=folder, limits=Limits(cpu_seconds=1), trusted=trusted)
    assert str(ending) == "used more processor time than it may (SIGXCPU)"


@TRUST
def test_memory_is_bound(folder: Path, trusted: bool) -> None:
    def private() -> None:
        print(len(bytearray(8 * 2**30)))

    def shared() -> None:
        print(len(mmap.mmap(-1, 8 * 2**30)))

    def spread() -> None:
        with open(os.memfd_create("large"), "wb") as file:
            for _ in range(1000):
                file.write(bytes(MEBIBYTE))

    first, second, third = _run(private, shared, spread, folder=folder, trusted=trusted)
    assert first[0] == Ending(code=OUT_OF_MEMORY)
    assert str(first[0]) == "exit code 71 (out of memory)"
    assert second[0] == Ending(code=1)
    assert "Cannot allocate memory" in second[1]
    assert "File too large" in third[1]


# What it starts


def _bomb() -> int:
    """Forks until it may not, 400 times at most."""
    for count in range(400):
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        except BlockingIOError:
            return count
    return 400


@confining
@pytest.mark.parametrize(("private", "most"), [(True, 39), (False, 79)])
def test_a_fork_bomb_is_bound_and_gone(folder: Path, private: bool, most: int) -> None:
    def bomb() -> None:
        print(_bomb(), flush=True)
        time.sleep(60)

    user = None
    limits = Limits(processes=40)
    bodies = [bomb, bomb]
    with Enclosure.start(bodies, folder=folder, limits=limits, private=private) as enclosure:
        counts = [int(os.read(output, 100)) for output in enclosure.outputs]
        user = psutil.Process(enclosure.pids[0]).uids().real
        children = [child for pid in enclosure.pids for child in psutil.Process(pid).children()]
        assert len(children) == sum(counts)
        if private:
            assert counts == [most, most]
        else:
            assert sum(counts) == most - 1
    assert not any(child.is_running() for child in children)
    assert user != 0


@TRUST
@pytest.mark.parametrize("by_kill", [True, False])
def test_a_daemon_does_not_outlive_its_rank(folder: Path, trusted: bool, by_kill: bool) -> None:
    def daemon() -> None:
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                print("daemon", flush=True)
                os.write(writing, b"1")
                time.sleep(60)
            os._exit(0)
        os.wait()
        os.read(reading, 1)
        if by_kill:
            time.sleep(60)

    with Enclosure.start([daemon], folder=folder, trusted=trusted) as enclosure:
        assert os.read(enclosure.outputs[0], 100) == b"daemon\n"
        if by_kill:
            enclosure.kill()
        else:
            assert enclosure.wait(60.0) == [Ending(code=0)]
            # A daemon holds the output open: nobody is left when it ends.
        assert os.read(enclosure.outputs[0], 100) == b""


CALLER = """
import os, sys, time
from pathlib import Path
from distsim.testbed.sandbox import Enclosure
def endless():
    if os.fork() == 0:
        os.setsid()
    print("begun", flush=True)
    time.sleep(60)
enclosure = Enclosure.start([endless, endless], folder=Path(sys.argv[1]), trusted=sys.argv[2] == "True")
for output in enclosure.outputs:
    got = b""
    while got.count(b"begun") < 2:
        got += os.read(output, 100)
bystander = os.fork()  # has all that the caller has open, and outlives it
if bystander:
    print(os.getpid(), bystander, flush=True)
time.sleep(60)
"""


@TRUST
@pytest.mark.parametrize("victim", ["caller", pytest.param("guard", marks=confining)])
def test_killing_the_caller_or_a_guard_leaves_nothing(folder: Path, trusted: bool, victim: str) -> None:
    if trusted and victim == "guard":
        return  # nobody watches the watchman of trusted code
    program = [sys.executable, "-c", CALLER, str(folder), str(trusted)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        pid, bystander = map(int, caller.stdout.readline().split())
        family = [process for process in psutil.Process(pid).children(recursive=True) if process.pid != bystander]
        assert len(family) == (6 if trusted else 8)  # 2 guards, 2 ranks and their 2 children; 2 first processes
        guards = [process for process in family if process.ppid() == pid]
        for process in [psutil.Process(pid)] if victim == "caller" else guards:
            process.kill()
        mine = [process for process in family if victim == "caller" or process not in guards]
        gone = _await(lambda: not any(map(_lives, mine)))
        os.kill(bystander, signal.SIGKILL)
        caller.kill()
        assert gone


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


# What it can reach


@confining
@pytest.mark.parametrize("place", ["/", "/etc", "/usr/lib", "/root", "/home", "/run", "/dev", "/var/tmp", "/proc/sys"])
def test_nothing_outside_can_be_written(folder: Path, place: str) -> None:
    assert "Error" in _answer(lambda: Path(place, "distsim_was_here").write_text("x"), folder)
    assert not os.path.exists(f"{place}/distsim_was_here")


@confining
def test_packages_cannot_be_changed(folder: Path) -> None:
    place = Path(psutil.__file__)
    assert "Read-only file system" in _answer(lambda: place.write_text("raise SystemExit"), folder)
    assert "Read-only file system" in _answer(place.unlink, folder)


@TRUST
def test_the_folder_of_the_caller_stays_as_it_is(folder: Path, trusted: bool) -> None:
    before = _tree(folder)

    def destroy() -> None:
        print(sorted(os.listdir()), Path("deep/data.txt").read_text())
        Path("tasks.py").write_text("answer = 43")
        for name in os.listdir():
            shutil.rmtree(name) if Path(name).is_dir() else os.remove(name)
        shutil.rmtree(".", ignore_errors=True)

    ((ending, text),) = _run(destroy, folder=folder, trusted=trusted)
    assert (ending, text) == (Ending(code=0), "['deep', 'tasks.py'] data\n")
    assert _tree(folder) == before


@confining
def test_a_link_in_the_folder_opens_nothing(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("solution")
    (folder / "link").symlink_to(secret)
    assert "FileNotFoundError" in _answer(Path("link").read_text, folder)
    assert "FileNotFoundError" in _answer(secret.read_text, folder)


@confining
def test_hidden_folders_are_empty(folder: Path) -> None:
    assert _answer(lambda: len(os.listdir("/usr/share")) > 0, folder) == "True"
    assert _answer(lambda: os.listdir("/usr/share"), folder, hidden=[Path("/usr/share")]) == "[]"
    assert "Errno" in _answer(lambda: Path("/usr/share/x").write_text("x"), folder, hidden=[Path("/usr/share")])


@confining
def test_python_and_its_packages_are_seen_below_a_hidden_folder(folder: Path) -> None:
    def imports() -> object:
        import wave

        from scipy import fft

        return wave.__name__, fft.__name__

    assert _answer(imports, folder, hidden=[Path(sys.prefix), Path(sys.base_prefix).parent]) == "('wave', 'scipy.fft')"


@TRUST
def test_the_environment_is_clean(folder: Path, trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTSIM_TEST_TOKEN", "secret")
    answer = _answer(lambda: sorted(os.environ), folder, trusted=trusted)
    assert answer == "['HOME', 'LANG', 'OMP_NUM_THREADS', 'PATH']"


READS_ITS_MEMORY = """
import ctypes, os, sys
from pathlib import Path
from distsim.testbed.sandbox import Enclosure
def where():
    return [int(field) for field in Path("/proc/self/stat").read_text().rpartition(")")[2].split()[47:49]]
start, end = where()
assert b"DISTSIM_TEST_TOKEN=secret" in ctypes.string_at(start, end - start)
def search():
    assert where() in ([start, end], [0, 0]), where()
    print(set(ctypes.string_at(start, end - start)))
with Enclosure.start([search], folder=Path(sys.argv[1])) as enclosure:
    enclosure.wait()
    print(os.read(enclosure.outputs[0], 10000).decode())
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
            answer = _answer(lambda: socket.create_connection(address, 2), folder, loopback=loopback)
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
    assert refusal in _answer(body, folder)


def _unshare(kinds: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(kinds):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# Whether ranks can reach each other. The first rank offers, tells so, and waits; then the second one seeks.


def _meet(offer: Callable[[], object], seek: Callable[[], object], folder: Path, **how: Any) -> str:
    ready_here, ready_there = socket.socketpair()
    done_here, done_there = socket.socketpair()

    def offers() -> None:
        kept = offer()
        ready_here.send(b"1")
        done_there.recv(1)
        del kept

    def seeks() -> None:
        ready_there.recv(1)
        _say(seek)()
        done_here.send(b"1")

    with ready_here, ready_there, done_here, done_there:
        keep = [[ready_here.fileno(), done_there.fileno()], [ready_there.fileno(), done_here.fileno()]]
        (first, text), (_, found) = _run(offers, seeks, folder=folder, keep=keep, **how)
    assert first == Ending(code=0), text
    return found.rstrip("\n")


def _listen(family: int, address: Any) -> socket.socket:
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen()
    return listener


def _connect(family: int, address: Any) -> str:
    with socket.socket(family) as connection:
        connection.settimeout(2)
        connection.connect(address)
        return "reached"


def _offer_shared() -> shared_memory.SharedMemory:
    return shared_memory.SharedMemory("distsim_meets", create=True, size=100)


def _find_shared() -> str:
    shared_memory.SharedMemory("distsim_meets")
    return "reached"


def _system_v(flags: int) -> Callable[[], str]:
    def get() -> str:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.shmget(4711, 100, flags) < 0:
            raise OSError(ctypes.get_errno(), "shmget")
        return "reached"

    return get


WAYS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "file": (lambda: Path("note").write_text("x"), lambda: Path("note").exists() and "reached"),
    "temporary file": (lambda: Path("/tmp/note").write_text("x"), lambda: Path("/tmp/note").exists() and "reached"),
    "tcp": (
        lambda: _listen(socket.AF_INET, ("127.0.0.1", 4711)),
        lambda: _connect(socket.AF_INET, ("127.0.0.1", 4711)),
    ),
    "abstract socket": (lambda: _listen(socket.AF_UNIX, "\0meet"), lambda: _connect(socket.AF_UNIX, "\0meet")),
    "socket in a folder": (
        lambda: _listen(socket.AF_UNIX, "/tmp/meet"),
        lambda: _connect(socket.AF_UNIX, "/tmp/meet"),
    ),
    "shared memory": (_offer_shared, _find_shared),
    "system V": (_system_v(0o1666), _system_v(0)),
    "process": (lambda: None, lambda: len([n for n in os.listdir("/proc") if n.isdigit()]) > 2 and "reached"),
}


@confining
@pytest.mark.parametrize("way", WAYS)
def test_private_ranks_cannot_meet(folder: Path, way: str) -> None:
    assert _meet(*WAYS[way], folder, private=False, loopback=True) == "reached"  # or the test has no power
    assert _meet(*WAYS[way], folder, private=True, loopback=True) != "reached"


@confining
@pytest.mark.parametrize("name", ["mem", "environ", "maps", "fd"])
def test_ranks_that_share_cannot_read_each_others_memory(folder: Path, name: str) -> None:
    def look() -> list[str]:
        others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())]
        assert others
        found = []
        for pid in others:
            try:
                found.append(str(os.listdir(f"/proc/{pid}/fd") if name == "fd" else _beginning(f"/proc/{pid}/{name}")))
            except OSError as error:
                found.append(type(error).__name__)
        return found

    assert _meet(lambda: None, look, folder, private=False) == "['PermissionError']"


def _beginning(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(10)


@TRUST
def test_a_rank_has_the_descriptors_it_was_given_and_no_others(folder: Path, trusted: bool) -> None:
    def descriptors() -> list[int]:
        return [number for number in range(200) if _is_open(number)]

    secret = os.open(__file__, os.O_RDONLY)
    here, there = socket.socketpair()
    with here, there:
        body = _say(descriptors)
        found = _run(body, body, folder=folder, trusted=trusted, keep=[[here.fileno()], []])
        assert [text for _, text in found] == [f"[0, 1, 2, {here.fileno()}]\n", "[0, 1, 2]\n"]
    os.close(secret)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


# What it leaves and takes


@TRUST
def test_a_gigabyte_of_output_is_read_with_a_cap(folder: Path, trusted: bool) -> None:
    def talk() -> None:
        for _ in range(1024):
            os.write(1, b"x" * MEBIBYTE)

    with Enclosure.start([talk], folder=folder, trusted=trusted) as enclosure:
        output = Capped(enclosure.outputs[0], bound_bytes=8 * MEBIBYTE)
        output.read_all()
        assert output.too_much
        assert enclosure.wait(0) == [None]
    assert 8 * MEBIBYTE < output.total_bytes <= 9 * MEBIBYTE
    assert output.text == "x" * 2**16 + f"\n... and {output.total_bytes - 2**16} more bytes"


@confining
def test_the_writable_space_is_bound(folder: Path) -> None:
    def fill(place: str) -> int:
        written = 0
        try:
            for number in range(100):
                written += Path(place, f"file{number}").write_bytes(bytes(MEBIBYTE))
        except OSError:
            return written // MEBIBYTE
        return written // MEBIBYTE

    for place in (".", "/dev/shm"):
        assert 6 <= int(_answer(lambda place=place: fill(place), folder, limits=Limits(file_bytes=8 * MEBIBYTE))) <= 8


@TRUST
def test_a_folder_that_is_too_large_is_refused(folder: Path, trusted: bool) -> None:
    with pytest.raises(InputError, match=r"limits\.file_bytes = 10\. Cure: "):
        Enclosure.start([int], folder=folder, limits=Limits(file_bytes=10), trusted=trusted)


@confining
def test_a_refusal_of_the_kernel_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distsim.testbed.kernel.NEW_USER", 0x1)  # no such namespace
    with pytest.raises(RunError, match=r"could not be confined: .*unshare: Invalid argument"):
        Enclosure.start([int], folder=folder)


@TRUST
def test_fifty_runs_leave_nothing(folder: Path, trusted: bool) -> None:
    before = _traces()
    for _ in range(50):
        with Enclosure.start([int, int], folder=folder, trusted=trusted) as enclosure:
            assert enclosure.wait(60.0) == [Ending(code=0)] * 2
    assert _traces() == before


@confining
def test_an_enclosure_is_soon_made(folder: Path) -> None:
    """Four empty bodies take less than 100 ms beside the 12 forks that they need of this process."""

    def seconds(work: Callable[[], object]) -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    def forks() -> None:
        for _ in range(12):
            if (pid := os.fork()) == 0:
                os._exit(0)
            os.waitpid(pid, 0)

    def run() -> None:
        with Enclosure.start([int] * 4, folder=folder) as enclosure:
            assert enclosure.wait(60.0) == [Ending(code=0)] * 4

    assert min(seconds(run) for _ in range(10)) - min(seconds(forks) for _ in range(10)) < 0.1
