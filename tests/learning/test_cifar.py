"""CIFAR-10's files: read, and refused where they are missing, broken, or name more than arrays."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from distsim import InputError
from distsim.learning.cifar import TEST_FILES, TRAINING_FILES, cifar10
from distsim.learning.torch_model import TorchModel

IMAGES = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files as the archive has them, with few images."""
    for number, name in enumerate(TRAINING_FILES + TEST_FILES):
        pixels = np.full((IMAGES, 3 * 32 * 32), number, dtype=np.uint8)
        pixels[:, 1024] = 255  # the first green one
        table = {b"data": pixels, b"labels": [number] * IMAGES, b"batch_label": b"x", b"filenames": [b"y"] * IMAGES}
        (tmp_path / name).write_bytes(pickle.dumps(table, protocol=2))
    return tmp_path


def test_the_files_become_images(folder: Path) -> None:
    training, test = cifar10(folder)
    assert training.inputs.shape == (20, 3, 32, 32)
    assert training.targets.tolist() == [number for number in range(5) for _ in range(IMAGES)]
    assert test.targets.tolist() == [5] * IMAGES
    assert torch.equal(test.inputs[0, 1, 0, :2], torch.tensor([1.0, 5 / 255]))
    assert torch.equal(training.inputs[4, 0, 0, :2], torch.tensor([1 / 255, 1 / 255]))


def test_they_are_learned(folder: Path) -> None:
    training, test = cifar10(folder)
    model = TorchModel(lambda: nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)), training, test)
    loss, gradient = model.gradient(model.start(0), np.array([0, 5, 19]))
    assert loss > 0.0
    assert np.count_nonzero(gradient) > 3072


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "data_batch_3").unlink()
    with pytest.raises(InputError, match=r"data_batch_3.*is not in the folder.*data_batch_1"):
        cifar10(folder)


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps({b"data": np.zeros((1, 3072))}), pickle.dumps(7)])
def test_a_broken_file_is_refused(folder: Path, content: bytes) -> None:
    (folder / "test_batch").write_bytes(content)
    with pytest.raises(InputError, match=r"test_batch.*unpack the archive once more"):
        cifar10(folder)


def test_a_file_runs_no_code(folder: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(folder / "bang"),)

    (folder / "test_batch").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError, match=r"it names posix\.mkdir|it names os\.mkdir"):
        cifar10(folder)
    assert not (folder / "bang").exists()
