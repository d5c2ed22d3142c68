"""A back end of torch.distributed that uses the testbed's switch as its network. Only ranks import this module."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _DistributedBackendOptions
from torch.futures import Future

from distsim.testbed.switch_client import NetworkError, SwitchClient

NAME = "testbed"
OPERATIONS = {
    dist.ReduceOp.SUM: "sum", dist.ReduceOp.AVG: "avg", dist.ReduceOp.PRODUCT: "product",
    dist.ReduceOp.MIN: "min", dist.ReduceOp.MAX: "max",
}  # fmt: skip
Tensors = Sequence[torch.Tensor]


class Pending(dist._Work):
    """An operation that has begun."""

    def __init__(self, line: SwitchClient, key: int, into: Tensors = (), group: Sequence[int] = ()) -> None:
        super().__init__()
        self._line, self._key, self._into, self._group = line, key, into, group
        self._over = False
        self._source = -1

    def wait(self, timeout: timedelta | None = None) -> bool:  # noqa: ARG002 - a virtual clock needs no timeout
        """Blocks this rank until the operation is over and its tensors hold the data received."""
        if not self._over:
            found = self._line.wait(self._key)
            self._over, self._source = True, found["source"]
            for tensor, array in zip(self._into, found["received"], strict=True):
                _fill(tensor, array)
        return True

    def is_completed(self) -> bool:
        """Whether the operation is over. The question takes a little virtual time."""
        return self._over or self._line.look(self._key)

    def is_success(self) -> bool:
        """As `is_completed`, since a failed operation raises."""
        return self.is_completed()

    def result(self) -> list[torch.Tensor]:
        """The tensors received."""
        self.wait()
        return list(self._into)

    def synchronize(self) -> None:
        """As `wait`."""
        self.wait()

    def get_future(self) -> Future[list[torch.Tensor]]:
        """A completed future: this call waits for the operation."""
        self.wait()
        future: Future[list[torch.Tensor]] = Future()
        future.set_result(list(self._into))
        return future

    def source_rank(self) -> int:
        """The source of the message, as a rank within the group."""
        return self._group.index(self._source)

    _source_rank = source_rank


class Group(dist.ProcessGroup):
    """A process group. torch.distributed calls these methods; ranks are positions in the group."""

    def __init__(self, line: SwitchClient, ranks: Sequence[int], position: int, name: str) -> None:
        super().__init__(position, len(ranks))
        self._line, self._ranks, self._label = line, list(ranks), name

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        """The name that `dist.get_backend` gives."""
        return NAME

    def shutdown(self) -> None:
        """Does nothing: the group holds no resource."""

    def send(self, tensors: Tensors, target: int, tag: int = 0) -> Pending:
        """Sends a tensor to one rank."""
        [tensor] = tensors
        key = self._line.post("send", to=self._ranks[target], tag=tag, group=self._label, data=_array(tensor))
        return Pending(self._line, key)

    def recv(self, tensors: Tensors, source: int, tag: int = 0) -> Pending:
        """Receives a tensor from one rank."""
        return self._receive(tensors, self._ranks[source], tag)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Pending:
        """Receives the tensor that any rank sent first."""
        return self._receive(tensors, None, tag)

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Pending:
        """Every rank gets the reduction."""
        return self._join("all_reduce", tensors, into=tensors, operation=_operation(opts))

    def reduce(self, tensors: Tensors, opts: Any) -> Pending:
        """The root gets the reduction."""
        into = tensors if self.rank() == opts.rootRank else []
        return self._join("reduce", tensors, into=into, root=opts.rootRank, operation=_operation(opts))

    def broadcast(self, tensors: Tensors, opts: Any) -> Pending:
        """Every rank gets the root's tensor."""
        given = tensors if self.rank() == opts.rootRank else []
        return self._join("broadcast", given, into=tensors, root=opts.rootRank)

    def allgather(self, into: Sequence[Tensors], tensors: Tensors, opts: Any = None) -> Pending:  # noqa: ARG002
        """Every rank gets the tensors of all ranks."""
        return self._join("all_gather", tensors, into=into[0])

    def all_gather_single(self, into: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Pending:  # noqa: ARG002
        """As `allgather`, into one tensor."""
        return self._join("all_gather", [tensor], into=_pieces(into, self.size()))

    _allgather_base = all_gather_single

    def gather(self, into: Sequence[Tensors], tensors: Tensors, opts: Any) -> Pending:
        """The root gets the tensors of all ranks."""
        mine = into[0] if self.rank() == opts.rootRank else []
        return self._join("gather", tensors, into=mine, root=opts.rootRank)

    def scatter(self, into: Tensors, tensors: Sequence[Tensors], opts: Any) -> Pending:
        """Every rank gets one of the root's tensors."""
        given = tensors[0] if self.rank() == opts.rootRank else []
        return self._join("scatter", given, into=into, root=opts.rootRank)

    def reduce_scatter(self, into: Tensors, tensors: Sequence[Tensors], opts: Any) -> Pending:
        """Every rank gets one piece of the reduction."""
        return self._join("reduce_scatter", tensors[0], into=into, operation=_operation(opts))

    def reduce_scatter_single(self, into: torch.Tensor, tensor: torch.Tensor, opts: Any) -> Pending:
        """As `reduce_scatter`, from one tensor."""
        pieces = _pieces(tensor, self.size())
        return self._join("reduce_scatter", pieces, into=[into], operation=_operation(opts))

    _reduce_scatter_base = reduce_scatter_single

    def alltoall(self, into: Tensors, tensors: Tensors, opts: Any = None) -> Pending:  # noqa: ARG002
        """Every rank sends one tensor to every rank."""
        return self._join("all_to_all", tensors, into=into)

    def all_to_all_single(
        self, into: torch.Tensor, tensor: torch.Tensor, into_sizes: list[int], sizes: list[int], opts: Any = None  # noqa: ARG002
    ) -> Pending:  # fmt: skip
        """As `alltoall`, from one tensor into one tensor."""
        return self.alltoall(_pieces(into, self.size(), into_sizes), _pieces(tensor, self.size(), sizes))

    alltoall_base = all_to_all_single

    def barrier(self, opts: Any = None) -> Pending:  # noqa: ARG002
        """Every rank waits until all ranks have called it."""
        return self._join("barrier", [], into=[])

    def _receive(self, tensors: Tensors, source: int | None, tag: int) -> Pending:
        [tensor] = tensors
        room = tensor.numel() * tensor.element_size()
        key = self._line.post("recv", source=source, tag=tag, group=self._label, bytes=room)
        return Pending(self._line, key, [tensor], self._ranks)

    def _join(self, kind: str, given: Tensors, into: Tensors, root: int = 0, operation: str = "sum") -> Pending:
        key = self._line.post(
            kind, group=self._label, ranks=self._ranks, root=root, operation=operation, data=[*map(_array, given)]
        )
        return Pending(self._line, key, into)


def register(line: SwitchClient) -> None:
    """Registers the back end `testbed` with torch.distributed, connected to the switch by `line`."""

    def create(options: _DistributedBackendOptions, _of_backend: Any = None) -> Group:
        ranks = options.global_ranks_in_group or range(options.group_size)
        return Group(line, list(ranks), options.group_rank, options.group_id)

    dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])


