"""A file that is read slowly: a genuine wait for data in a real run.

`python -m distsim.runtime.slow_file FOLDER SECONDS` writes what `content` has in this folder into the named pipe `pipe`
beside it, again and again, so slowly that a reader needs `SECONDS` for each time. When its standard input ends, it
removes both, and the folder.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from distsim.runtime.launch import lifeline
from distsim.runtime.launch.owned_process import companion

CONTENT, PIPE = "content", "pipe"  # in a temporary folder
CHUNK_BYTES = 16 * 1024  # the pipe holds one, so that hardly anything is read ahead


@contextmanager
def slow_file(content: bytes, seconds: float) -> Iterator[Path]:
    """A pipe that gives `content` again and again, each time in so many seconds, until the block ends.

    One process at a time may read it; another one may open it later. Raises RunError at the end of the block where the
    writing program ended before.

    >>> with slow_file(b"ab", seconds=0.01) as path, path.open("rb", buffering=0) as file:
    ...     file.read(1), file.read(1)
    (b'a', b'b')
    """
    with tempfile.TemporaryDirectory(prefix="distsim-") as folder:
        pipe = Path(folder, PIPE)
        Path(folder, CONTENT).write_bytes(content)
        os.mkfifo(pipe)
        with companion("the program that writes the slow file", __name__, folder, seconds):
            yield pipe


def main() -> None:
    """Serves one reader after the other until the starting process has gone."""
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    lifeline.keep(lambda: _leave(folder), inherit=False)
    content, pipe = Path(folder, CONTENT).read_bytes(), Path(folder, PIPE)
    chunks = [content[first : first + CHUNK_BYTES] for first in range(0, len(content), CHUNK_BYTES)]
    while True:
        with open(pipe, "wb", buffering=0) as file:  # waits for a reader
            if hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux
                fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, CHUNK_BYTES)
            try:
                _serve(file.fileno(), chunks, seconds / len(chunks))
            except BrokenPipeError:
                continue  # the reader has gone; wait for the next one


def _leave(folder: Path) -> NoReturn:
    """Removes what a starting process that was killed has left, and ends this process."""
    for name in (CONTENT, PIPE):
        Path(folder, name).unlink(missing_ok=True)
    with suppress(OSError):  # the starting process has removed it, or put something else into it
        folder.rmdir()
    os._exit(0)


def _serve(file: int, chunks: list[bytes], gap_seconds: float) -> None:
    """Writes all chunks again and again, each `gap_seconds` after the one before, or after the reader took that one."""
    due = time.monotonic()
    while True:
        for chunk in chunks:
            due += gap_seconds
            time.sleep(max(due - time.monotonic(), 0.0))
            os.write(file, chunk)
            if time.monotonic() > due + gap_seconds:  # the reader did something else
                due = time.monotonic()


if __name__ == "__main__":
    main()
