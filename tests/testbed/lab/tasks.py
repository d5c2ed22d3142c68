"""What a student might have written, and what a student should not have."""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist

from distsim.testbed import rank


def ring_all_reduce(values: torch.Tensor) -> None:
    ranks, me = dist.get_world_size(), dist.get_rank()
    chunks = list(values.chunk(ranks))
    for turn in range(2 * (ranks - 1)):
        give, take = chunks[(me - turn) % ranks], chunks[(me - turn - 1) % ranks]
        came = torch.empty_like(take)
        sending, receiving = dist.isend(give, (me + 1) % ranks), dist.irecv(came, (me - 1) % ranks)
        sending.wait()
        receiving.wait()
        take.copy_(take + came if turn < ranks - 1 else came)


def circle() -> None:
    dist.send(torch.zeros(1), (dist.get_rank() + 1) % dist.get_world_size())


def forever() -> None:
    while True:
        pass


def leaves() -> None:
    if dist.get_rank() == 1:
        os._exit(0)
    dist.barrier()


def gives_up() -> None:
    sys.exit("enough")


def wrong() -> None:
    raise ValueError("seven is no even number")


def goes_on() -> str:
    """An error tells the shapes of all ranks' tensors, and no message has passed."""
    try:
        dist.all_reduce(torch.zeros(7 + dist.get_rank()))
    except RuntimeError as error:
        return str(error)
    return ""


def shape_as_message() -> list[int]:
    line = rank.context
    if dist.get_rank() == 0:
        line.wait(line.post("send", to=1, tag=0, group="", data=torch.empty(0, 1234).numpy()), lambda _found: None)
        return []
    came: list[dict] = []
    line.wait(line.post("recv", source=0, tag=0, group="", bytes=8), came.append)
    return list(came[0]["received"][0].shape)


def sleeps() -> float:
    before = time.perf_counter()
    time.sleep(3600.0)
    return time.perf_counter() - before


def forges() -> None:
    print('{"do": "result", "value": 1}')
    raise RuntimeError("and fails")


def floods() -> None:
    while True:
        print("x" * 10**6)


def returns_an_object() -> object:
    return object()


def ring_ahead(values: torch.Tensor) -> None:
    """All receives are posted before the first send, and no send is waited for before the end."""
    ranks, me = dist.get_world_size(), dist.get_rank()
    chunks = list(values.chunk(ranks))
    rounds = range(2 * (ranks - 1))
    came = [torch.empty_like(chunks[(me - turn - 1) % ranks]) for turn in rounds]
    receiving = [dist.irecv(tensor, (me - 1) % ranks) for tensor in came]
    sending = []
    for turn in rounds:
        give, take = chunks[(me - turn) % ranks], chunks[(me - turn - 1) % ranks]
        sending.append(dist.isend(give.clone(), (me + 1) % ranks))
        receiving[turn].wait()
        take.copy_(take + came[turn] if turn < ranks - 1 else came[turn])
    for work in sending:
        work.wait()


def forgets_a_send() -> None:
    if dist.get_rank() == 0:
        KEPT.append(dist.isend(torch.zeros(1), 1))
    else:
        dist.recv(torch.zeros(1), 0)


KEPT: list[object] = []


def rank_below() -> None:
    dist.send(torch.zeros(1), -1)


def rank_as_text() -> None:
    dist.send(torch.zeros(1), str(1 - dist.get_rank()))


def callback() -> list[float]:
    """When the callback of an all-reduce runs, and when the computing beside it is over."""
    times: list[float] = []
    future = dist.all_reduce(torch.zeros(10**6), async_op=True).get_future()
    future.then(lambda _future: times.append(rank.now()))
    rank.busy(1.0)
    return [*times, rank.now()]


def gives_up_waiting() -> float:
    if dist.get_rank() == 0:
        try:
            dist.irecv(torch.zeros(1), 1).wait(timedelta(seconds=2))
        except RuntimeError:
            return rank.now()
    else:
        rank.busy(5.0)
    return 0.0


def numbers() -> list[int]:
    return [int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")]


def changes_what_it_sends(*, row: int, early: bool) -> float:
    """Sends row 0 and changes a row, before or after its wait."""
    rows = torch.ones(2, 3)
    if dist.get_rank() == 0:
        work = dist.isend(rows[0], 1)
        if not early:
            work.wait()
        rows[row] = 0.0
        work.wait()
    else:
        dist.recv(rows[0].zero_(), 0)
    return float(rows[0].sum())


def changes_what_it_reduces() -> None:
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    tensor.mul_(2)
    work.wait()


def meet(way: str) -> list[int]:
    """Starts torch.distributed in that way, and adds up."""
    host, port, number = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), int(os.environ["RANK"])
    world = int(os.environ["WORLD_SIZE"])
    if way == "rendezvous":
        store, number, world = next(dist.rendezvous("env://"))
        dist.init_process_group("gloo", store=store, rank=number, world_size=world)
    elif way == "store":
        store = dist.TCPStore(host, port, world, number == 0)
        dist.init_process_group("gloo", store=store, rank=number, world_size=world)
    elif way == "address":
        dist.init_process_group("gloo", f"tcp://{host}:{port}", rank=number, world_size=world)
    elif way == "patient":
        dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    elif way == "impatient":
        dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    elif way == "another port":
        dist.TCPStore(host_name=host, port=port + 1, world_size=world, is_master=number == 0)
    else:
        next(dist.rendezvous("tcp://localhost:29500", number, world))
    total = torch.tensor(number + 1)
    dist.all_reduce(total)
    return [dist.get_rank(), int(total)]


def hashes() -> list[int]:
    """Of strings, as such and within, and of numbers."""
    return [hash("a"), hash(("a", 1)), hash(b"a"), hash(12), hash((1, 2.5))]


def sums_beside_a_thread() -> list[float]:
    """The rank's seconds of a hundred sums and a sleep, alone and beside a thread that sleeps again and again."""
    found = []
    for threads in (0, 1):
        ended = threading.Event()
        beside = [threading.Thread(target=_naps, args=(ended,)) for _ in range(threads)]
        for thread in beside:
            thread.start()
        before = time.time()
        for _ in range(100):
            dist.all_reduce(torch.ones(4), async_op=True).wait()
        time.sleep(2.0)
        found.append(time.time() - before)
        ended.set()
        for thread in beside:
            thread.join()
    return found


def _naps(ended: threading.Event) -> None:
    while not ended.is_set():
        time.sleep(0.001)


def held() -> tuple[int, str]:
    """How many sockets this process holds, and what its standard input has."""
    descriptors = [number for number in range(3, 200) if _is_open(number)]
    return sum(stat.S_ISSOCK(os.fstat(number).st_mode) for number in descriptors), sys.stdin.read()


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
