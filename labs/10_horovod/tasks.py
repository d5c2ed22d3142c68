"""Lab 10: the functions of Horovod that a training script calls, on torch.distributed.

`train.py` beside this file is such a script: `import horovod.torch as hvd` has become `import tasks as hvd`, and all
else is as Horovod wants it. Every function below is called by every process (rank). Arguments and results are those of
Horovod, as far as its own examples for PyTorch need them. A function sends what its text says, and nothing else: there
is no barrier. `distsim lab run 10` starts four processes for real.

What has no `raise NotImplementedError` is ready, and yours to use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

Average, Sum, Adasum = "average", "sum", "adasum"  # what `op` may be; Adasum is a name that scripts have, and no more
Named = Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]]


class Whole:
    """Tensors travel as they are."""

    def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Returns what travels, and what `decompress` has to know."""
        return tensor, None

    def decompress(self, tensor: torch.Tensor, known: Any) -> torch.Tensor:
        """Returns the tensor that arrived."""
        return tensor


class Half:
    """Numbers travel in half precision: 16 bits each."""

    def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Returns what travels, and what `decompress` has to know: the type, if the numbers had to be changed."""
        return (tensor.half(), tensor.dtype) if tensor.is_floating_point() else (tensor, None)

    def decompress(self, tensor: torch.Tensor, known: Any) -> torch.Tensor:
        """Returns the tensor that arrived, in its own type."""
        return tensor if known is None else tensor.to(known)


class Compression:
    """How gradients travel: `Compression.none` or `Compression.fp16`."""

    none, fp16 = Whole(), Half()


def init() -> None:
    """Joins this process with all others, for CPU tensors and, where there are GPUs, for tensors on them.

    Who starts the processes (torchrun) has set what torch.distributed reads in the environment. Where the processes
    are joined already, nothing happens.
    """
    raise NotImplementedError(
        "write init: Joins this process with all others, for CPU tensors and, where there are GPUs, for tensors on "
        "them."
    )


def rank() -> int:
    """Returns the number of this process among all, from 0."""
    raise NotImplementedError("write rank: Returns the number of this process among all, from 0.")


def size() -> int:
    """Returns how many processes there are, on all machines together."""
    raise NotImplementedError("write size: Returns how many processes there are, on all machines together.")


def local_rank() -> int:
    """Returns the number of this process among those of its machine, from 0: LOCAL_RANK in the environment."""
    raise NotImplementedError(
        "write local_rank: Returns the number of this process among those of its machine, from 0: LOCAL_RANK in the "
        "environment."
    )


def local_size() -> int:
    """Returns how many processes there are on this machine: LOCAL_WORLD_SIZE in the environment."""
    return int(os.environ["LOCAL_WORLD_SIZE"])


def nccl_built() -> bool:
    """Returns whether processes can exchange tensors from GPU to GPU."""
    return dist.is_nccl_available() and torch.cuda.is_available()


def allreduce(tensor: torch.Tensor, name: str | None = None, op: str = Average) -> torch.Tensor:
    """Returns the mean of all ranks' tensors in a new tensor, or with `op=Sum` their sum; `tensor` stays as it is.

    tensor: of one shape and type, and in one order in memory, on all ranks; it may be empty, or a part of a larger
    tensor. Floating-point numbers, if the mean is asked for. name: Horovod finds by it what belongs together; here, the
    order of calls tells. It takes no longer than a ring all-reduce, and no link carries more.
    """
    raise NotImplementedError(
        "write allreduce: Returns the mean of all ranks' tensors in a new tensor, or with `op=Sum` their sum; `tensor`"
        " stays as it is."
    )


def broadcast(tensor: torch.Tensor, root_rank: int, name: str | None = None) -> torch.Tensor:
    """Returns the tensor of `root_rank` in a new tensor, on every rank."""
    received = tensor.detach().clone()
    dist.broadcast(received, src=root_rank)
    return received


def broadcast_parameters(params: Named, root_rank: int) -> None:
    """Gives every rank's tensors the values that those of `root_rank` have. No other tensor travels.

    params: a model's state_dict(), with buffers of any type that gloo has, or any other Mapping, or pairs of name and
    tensor such as its named_parameters(). Tensors are filled in place; one may be a part of a larger tensor, of which
    nothing else travels, or lie column by column, on all ranks alike. No two overlap, but two names may stand for one
    tensor, which travels once under each. What has the same name belongs together: the ranks have the same names, and
    not always in the same order. Names, and what else packs a tensor into a Python object, may travel with it.
    """
    raise NotImplementedError(
        "write broadcast_parameters: Gives every rank's tensors the values that those of `root_rank` have."
    )


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int) -> None:
    """Gives every rank's optimizer the state and the settings that the one of `root_rank` has. They travel once.

    State is what an optimizer keeps for each parameter, frozen or not (momentum, second moments, counts of steps):
    tensors and numbers. Each tensor has memory of its own; one of the parameter's shape has its type, too. Settings are
    what each of its param_groups holds beside the parameters, such as the learning rate; the root may have some that
    others lack. Afterwards each rank has the state of the root, in the types that load_state_dict gives, and no other,
    whether it had more or none: often the root alone has read a checkpoint. Parameters stay what they are.
    """
    raise NotImplementedError(
        "write broadcast_optimizer_state: Gives every rank's optimizer the state and the settings that the one of "
        "`root_rank` has."
    )


class Distributed(torch.optim.Optimizer):
    """What a distributed optimizer does otherwise than the optimizer that it is made of.

    Mixed into that one's class, before it, so that `super().step()` is the step that it makes alone.
    """

    def distribute(self, passes: int, compression: Any, divided_before: float, divided_after: float) -> None:
        """Remembers what the exchange needs, calls `begin`, and has `ready` called whenever a gradient was added to.

        The parameters to exchange are those of all param_groups that are trained (`requires_grad`), each by itself, and
        always in the same order, whatever order their gradients come in: the last one of the last group is the first.
        """
        self.passes, self.compression, self.synchronizes = passes, compression, True
        self.divided_before, self.divided_after = divided_before, divided_after
        raise NotImplementedError(
            "write Distributed.distribute: Remembers what the exchange needs, calls `begin`, and has `ready` called "
            "whenever a gradient was added to."
        )

    def begin(self) -> None:
        """Gets ready for the next step: nothing has been sent, and every parameter waits for all of its backwards."""
        raise NotImplementedError(
            "write Distributed.begin: Gets ready for the next step: nothing has been sent, and every parameter waits "
            "for all of its backwards."
        )

    def ready(self, parameter: torch.nn.Parameter) -> None:
        """Notes that a backward has added to this gradient, and sends what is complete and has its turn.

        A gradient is complete after `passes` backwards. Its exchange begins then, beside the rest of backward, which
        does not wait for it (`async_op=True`). Raises AssertionError if one more backward adds to a complete gradient.
        """
        raise NotImplementedError(
            "write Distributed.ready: Notes that a backward has added to this gradient, and sends what is complete and"
            " has its turn."
        )

    def send(self) -> None:
        """Begins the exchange of the parameter that is next; where there is no gradient (None), zeros count.

        The gradient is first divided by `divided_before`. What travels is what `compression.compress` makes of it.
        """
        raise NotImplementedError(
            "write Distributed.send: Begins the exchange of the parameter that is next; where there is no gradient "
            "(None), zeros count."
        )

    def synchronize(self) -> None:
        """Sends what has not been sent, and waits. Then every gradient is what arrived, divided by `divided_after`.

        What arrived is decompressed first. Afterwards the next step may begin.
        """
        raise NotImplementedError("write Distributed.synchronize: Sends what has not been sent, and waits.")

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Inside, `step` does not synchronize: for who has done so before, to change the mean gradients."""
        self.synchronizes = False
        try:
            yield
        finally:
            self.synchronizes = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Synchronizes, unless inside of `skip_synchronize`, and makes the step of the optimizer's own class.

        closure: makes the backward, and returns the loss, which `step` returns. The class's own step calls it, perhaps
        several times. Each time, the gradients that it leaves are synchronized before they are used.
        """
        raise NotImplementedError(
            "write Distributed.step: Synchronizes, unless inside of `skip_synchronize`, and makes the step of the "
            "optimizer's own class."
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As the optimizer's own. Raises AssertionError where exchanges have begun that nobody has waited for.

        What arrives would still become gradients. Before the first exchange begins, gradients may be set to zero;
        backwards that were made until then still count.
        """
        raise NotImplementedError("write Distributed.zero_grad: As the optimizer's own.")


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, Any]] | None = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: str = Average,
    gradient_predivide_factor: float = 1.0,
) -> Any:
    """Returns an optimizer whose steps are made with the mean gradients of all ranks.

    It is an instance of the given optimizer's class, with its parameters, settings and state, so that schedulers, which
    are made afterwards, and checkpoints take it for one; and it does what `Distributed` says. It may be the given
    object itself.

    One all-reduce is made for each trained parameter of the optimizer and each step (or synchronize), and nothing else
    is sent, also by a rank that makes no backward, and for a gradient that is set by hand, to a tensor of its own.
    Frozen parameters, and those of the model that this optimizer does not have, stay at home. A script may have several
    such optimizers at once, if each backward reaches all of their parameters: else their exchanges would not meet in
    one order. Gradients may be set to zero without it, by the model say, before an exchange begins.

    named_parameters: those of the model, from which Horovod takes the names; not needed here.
    compression: one of `Compression`, or an object of the script's own that has both of its functions.
    backward_passes_per_step: how many backwards come before each step; their gradients add up on their rank, and the
    sum is exchanged.
    op: `Average`, or `Sum` for the sum over the ranks.
    gradient_predivide_factor: with `Average`, each gradient is divided by this factor before the exchange, and the sum
    by the rest of `size()` after it. The mean is the same; sums in half precision stay small enough.

    Raises ValueError for another `op`, and for such a factor with `Sum`.
    """
    if op not in (Average, Sum):
        raise ValueError(f"op = {op}: only Average and Sum are offered here")
    if op != Average and gradient_predivide_factor != 1.0:
        raise ValueError("gradient_predivide_factor is for op=Average alone")
    raise NotImplementedError(
        "write DistributedOptimizer: Returns an optimizer whose steps are made with the mean gradients of all ranks."
    )
