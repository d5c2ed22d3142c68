"""Futures of operations on the testbed: whoever waits for one lets the rank wait, so that virtual time can pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.futures import Future


class PendingFuture(Future[Any]):
    """A future that is completed by `complete`, which blocks the rank. look: whether it is over, without blocking."""

    def __init__(self, complete: Callable[[], object], look: Callable[[], object]) -> None:
        super().__init__()
        self._complete, self._look = complete, look

    def wait(self) -> Any:
        """Blocks the rank until the operation is over. Returns the value, or raises the error of the operation."""
        if not super().done():
            self._complete()
        return super().wait()

    def done(self) -> bool:
        """Whether the operation is over. The question takes a little virtual time."""
        if not super().done():
            self._look()
        return super().done()

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        """A future of what the callback returns. The callback runs when this future is complete."""
        following = PendingFuture(self.wait, self.done)

        def run(_future: Future[Any]) -> None:
            try:
                value = callback(self)
            except Exception as error:  # noqa: BLE001 - whoever waits for the future gets it
                following.set_exception(error)
            else:
                following.set_result(value)

        super().add_done_callback(run)
        return following


def collect_all(futures: Sequence[Future[Any]]) -> Future[Any]:
    """As `torch.futures.collect_all`."""

    def complete() -> None:
        for future in futures:
            try:
                future.wait()
            except Exception:  # noqa: BLE001 - it stays in that future
                continue

    def look() -> bool:
        return all(future.done() for future in futures)

    every = PendingFuture(complete, look)
    torch._C._collect_all(list(futures)).add_done_callback(lambda _future: every.set_result(list(futures)))
    return every


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """As `torch.futures.wait_all`."""
    return [future.wait() for future in futures]
