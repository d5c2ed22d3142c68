"""Memory that one step gives back is there for the next one, without a page fault for each page."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from distsim.runtime.measure import measure
from distsim.scenario import Scenario

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone can be asked to keep memory")

MODEL = '''
"""A model that takes memory in each step, and notes its page faults."""

import json
import os
import resource
from pathlib import Path

import numpy as np
from torch import nn, ones


def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    [np.ones(3 * 2**17) for _ in range(10)]  # each of 3 MiB, too few for huge pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


class Hungry(nn.Linear):
    def forward(self, numbers):
        with Path(__file__).with_suffix(".jsonl").open("a") as file:
            print(json.dumps([os.getpid(), faults()]), file=file)
        return super().forward(numbers).mean()


def build():
    return Hungry(4, 1), (ones(8, 4),)
'''
PAGES = 10 * 3 * 2**20 // 4096
STEPS = 6


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "hungry.py"
    made.write_text(MODEL)
    return made


def test_without_it_the_model_faults_in_each_step(file: Path) -> None:
    """Else the test below would pass whatever ranks do."""
    program = "import hungry; print([hungry.faults() for _ in range(3)][-1])"
    done = subprocess.run([sys.executable, "-c", program], cwd=file.parent, capture_output=True, text=True, check=True)
    assert int(done.stdout) > PAGES / 2


@pytest.mark.real
def test_ranks_and_profiles_keep_freed_memory(file: Path) -> None:
    measure(
        Scenario.of(
            {
                "name": "hungry",
                "steps": STEPS,
                "cluster": {"workers": 1, "bandwidth": "1 Gbit/s", "latency": "0 s"},
                "workload": {"model": f"{file}:build"},
                "policy": {"kind": "ddp"},
                "communication": {"kind": "ring"},
            }
        )
    )
    noted = [json.loads(line) for line in file.with_suffix(".jsonl").read_text().splitlines()]
    found = {pid: [faults for one, faults in noted if one == pid] for pid, _ in noted}
    ranks = [pid for pid in found if pid != os.getpid()]
    assert len(ranks) == 1
    assert len(found) == 2  # the profile is made in this process
    for faults in found.values():
        assert sorted(faults)[len(faults) // 2] < PAGES / 100, found
