"""Memory that a worker shares with the server on its host, so that what they exchange crosses no network.

The two are processes of one host, each with its own mapping of a file in the run's folder.
"""

from __future__ import annotations

from pathlib import Path

import torch

from distsim.runtime.transport.messages import Message, length


class SharedBuffer:
    """Where a worker puts its gradient and a server its parameters, for the other to fetch.

    A gradient stays until the server has answered it; parameters stay until the worker has pushed again.
    """

    def __init__(self, folder: Path, name: str, floats: int) -> None:
        self.gradient = _mapped(folder / f"shared-{name}-gradient", floats)
        self.parameters = _mapped(folder / f"shared-{name}-parameters", floats)


def _mapped(file: Path, floats: int) -> Message:
    """A message in memory that is shared with whoever maps the same file; the first to come creates it."""
    return Message(floats, torch.from_file(str(file), shared=True, size=length(floats), dtype=torch.uint8))
