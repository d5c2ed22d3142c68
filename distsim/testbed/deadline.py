"""When a run is late: not merely because a busy machine gives its ranks little processor time.

The deadline is in real time, since a rank that waits for something outside the switch takes no processor time. Ranks
that still compute then, and that have had much less processor time than that, are waited for longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress

import psutil

COMPUTED_SHARE = 0.25  # of the deadline: ranks that have computed for so long together were not held up by others
STILL_SECONDS, STILL_SHARE = 5.0, 0.01  # ranks are still if they have computed for less than this share of that time
MOST_TIMES = 5.0  # the deadline


class Deadline:
    """The deadline of one run. seconds: real time from the start of the run, at the time `began`.

    >>> deadline = Deadline(20.0, began=100.0)
    >>> deadline.passed(119.0), deadline.passed(121.0)
    (False, True)

    Two seconds of computing in twenty are little, and the ranks go on:

    >>> for now in range(101, 122):
    ...     deadline.computed(0.1 * (now - 100), float(now))
    >>> deadline.passed(121.0)
    False
    """

    def __init__(self, seconds: float, began: float) -> None:
        self.seconds, self._began = seconds, began
        self._computed = deque([(began, 0.0)])  # when, and how long all ranks had computed by then

    def computed(self, processor_seconds: float, now: float) -> None:
        """Notes how long all ranks have computed together."""
        self._computed.append((now, processor_seconds))
        while self._computed[1][0] <= now - STILL_SECONDS:
            self._computed.popleft()

    def passed(self, now: float) -> bool:
        """Whether the run is late."""
        elapsed = now - self._began
        if elapsed <= self.seconds:
            return False
        (_, before), (_, computed) = self._computed[0], self._computed[-1]
        held_up = computed < COMPUTED_SHARE * self.seconds
        still = computed - before < STILL_SHARE * STILL_SECONDS
        return still or not held_up or elapsed > MOST_TIMES * self.seconds


class Computed:
    """How long some processes have computed. Processes that have ended keep what they had when last seen."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._seen = dict.fromkeys(pids, 0.0)

    def seconds(self) -> float:
        """Processor time of all together, in seconds."""
        for pid in self._pids:
            with suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                self._seen[pid] = times.user + times.system
        return sum(self._seen.values())
