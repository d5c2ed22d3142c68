"""Who joins a collective: all workers, or groups of them that each have a call of their own at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from distsim.arrays import Floats


@dataclass(frozen=True)
class Groups:
    """Groups of `size` workers, `stride` ranks from one member to the next; each worker is in one group.

    >>> [Groups(2, stride=2).members(worker) for worker in (1, 6)]    # of eight workers
    [[1, 3], [4, 6]]
    """

    size: int
    stride: int = 1

    def place(self, worker: int) -> int:
        """Which member of its group a worker is."""
        return worker // self.stride % self.size

    def members(self, worker: int) -> list[int]:
        """The group of a worker, in the order of its ring."""
        first = worker - self.place(worker) * self.stride
        return [first + member * self.stride for member in range(self.size)]


class GroupExchange(NamedTuple):
    """A collective by its name, and the groups that call it; None: all workers together."""

    kind: str = "all_reduce"
    groups: Groups | None = None

    def last(self, arrivals: Floats) -> Floats:
        """For each worker, when the last of its group had joined. arrivals: of all workers, shape (…, workers).

        >>> import numpy as np
        >>> GroupExchange(groups=Groups(2, stride=2)).last(np.array([1.0, 2.0, 4.0, 3.0]))
        array([4., 3., 4., 3.])
        """
        around = self.groups or Groups(arrivals.shape[-1])
        by_group = arrivals.reshape(*arrivals.shape[:-1], -1, around.size, around.stride)
        found: Floats = by_group.max(axis=-2, keepdims=True).repeat(around.size, axis=-2).reshape(arrivals.shape)
        return found


ALL_REDUCE = GroupExchange()
