"""Tests of chapters use the browser and JupyterLab of the explorers' tests. The site is built once for all tests."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.explorers.conftest import browser, lab, page, problems

__all__ = ["browser", "lab", "page", "problems", "site"]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, as `make site` builds it: once, also where several processes share the tests."""
    pytest.importorskip("myst_nb")
    shared = "PYTEST_XDIST_WORKER" in os.environ
    folder = tmp_path_factory.getbasetemp().parent if shared else tmp_path_factory.getbasetemp()
    out, told = folder / "site", folder / "site.json"
    with (folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            done = subprocess.run(
                [sys.executable, "-m", "distsim.course.site", str(out)],
                cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            told.write_text(json.dumps([done.returncode, done.stdout, done.stderr]), "utf-8")
    code, printed, errors = json.loads(told.read_text("utf-8"))
    assert (code, errors) == (0, ""), (printed, errors)
    return out
