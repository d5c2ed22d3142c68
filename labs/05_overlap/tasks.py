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
    raise NotImplementedError(
        "write make_buckets: Divides the parameters that are trained into buckets, in the order in which backward "
        "makes their gradients."
    )


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
        raise NotImplementedError(
            "write Overlapped.begin: Gets ready for a backward: nothing has been sent, and every bucket waits for all "
            "of its gradients."
        )

    def ready(self, number: int) -> None:
        """Notes that one more gradient of this bucket is there, and sends the bucket when it was the last.

        Buckets leave in the order of their numbers, the same on every rank: one that is whole before its turn waits
        until those before it have left, and leaves with the last of them. Backward goes on at once (`async_op=True`).
        Inside `no_sync` nothing is noted and nothing is sent.
        """
        raise NotImplementedError(
            "write Overlapped.ready: Notes that one more gradient of this bucket is there, and sends the bucket when "
            "it was the last."
        )

    def send(self, number: int) -> None:
        """Begins the all-reduce of one bucket, as one flat tensor in which a gradient that is missing counts as zero.

        A parameter that this rank's loss does not depend on has no gradient here, but it may have one elsewhere. All
        parameters of a model have one type. They are contiguous and may have any shape.
        """
        raise NotImplementedError(
            "write Overlapped.send: Begins the all-reduce of one bucket, as one flat tensor in which a gradient that "
            "is missing counts as zero."
        )

    def finish(self) -> None:
        """Sends what has not been sent, waits for all buckets, and writes the means over all ranks into `.grad`.

        Does nothing inside `no_sync`.
        """
        raise NotImplementedError(
            "write Overlapped.finish: Sends what has not been sent, waits for all buckets, and writes the means over "
            "all ranks into `.grad`."
        )

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients only add up on their own rank and nothing is sent: to accumulate several batches.

        `begin`, backward and `finish` are called for each batch, inside as outside. The first backward outside then
        sends what has added up. Whoever leaves it, by an error too, finds the state from before: `no_sync` may stand
        inside `no_sync`. The error goes on to the caller.
        """
        raise NotImplementedError(
            "write Overlapped.no_sync: Inside, gradients only add up on their own rank and nothing is sent: to "
            "accumulate several batches."
        )


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
    raise NotImplementedError(
        "write data_parallel_seconds: Predicts a step of torch.nn.DataParallel: one process whose threads drive "
        "several devices."
    )
