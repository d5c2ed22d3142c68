"""How long a run is waited for: less long after an earlier run of the same file has not ended in time.

So an endless loop in one function costs a student the time of one deadline, and not that of every check. It stays fair
to the other functions: they still have several times as long as any run of the file has taken.
"""

from __future__ import annotations

from dataclasses import dataclass

FEWEST_SECONDS = 5.0  # of a later deadline
TIMES = 4.0  # the longest run of the file that has ended


@dataclass
class Patience:
    """What earlier runs of a file have shown. A file that was changed has its whole deadline again.

    >>> patience = Patience()
    >>> patience.deadline_seconds(b"loops", 20.0)
    20.0
    >>> patience.ended(b"loops", 0.5, late=False)
    >>> patience.ended(b"loops", 20.0, late=True)
    >>> patience.deadline_seconds(b"loops", 20.0), patience.deadline_seconds(b"loops no more", 20.0)
    (5.0, 20.0)
    """

    _file: bytes = b""
    _longest_seconds: float = 0.0
    _late: bool = False

    def deadline_seconds(self, file: bytes, asked_seconds: float) -> float:
        """The deadline of the next run. asked_seconds: what it is without earlier runs, and at most."""
        if file != self._file or not self._late:
            return asked_seconds
        return min(asked_seconds, max(FEWEST_SECONDS, TIMES * self._longest_seconds))

    def ended(self, file: bytes, seconds: float, *, late: bool) -> None:
        """Notes how long a run took, and whether it was ended by its deadline."""
        if file != self._file:
            self._file, self._longest_seconds, self._late = file, 0.0, False
        if late:
            self._late = True
        else:
            self._longest_seconds = max(self._longest_seconds, seconds)
