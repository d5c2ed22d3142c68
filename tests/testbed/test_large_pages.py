"""Memory moves into large pages and stays what it is."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import re
from pathlib import Path
from distsim.testbed import large_pages

def large():
    return int(re.search(r"AnonHugePages: +(\\d+) kB", Path("/proc/self/smaps_rollup").read_text())[1])

small = [bytes([number % 256]) * 4096 for number in range(20_000)]
before = large()
large_pages.gather()
assert all(page == bytes([number % 256]) * 4096 for number, page in enumerate(small))
print(large() - before)
"""


def kernel_gathers() -> bool:
    """Whether this kernel has large pages, and moves memory into them when it is asked to: Linux 6.1 and later."""
    known = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    release = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    return release >= (6, 1) and known.is_file()


def test_memory_moves_into_large_pages_and_stays_what_it_is() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kilobytes = int(done.stdout)
    assert (kilobytes > 20_000) == kernel_gathers()
