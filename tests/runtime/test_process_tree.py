"""The end of all processes of a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WRITERS, FILES = 8, 200
WRITES = """
import itertools, sys
from pathlib import Path

for number in itertools.count():
    Path(sys.argv[1], f"{sys.argv[2]}-{number % 300}").write_text("x" * 20_000)
"""
ABANDONS = f"""
import subprocess, sys, time
from pathlib import Path

from distsim.runtime.launch.process_tree import abandon

folder = Path(sys.argv[1])
for writer in range({WRITERS}):
    subprocess.Popen([sys.executable, "-c", sys.argv[2], str(folder), str(writer)])
while len(list(folder.iterdir())) < {FILES}:
    time.sleep(0.01)
abandon(folder)
"""


@pytest.mark.parametrize("attempt", range(4))
def test_a_runs_folder_is_removed_though_its_ranks_write_until_they_die(tmp_path: Path, attempt: int) -> None:
    """Without the wait for their death, the folder was left in 5 of 12 attempts."""
    folder = tmp_path / f"run-{attempt}"
    folder.mkdir()
    ended = subprocess.run([sys.executable, "-c", ABANDONS, str(folder), WRITES], check=False, timeout=60)
    assert ended.returncode == 137
    assert not folder.exists()
