"""A worker's stream of communication in distributed data parallel: it all-reduces one bucket after the other.

take   torch hands over a bucket when the last of its gradients is there, and goes on with backward.
mean   the bucket's gradients become their mean over the workers.
tell   records when each all-reduce began and ended, once the step has waited for all of them.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

import torch

from distsim.policies import Ddp
from distsim.runtime.devices.device import Device
from distsim.runtime.devices.stopwatch import ON_CPU, Moment
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport import backend
from distsim.runtime.transport.all_reduce import count_reduced
from distsim.runtime.transport.schedule_run import ScheduleRunner, ScheduleTask, runner_of
from distsim.scenario import Scenario

if TYPE_CHECKING:
    from distsim.runtime.transport.backend import Bucket, Mean


class Stream(ABC):
    """The interface of both streams. more: whether another update with the same buckets follows.

    last_handed_over: when the last bucket's gradients were there. shapes: for each bucket as it travels, how many
    numbers of how many bytes.
    """

    def __init__(self, scenario: Scenario) -> None:
        assert isinstance(scenario.policy, Ddp)
        self._halved = scenario.policy.compression == 0.5
        self._recorder = Recorder()
        self._call = 0
        self.more = False
        self.last_handed_over: Moment = ON_CPU.moment()
        self.shapes: dict[int, tuple[int, int]] = {}

    def record_in(self, recorder: Recorder) -> None:
        """Records into `recorder` from now on, with calls counted from 0."""
        self._recorder, self._call = recorder, 0
        self.shapes.clear()

    @abstractmethod
    def take(self, bucket: Bucket) -> Mean:
        """Queues a bucket whose gradients are there; returns a future of their mean over the workers."""

    @abstractmethod
    def tell(self) -> None:
        """Records the rest, once the step has waited for all its buckets."""

    def _note_shape(self, bucket: Bucket) -> None:
        buffer = bucket.buffer()
        self.shapes[bucket.index()] = buffer.numel(), 2 if self._halved else buffer.itemsize

    def _count(self, bucket: Bucket) -> None:
        count_reduced(self._recorder, math.prod(self.shapes[bucket.index()]))


def clock_without(thread: int) -> Callable[[], float]:
    """A clock of the core-seconds of all threads of this process but `thread`, which computes while others exchange.

    Where the system has no clocks of threads, it tells the seconds of the calling thread alone.
    """
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.thread_time
    computing = time.pthread_getcpuclockid(thread)
    return lambda: time.process_time() - time.clock_gettime(computing)


def stream_of(scenario: Scenario, worker: int, slot: StatusSlot, device: Device) -> Stream:
    """The stream of a worker on its device."""
    if device.group is not None:
        return QueueStream(scenario, device)
    return ScheduleStream(scenario, worker, slot) if scenario.follows_schedule else BackendStream(scenario)


class BackendStream(Stream):
    """On a CPU, by the back end, whose own threads make the all-reduces. It gets one bucket at a time.

    A further thread would wait for its turn on a busy core before each bucket, some milliseconds long.
    """

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._queue: deque[tuple[Bucket, Mean]] = deque()
        self._under_way = False
        self._lock = threading.Lock()  # of both: the computing thread adds buckets, and the back end's take them
        self._other_work = clock_without(threading.get_ident())

    def take(self, bucket: Bucket) -> Mean:
        """Hands the bucket to the back end, or leaves that to whoever sees the end of the one before it."""
        done: Mean = torch.futures.Future()
        self.last_handed_over = ON_CPU.moment()
        with self._lock:
            self._queue.append((bucket, done))
            begins, self._under_way = not self._under_way, True
        if begins:
            self._begin()
        return done

    def tell(self) -> None:
        """Does nothing: each all-reduce is recorded as it ends."""

    def _begin(self) -> None:
        """Begins the all-reduce of the first bucket in the queue."""
        bucket, done = self._queue.popleft()
        call, arrival, before = self._call, time.monotonic(), self._other_work()
        self._call += 1
        self._note_shape(bucket)
        self._count(bucket)

        def ended(mean: Mean) -> None:
            try:
                found = mean.value()
                self._recorder.table("all_reduces")((call, arrival, time.monotonic()))
                self._recorder.table("exchange_work")((call, self._other_work() - before))
                with self._lock:
                    goes_on = self._under_way = bool(self._queue)
                if goes_on:
                    self._begin()
            except Exception as error:  # noqa: BLE001 - torch raises it in the worker's own thread
                done.set_exception(error)  # type: ignore[arg-type] # torch takes what it says it does not
            else:
                done.set_result(found)

        backend.bucket_mean(bucket, None, halved=self._halved).add_done_callback(ended)


class ScheduleStream(Stream):
    """On a CPU: a thread that follows a schedule."""

    def __init__(self, scenario: Scenario, worker: int, slot: StatusSlot) -> None:
        super().__init__(scenario)
        self._scenario = scenario
        self._worker = worker
        self._slot = slot
        self._workers = scenario.cluster.workers
        self._runners: dict[tuple[int, int], ScheduleRunner] = {}
        self._schedule = scenario.schedule()
        self._queue: SimpleQueue[tuple[Bucket, Mean]] = SimpleQueue()
        self._other_work = clock_without(threading.get_ident())
        threading.Thread(target=self._work, name="stream", daemon=True).start()

    def take(self, bucket: Bucket) -> Mean:
        """Queues the bucket for the thread."""
        done: Mean = torch.futures.Future()
        self.last_handed_over = ON_CPU.moment()
        self._queue.put((bucket, done))
        return done

    def tell(self) -> None:
        """Does nothing: the thread records each all-reduce as it ends."""

    def _work(self) -> None:
        while True:
            bucket, done = self._queue.get()
            arrival, before = time.monotonic(), self._other_work()
            try:
                mean = self._mean(bucket)
            except Exception as error:  # noqa: BLE001 - torch raises it in the worker's own thread
                done.set_exception(error)  # type: ignore[arg-type] # torch takes what it says it does not
                return
            self._recorder.table("all_reduces")((self._call, arrival, time.monotonic()))
            self._recorder.table("exchange_work")((self._call, self._other_work() - before))
            self._call += 1
            done.set_result(mean)

    def _mean(self, bucket: Bucket) -> torch.Tensor:
        """The bucket's gradients become their mean over the workers."""
        self._note_shape(bucket)
        index, buffer = bucket.index(), bucket.buffer()
        travelling = buffer.half() if self._halved else buffer
        travelling.div_(self._workers)
        self._runner(index, travelling).run(travelling, self._call, self._recorder, more=self.more)
        return buffer.copy_(travelling)

    def _runner(self, index: int, travelling: torch.Tensor) -> ScheduleRunner:
        key = (index, travelling.numel())
        if key not in self._runners:
            first_tag = index * sum(1 for _ in self._schedule.transfers())
            sends = self._scenario.communication.sends
            task = ScheduleTask(self._schedule, self._worker, travelling.numel(), sends, first_tag, travelling.dtype)
            self._runners[key] = runner_of(task, self._slot)
        return self._runners[key]


