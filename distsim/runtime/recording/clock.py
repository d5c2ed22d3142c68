"""The clock of real runs, CLOCK_MONOTONIC in seconds, which all processes of a host share, and waiting on it."""

from __future__ import annotations

import threading
import time

# A sleep ends 0.1 to 0.3 ms late, so the end of a wait polls the clock: briefly, since ranks share cores.
SPIN_SECONDS = 250e-6


def sleep_until(moment: float) -> None:
    """Returns at `moment`, within some microseconds if a core is free."""
    left = moment - time.monotonic() - SPIN_SECONDS
    if left > 0:
        time.sleep(left)
    while time.monotonic() < moment:
        pass


def wait_until(moment: float, stopped: threading.Event) -> bool:
    """As `sleep_until`, but returns True as soon as `stopped` is set, and False at `moment`."""
    left = moment - time.monotonic() - SPIN_SECONDS
    if left > 0 and stopped.wait(left):
        return True
    while time.monotonic() < moment:
        if stopped.is_set():
            return True
    return stopped.is_set()
