"""A network that reads each batch from a file, as the workers of a cluster read theirs from disks.

Chapter 03 trains `NETWORK`, a model of the user's own for `distsim.measure`. With `slow_disk`, one of the ranks really
waits for its data.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import torch
from torch import nn

from distsim.runtime.slow_file import slow_file

NETWORK = f"{Path(__file__)}:build"
SAMPLES, CHANNELS, PIXELS, CLASSES = 32, 3, 32, 10
WIDTH = 24  # channels of the hidden layers
DISK = "DISTSIM_DISK_OF_RANK_{}"  # an environment variable: the file from which this rank reads


class ReadingNetwork(nn.Module):
    """Three convolutions and a linear layer. The forward pass begins with reading the images."""

    def __init__(self) -> None:
        super().__init__()
        convolutions = (nn.Conv2d(inputs, WIDTH, 3, padding=1) for inputs in (CHANNELS, WIDTH, WIDTH))
        self.layers = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(WIDTH * PIXELS**2, CLASSES))
        self._disk: BinaryIO | None = None

    def forward(self, images: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """The loss of the images that the disk has. images: what is on the disk, unless it is a slow one."""
        if self._disk is None:
            self._disk = _disk_with(images)
            weakref.finalize(self, self._disk.close)
        if self._disk.seekable():
            self._disk.seek(0)
        found = torch.frombuffer(bytearray(self._disk.read(images.nbytes)), dtype=images.dtype)
        return nn.functional.cross_entropy(self.layers(found.view_as(images)), classes)


def build() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    """The network and its batch.

    >>> network, batch = build()
    >>> bool(network(*batch) > 0)
    True
    """
    return ReadingNetwork(), (_images(), torch.randint(CLASSES, (SAMPLES,)))


@contextmanager
def slow_disk(rank: int, seconds: float) -> Iterator[None]:
    """In runs that begin in the block, this rank needs so many seconds to read the images of a step.

    >>> with slow_disk(rank=1, seconds=0.1):
    ...     "DISTSIM_DISK_OF_RANK_1" in os.environ
    True
    """
    variable = DISK.format(rank)
    with slow_file(_images().numpy().tobytes(), seconds) as path:
        before = os.environ.get(variable)
        os.environ[variable] = str(path)
        try:
            yield
        finally:
            os.environ.pop(variable, None)
            if before is not None:
                os.environ[variable] = before


def _images() -> torch.Tensor:
    return torch.randn(SAMPLES, CHANNELS, PIXELS, PIXELS)


def _disk_with(images: torch.Tensor) -> BinaryIO:
    """The file of this rank: its slow disk, or a file with these images."""
    slow = os.environ.get(DISK.format(os.environ.get("RANK")))
    if slow is not None:
        return open(slow, "rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - open until the rank ends
    file.write(images.numpy().tobytes())
    return file
