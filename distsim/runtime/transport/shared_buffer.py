"""Memory that a worker shares with the server on its host, so that their exchange crosses no network.

Both processes map the same file in the run's folder.
"""

from __future__ import annotations

from pathlib import Path

import torch

from distsim.runtime.transport.messages import Message, length


class SharedBuffer:
    """A worker leaves its gradient here for the server, and the server leaves its parameters here for the worker.

    A gradient stays until the server has answered it; parameters stay until the worker has pushed again.
    """

    def __init__(self, folder: Path, name: str, floats: int) -> None:
        self.gradient = _mapped(folder / f"shared-{name}-gradient", floats)
        self.parameters = _mapped(folder / f"shared-{name}-parameters", floats)


def _mapped(file: Path, floats: int) -> Message:
    """A message in memory that all processes share that map the same file. The first process creates the file."""
    return Message(floats, torch.from_file(str(file), shared=True, size=length(floats), dtype=torch.uint8))
