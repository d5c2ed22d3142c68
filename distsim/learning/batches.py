"""The samples of each worker in each step, as torch's `DistributedSampler` and `DataLoader` choose them.

An epoch is a permutation of all samples. Worker w of N has samples w, w + N, w + 2 N, … of the permutation. Where N
does not divide the number of samples, the first samples are taken twice, so that all workers have equally many. A
worker takes its samples in batches of b; the last batch of an epoch may be smaller. So the batches of one step
together are N b consecutive samples: the batch of the same step in one process with batches of N b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from distsim.errors import InputError

SEEDS = 2**32  # torch's generator, a Mersenne twister, ignores further bits of a seed
SEEDS_APART = 1000  # more than any run has epochs


@dataclass(frozen=True)
class Batches:
    """The samples of every worker's every step. batch: samples per worker and step.

    As with `DistributedSampler`, epoch e of seed s is epoch 0 of seed s + e. For independent runs take seeds that are
    further apart than the number of epochs.
    """

    samples: int
    workers: int
    batch: int
    seed: int

    def __post_init__(self) -> None:
        if not isinstance(self.batch, int | np.integer) or self.batch < 1:
            raise InputError.of("batch", self.batch, "must be a whole number above 0", "write batch = 32")
        if self.workers * self.batch > self.samples:
            raise InputError.of(
                "batch", self.batch, f"of {self.workers} workers is more than the {self.samples} samples there are",
                f"take {self.samples // self.workers} or less",
            )  # fmt: skip

    @cached_property
    def steps_per_epoch(self) -> int:
        """The number of steps that a worker takes for its share of the samples.

        >>> Batches(samples=10, workers=2, batch=2, seed=0).steps_per_epoch
        3
        """
        share = -(-self.samples // self.workers)
        return -(-share // self.batch)

    def of(self, worker: int, step: int) -> NDArray[np.int64]:
        """The numbers of this worker's samples in this step.

        >>> batches = Batches(samples=8, workers=2, batch=2, seed=7)
        >>> sorted(sample for worker in (0, 1) for step in (0, 1) for sample in batches.of(worker, step).tolist())
        [0, 1, 2, 3, 4, 5, 6, 7]
        """
        epoch, place = divmod(step, self.steps_per_epoch)
        return self.share(worker, epoch)[place * self.batch : (place + 1) * self.batch]

    def share(self, worker: int, epoch: int) -> NDArray[np.int64]:
        """All of a worker's samples of an epoch, in their order."""
        own: NDArray[np.int64] = _shares(self.samples, self.workers, (self.seed + epoch) % SEEDS)[worker]
        return own


@lru_cache(maxsize=64)
def _shares(samples: int, workers: int, seed: int) -> NDArray[np.int64]:
    """A row for each worker."""
    order = permutation(samples, seed)
    filled = np.concatenate([order, order[: -samples % workers]])
    return np.ascontiguousarray(filled.reshape(-1, workers).T)


def permutation(count: int, seed: int) -> NDArray[np.int64]:
    """The same as `torch.randperm` for this seed, without torch.

    Both draw from the Mersenne twister, started by Matsumoto and Nishimura's `init_genrand`. Torch swaps number i with
    a number at i or later (Fisher and Yates).

    >>> permutation(5, seed=0).tolist()
    [4, 0, 1, 3, 2]
    """
    drawn = np.frombuffer(np.random.RandomState(seed).bytes(4 * count), dtype="<u4").astype(np.int64)
    left = np.arange(count, 0, -1)
    numbers = list(range(count))
    for place, ahead in enumerate((drawn % left).tolist()):
        numbers[place], numbers[place + ahead] = numbers[place + ahead], numbers[place]
    return np.array(numbers, dtype=np.int64)


def seeds(count: int, first: int = 1) -> list[int]:
    """Seeds for `count` runs, so far apart that no two runs have an order of samples in common.

    A run with seed s takes the order of seed s + e in epoch e.

    >>> seeds(3)
    [1000, 2000, 3000]
    """
    return [SEEDS_APART * number for number in range(first, first + count)]
