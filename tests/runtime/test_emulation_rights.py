"""Who may emulate a cluster: root, or anybody where the kernel allows user namespaces. All others get one sentence."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from distsim import Scenario
from distsim.errors import InputError
from distsim.runtime.emulation import iproute, trial
from distsim.runtime.emulation.iproute import Iproute
from distsim.runtime.emulation.plan import NetworkPlan
from distsim.trace import Trace

TABLE = {
    "name": "rights",
    "steps": 2,
    "cluster": {"workers": 2, "bandwidth": "100 Mbit/s", "latency": "0 s"},
    "compute": {"mean": "5 ms"},
    "workload": {"gradient": "64 KiB", "batch": 1},
    "policy": {"kind": "synchronous"},
    "communication": {"kind": "ring"},
}
# Two ways to have no right: root without any capability, and somebody whom the kernel gives no user namespace.
WITHOUT_RIGHTS = {
    "root without capabilities": ["setpriv", "--bounding-set=-all", "--inh-caps=-all"],
    "unknown to the kernel": ["unshare", "--user"],
}
real = pytest.mark.real
iproute2 = pytest.mark.iproute2


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is everybody's, unlike pytest's, with a scenario."""
    made = Path(tempfile.mkdtemp(dir="/tmp"))
    made.chmod(0o777)
    (made / "s.toml").write_text(Scenario.of(TABLE).dumps())
    yield made
    shutil.rmtree(made)


def measure(folder: Path, prefix: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """`distsim measure s.toml --emulate`, behind a command that changes its rights."""
    program = [sys.executable, "-m", "distsim", "measure", "s.toml", "--emulate", "--trace", "m.npz"]
    variables = os.environ | {"TMPDIR": str(folder), "HOME": str(folder)} | environment
    done = subprocess.run(
        [*prefix, *program], cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=120
    )
    assert not list(folder.glob("distsim-run-*")), "the run's folder is left"
    return done


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence, and its cure."""
    assert (done.returncode, done.stdout) == (2, "")
    assert "--emulate" in done.stderr
    assert "Cure: " in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@real
@pytest.mark.more
@iproute2
def test_without_root_a_user_namespace_gives_the_right(folder: Path) -> None:
    # Another user might not reach this Python; root with this one capability is let into a user namespace, no more.
    prefix = ["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all"] if os.geteuid() == 0 else []
    if subprocess.run([*prefix, "unshare", "-Urn", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this kernel gives users no namespaces")
    done = measure(folder, prefix)
    assert done.returncode == 0, done.stderr
    assert Trace.load(folder / "m.npz").metadata["emulation"]["right"] == "a user namespace"


@real
@pytest.mark.more
@iproute2
@pytest.mark.parametrize("way", WITHOUT_RIGHTS)
def test_without_the_right_there_is_one_sentence(folder: Path, way: str) -> None:
    if way.startswith("root") and os.geteuid() != 0:
        pytest.skip("is for root")
    sentence = refused(measure(folder, WITHOUT_RIGHTS[way]))
    assert "the right to make network namespaces" in sentence
    assert "run as root" in sentence


TRIAL = """
from distsim import Scenario
from distsim.runtime.emulation import plan, trial
trial.check(plan.NetworkPlan.of(Scenario.load("s.toml")))
"""


def tried(folder: Path, prefix: list[str]) -> subprocess.CompletedProcess[str]:
    """The trial of a network, behind a command that changes its rights."""
    variables = os.environ | {"TMPDIR": str(folder), "HOME": str(folder)}
    command = [*prefix, sys.executable, "-c", TRIAL]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert not list(folder.glob("distsim-trial-*")), "the trial's folder is left"
    return done


@iproute2
def test_a_trial_tells_what_a_run_would(folder: Path) -> None:
    mine = os.readlink("/proc/self/ns/net")
    trial.check(NetworkPlan.of(Scenario.of(TABLE)))
    assert os.readlink("/proc/self/ns/net") == mine
    done = tried(folder, WITHOUT_RIGHTS["unknown to the kernel"])
    assert "InputError: --emulate = True: needs the right to make network namespaces" in done.stderr


def test_a_network_is_built_without_numpy() -> None:
    """numpy starts threads, and the kernel gives a process with threads no user namespace of its own."""
    code = "import sys; from distsim.runtime.emulation import coordination; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@real
@pytest.mark.more
@iproute2
def test_a_network_that_cannot_be_finished_is_none(folder: Path) -> None:
    """The shaper fails at the second host: the first one's links stood already."""
    tc = folder / "bin" / "tc"
    tc.parent.mkdir()
    tc.write_text(
        "#!/bin/sh\n"
        f'echo >> {folder}/calls; [ $(wc -l < {folder}/calls) -le 3 ] && exec {Iproute.found().tc_path} "$@"\n'
        "echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2\n"
    )
    tc.chmod(tc.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    sentence = refused(measure(folder, [], PATH=f"{tc.parent}{os.pathsep}{os.environ['PATH']}"))
    assert "Specified qdisc kind is unknown" in sentence
    assert len((folder / "calls").read_text().splitlines()) == 4


def test_missing_programs_and_other_systems_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(iproute, "SYSTEM_FOLDERS", ())
    if sys.platform == "linux":
        with pytest.raises(InputError, match="install the package iproute2"):
            Iproute.found()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(InputError, match="needs Linux's network namespaces, and this is darwin"):
        Iproute.found()
