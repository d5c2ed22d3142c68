"""The choice of torch's routines: with this choice, a batch's gradient is the mean of its parts' gradients.

N workers with batches of b then equal one process with batches of N b, up to rounding in float32. oneDNN's gradients of
a convolution's biases lose precision as the batch grows. NNPACK, which torch uses from 16 images on, multiplies in
another order. For the CNN's gradient torch's own routines take 0.5 to 1.0 times as long at batches up to 32, and twice
as long at 512.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

SetFlag = Callable[[bool], tuple[bool, ...]]  # returns the values from before


@contextmanager
def plain_convolutions() -> Iterator[None]:
    """Torch's own convolutions, whatever the number of images; around forward and backward.

    >>> with plain_convolutions():
    ...     torch.backends.mkldnn.enabled
    False
    """
    # oneDNN's own `flags` would also set its use of TF32, and torch warns of that.
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
    """Computes on one thread, which also fixes the order in which sums are rounded.

    These models are too small to share: on a busy machine, threads that wait for each other take 100 times as long.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
