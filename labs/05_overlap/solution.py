"""Lab 05: what DistributedDataParallel does inside: buckets of gradients that travel while backward goes on.

Every rank has the same model. Its gradients are averaged over all ranks, bucket by bucket: a bucket's all-reduce begins
as soon as the last of its gradients is there, and backward does not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist


def make_buckets(parameters: Sequence[torch.nn.Parameter], bucket_bytes: int) -> list[list[torch.nn.Parameter]]:
    """Divides the parameters that are trained into buckets, in the order in which backward makes their gradients.

    That is about the reverse of `parameters`. A bucket is closed as soon as it holds at least `bucket_bytes`. Frozen
    parameters (requires_grad is False) are in no bucket, no bucket is empty, and each trained parameter is in one.
    """
    # write
    buckets = [[]]
    held = 0
    for parameter in reversed(parameters):
        if not parameter.requires_grad:
            continue
        if held >= bucket_bytes:
            buckets.append([])
            held = 0
        buckets[-1].append(parameter)
        held += parameter.numel() * parameter.element_size()
    return [bucket for bucket in buckets if bucket]
    # end


class Overlapped:
    """Averages a model's gradients over all ranks while backward goes on.

    wrapped = Overlapped(model, bucket_bytes=2**20)
    wrapped.begin()                # before backward
    loss.backward()                # hooks see each gradient
    wrapped.finish()               # now every .grad is the mean over all ranks
    """

    def __init__(self, model: torch.nn.Module, bucket_bytes: int) -> None:
        """Makes the buckets, and has a hook called with each parameter whose gradient has been added up."""
        self.buckets = make_buckets(list(model.parameters()), bucket_bytes)
        self.communicates = True
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(lambda _parameter, number=number: self.ready(number))
        self.begin()

    def begin(self) -> None:
        """Gets ready for a backward: nothing has been sent, and every bucket waits for all of its gradients."""
        # write
        self.missing = [len(bucket) for bucket in self.buckets]
        self.sent = {}
        # end

    def ready(self, number: int) -> None:
        """Notes that one more gradient of this bucket is there, and sends the bucket when it was the last.

        Buckets leave in the order of their numbers, the same on every rank: one that is whole before its turn waits
        until those before it have left, and leaves with the last of them. Backward goes on at once (`async_op=True`).
        Inside `no_sync` nothing is noted and nothing is sent.
        """
        # write
        if not self.communicates:
            return
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send(len(self.sent))
        # end

    def send(self, number: int) -> None:
        """Begins the all-reduce of one bucket, as one flat tensor in which a gradient that is missing counts as zero.

        A parameter that this rank's loss does not depend on has no gradient here, but it may have one elsewhere. All
        parameters of a model have one type. They are contiguous and may have any shape.
        """
        # write
        flat = torch.cat(
            [
                (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).flatten()
                for parameter in self.buckets[number]
            ]
        )
        self.sent[number] = (flat, dist.all_reduce(flat, async_op=True))
        # end

    def finish(self) -> None:
        """Sends what has not been sent, waits for all buckets, and writes the means over all ranks into `.grad`.

        Does nothing inside `no_sync`.
        """
        # write
        if not self.communicates:
            return
        for number in range(len(self.sent), len(self.buckets)):
            self.send(number)
        for number, (flat, work) in self.sent.items():
            work.wait()
            flat /= dist.get_world_size()
            bucket = self.buckets[number]
            for parameter, mean in zip(bucket, flat.split([parameter.numel() for parameter in bucket]), strict=True):
                parameter.grad = mean.view_as(parameter)
        # end

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients only add up on their own rank and nothing is sent: to accumulate several batches.

        `begin`, backward and `finish` are called for each batch, inside as outside. The first backward outside then
        sends what has added up. Whoever leaves it, by an error too, finds the state from before: `no_sync` may stand
        inside `no_sync`. The error goes on to the caller.
        """
        # write
        before = self.communicates
        self.communicates = False
        try:
            yield
        finally:
            self.communicates = before
        # end


def data_parallel_seconds(
    devices: int, forward: float, backward: float, model_bytes: float, bytes_per_second: float, interpreter: float
) -> float:
    """Predicts a step of torch.nn.DataParallel: one process whose threads drive several devices.

    Every step copies the model from device 0 to each other device, runs the forwards, runs the backwards, and brings
    each other device's gradients to device 0. The copies share device 0's link, and so do the gradients. Python's
    interpreter, which one thread holds at a time, spends `interpreter` seconds on launching each device's forward; the
    devices themselves compute side by side, and while the interpreter still launches: the forwards together take as
    long as the slower of the two, one device's forward or all of the launching. Backwards are launched from C++, side
    by side. Inputs and outputs are small, and latency too: leave them out.

    forward, backward: seconds of one device for its part of the batch. model_bytes: of the parameters, and as many of
    gradients. bytes_per_second: of a device's link, in each direction. With one device nothing is copied. The result
    is in seconds.
    """
    # write
    copies = (devices - 1) * model_bytes / bytes_per_second
    return copies + max(forward, devices * interpreter) + backward + copies
    # end
