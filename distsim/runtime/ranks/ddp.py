"""Distributed data parallel for real, by torch's DistributedDataParallel: forward -> backward, while buckets travel.

forward      the model's own forward, and the first part of the drawn time.
backward     the model's own backward, and the rest of the drawn time in equal parts for the layers, last layer first.
all_reduce   torch hands over a bucket when the last of its gradients is there, and goes on with backward. A worker
             has one stream of communication, which all-reduces one bucket after the other.
With `accumulate` = k, all steps but every k-th run under torch's `no_sync`, which adds gradients up.

After the first step torch fills its buckets again, in the order in which gradients came. The warm-up runs that step.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from distsim.errors import InputError
from distsim.learning.kernels import plain_convolutions
from distsim.policies import Ddp
from distsim.policies.ddp import MIB
from distsim.runtime.devices.device import Device
from distsim.runtime.ranks.bucket_stream import stream_of
from distsim.runtime.ranks.delayed_layers import FilledLayers, Pace, PacedModel, PacedOwnModel
from distsim.runtime.ranks.peers import WrongSumError, check_equal
from distsim.runtime.ranks.task import LEARNING_RATE, OWN_LEARNING_RATE, flat, own_model_on
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.messages import num_floats
from distsim.scenario import Scenario

WARM_UP_UPDATES = 3


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
    """The role of one worker: `warm_up`, then `run` from an agreed moment on, then `verify`."""

    def __init__(
        self, scenario: Scenario, worker: int, recorder: Recorder, slot: StatusSlot, done_before: int, device: Device
    ) -> None:
        assert isinstance(scenario.policy, Ddp)
        self._scenario = scenario
        self._policy = scenario.policy
        self._times = scenario.compute_times().first(worker, scenario.steps).tolist()
        self._has_model = scenario.workload.model is not None
        self._stopwatch = device.stopwatch
        self._pace = Pace(scenario.workload.layers, device.stopwatch, absorbs=not self._has_model)
        layers: FilledLayers | PacedModel | PacedOwnModel
        self._routines: Callable[[], AbstractContextManager[None]] = plain_convolutions
        self._learning_rate = LEARNING_RATE
        if scenario.workload.own_model:
            layers = PacedOwnModel(own_model_on(device.place, scenario), self._pace)
            self._routines, self._learning_rate = nullcontext, OWN_LEARNING_RATE
        elif self._has_model:
            layers = PacedModel(scenario, worker, self._pace, device.place)
        else:
            floats = max(num_floats(scenario.gradient_bytes), scenario.workload.layers)
            layers = FilledLayers(scenario.workload.layers, floats, worker, self._pace, device.place)
        self._layers = layers
        self._stream = stream_of(scenario, worker, slot, device)
        self._ddp = DistributedDataParallel(
            layers, process_group=device.group, gradient_as_bucket_view=True, broadcast_buffers=False,
            **bucket_options(scenario.policy),
        )  # fmt: skip
        # torch compares annotations of a hook with its own types, so this hook has no annotations.
        self._ddp.register_comm_hook(None, lambda _state, bucket: self._stream.take(bucket))
        self._recorder = recorder
        self._slot = slot
        self._done_before = done_before

    def warm_up(self) -> None:
        """Opens the connections, touches the memory, and lets torch fill its buckets again."""
        for update in range(WARM_UP_UPDATES):
            self._stream.more = update > 0  # the first update has other buckets
            self._forward_and_backward(0, time.monotonic(), 0.0, Recorder(), communicates=True)
            self._clear()

    def run(self, start: float) -> None:
        """Runs all steps, the first from `start` on (monotonic seconds)."""
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
        with self._routines(), nullcontext() if communicates else self._ddp.no_sync():
            # forward
            self._slot.doing(f"forward of step {step}")
            loss = self._ddp(step)
            if seconds:
                sleep_until((self._stopwatch.wait() if self._has_model else start) + (1.0 - share) * seconds)
            between = self._stopwatch.moment()
            # backward, and all_reduce
            self._slot.doing(f"backward of step {step}", waiting=communicates)
            self._pace.begin(time.monotonic(), share * seconds)
            loss.backward()
        done = self._stopwatch.wait()
        end = self._stream.last_handed_over() if communicates else done
        self._stream.tell()
        recorder.table("forwards")((step, start, between()))
        recorder.table("backwards")((step, between(), end))
        if self._has_model:
            recorder.table("losses")((step, loss.item()))

    def _learn(self, *, last: bool) -> None:
        """Updates the model by the mean gradients. Without a model, the last mean is kept for `verify`."""
        if last:
            self._means = [gradient.clone() for gradient in self._gradients()]
        if self._has_model:
            with torch.no_grad():
                learning = [parameter for parameter in self._layers.parameters() if parameter.requires_grad]
                for parameter, gradient in zip(learning, self._gradients(), strict=True):
                    parameter.sub_(gradient, alpha=self._learning_rate / self._policy.accumulate)
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
        if not isinstance(self._layers, FilledLayers):
            check_equal(flat(self._layers.parameters()), workers)
            return
        updates = self._policy.updates(self._scenario.steps, workers)
        if not updates:
            return
        expected = self._layers.expected(workers, range((updates - 1) * accumulate, updates * accumulate))
        # Each worker's share of the mean may be rounded, and each addition too.
        tolerance = 2.0 ** (-10 if self._policy.compression == 0.5 else -23) * (workers + accumulate)
        wrong = sum(
            int((~torch.isclose(found, wanted, rtol=tolerance, atol=0.0)).sum())
            for found, wanted in zip(self._means, expected, strict=True)
        )
        if wrong:
            raise WrongSumError(f"{wrong} numbers of the last gradient are not the mean over {workers} workers")
