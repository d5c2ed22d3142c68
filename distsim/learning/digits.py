"""scikit-learn's digits as arrays, always split into the same training and test images."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distsim.extras import missing
from distsim.workload import TRAINING_SAMPLES

TEST_SAMPLES = 360
SPLIT_SEED = 0
BRIGHTEST_PIXEL = 16.0


class Images(NamedTuple):
    """Pixels from 0 to 1, a row for each image, and the class of each."""

    pixels: NDArray[np.float32]
    classes: NDArray[np.int64]


@cache
def digits() -> tuple[Images, Images]:
    """1437 images for training and 360 for testing, 8 x 8 pixels each, with classes in equal shares in both.

    Raises InputError where scikit-learn is missing.

    >>> training, test = digits()
    >>> training.pixels.shape, test.pixels.shape
    ((1437, 64), (360, 64))
    """
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError:
        raise missing("sklearn", "the set of digits") from None
    pixels, classes = load_digits(return_X_y=True)
    training_pixels, test_pixels, training_classes, test_classes = train_test_split(
        (pixels / BRIGHTEST_PIXEL).astype(np.float32), classes.astype(np.int64),
        train_size=TRAINING_SAMPLES["mlp"], test_size=TEST_SAMPLES, stratify=classes, random_state=SPLIT_SEED,
    )  # fmt: skip
    return Images(training_pixels, training_classes), Images(test_pixels, test_classes)
