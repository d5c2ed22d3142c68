"""One fork server for several testbeds: they do not disturb each other, and nothing outlives its owner."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from distsim.errors import RunError
from distsim.grading.lab import Lab
from distsim.grading.notebook import Notebook
from distsim.grading.shared_fork_server import shared_fork_server
from distsim.grading.variables import SERVER_VARIABLE
from distsim.testbed import Testbed
from tests.grading.conftest import SUM

pytestmark = pytest.mark.real
TESTED = Path(__file__).parents[1] / "testbed" / "lab"
OWNER = """
import time
from distsim.grading.shared_fork_server import shared_fork_server
with shared_fork_server() as place:
    print(place, flush=True)
    time.sleep(600)
"""
ENDLESS = """
import sys
from pathlib import Path
from distsim.testbed import Testbed
with Testbed(Path(sys.argv[1]), server=Path(sys.argv[2])) as one:
    print(flush=True)
    one.run("student", [{"function": "forever"}] * 2)
"""
PATIENCE_SECONDS = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    with shared_fork_server() as place:
        yield place


def numbers(testbed: Testbed, ranks: int = 2) -> list[object]:
    run = testbed.run("student", [{"function": "numbers"}] * ranks)
    assert run.failure is None
    return [result[0] for result in run.results]


def test_testbeds_share_a_server_and_one_that_leaves_leaves_the_others(server: Path) -> None:
    with Testbed(TESTED, server=server) as other:
        assert numbers(other) == [0, 1]
        with Testbed(TESTED, server=server) as one:
            assert numbers(one, 3) == [0, 1, 2]
            assert numbers(other) == [0, 1]
        assert numbers(other) == [0, 1]
        assert other._host is None


def test_a_rank_holds_no_socket_but_its_own_and_has_an_empty_input(server: Path) -> None:
    with Testbed(TESTED, server=server) as one, Testbed(TESTED) as own:
        assert numbers(one) == [0, 1]
        found = [testbed.run("student", [{"function": "held"}] * 2).results for testbed in (one, own)]
    assert found[0] == found[1]
    assert all(sockets == 1 and text == "" for sockets, text in found[0])


@pytest.mark.parametrize(("imports", "imported"), [((), False), (("no_such_module", "colorsys"), True)])
def test_a_server_imports_what_it_is_told_to_before_anybody_asks(
    tmp_path: Path, *, imports: tuple[str, ...], imported: bool
) -> None:
    (tmp_path / "ranks.py").write_text("import sys\n\n\ndef here(tasks):\n    return 'colorsys' in sys.modules\n")
    with shared_fork_server(imports) as place, Testbed(tmp_path, server=place) as one:
        assert one.run("here", [{}] * 2, student=False).results == [imported, imported]


def test_a_server_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the fork server has ended"), Testbed(TESTED, server=tmp_path / "none") as one:
        numbers(one)


def test_a_notebook_whose_server_is_gone_starts_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab.at(SUM)
    for path in lab.pristine:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "tasks.py").write_bytes((SUM / "solution.py").read_bytes())
    monkeypatch.setenv(SERVER_VARIABLE, str(tmp_path / "none"))
    notebook = Notebook(lab.key, tmp_path)
    try:
        assert SERVER_VARIABLE not in os.environ
        assert notebook.check("every_rank_has_the_sum") == 3.0
    finally:
        notebook.close()


def test_the_server_ends_with_an_owner_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        place = Path(owner.stdout.readline().strip())
        try:
            with Testbed(TESTED, server=place) as one:
                assert numbers(one) == [0, 1]
                owner.send_signal(signal.SIGKILL)
                owner.wait()
                give_up = time.monotonic() + PATIENCE_SECONDS
                while time.monotonic() < give_up and listens(place):
                    time.sleep(0.05)
                assert not listens(place)
        finally:
            owner.kill()
            place.unlink()
            place.parent.rmdir()


def test_ranks_end_with_a_testbed_that_is_killed_and_others_go_on() -> None:
    def below() -> int:
        return len(psutil.Process().children(recursive=True))

    with shared_fork_server() as place, Testbed(TESTED, server=place) as other:
        assert numbers(other) == [0, 1]
        command = [sys.executable, "-c", ENDLESS, str(TESTED), str(place)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
            assert killed.stdout is not None
            idle = below()
            killed.stdout.readline()
            assert came_true(lambda: below() >= idle + 3), "a runner and two ranks"
            killed.kill()
        assert came_true(lambda: below() <= idle - 1)
        assert numbers(other) == [0, 1]


def came_true(condition: Callable[[], bool]) -> bool:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not (true := condition()) and time.monotonic() < give_up:
        time.sleep(0.05)
    return true


def listens(place: Path) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket(socket.AF_UNIX) as asked:
        try:
            asked.connect(str(place))
        except ConnectionError:
            return False
    return True
