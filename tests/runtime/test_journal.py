"""Rows in a mapped file: whole, in order, from any thread, also of a process that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from distsim.runtime.recording.journal import CHUNK_BYTES, Journal, read


def test_rows_come_back_in_order_over_many_chunks(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rows")
    rows = [(float(number), 0.1 * number, float("inf")) for number in range(CHUNK_BYTES // 8)]
    for row in rows:
        journal.append(2, row)
        journal.append(5, row[:1])
    assert read(tmp_path / "rows") == {2: rows, 5: [row[:1] for row in rows]}


def test_a_file_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "rows") == {}
    (tmp_path / "rows").write_bytes(b"")
    assert read(tmp_path / "rows") == {}


def test_threads_do_not_mix_their_rows(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rows")
    threads = [
        threading.Thread(target=lambda table=table: [journal.append(table, (table, n)) for n in range(3000)])
        for table in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read(tmp_path / "rows") == {table: [(table, n) for n in range(3000)] for table in range(4)}


def test_a_process_that_is_killed_leaves_its_rows(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from distsim.runtime.recording.journal import Journal\n"
        "Journal(Path(sys.argv[1])).append(1, (4.0, 2.0))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path / "rows")], check=False, env=dict(os.environ))
    assert ended.returncode == -signal.SIGKILL
    assert read(tmp_path / "rows") == {1: [(4.0, 2.0)]}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_full_disk_is_an_error_and_no_crash(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rows")
    journal._path = Path("/dev/full")
    rows = [(float(number),) for number in range((CHUNK_BYTES - 8) // 16)]
    for row in rows:
        journal.append(0, row)
    with pytest.raises(OSError, match="No space left"):
        journal.append(0, (0.0,))
    assert read(tmp_path / "rows") == {0: rows}
