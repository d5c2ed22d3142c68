"""What long or impossible work is told before it starts: one message, exit code 2, and no process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from distsim import InputError, example
from distsim.cli.main import distsim
from distsim.files import check_writable
from distsim.runtime.machine import check_memory, crowding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Scenarios that would take days, and that would fit no memory."""
    ring = example("synchronous_ring")
    long = ring.replacing({"steps": 1_000_000, "compute.mean": "144 ms"})
    (tmp_path / "long.toml").write_text(long.dumps(), "utf-8")
    huge = ring.replacing({"workload.gradient": "400 TiB"})
    (tmp_path / "huge.toml").write_text(huge.dumps(), "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "measure long.toml",
            "takes about 2 days on this machine. Cure: add --yes to start all the same, or take fewer",
        ),
        ("measure huge.toml", "needs at least"),
        ("sweep long.toml --vary seed=1:100000", "makes 100000 runs. Cure: add --yes"),
        ("simulate huge.toml --trace /proc/s.npz", "cannot be written"),
    ],
)
def test_it_is_refused_in_one_message(folder: Path, command: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "distsim", *command.split()],
        cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Cure: " in done.stderr


@pytest.mark.parametrize("name", ["/dev/null", "/proc/x", "", "absent/x", "a\0b", "x" * 300])
def test_what_cannot_be_written_is_told_beforehand_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        check_writable(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    check_writable(tmp_path / "fine")
    assert list(tmp_path.iterdir()) == []


def test_memory_and_cores_of_this_machine() -> None:
    ring = example("synchronous_ring")
    check_memory(ring, 2)
    with pytest.raises(InputError, match=r"workload.gradient = '4 MiB': needs at least .* in 1000000 processes"):
        check_memory(ring, 1_000_000)
    assert crowding(2) is None
    assert "64000 processes share" in (crowding(64_000) or "")


@pytest.mark.parametrize("command", ["measure long.toml", "compare long.toml", "calibrate --repeats 9000"])
def test_what_the_machine_lacks_is_told_before_anything_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def lacking(*_arguments: object) -> None:
        raise InputError("torch is missing")

    monkeypatch.chdir(folder)
    monkeypatch.setattr("distsim.runtime.measure.need", lacking)
    assert str(CliRunner().invoke(distsim, command.split()).exception) == "torch is missing"


class StartedError(Exception):
    """Instead of a run."""


@pytest.mark.parametrize(
    ("command", "run"), [("measure", "distsim.cli.measure.run"), ("compare", "distsim.cli.compare.predict_and_measure")]
)
def test_slow_links_are_asked_about_only_where_they_are_imposed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, run: str
) -> None:
    def started(*_arguments: object, **_options: object) -> None:
        raise StartedError

    slow = example("synchronous_ring").replacing({"cluster.bandwidth": "10 Mbit/s", "workload.gradient": "25 MB"})
    (folder / "slow.toml").write_text(slow.dumps(), "utf-8")
    monkeypatch.setattr(run, started)
    arguments = [command, str(folder / "slow.toml")]
    assert isinstance(CliRunner().invoke(distsim, arguments).exception, StartedError)
    assert "add --yes" in str(CliRunner().invoke(distsim, [*arguments, "--emulate"]).exception)


def test_of_several_nodes_each_counts_its_own_ranks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    def expected(*_scenarios: object, **options: object) -> float:
        counted.append(options["processes"])
        return 1e6

    monkeypatch.setattr("distsim.cli.before_start.expected_seconds", expected)
    where = ["--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint", "127.0.0.1:29500"]
    found = CliRunner().invoke(distsim, ["measure", str(folder / "long.toml"), *where])
    assert "add --yes" in str(found.exception)
    assert counted == [2]
