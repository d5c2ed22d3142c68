"""Which samples each worker has: against torch's own sampler and loader, and as a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler

from distsim import InputError
from distsim.learning.batches import Batches, permutation


class Numbers(torch.utils.data.Dataset[int]):
    """A data set whose samples are their own numbers."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> int:
        return number


@pytest.mark.parametrize(("samples", "workers", "batch", "seed"), [(26, 3, 4, 2), (64, 4, 8, 0), (1437, 8, 32, 7)])
def test_they_are_those_of_torch(samples: int, workers: int, batch: int, seed: int) -> None:
    batches = Batches(samples, workers, batch, seed)
    for worker in range(workers):
        sampler = DistributedSampler(Numbers(samples), workers, worker, seed=seed)
        step = 0
        for epoch in range(3):
            sampler.set_epoch(epoch)
            for expected in DataLoader(Numbers(samples), batch, sampler=sampler):
                assert batches.of(worker, step).tolist() == expected.tolist()
                step += 1
        assert step == 3 * batches.steps_per_epoch


@pytest.mark.parametrize("seed", [0, 5, 2**31 + 1, 2**32 + 3])
def test_the_permutation_is_torch_s(seed: int) -> None:
    generator = torch.Generator()
    generator.manual_seed(seed)
    for count in (1, 2, 1437, 40000):
        generator.manual_seed(seed)
        assert np.array_equal(permutation(count, seed % 2**32), torch.randperm(count, generator=generator).numpy())


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_every_epoch_is_a_complete_partition(workers: int) -> None:
    batches = Batches(samples=1440, workers=workers, batch=7, seed=3)
    epochs = [np.concatenate([batches.share(worker, epoch) for worker in range(workers)]) for epoch in range(2)]
    for numbers in epochs:
        assert np.array_equal(np.sort(numbers), np.arange(1440))
    assert not np.array_equal(*epochs)


def test_the_workers_batches_of_a_step_are_one_batch_of_one_process() -> None:
    one = Batches(samples=64, workers=1, batch=16, seed=5)
    for workers in (2, 4, 8):
        many = Batches(64, workers, 16 // workers, seed=5)
        for step in range(8):
            together = np.concatenate([many.of(worker, step) for worker in range(workers)])
            assert set(together) == set(one.of(0, step))
            assert len(together) == 16


def test_shares_are_filled_up_to_one_length() -> None:
    batches = Batches(samples=26, workers=3, batch=4, seed=2)
    shares = [batches.share(worker, 0) for worker in range(3)]
    assert [len(share) for share in shares] == [9, 9, 9]
    assert set(np.concatenate(shares)) == set(range(26))
    assert [len(batches.of(1, step)) for step in range(4)] == [4, 4, 1, 4]


def test_a_batch_beyond_the_samples_is_refused() -> None:
    with pytest.raises(InputError, match=r"batch = 9: of 3 workers is more than the 26 samples.*take 8 or less"):
        Batches(samples=26, workers=3, batch=9, seed=0)


@pytest.mark.parametrize("batch", [0, -1, 1.5])
def test_a_batch_is_a_whole_number_above_0(batch: Any) -> None:
    with pytest.raises(InputError, match=r"batch = .* must be a whole number above 0"):
        Batches(samples=100, workers=2, batch=batch, seed=0)