class QueueStream(Stream):
    """On a GPU: NCCL's own queue. Only the GPU waits for buckets, when backward is over."""

    def __init__(self, scenario: Scenario, device: Device) -> None:
        super().__init__(scenario)
        self._group = device.group
        self._stopwatch = device.stopwatch
        self._reduced: dict[int, tuple[Moment, Moment]] = {}  # of each call: when it was ready, and when it ended
        self._free = 0.0  # when the previous all-reduce ended

    def take(self, bucket: Bucket) -> Mean:
        """Queues the all-reduce behind the computation of the gradients."""
        call, ready = self._call, self._stopwatch.moment()
        self._call += 1
        self.last_handed_over = ready
        self._note_shape(bucket)
        self._count(bucket)

        def ended(mean: Mean) -> torch.Tensor:
            # torch calls this at once, but in a stream that waits for the all-reduce, so the moment is its end.
            self._reduced[call] = ready, self._stopwatch.moment()
            return mean.value()

        return backend.bucket_mean(bucket, self._group, halved=self._halved).then(ended)

    def tell(self) -> None:
        """Records all all-reduces. Each begins when the previous has ended, since NCCL runs them in order.

        Where the moments say otherwise, by the error of the GPU's clock, the later all-reduce takes no time.
        """
        for call in sorted(self._reduced):
            ready, ended = self._reduced.pop(call)
            begun = max(ready(), self._free)
            self._free = max(begun, ended())
            self._recorder.table("all_reduces")((call, begun, self._free))
