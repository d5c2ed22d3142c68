"""Reads the ranks' output all the time, so that no rank blocks. Keeps only the end, so that memory stays small."""

from __future__ import annotations

import os
import selectors
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

TAIL_BYTES = 16 * 1024
CHUNK_BYTES = 64 * 1024


def output_pipe(folder: Path, name: str) -> Path:
    """The named pipe into which process `name` prints."""
    return folder / f"output-{name}"


class Output:
    """Named pipes, one per process, and a thread that reads them while the `with` block lasts."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self._tails = {name: bytearray() for name in names}
        self._pipes: dict[int, str] = {}
        for name in names:
            os.mkfifo(output_pipe(folder, name), 0o600)
            # Opened for reading and writing: opening waits for no writer, and the pipe never reports its end.
            self._pipes[os.open(output_pipe(folder, name), os.O_RDWR | os.O_NONBLOCK)] = name
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._drain, name="output", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.write(self._wake_write, b"x")
        self._thread.join()
        for pipe in (*self._pipes, self._wake_read, self._wake_write):
            os.close(pipe)

    def tail(self, name: str, lines: int = 12) -> list[str]:
        """The last lines that `name` printed."""
        text = bytes(self._tails[name]).decode(errors="replace")
        return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]

    def _drain(self) -> None:
        with selectors.DefaultSelector() as selector:
            for pipe in (*self._pipes, self._wake_read):
                selector.register(pipe, selectors.EVENT_READ)
            while True:
                ready = [key.fd for key, _ in selector.select()]
                for pipe in ready:
                    if pipe in self._pipes:
                        self._take(pipe)
                if self._wake_read in ready:
                    return

    def _take(self, pipe: int) -> None:
        try:
            text = os.read(pipe, CHUNK_BYTES)
        except BlockingIOError:
            return
        tail = self._tails[self._pipes[pipe]]
        tail += text
        del tail[:-TAIL_BYTES]
