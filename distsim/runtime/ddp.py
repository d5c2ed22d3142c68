"""Distributed data parallel for real, by torch's DistributedDataParallel: forward -> backward, while buckets travel.

forward      the model's own, and the first part of the drawn time.
backward     the model's own, and the rest of the drawn time in equal parts for the layers, the last layer first.
all_reduce   torch hands over a bucket when the last of its gradients is there, and goes on with backward. A worker
             has one stream of communication: a thread that all-reduces one bucket after the other.
With `accumulate` = k all but every k-th step are under torch's `no_sync`, which adds gradients up.

Torch fills its buckets anew after the first step, in the order in which gradients came; the warm-up sees to that.
"""

from __future__ import annotations

import inspect
import math
import threading
import time
from contextlib import nullcontext
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from distsim.errors import InputError
from distsim.policies import Ddp
from distsim.policies.ddp import MIB
from distsim.runtime.all_reduce import count_reduced, follows_schedule
from distsim.runtime.clock import sleep_until
from distsim.runtime.computation import LEARNING_RATE
from distsim.runtime.layers import FilledLayers, Pace, PacedModel
from distsim.runtime.messages import num_floats
from distsim.runtime.peers import WrongSumError, check_equal
from distsim.runtime.recorder import Recorder
from distsim.runtime.schedules import Part, Plan, part
from distsim.runtime.status import StatusSlot
from distsim.scenario import Scenario

if TYPE_CHECKING:
    from torch._C._distributed_c10d import GradBucket

WARM_UP_UPDATES = 3


