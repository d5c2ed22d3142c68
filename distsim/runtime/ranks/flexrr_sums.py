"""FlexRR's sums: a helper adds up the gradients of pieces that it did, and sends the sum to the helped worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

import torch

from distsim.runtime.ranks.server_parameters import DisagreementError
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.channel import Channel
from distsim.runtime.transport.messages import Message, MessageKind, Tag, pattern
from distsim.runtime.transport.senders import Senders, Sending

WEIGHTS = 7  # items weigh 1 to 7, so that a lost item and an item done twice change the sum


def weight(item: int) -> int:
    """The weight of an item's gradient in the gradient of its step."""
    return 1 + item % WEIGHTS


def total_weight(items: int) -> int:
    """The weight of all items of a step."""
    return sum(map(weight, range(items)))


class OutgoingSums:
    """The sums that a helper sends. It adds up one sum at a time, while earlier sums travel."""

    def __init__(self, helped: Iterable[int], floats: int, recorder: Recorder) -> None:
        self._floats = floats
        self._pattern = pattern(floats)
        self._senders = Senders([Channel(other, recorder.tally, Tag.SUMS) for other in helped])
        self._helped = tuple(helped)
        self._sent = recorder.table("sums_sent")
        self._unused = [Message(floats), Message(floats)]
        self._on_the_way: list[Sending] = []
        self._sum: Message | None = None
        self._of = (-1, -1)  # the worker and the step of the sum
        self._items = 0  # how many items are in the sum

    def add(self, worker: int, step: int, item: int) -> None:
        """Adds the gradient of an item. Pieces in a row for one step of one worker make one sum."""
        if self._sum is None:
            self._sum, self._of, self._items = self._buffer(), (worker, step), 0
            self._sum.payload.zero_()
        self._sum.payload.add_(self._pattern, alpha=(worker + 1) * weight(item))
        self._items += 1

    def row_is_over(self, piece: tuple[int, int] | None) -> bool:
        """Whether there is a sum, and the next piece, of this (worker, step), does not belong to it."""
        return self._sum is not None and piece != self._of

    def send(self, own_step: int) -> None:
        """Sends the sum to the helped worker."""
        assert self._sum is not None
        worker, step = self._of
        self._sum.write(MessageKind.SUM, step=step, items=self._items)
        self._sent((worker, own_step, time.monotonic()))
        self._on_the_way.append(self._senders.send(worker, self._sum))
        self._sum = None

    def end(self) -> None:
        """Tells all helped workers that no sum will follow. Returns when they have received that."""
        goodbye = Message(0)
        goodbye.write(MessageKind.GOODBYE)
        for worker in self._helped:
            self._senders.send(worker, goodbye)
        self._senders.close()

    def _buffer(self) -> Message:
        for sending in [sending for sending in self._on_the_way if sending.left]:
            self._on_the_way.remove(sending)
            self._unused.append(sending.message)
        return self._unused.pop() if self._unused else Message(self._floats)


class IncomingSums:
    """A thread for each helper receives its sums and adds them to the gradient."""

    def __init__(self, helpers: Iterable[int], gradient: Message, items: int, recorder: Recorder) -> None:
        self._gradient = gradient
        self._items = items
        self._received = recorder.table("sums_received")
        self._changed = threading.Condition()
        self._step = -1
        self._sums = 0
        self._items_done = 0
        self._threads = []
        for helper in helpers:
            channel = Channel(helper, recorder.tally, Tag.SUMS)
            thread = threading.Thread(target=self._listen, args=(channel,), name=f"sums from {helper}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def begin(self, step: int) -> None:
        """A step begins: its gradient is zero."""
        self._step, self._sums, self._items_done = step, 0, 0
        self._gradient.payload.zero_()

    def add(self, gradient: torch.Tensor, factor: int, items: int) -> None:
        """Adds `factor` times a gradient of `items` items."""
        with self._changed:
            self._gradient.payload.add_(gradient, alpha=factor)
            self._items_done += items

    def wait(self, sums: int) -> None:
        """Returns when `sums` sums have come. Raises DisagreementError where the gradient is not whole then."""
        with self._changed:
            self._changed.wait_for(lambda: self._sums == sums)
            if self._items_done != self._items:
                raise DisagreementError(
                    f"step {self._step} has {self._items} items, but {self._items_done} of them were done"
                )

    def join(self) -> None:
        """Returns when all helpers have said goodbye."""
        for thread in self._threads:
            thread.join()

    def _listen(self, channel: Channel) -> None:
        message = Message(self._gradient.payload.numel())
        while True:
            channel.receive(message)
            if message.kind is MessageKind.GOODBYE:
                return
            self._received((channel.rank, message.step, time.monotonic()))
            if message.step != self._step:
                raise DisagreementError(
                    f"worker {channel.rank} helped with step {message.step}, but this is {self._step}"
                )
            self.add(message.payload, 1, message.items)
            with self._changed:
                self._sums += 1
                self._changed.notify_all()
