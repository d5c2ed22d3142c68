"""Lab 07: a parameter server that waits for nobody, or only for those who are too far behind.

The last rank is the server; all others are workers. They talk by messages of one float64 vector each,
without tags, and by nothing else:

    push, from a worker      [number of this push, counted from 0; gradient ...]
    answer, from the server  [version of these parameters; parameters ...], or [STOP; parameters ...] at the end

Every gradient makes an update of its own, whenever it comes. Its *staleness* is the number of updates that were made
since the parameters that it was computed at.

Your workers are also tried beside a server of ours, and your server beside workers of ours.

`dist.recv(vector)` without a source takes the message that comes next, from whomever, and returns its sender's rank.
Nobody waits needlessly. Wait in `recv` or in `wait`: a server that sleeps between looks at its messages answers late.
One thread does it all: for several messages at once take `isend` and `irecv`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

STOP = -1.0


def work(parameters: torch.Tensor, gradient: Callable[[torch.Tensor, int], torch.Tensor]) -> None:
    """Works until the server says STOP: computes, pushes, and takes the answer's parameters, in place.

    All workers begin with the same `parameters`, version 0. `gradient(parameters, push)` computes, which takes time;
    `push` is the number of the push that it is for.
    """
    raise NotImplementedError(
        "write work: Works until the server says STOP: computes, pushes, and takes the answer's parameters, in place."
    )


def serve_asynchronous(parameters: torch.Tensor, updates: int, learning_rate: float) -> list[tuple[int, int]]:
    """Is an asynchronous server: takes `learning_rate` times each gradient off `parameters`, in place, as it comes.

    The worker is answered at once with the version that its gradient has made; versions count updates. After the last
    update, which is answered with STOP, the gradients that still come are not applied, and answered with STOP as well.
    Returns, for each update, the worker and the staleness of its gradient. There is at least one update.
    """
    raise NotImplementedError(
        "write serve_asynchronous: Is an asynchronous server: takes `learning_rate` times each gradient off "
        "`parameters`, in place, as it comes."
    )


def serve_stale_synchronous(
    parameters: torch.Tensor, updates: int, learning_rate: float, staleness: int
) -> list[tuple[int, int]]:
    """Is a server as above, but holds the answer of a worker who is more than `staleness` steps ahead of the slowest.

    A worker's steps are its gradients that have been applied. A held worker is answered as soon as it is no longer too
    far ahead, with the parameters of that moment. If one push lets several workers go on, all of them are answered in
    the order of their ranks, also the worker of this push. When the last update is made, held workers are answered
    with STOP, too, in any order. Returns, for each update, the worker and the staleness of its gradient. This may be
    more than the argument `staleness`, which bounds steps and not updates.
    """
    raise NotImplementedError(
        "write serve_stale_synchronous: Is a server as above, but holds the answer of a worker who is more than "
        "`staleness` steps ahead of the slowest."
    )


def largest_staleness(workers: int, staleness: int) -> int:
    """Predicts the largest staleness, in updates, that any gradient can have with a stale-synchronous server.

    A worker begins a step only when it is at most `staleness` steps ahead of everybody. How far behind it may each of
    the others be at that moment, and how far ahead when its gradient has come? Each of their steps is an update.
    """
    raise NotImplementedError(
        "write largest_staleness: Predicts the largest staleness, in updates, that any gradient can have with a "
        "stale-synchronous server."
    )
