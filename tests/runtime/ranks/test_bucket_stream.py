"""The clock of a worker's exchanges, beside the computation that goes on."""

from __future__ import annotations

import threading
import time

import pytest

from distsim.runtime.ranks.bucket_stream import clock_without

BURNT_SECONDS = 0.05


def burn() -> None:
    """Computes for so many seconds of this thread's core."""
    end = time.thread_time() + BURNT_SECONDS
    while time.thread_time() < end:
        pass


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="this system has no clocks of threads")
def test_the_clock_of_exchanges_leaves_out_the_thread_that_computes() -> None:
    clock = clock_without(threading.get_ident())
    before = clock()
    burn()
    computed = clock()
    assert computed - before < BURNT_SECONDS / 5
    other = threading.Thread(target=burn)
    other.start()
    other.join()
    assert BURNT_SECONDS <= clock() - computed < 2 * BURNT_SECONDS
