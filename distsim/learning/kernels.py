"""Which of torch's routines compute models here: those by which the gradient of a batch is the mean of its parts'.

N workers with batches of b are then one process with batches of N b, as far as float32 tells. oneDNN's gradients of a
convolution's biases are the less exact the larger the batch is, and NNPACK, which torch takes from 16 images on,
multiplies in another way. Of the CNN's gradient torch's own routines take 0.5 to 1.0 times as long at batches up to
32, and twice as long at 512.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

SetFlag = Callable[[bool], tuple[bool, ...]]  # returns what was set before


@contextmanager
def plain_convolutions() -> Iterator[None]:
    """Torch's own convolutions, whatever the number of images; around forward and backward.

    >>> with plain_convolutions():
    ...     torch.backends.mkldnn.enabled
    False
    """
    # oneDNN's own `flags` would also set what it does with TF32, of which torch warns.
    set_onednn: SetFlag = torch.backends.mkldnn.set_flags
    set_nnpack: SetFlag = torch.backends.nnpack.set_flags
    before = set_onednn(False)[0], set_nnpack(False)[0]
    try:
        yield
    finally:
        set_onednn(before[0])
        set_nnpack(before[1])


@contextmanager
def one_thread() -> Iterator[None]:
    """These models are too small to share: on a busy machine, threads that wait for each other take a hundred times as
    long. It also fixes the order in which sums are rounded.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
