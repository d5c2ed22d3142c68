"""One rank's own count of its messages, apart from the rows that make the trace.

Both ranks of a message count the message, each on its own. `audit` compares both counts with the trace.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any


class Tally:
    """Messages that carry numbers over the network, and their bytes, by the other rank.

    Each (direction, rank) belongs to one thread, so nothing is locked.

    >>> tally = Tally()
    >>> tally.sent(3, 4096)
    >>> tally.sent(3, 4096)
    >>> tally.table()
    {'sent': {'3': [2, 8192]}, 'received': {}}
    """

    def __init__(self) -> None:
        self._sent: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
        self._received: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])

    def sent(self, rank: int, num_bytes: int) -> None:
        """Counts a message to `rank`."""
        _count(self._sent[rank], num_bytes)

    def received(self, rank: int, num_bytes: int) -> None:
        """Counts a message from `rank`."""
        _count(self._received[rank], num_bytes)

    def table(self) -> dict[str, Any]:
        """[messages, bytes] by direction and rank, as JSON holds it."""
        counts = (("sent", self._sent), ("received", self._received))
        return {name: {str(rank): counted for rank, counted in by_rank.items()} for name, by_rank in counts}


def _count(counted: list[int], num_bytes: int) -> None:
    counted[0] += 1
    counted[1] += num_bytes
