"""CIFAR-10 from files that the user already has: the archive's "python version", unpacked. Nothing is downloaded.

Source: Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images; 60,000 colour images of 32 x 32 pixels.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from distsim.errors import InputError
from distsim.learning.problems import Data

TRAINING_FILES = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_FILES = ("test_batch",)
SHAPE = (3, 32, 32)
BRIGHTEST = 255.0


class _OnlyArrays(pickle.Unpickler):
    """Reads numpy arrays and plain values, and calls nothing else that a file may name."""

    ALLOWED = frozenset(
        {
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("_codecs", "encode"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        """What the file needs to make an array."""
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return super().find_class(module.replace("numpy.core.", "numpy._core."), name)


def cifar10(folder: str | Path) -> tuple[Data, Data]:
    """Images for training and for testing, values from 0 to 1 of shape (images, 3, 32, 32), and their classes.

    folder: where `data_batch_1` to `data_batch_5` and `test_batch` lie. Raises InputError where one is missing, or is
    not what it should be.
    """
    return _read(Path(folder), TRAINING_FILES), _read(Path(folder), TEST_FILES)


def _read(folder: Path, names: Sequence[str]) -> Data:
    parts = [_read_file(folder / name) for name in names]
    return Data(torch.cat([part.inputs for part in parts]), torch.cat([part.targets for part in parts]))


def _read_file(path: Path) -> Data:
    if not path.is_file():
        raise InputError.of(
            "CIFAR-10's file", path.name, "is not in the folder",
            "unpack the python version of the archive, and name the folder that holds data_batch_1",
        )  # fmt: skip
    try:
        with path.open("rb") as file:
            table = _OnlyArrays(file, encoding="bytes").load()
        pixels, classes = np.asarray(table[b"data"]), np.asarray(table[b"labels"])
        images = pixels.reshape(-1, *SHAPE)
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError.of(
            "CIFAR-10's file", path.name, f"cannot be read ({error})", "unpack the archive once more"
        ) from None
    if pixels.dtype != np.uint8 or classes.shape != images.shape[:1]:
        raise InputError.of(
            "CIFAR-10's file", path.name, "holds no bytes of pixels with a class for each image",
            "unpack the archive once more",
        )  # fmt: skip
    return Data(torch.from_numpy(images.astype(np.float32) / BRIGHTEST), torch.from_numpy(classes.astype(np.int64)))
