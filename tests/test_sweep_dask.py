"""Sweeps on a real Dask cluster on loopback: lost worker processes, Ctrl-C, a lost scheduler, and the same table."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from distsim.cli.sweep import _csv
from distsim.examples import example
from distsim.sweep import _read, sweep
from distsim.transformer_profile import transformer_profile
from tests.pages import Page, run_command
from tests.test_sweep import GRID, SMALL, came_true

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, at its start and end
MANY = example("backup_server")  # some milliseconds each
SEEDS = 1500


@contextmanager
def cluster(workers: int = 2) -> Iterator[Any]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as made:
        yield made


@pytest.fixture
def two_workers() -> Iterator[Any]:
    """A cluster of two worker processes. Dask starts a process anew that was lost."""
    with cluster() as made:
        yield made


Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Start]:
    """Starts a sweep of `SEEDS` runs into t.csv on the scheduler at an address."""
    (tmp_path / "s.toml").write_text(MANY.dumps())
    processes: list[subprocess.Popen[str]] = []

    def start(address: str) -> subprocess.Popen[str]:
        options = ["--vary", f"seed=1:{SEEDS}", "--scheduler", address, "--out", "t.csv", "--json"]
        command = [sys.executable, "-m", "distsim", "sweep", "s.toml", *options]
        process = subprocess.Popen(
            command, cwd=tmp_path, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def rows_in(journal: Path) -> int:
    return len(list(_read(journal)))


def test_a_plan_on_a_dask_cluster_is_the_same(two_workers: Any, run: Any, tmp_path: Path) -> None:
    profile = transformer_profile(2, 64, 4, vocabulary=100, sequence=32, batch=4, operations_per_second=1e12)
    profile.save(tmp_path / "profile.json")
    (tmp_path / "cluster.toml").write_text('[cluster]\nworkers = 4\nbandwidth = "1 Gbit/s"\nlatency = "20 us"\n')
    command = ("plan", tmp_path / "profile.json", "--cluster", tmp_path / "cluster.toml", "--json")
    code, out, err = run(*command, "--scheduler", two_workers.scheduler_address)
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(run(*command)[1])


def test_a_dask_cluster_gives_the_same_rows(two_workers: Any, run: Any, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    varied = [f"--vary={key}={','.join(map(str, values))}" for key, values in GRID.items()]
    code, out, err = run("sweep", tmp_path / "s.toml", *varied, "--scheduler", two_workers.scheduler_address, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(json.dumps(sweep(SMALL, GRID)))


@pytest.mark.more
def test_the_command_of_the_speed_page_works(two_workers: Any, tmp_path: Path) -> None:
    (words,) = [words for words in Page("course/SPEED.md").commands("distsim") if "--scheduler" in words]
    (tmp_path / "run.toml").write_text(MANY.dumps())
    here = {"SCHEDULER:8786": two_workers.scheduler_address, "seed=1:10000": "seed=1:10"}
    assert here.keys() <= set(words)
    done = run_command([here.get(word, word) for word in words], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.toml", "sweep.parquet"]


@pytest.mark.more
@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_lost_worker_processes_lose_nothing(two_workers: Any, started: Start, tmp_path: Path) -> None:
    """Each of the two processes is killed in the middle of its work, the second when the first is back."""
    journal = tmp_path / "t.csv.journal"
    before = {name: nanny.pid for name, nanny in two_workers.workers.items()}
    process = started(two_workers.scheduler_address)
    for number, (name, pid) in enumerate(before.items(), start=1):
        assert came_true(lambda part=number: rows_in(journal) >= 200 * part, 120.0), "too few rows came"
        os.kill(pid, signal.SIGKILL)
        assert rows_in(journal) < SEEDS
        assert came_true(lambda name=name, pid=pid: two_workers.workers[name].pid not in (None, pid), 60.0)
    assert (process.communicate(timeout=120.0)[1], process.returncode) == ("", 0)
    undisturbed = sweep(MANY, {"seed": range(1, SEEDS + 1)})
    assert (tmp_path / "t.csv").read_text() == _csv(undisturbed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml", "t.csv"]


@pytest.mark.more
@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_keeps_finished_rows_and_leaves_no_work_on_the_cluster(
    two_workers: Any, started: Start, tmp_path: Path
) -> None:
    journal = tmp_path / "t.csv.journal"
    process = started(two_workers.scheduler_address)
    assert came_true(lambda: rows_in(journal) >= 200, 120.0), "too few rows came"
    assert two_workers.scheduler.tasks
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=30.0)[1]
    assert (process.returncode, said) == (130, "\ndistsim: interrupted\n")
    assert came_true(lambda: not two_workers.scheduler.tasks, 10.0), "work is left on the cluster"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml", journal.name]
    kept = {key for key, _ in _read(journal)}
    assert 200 <= len(kept) < SEEDS
    again = started(two_workers.scheduler_address)
    assert came_true(lambda: rows_in(journal) > len(kept), 120.0), "no further row came"
    assert {key for key, _ in list(_read(journal))[: len(kept)]} == kept
    assert (again.communicate(timeout=120.0)[1], again.returncode) == ("", 0)
    assert (tmp_path / "t.csv").read_text() == _csv(sweep(MANY, {"seed": range(1, SEEDS + 1)}))


@pytest.mark.more
def test_a_lost_scheduler_ends_the_sweep_with_a_message(started: Start, tmp_path: Path) -> None:
    journal = tmp_path / "t.csv.journal"
    with cluster() as lost:
        process = started(lost.scheduler_address)
        assert came_true(lambda: rows_in(journal) >= 200, 120.0), "too few rows came"
    said = process.communicate(timeout=120.0)[1]
    assert process.returncode == 3, said
    assert said.count("\n") == 1
    assert "the scheduler is gone. Cure: start a cluster, and repeat the command" in said
    assert 200 <= rows_in(journal) < SEEDS