def _operation(opts: Any) -> str:
    operation = dist.ReduceOp.SUM if opts is None else opts.reduceOp
    for known, name in OPERATIONS.items():
        if operation == known:
            return name
    raise NetworkError(f"{operation} is no reduction of the testbed; it has {', '.join(OPERATIONS.values())}")


def _array(tensor: torch.Tensor) -> Any:
    return tensor.detach().cpu().contiguous().numpy()


def _fill(tensor: torch.Tensor, array: Any) -> None:
    """Copies the bytes as gloo does: a message that is smaller than the tensor fills its first part."""
    received = torch.from_numpy(array)
    with torch.no_grad():
        if received.dtype == tensor.dtype and received.shape == tensor.shape:
            tensor.copy_(received)
            return
        if not received.numel():
            return
        if not tensor.is_contiguous():
            raise NetworkError("a tensor to receive into must be contiguous where shapes differ")
        target = tensor.detach().view(-1).view(torch.uint8)
        data = received.contiguous().view(-1).view(torch.uint8)
        if len(data) > len(target):
            raise NetworkError(f"{len(data)} bytes came where there is room for {len(target)}")
        target[: len(data)] = data


def _pieces(tensor: torch.Tensor, count: int, sizes: Sequence[int] = ()) -> list[torch.Tensor]:
    if sizes:
        return list(torch.split(tensor, list(sizes)))
    if tensor.shape[0] % count:
        raise NetworkError(f"{tensor.shape[0]} rows cannot be cut into {count} pieces of one size")
    return list(tensor.view(count, -1, *tensor.shape[1:])) if tensor.dim() else [tensor]