class Stream:
    """A worker's one stream of communication: a thread that all-reduces buckets, one after the other."""

    def __init__(self, scenario: Scenario, worker: int, slot: StatusSlot) -> None:
        self._scenario = scenario
        self._worker = worker
        self._slot = slot
        assert isinstance(scenario.policy, Ddp)
        self._halved = scenario.policy.compression == 0.5
        self._workers = scenario.cluster.workers
        self._parts: dict[tuple[int, int], Part] = {}
        self._schedule = scenario.schedule() if follows_schedule(scenario) else None
        self._queue: SimpleQueue[tuple[GradBucket, torch.futures.Future[torch.Tensor]]] = SimpleQueue()
        self._recorder = Recorder()
        self._call = 0
        self.more = False  # whether another update with the same buckets follows
        self.last_handed_over = 0.0
        self.shapes: dict[
            int, tuple[int, int]
        ] = {}  # of each bucket as it travels: how many numbers, of how many bytes
        threading.Thread(target=self._work, name="stream", daemon=True).start()

    def record_in(self, recorder: Recorder) -> None:
        """What follows is written down there, and calls count from 0."""
        self._recorder, self._call = recorder, 0
        self.shapes.clear()

    def take(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """A bucket whose gradients are there takes its turn; returns what will be their mean over the workers."""
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        self.last_handed_over = time.monotonic()
        self._queue.put((bucket, done))
        return done

    def _work(self) -> None:
        while True:
            bucket, done = self._queue.get()
            arrival = time.monotonic()
            try:
                mean = self._mean(bucket)
            except Exception as error:  # noqa: BLE001 - torch raises it in the worker's own thread
                done.set_exception(error)  # type: ignore[arg-type] # torch takes what it says it does not
                return
            self._recorder.table("all_reduces")((self._call, arrival, time.monotonic()))
            self._call += 1
            done.set_result(mean)

    def _mean(self, bucket: GradBucket) -> torch.Tensor:
        """The bucket's gradients become their mean over the workers."""
        index, buffer = bucket.index(), bucket.buffer()
        self.shapes[index] = buffer.numel(), 2 if self._halved else buffer.itemsize
        if self._schedule is None:
            hook = default_hooks.fp16_compress_hook if self._halved else default_hooks.allreduce_hook
            count_reduced(self._recorder, math.prod(self.shapes[index]))
            return hook(None, bucket).wait()  # type: ignore[arg-type]
        travelling = buffer.half() if self._halved else buffer
        travelling.div_(self._workers)
        self._part(index, travelling).run(travelling, self._call, self._recorder, more=self.more)
        return buffer.copy_(travelling)

    def _part(self, index: int, travelling: torch.Tensor) -> Part:
        key = (index, travelling.numel())
        if key not in self._parts:
            assert self._schedule is not None
            first_tag = index * sum(1 for _ in self._schedule.transfers())
            sends = self._scenario.communication.sends
            plan = Plan(self._schedule, self._worker, travelling.numel(), sends, first_tag, travelling.dtype)
            self._parts[key] = part(plan, self._slot)
        return self._parts[key]


def bucket_options(policy: Ddp) -> dict[str, Any]:
    """The arguments of DistributedDataParallel that give the policy's buckets."""
    sizes = [policy.first_bucket_bytes / MIB, policy.bucket_bytes / MIB]
    if "bucket_cap_mb_list" in inspect.signature(DistributedDataParallel).parameters:
        return {"bucket_cap_mb_list": sizes}
    if policy == Ddp(accumulate=policy.accumulate, compression=policy.compression):
        return {}
    if sizes[0] == sizes[1]:
        return {"bucket_cap_mb": sizes[1]}
    raise InputError.of(
        "policy.first_bucket", policy.first_bucket_bytes, f"of torch {torch.__version__} is 1 MiB with buckets of "
        "25 MiB, and else the size of all buckets", "take a newer torch, or write first_bucket equal to bucket",
    )  # fmt: skip


class DdpWorker:
    """One worker's story; `warm_up`, then `run` from an agreed moment on, then `verify`."""

    def __init__(self, scenario: Scenario, worker: int, recorder: Recorder, slot: StatusSlot, done_before: int) -> None:
        assert isinstance(scenario.policy, Ddp)
        self._scenario = scenario
        self._policy = scenario.policy
        self._times = scenario.compute_times().first(worker, scenario.steps).tolist()
        self._has_model = scenario.workload.model is not None
        self._pace = Pace(scenario.workload.layers, absorbs=not self._has_model)
        layers: FilledLayers | PacedModel
        if self._has_model:
            layers = PacedModel(scenario, worker, self._pace)
        else:
            floats = max(num_floats(scenario.gradient_bytes), scenario.workload.layers)
            layers = FilledLayers(scenario.workload.layers, floats, worker, self._pace)
        self._layers = layers
        self._stream = Stream(scenario, worker, slot)
        self._ddp = DistributedDataParallel(
            layers, gradient_as_bucket_view=True, broadcast_buffers=False, **bucket_options(scenario.policy)
        )
        # torch compares annotations of a hook with its own types, so this one has none.
        self._ddp.register_comm_hook(None, lambda _state, bucket: self._stream.take(bucket))
        self._recorder = recorder
        self._slot = slot
        self._done_before = done_before

    def warm_up(self) -> None:
        """Opens the connections, touches the memory, and lets torch fill its buckets anew."""
        for update in range(WARM_UP_UPDATES):
            self._stream.more = update > 0  # the buckets of the first are not those of the others
            self._forward_and_backward(0, time.monotonic(), 0.0, Recorder(), communicates=True)
            self._clear()

    def run(self, start: float) -> None:
        """All steps, the first of them from `start` on (monotonic seconds)."""
        steps, accumulate = self._scenario.steps, self._policy.accumulate
        updates = self._policy.updates(steps, self._scenario.cluster.workers)
        self._stream.record_in(self._recorder)
        for step in range(steps):
            update, accumulated = divmod(step, accumulate)
            communicates = accumulated + 1 == accumulate
            self._stream.more = update + 1 < updates
            self._forward_and_backward(step, start, self._times[step], self._recorder, communicates=communicates)
            start = time.monotonic()
            if communicates:
                self._learn(last=update + 1 == updates)
            self._slot.done(self._done_before + step + 1)
        self._recorder.facts["shapes"] = [self._stream.shapes[index] for index in sorted(self._stream.shapes)]

    def _forward_and_backward(
        self, step: int, start: float, seconds: float, recorder: Recorder, *, communicates: bool
    ) -> None:
        share = self._scenario.workload.backward_share
        with nullcontext() if communicates else self._ddp.no_sync():
            # forward
            self._slot.doing(f"forward of step {step}")
            loss = self._ddp(step)
            sleep_until((time.monotonic() if self._has_model else start) + (1.0 - share) * seconds)
            between = time.monotonic()
            # backward, and all_reduce
            self._slot.doing(f"backward of step {step}", waiting=communicates)
            self._pace.begin(between, share * seconds)
            loss.backward()
        end = self._stream.last_handed_over if communicates else time.monotonic()
        recorder.table("forwards")((step, start, between))
        recorder.table("backwards")((step, between, end))
        if self._has_model:
            recorder.table("losses")((step, loss.item()))

    def _learn(self, *, last: bool) -> None:
        """What follows from the mean of the gradients. Without a model it is only looked at in the end."""
        if last:
            self._means = [gradient.clone() for gradient in self._gradients()]
        if self._has_model:
            with torch.no_grad():
                for parameter, gradient in zip(self._layers.parameters(), self._gradients(), strict=True):
                    parameter.sub_(gradient, alpha=LEARNING_RATE / self._policy.accumulate)
        self._clear()

    def _clear(self) -> None:
        for gradient in self._gradients():
            gradient.zero_()

    def _gradients(self) -> list[torch.Tensor]:
        gradients = [parameter.grad for parameter in self._layers.parameters()]
        return [gradient for gradient in gradients if gradient is not None]

    def verify(self) -> None:
        """Raises WrongSumError where the last update's gradients are not the mean over the workers."""
        workers, accumulate = self._scenario.cluster.workers, self._policy.accumulate
        if isinstance(self._layers, PacedModel):
            check_equal(nn.utils.parameters_to_vector(self._layers.parameters()).detach(), workers)
            return
        updates = self._policy.updates(self._scenario.steps, workers)
        if not updates:
            return
        expected = self._layers.expected(workers, range((updates - 1) * accumulate, updates * accumulate))
        # Each worker's share of the mean may round, and each addition.
        tolerance = 2.0 ** (-10 if self._policy.compression == 0.5 else -23) * (workers + accumulate)
        wrong = sum(
            int((~torch.isclose(found, wanted, rtol=tolerance, atol=0.0)).sum())
            for found, wanted in zip(self._means, expected, strict=True)
        )
        if wrong:
            raise WrongSumError(f"{wrong} numbers of the last gradient are not the mean over {workers} workers")
