"""Lab 08: workers with a bound on staleness, in which a worker that is late hands pieces of its work to helpers.

The last rank is the server; all others are workers. Every worker has `steps` steps of its own. A step is `items` pieces
of work, numbered from 0. A worker does its pieces from the front of its step: 0, 1, 2. Helpers take pieces from the
tail of its step: items - 1, items - 2. A piece is *begun* when the server has ordered it. A begun piece stays where it
is, so each piece is done once, by one worker. A worker does one piece at a time.

The server decides who does what. They talk by messages of float64 vectors, without tags, and by nothing else:

    order, from the server   [worker, step, item; parameters ...]: do this piece of this worker's step
                             [STOP, STOP, STOP; parameters ...] at the end, with the final parameters
    report, from a worker    [gradient ...] of the piece that it was ordered to do

`dist.recv(vector)` without a source takes the message that comes next, from whomever, and returns its sender's rank.
Nobody waits needlessly: the server decides about one report before it takes the next one. Wait in `recv` or in `wait`:
a server that sleeps between looks at its messages answers late. Each isend and irecv is waited for in the end.
Your workers are also tried beside a server of ours, and your server beside workers of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

STOP = -1.0


def may_begin(worker: int, done: Sequence[int], items: int, staleness: int) -> bool:
    """Whether the bound allows a worker, which has no step under way, to begin its next step.

    done: by worker, the number of its steps' pieces that are done since the start, by whomever. A step is complete when
    all its `items` pieces are done. A worker may begin a step if it has completed at most `staleness` steps more than
    the slowest worker, which is the one with the fewest completed steps.
    """
    raise NotImplementedError(
        "write may_begin: Whether the bound allows a worker, which has no step under way, to begin its next step."
    )


def whom_to_help(helper: int, done: Sequence[int], left: Sequence[int], group: int, threshold: int) -> int | None:
    """The worker that hands its last piece to a helper, which has nothing else to do; None where nobody hands one.

    done: as above. left: by worker, the number of pieces that are not begun of the step that is under way; 0 between
    two steps and after the last one. The helpers of a worker are the `group` workers after it; worker 0 comes after the
    last one. There are more than `group` workers. A worker is `done[helper] - done[worker]` pieces behind a helper. It
    hands a piece to one of its own helpers if it has one that is not begun, and is at least `threshold` pieces behind
    this helper. If several workers do, the helper takes the piece of the one that is furthest behind, and of several
    such ones that of the lowest rank.
    """
    raise NotImplementedError(
        "write whom_to_help: The worker that hands its last piece to a helper, which has nothing else to do; None "
        "where nobody hands one."
    )


def work(size: int, gradient: Callable[[torch.Tensor, int, int, int], torch.Tensor]) -> None:
    """Is a worker: does each piece that the server orders, and reports its gradient, until the server says STOP.

    size: how many parameters there are. `gradient(parameters, worker, step, item)` computes a piece at these
    parameters, which takes time. It may be a piece of this worker's own step or of another one's.
    """
    raise NotImplementedError(
        "write work: Is a worker: does each piece that the server orders, and reports its gradient, until the server "
        "says STOP."
    )


def serve(
    parameters: torch.Tensor, steps: int, items: int, staleness: int, group: int, threshold: int, learning_rate: float
) -> list[tuple[int, int, int, int]]:
    """Is the server: orders pieces until all `steps` steps of all workers are complete, then answers all with STOP.

    At the start, and after each report, it looks at the workers that are free: those that do no piece at the moment.
    First, in any order, each free worker is ordered to do the next piece of its own step, if one is not begun.
    If all pieces of its step are done, or it has begun no step, this is piece 0 of its next step, if there is one and
    `may_begin` allows it. A worker that has completed all its steps helps, too.
    Then, in the order of ranks, each worker that is still free helps as `whom_to_help` says, with one piece.

    All pieces of a step, whoever does them, are computed at the parameters of the moment when the step began. When all
    of them are done, `learning_rate` times the sum of their gradients is taken off `parameters`, in place. This is one
    update for each step of each worker. It is made before anything is ordered after this report.

    `parameters` is a vector. It may be a column of a matrix, so its numbers may not be neighbours in memory.

    Returns the pieces that were handed over, in the order in which they were ordered. Each is (helper, worker, step,
    item). `steps` and `items` are at least 1, `staleness` and `group` at least 0.
    """
    raise NotImplementedError(
        "write serve: Is the server: orders pieces until all `steps` steps of all workers are complete, then answers "
        "all with STOP."
    )


def shared_step_seconds(items: int, seconds: Sequence[float]) -> float:
    """Predicts how long a step of all workers takes if everybody is busy all the time, and messages take no time.

    A step of all workers is `items` pieces for each of them, and each piece may be done by anybody. seconds: by worker,
    how long one piece takes there.
    """
    raise NotImplementedError(
        "write shared_step_seconds: Predicts how long a step of all workers takes if everybody is busy all the time, "
        "and messages take no time."
    )
