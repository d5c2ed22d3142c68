"""`distsim course`: the course in JupyterLab, or its explorers as pages without code."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
import psutil

import distsim
from distsim.cli.output import PATH
from distsim.course.folder import course_folder
from distsim.course.learners_copy import Laid, lay, usual_folder
from distsim.errors import InputError
from distsim.extras import need

ADDRESS = "127.0.0.1"  # only this machine reaches the server
LAB_PORT, APP_PORT = 8888, 8866
START_SECONDS = 60.0
IDLE_SECONDS = 120  # of a page's kernel once the page is closed
SYLLABUS = "course/README.md"
PACKAGE = Path(distsim.__file__).parent
# Settings of JupyterLab (Markdown opens rendered, not as source), and Voilà's page without requests to other hosts.
JUPYTER = PACKAGE / "course" / "jupyter"
DARK = PACKAGE / "figures" / "dark"  # a style sheet: figures are dark in a dark theme
GRACE_SECONDS = 15.0  # for the server to end its kernels and to remove its runtime files
CLOSED = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}  # SIGHUP, of a closed terminal, is Unix's alone


@click.command()
@click.argument("folder", metavar="[FOLDER]", required=False, type=PATH)
@click.option("--app", is_flag=True, help="Open the explorers as pages without code, by Voilà.")
@click.option("--port", type=click.IntRange(1024, 65535), help=f"[default: {LAB_PORT}, with --app {APP_PORT}]")
@click.option("--no-browser", is_flag=True, help="Open no browser; the address is printed.")
def course(folder: Path | None, app: bool, port: int | None, no_browser: bool) -> None:
    """Open your copy of the course in JupyterLab, at its syllabus; with --app open the explorers.

    The copy is in FOLDER, and has the chapters, the explorers, and the labs without solutions. Without FOLDER, the copy
    is the one around the current folder, or distsim-course in the current folder. The first call lays the copy there.
    A later call, with a newer distsim, brings up to date the files that you left as they were. It changes no file that
    you changed: the new version of such a file is laid beside yours.

    The server listens on this machine alone. Ctrl-C ends the server and all its kernels, with exit code 0.
    """
    package = "voila" if app else "jupyterlab"
    need(package, "the course")
    if app and folder is not None:
        raise InputError.of("FOLDER", str(folder), "is not for --app, which needs no copy", "leave it out")
    number = port or (APP_PORT if app else LAB_PORT)
    _check_free(number)
    if app:
        folder = course_folder()
        command = _app(folder, number)
    else:
        folder = (folder or usual_folder()).absolute()
        _tell_copy(lay(folder))
        command = _lab(folder, number, browser=not no_browser)
    with _server(command, folder) as server:
        try:
            if app:
                _tell(server, number, browser=not no_browser)
            code = server.wait()
        except KeyboardInterrupt:
            return
    if code != 0:
        raise InputError(f"{package} ended with exit code {code}. Cure: read above what {package} printed")


def _tell_copy(laid: Laid) -> None:
    """Tells where the copy is, and what a new version of distsim changed in it."""
    click.echo(f"your copy of the course: {laid.folder}")
    if laid.updated:
        click.echo(f"files brought up to date: {len(laid.updated)}")
    for file, beside in laid.beside:
        click.echo(f"yours is kept: {file}; its new version is {beside}")


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            reason = f"cannot be listened on ({error.strerror})"
            raise InputError.of("--port", port, reason, f"write --port {port + 1}, or end what uses it") from None


def _lab(folder: Path, port: int, *, browser: bool) -> list[str]:
    return [
        sys.executable, "-m", "jupyterlab", f"--ServerApp.ip={ADDRESS}", f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0", "--ServerApp.answer_yes=True", "--ServerApp.allow_root=True",
        f"--ServerApp.root_dir={folder}", f"--ServerApp.open_browser={browser}",
        f"--LabApp.default_url=/lab/tree/{SYLLABUS}", *_shell(), "--LabApp.custom_css=True",
        f"--ServerApp.tornado_settings=static_custom_path={DARK}",
    ]  # fmt: skip


def _shell() -> list[str]:
    """The option for the shell of a terminal. Without it, Jupyter may start a login shell, which sets PATH anew."""
    if sys.platform == "win32":
        return []
    shell = os.environ.get("SHELL") or shutil.which("sh") or "/bin/sh"
    return [f"--ServerApp.terminado_settings=shell_command={shlex.quote(shell)}"]


def _app(folder: Path, port: int) -> list[str]:
    return [
        sys.executable, "-m", "voila", str(folder / "explorers"), f"--Voila.ip={ADDRESS}", f"--Voila.port={port}",
        "--Voila.port_retries=0", "--Voila.open_browser=False", "--VoilaConfiguration.strip_sources=True",
        "--VoilaConfiguration.template=distsim",
        f"--MappingKernelManager.cull_idle_timeout={IDLE_SECONDS}", "--MappingKernelManager.cull_interval=30",
    ]  # fmt: skip


def _tell(server: subprocess.Popen[bytes], port: int, *, browser: bool) -> None:
    """Prints the address of the explorers as soon as the server answers, and opens it in a browser."""
    address = f"http://{ADDRESS}:{port}/voila/render/index.ipynb"
    give_up = time.monotonic() + START_SECONDS
    while not _answers(port) and server.poll() is None and time.monotonic() < give_up:
        time.sleep(0.1)
    if server.poll() is None:
        click.echo(f"explorers: {address}  (Ctrl-C ends them)")
        if browser:
            webbrowser.open(address)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) == 0


def _environment() -> dict[str, str]:
    """This process's environment. Terminals and kernels inherit it.

    Our Jupyter settings and Voilà template stand after those of the user. The programs of this Python, such as distsim
    and torchrun, stand first on PATH.
    """
    found = dict(os.environ)
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH"):
        paths = [path for path in found.get(name, "").split(os.pathsep) if path]
        found[name] = os.pathsep.join([*paths, str(JUPYTER)])
    found["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    return found


@contextmanager
def _server(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The running server. Afterwards the server and its kernels are gone, also after SIGTERM or a closed terminal.

    The server runs in a session of its own, so a terminal's Ctrl-C reaches this process alone, and this process asks
    the server once to end. After a second signal JupyterLab would leave kernels and files behind. Signals stay ignored
    until this process ends: a signal during Python's shutdown would replace the exit code.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    for number in CLOSED:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores the signal
            signal.signal(number, leave)
    server = subprocess.Popen(command, cwd=folder, env=_environment(), start_new_session=True)
    try:
        yield server
    finally:
        for number in {signal.SIGINT, *CLOSED}:
            signal.signal(number, signal.SIG_IGN)
        _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    try:
        tree = psutil.Process(server.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        tree = []
    server.terminate()
    try:
        server.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    _, left = psutil.wait_procs(tree, timeout=1.0)
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
