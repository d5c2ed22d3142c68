"""The stream of a worker on a CPU, and the clock of its exchanges beside the computation that goes on."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from distsim.examples import example
from distsim.runtime.ranks.bucket_stream import BackendStream, clock_without
from distsim.runtime.recording.recorder import Recorder

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


Mean = torch.futures.Future[torch.Tensor]


def buckets(monkeypatch: pytest.MonkeyPatch, count: int) -> tuple[list[Mean], list[Mean], Recorder]:
    """What so many buckets' owners wait for; the futures of the back end, as it gets them; and the records."""
    begun: list[Mean] = []

    def reduced(_group: object, _bucket: object) -> Mean:
        begun.append(torch.futures.Future())
        return begun[-1]

    monkeypatch.setattr(default_hooks, "allreduce_hook", reduced)
    scenario = example("synchronous_ring").replacing({"policy": {"kind": "ddp", "bucket": "1 MiB"}})
    stream, recorder = BackendStream(scenario), Recorder()
    stream.record_in(recorder)
    gradients = [torch.ones(10 + index) for index in range(count)]
    taken = [
        stream.take(SimpleNamespace(index=lambda index=index: index, buffer=lambda own=own: own))  # type: ignore[arg-type]
        for index, own in enumerate(gradients)
    ]
    return taken, begun, recorder


def test_the_back_end_gets_one_bucket_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, begun, recorder = buckets(monkeypatch, 3)
    for number in range(3):
        assert len(begun) == number + 1
        assert [mean.done() for mean in taken] == [earlier < number for earlier in range(3)]
        begun[number].set_result(torch.full((1,), float(number)))
    assert [mean.wait().item() for mean in taken] == [0.0, 1.0, 2.0]
    rows = recorder.rows("all_reduces")
    assert [call for call, _, _ in rows] == [0, 1, 2]
    assert all(before[2] <= after[1] <= after[2] for before, after in pairwise(rows))
    assert [call for call, _ in recorder.rows("exchange_work")] == [0, 1, 2]


def test_an_all_reduce_that_fails_is_told_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, begun, _ = buckets(monkeypatch, 2)
    begun[0].set_exception(RuntimeError("the peer has left"))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="the peer has left"):
        taken[0].wait()
    assert len(begun) == 1
