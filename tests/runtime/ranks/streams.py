"""Ranks that send each other bytes, by plain TCP or by gloo, and tell when the last of them had arrived.

The job: {"phases": [{"transport": "tcp" or "gloo", "streams": [[source, target], ...], "bytes": n, "repeats": n}]}.
Each rank leaves `streams-RANK.json`: per phase, per repeat, {source: seconds from the common start}.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from distsim.runtime.launch import rank_context

FIRST_PORT = 9000  # and one for each source


def receive(connection: socket.socket, buffer: memoryview) -> None:
    while len(buffer):
        buffer = buffer[connection.recv_into(buffer) :]


def connections(rank: int, streams: list[tuple[int, int]]) -> tuple[dict[int, socket.socket], dict[int, socket.socket]]:
    """Open connections: to targets, and from sources."""
    listeners = {
        source: socket.create_server(("", FIRST_PORT + source)) for source, target in streams if target == rank
    }
    dist.barrier()
    outgoing = {
        target: socket.create_connection((address_of(target), FIRST_PORT + rank))
        for source, target in streams
        if source == rank
    }
    for connection in outgoing.values():
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    incoming = {source: listener.accept()[0] for source, listener in listeners.items()}
    for listener in listeners.values():
        listener.close()
    return outgoing, incoming


def by_tcp(rank: int, streams: list[tuple[int, int]], num_bytes: int) -> Callable[[], dict[int, float]]:
    outgoing, incoming = connections(rank, streams)
    message = bytes(num_bytes)
    buffers = {source: memoryview(bytearray(num_bytes)) for source in incoming}

    def once() -> dict[int, float]:
        ends: dict[int, float] = {}

        def take(source: int) -> None:
            receive(incoming[source], buffers[source])
            ends[source] = time.monotonic()

        threads = [threading.Thread(target=out.sendall, args=(message,)) for out in outgoing.values()]
        threads += [threading.Thread(target=take, args=(source,)) for source in incoming]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ends

    return once


def by_gloo(rank: int, streams: list[tuple[int, int]], num_bytes: int) -> Callable[[], dict[int, float]]:
    message = torch.zeros(num_bytes, dtype=torch.uint8)
    buffers = {source: torch.zeros_like(message) for source, target in streams if target == rank}

    def once() -> dict[int, float]:
        receives = {source: dist.irecv(buffer, src=source) for source, buffer in buffers.items()}
        sends = [dist.isend(message, dst=target) for source, target in streams if source == rank]
        ends: dict[int, float] = {}

        def take(source: int) -> None:
            receives[source].wait()
            ends[source] = time.monotonic()

        threads = [threading.Thread(target=take, args=(source,)) for source in receives]
        for thread in threads:
            thread.start()
        for work in sends:
            work.wait()
        for thread in threads:
            thread.join()
        return ends

    return once


def run(rank: int, phase: dict[str, Any]) -> list[dict[int, float]]:
    streams = [(source, target) for source, target in phase["streams"]]
    once = {"tcp": by_tcp, "gloo": by_gloo}[phase["transport"]](rank, streams, phase["bytes"])
    found = []
    for _ in range(phase["repeats"] + 1):
        dist.barrier()
        moment = torch.tensor([time.monotonic() + 0.02], dtype=torch.float64)
        dist.all_reduce(moment, op=dist.ReduceOp.MAX)
        sleep_until(moment.item())
        found.append({source: end - moment.item() for source, end in once().items()})
    return found[1:]  # the first opens connections and touches memory


if __name__ == "__main__":
    with rank_context.entered() as context:
        import torch
        import torch.distributed as dist

        from distsim.runtime.emulation.network import address_of
        from distsim.runtime.recording.clock import sleep_until

        dist.init_process_group("gloo")
        found = [run(context.rank, phase) for phase in context.job["phases"]]
        (context.folder / f"streams-{context.rank}.json").write_text(json.dumps(found))
        dist.barrier()
