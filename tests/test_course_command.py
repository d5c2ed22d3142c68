"""`distsim course`: it listens on this machine alone, ends on Ctrl-C, and says what is in its way."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from distsim import material
from distsim.cli.course import course
from distsim.errors import InputError

ROOT = Path(__file__).parents[1]
SECONDS = 200.0


TOKEN = "secret"


def free_port() -> int:
    """One that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(*options: str, home: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a person starts it, with a home of its own; it gets Ctrl-C at the end if it is still there."""
    environment = os.environ | {"HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | variables
    environment |= {f"JUPYTER_{kind}_DIR": str(home / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # where nohup runs the tests, a child would ignore it too
    process = subprocess.Popen(
        [sys.executable, "-m", "distsim", "course", "--no-browser", *options],
        env=environment, cwd=home, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0,
    )  # fmt: skip
    signal.signal(signal.SIGHUP, inherited)
    alarm = threading.Timer(SECONDS, process.terminate)
    alarm.start()
    try:
        yield process
    finally:
        alarm.cancel()
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


def read_until(process: subprocess.Popen[str], wanted: str) -> str:
    """What it printed until a line with `wanted`."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if wanted in line:
            return "".join(lines)
    pytest.fail(f"it ended without {wanted!r}:\n{''.join(lines)}")


def wait_for(port: int) -> None:
    """Until somebody listens there: JupyterLab prints its address a moment before."""
    give_up = time.monotonic() + SECONDS
    while time.monotonic() < give_up:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"nobody listens on {port}")


@pytest.mark.more
@pytest.mark.alone
@pytest.mark.chromium  # starts servers, which want the machine to themselves as browsers do
@pytest.mark.parametrize(
    ("options", "sign", "page"),
    [
        (["--app"], "explorers: ", "voila/render/index.ipynb"),
        ([], "is running at", "api"),
    ],
)
def test_it_serves_this_machine_alone_and_ends_on_ctrl_c(
    tmp_path: Path, options: list[str], sign: str, page: str
) -> None:
    pytest.importorskip("voila")
    port = free_port()
    with started(*options, "--port", str(port), home=tmp_path) as process:
        printed = read_until(process, sign)
        copy = tmp_path / "distsim-course"
        assert (f"your copy of the course: {copy}\n" in printed) == (copy / "course" / "README.md").exists()
        assert copy.exists() != bool(options)
        wait_for(port)
        found = urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=SECONDS).read().decode()
        if options:
            assert "Which question do you have?" in found
        else:
            assert "version" in json.loads(found)
        listening = [one for one in psutil.net_connections("tcp") if one.laddr and one.laddr.port == port]
        assert {one.laddr.ip for one in listening if one.status == psutil.CONN_LISTEN} == {"127.0.0.1"}
        below = psutil.Process(process.pid).children(recursive=True)
        assert below
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=30)
    assert process.returncode == 0, printed
    assert "Traceback" not in printed
    assert not [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)


@pytest.mark.more
@pytest.mark.alone
@pytest.mark.real
@pytest.mark.parametrize(
    ("number", "again", "code"),
    [(signal.SIGINT, False, 0), (signal.SIGINT, True, 0), (signal.SIGTERM, False, 143), (signal.SIGHUP, False, 129)],
)
def test_jupyterlab_ends_in_an_orderly_way_and_leaves_no_files(
    tmp_path: Path, number: signal.Signals, again: bool, code: int
) -> None:
    """Signals go to the group of processes, as a terminal sends them: the server is in none of that.

    With `again`, somebody keeps the keys pressed until the command is gone, also while Python closes down.
    """
    pytest.importorskip("jupyterlab")
    port = free_port()
    with started("--port", str(port), home=tmp_path) as process:
        read_until(process, "is running at")
        wait_for(port)
        assert len(list((tmp_path / "RUNTIME").glob("jpserver-*"))) == 2
        below = psutil.Process(process.pid).children(recursive=True)
        assert below
        assert all(os.getsid(one.pid) != os.getsid(process.pid) for one in below)
        os.killpg(process.pid, number)
        while again and process.poll() is None:
            time.sleep(0.03)  # as often as a held key repeats
            os.killpg(process.pid, number)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == code, printed
    assert "Traceback" not in printed
    assert not [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert not list((tmp_path / "RUNTIME").glob("jpserver-*"))


def asked(method: str, address: str, body: Any = None) -> Any:
    """The server's answer, from JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Authorization": f"token {TOKEN}"}, method=method)
    return json.load(urllib.request.urlopen(request, timeout=SECONDS))


def typed(port: int, line: str, last: str) -> str:
    """What a new terminal of the server shows once a line was typed into it, until `last`."""
    websocket = pytest.importorskip("websocket")
    name = asked("POST", f"http://127.0.0.1:{port}/api/terminals")["name"]
    address = f"ws://127.0.0.1:{port}/terminals/websocket/{name}"
    connection = websocket.create_connection(address, timeout=30, header=[f"Authorization: token {TOKEN}"])
    shown = ""
    try:
        connection.send(json.dumps(["stdin", f"{line}\r"]))
        while last not in shown:
            kind, *rest = json.loads(connection.recv())
            shown += rest[0] if kind == "stdout" else ""
    finally:
        connection.close()
    return shown


@pytest.mark.more
@pytest.mark.alone
@pytest.mark.real
def test_a_terminal_finds_the_programs_of_the_environment(tmp_path: Path) -> None:
    """The caller's PATH has none of them, and the caller has no terminal, so that Jupyter prefers a login shell."""
    pytest.importorskip("jupyterlab")
    port = free_port()
    bare = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/bash", "JUPYTER_TOKEN": TOKEN}
    with started("--port", str(port), home=tmp_path, **bare) as process:
        read_until(process, "is running at")
        wait_for(port)
        # The line as it is typed has quotes, so the words that end the answer come from the shell alone.
        shown = typed(port, "command -v distsim torchrun python; echo en''d of it", "end of it")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    for program in ("distsim", "torchrun", "python"):
        assert f"{Path(sysconfig.get_path('scripts')) / program}\r\n" in shown


def test_a_port_that_is_taken_is_refused_with_another(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "distsim", "course", "--no-browser", "--port", str(port)],
            env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert f"--port = {port}: cannot be listened on" in done.stderr
    assert f"write --port {port + 1}" in done.stderr


@pytest.mark.parametrize(("options", "package"), [([], "jupyterlab"), (["--app"], "voila")])
def test_a_missing_package_is_named_with_its_cure(
    monkeypatch: pytest.MonkeyPatch, options: list[str], package: str
) -> None:
    monkeypatch.setattr("distsim.extras.find_spec", lambda _: None)
    result = CliRunner().invoke(course, options)
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == (
        f'the course needs {package}, which is not installed. Cure: pip install "distsim-course[course]"'
    )


def test_a_package_without_the_course_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(material, "__file__", str(tmp_path / "site" / "distsim" / "material.py"))
    monkeypatch.chdir(tmp_path)
    for options, cure in [([], "install distsim-course anew"), (["--app"], "go to the folder that has course/ in it")]:
        result = CliRunner().invoke(course, [*options, "--port", str(free_port())])
        assert isinstance(result.exception, InputError)
        assert cure in str(result.exception)


def test_a_folder_is_not_for_the_pages_of_explorers(tmp_path: Path) -> None:
    result = CliRunner().invoke(course, [str(tmp_path), "--app"])
    assert isinstance(result.exception, InputError)
    assert "is not for --app" in str(result.exception)
