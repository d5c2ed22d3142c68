"""Lab 10: the functions of Horovod that a training script calls, on torch.distributed.

`train.py` beside this file is such a script: `import horovod.torch as hvd` has become `import tasks as hvd`, and all
else is as Horovod wants it. Every function below is called by every process (rank). Arguments and results are those of
Horovod, as far as the script needs them. `distsim lab run 10` starts four processes for real.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

Average, Sum = "average", "sum"  # what `op` of allreduce may be
Named = Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]]


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


def allreduce(tensor: torch.Tensor, name: str | None = None, op: str = Average) -> torch.Tensor:
    """Returns the mean of all ranks' tensors in a new tensor, or with `op=Sum` their sum; `tensor` stays as it is.

    tensor: of one shape and type on all ranks. Floating-point numbers, if the mean is asked for. name: Horovod finds
    by it what belongs together; here, the order of calls tells. No link carries more than a ring all-reduce needs.
    """
    raise NotImplementedError(
        "write allreduce: Returns the mean of all ranks' tensors in a new tensor, or with `op=Sum` their sum; `tensor`"
        " stays as it is."
    )


def broadcast_parameters(params: Named, root_rank: int) -> None:
    """Gives every rank's tensors the values that those of `root_rank` have.

    params: a model's state_dict(), with buffers of any type, or pairs of name and tensor such as its
    named_parameters(). Tensors are filled in place. What has the same name belongs together: the ranks have the same
    names, and not always in the same order.
    """
    raise NotImplementedError(
        "write broadcast_parameters: Gives every rank's tensors the values that those of `root_rank` have."
    )


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int) -> None:
    """Gives every rank's optimizer the state and the settings that the one of `root_rank` has.

    State is what an optimizer keeps for each parameter (momentum, second moments, counts of steps). Settings are what
    its param_groups hold beside the parameters, such as the learning rate. Afterwards each rank has as much state as
    the root, whether it had more or none: often the root alone has read a checkpoint. Parameters stay what they are.
    """
    raise NotImplementedError(
        "write broadcast_optimizer_state: Gives every rank's optimizer the state and the settings that the one of "
        "`root_rank` has."
    )


class Distributed(torch.optim.Optimizer):
    """What a distributed optimizer does otherwise than the optimizer that it is made of.

    Mixed into that one's class, before it, so that `super().step()` is the step that it makes alone.
    """

    def distribute(self, backward_passes_per_step: int) -> None:
        """Remembers what the exchange needs, calls `begin`, and has `ready` called whenever a gradient was added to.

        The parameters to exchange are those of param_groups that are trained (`requires_grad`), each by itself, and
        always in the same order, whatever order their gradients come in: the last of param_groups is the first.
        """
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

        A gradient is complete after `backward_passes_per_step` backwards. Its exchange begins then, beside the rest of
        backward, which does not wait for it (`async_op=True`).
        """
        raise NotImplementedError(
            "write Distributed.ready: Notes that a backward has added to this gradient, and sends what is complete and"
            " has its turn."
        )

    def send(self) -> None:
        """Begins the exchange of the parameter that is next; where there is no gradient (None), zeros count."""
        raise NotImplementedError(
            "write Distributed.send: Begins the exchange of the parameter that is next; where there is no gradient "
            "(None), zeros count."
        )

    def synchronize(self) -> None:
        """Sends what has not been sent, and waits; then every gradient is the mean over all ranks."""
        raise NotImplementedError(
            "write Distributed.synchronize: Sends what has not been sent, and waits; then every gradient is the mean "
            "over all ranks."
        )

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Inside, `step` does not synchronize: for who has done so before, to change the mean gradients."""
        raise NotImplementedError(
            "write Distributed.skip_synchronize: Inside, `step` does not synchronize: for who has done so before, to "
            "change the mean gradients."
        )

    def step(self) -> None:
        """Synchronizes, unless inside of `skip_synchronize`, and makes the step of the optimizer's own class."""
        raise NotImplementedError(
            "write Distributed.step: Synchronizes, unless inside of `skip_synchronize`, and makes the step of the "
            "optimizer's own class."
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As the optimizer's own. Raises AssertionError where exchanges have begun that nobody has waited for.

        They still write into the gradients.
        """
        raise NotImplementedError("write Distributed.zero_grad: As the optimizer's own.")


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, Any]] | None = None,
    backward_passes_per_step: int = 1,
) -> Any:
    """Returns an optimizer whose steps are made with the mean gradients of all ranks.

    It is an instance of the given optimizer's class, with its parameters, settings and state, so that schedulers and
    checkpoints take it for one; and it does what `Distributed` says. It may be the given object itself.

    One all-reduce is made for each trained parameter of the optimizer and each step (or synchronize), and nothing else
    is sent. Frozen parameters, and those of the model that this optimizer does not have, stay at home.

    named_parameters: those of the model, from which Horovod takes the names; not needed here.
    backward_passes_per_step: how many backwards come before each step; their gradients add up on their rank, and the
    sum is exchanged.
    """
    raise NotImplementedError(
        "write DistributedOptimizer: Returns an optimizer whose steps are made with the mean gradients of all ranks."
    )
