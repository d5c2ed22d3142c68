"""Scripts with the calls of Horovod's own examples run for real on what lab 10 makes, but for the import unchanged."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "horovod"
LAB = Path(__file__).parents[2] / "labs" / "10_horovod"
SECONDS = 240.0

pytestmark = [pytest.mark.real, pytest.mark.more, pytest.mark.timeout(300)]


def torchrun(folder: Path, solution: str, script: str, *arguments: str, code: int = 0) -> str:
    """What two ranks print. Without tasks.py, `folder` gets the lab's file `solution` as such."""
    shutil.copyfile(LAB / solution, folder / "tasks.py")
    shutil.copyfile(SCRIPTS / script, folder / script)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", script, *arguments]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(LAB.parents[1])}
    done = subprocess.run(
        command, cwd=folder, env=variables, text=True, timeout=SECONDS, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == code, done.stdout[-4000:]
    return done.stdout


@pytest.mark.parametrize(
    ("solution", "arguments"),
    [
        ("solution.py", ()),
        ("solution.py", ("--fp16-allreduce", "--gradient-predivide-factor=2.0", "--unscale")),
        pytest.param("other.py", ("--unscale",), marks=pytest.mark.thorough),
        pytest.param("other.py", ("--fp16-allreduce", "--gradient-predivide-factor=2.0"), marks=pytest.mark.thorough),
    ],
)
def test_a_script_like_that_for_mnist_learns(tmp_path: Path, solution: str, arguments: tuple[str, ...]) -> None:
    said = torchrun(tmp_path, solution, "train_digits.py", *arguments)
    found = re.search(r"accuracy ([\d.]+) apart (\S+) local size 2", said)
    assert found, said
    assert float(found[1]) > 0.8
    assert float(found[2]) == 0.0, "ranks end with other parameters"


@pytest.mark.parametrize("arguments", [(), pytest.param(("--fp16-allreduce",), marks=pytest.mark.thorough)])
@pytest.mark.parametrize("solution", ["solution.py", pytest.param("other.py", marks=pytest.mark.thorough)])
def test_a_script_like_the_synthetic_benchmark_ends(tmp_path: Path, solution: str, arguments: tuple[str, ...]) -> None:
    said = torchrun(tmp_path, solution, "benchmark.py", *arguments)
    assert re.search(r"images per second [\d.]+ loss [\d.]+ refused True of 2", said), said


def test_what_is_not_offered_is_said(tmp_path: Path) -> None:
    said = torchrun(tmp_path, "solution.py", "train_digits.py", "--use-adasum", code=1)
    assert "ValueError: op = adasum: only Average and Sum are offered here" in said
