"""Ranks that speak the protocol by hand, and badly: the process that decides stays whole, small and quick."""

from __future__ import annotations

import os
import resource
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from distsim.cluster import Cluster
from distsim.testbed import Run, deadline, frames
from distsim.testbed.rank_requests import MOST_HELD_BYTES, MOST_OPERATIONS
from distsim.testbed.run_monitor import RunMonitor
from distsim.testbed.switch import Switch

MEBIBYTE = 2**20
Script = Callable[[socket.socket], None]
DONE = {"do": "result", "value": "honest"}


def played(
    *scripts: Script, deadline_seconds: float = 10.0, ended: tuple[int, ...] = (), computed: tuple[float, ...] = ()
) -> Run:
    """What the deciding side makes of ranks that do this. A rank's line is closed when its script is over.

    ended: ranks of which the supervisor says that their processes have ended. computed: how long, in seconds, it says
    that all ranks have computed.
    """
    pairs = [socket.socketpair() for _ in scripts]
    outputs = [os.pipe() for _ in scripts]
    report, supervisor = socket.socketpair()

    def act(script: Script, line: socket.socket) -> None:
        with line, suppress(OSError, EOFError):
            script(line)

    threads = [
        threading.Thread(target=act, args=(script, theirs), daemon=True)
        for script, (_, theirs) in zip(scripts, pairs, strict=True)
    ]
    switch = Switch(Cluster.model_validate({"workers": len(scripts), "bandwidth": "1 GB/s", "latency": "1 ms"}))
    try:
        socket.send_fds(supervisor, [frames.pack({"started": True})], [reading for reading, _ in outputs])
        for rank in ended:
            frames.send(supervisor, {"rank": rank, "ending": "exit code 0"})
        for seconds in computed:
            frames.send(supervisor, {"computed": seconds})
        for thread in threads:
            thread.start()
        run = RunMonitor(report, [ours for ours, _ in pairs], switch, deadline_seconds).watched()
    finally:
        for ours, _ in pairs:
            ours.close()
        for thread in threads:
            thread.join(10.0)
        for end in (report, supervisor):
            end.close()
        for descriptor in (end for pipe in outputs for end in pipe):
            os.close(descriptor)
    return run


def honest(line: socket.socket) -> None:
    frames.send(line, DONE)


def saying(*messages: Any) -> Script:
    """Says all of it at once, before any answer can come, and then as an honest rank does."""

    def script(line: socket.socket) -> None:
        line.sendall(b"".join(map(frames.pack, [*messages, DONE])))
        line.recv(1)

    return script


def send(key: int = 1, data: Any = None, **others: Any) -> dict[str, Any]:
    content = np.zeros(1) if data is None else data
    post = {"do": "post", "key": key, "kind": "send", "to": 1, "tag": 0, "group": "", "where": "", "data": content}
    return post | others


def receive(num_bytes: int) -> dict[str, Any]:
    return {
        "do": "post", "key": 1, "kind": "recv", "source": 0, "tag": 0, "group": "", "where": "", "bytes": num_bytes,
    }  # fmt: skip


def wait(*keys: int) -> dict[str, Any]:
    return {"do": "wait", "keys": list(keys), "where": "", "seconds": None}


BUSY = {"do": "busy", "seconds": 2.0, "kind": "download"}
HOSTILE: dict[str, tuple[Script, str]] = {
    "work that takes no time": (saying(BUSY, BUSY), "sent a request before it had an answer"),
    "a key used twice": (saying(send(1), send(1)), "operation 1 was begun twice"),
    "waits for the same twice": (saying(send(1), wait(2)), "that it has not begun"),
    "watches what it has not begun": (saying(BUSY | {"watch": [7]}), "that it has not begun"),
    "watches no operations": (saying(BUSY | {"watch": "all"}), "watches what is no operation"),
    "goes on for ever": (saying({"do": "resume", "until": float("nan")}), "cannot be busy for nan seconds"),
    "ranks that are lists": (
        saying({"do": "post", "key": 1, "kind": "barrier", "group": "", "where": "", "ranks": [[0]], "root": 0,
                "operation": "sum", "data": []}),
        "a collective of ranks [[0]]",
    ),
    "no frame": (lambda line: line.sendall(b"GET / HTTP/1.1\r\n\r\n"), "at most"),
    "half a frame": (lambda line: line.sendall(b"\0\0"), "its connection was closed"),
    "nothing": (lambda _line: None, "its connection was closed"),
    "a note that is an error of ours": (saying({"do": "error", "text": 7, "where": ""}), "an unknown request"),
    "very many operations": (saying(*(send(key) for key in range(MOST_OPERATIONS + 1))), "operations at once"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_said_badly_ends_the_run_with_a_clear_word(name: str) -> None:
    script, words = HOSTILE[name]
    run = played(script, honest)
    assert run.first == 0
    assert words in str(run.failure)
    assert run.results[0] is None


def test_a_last_word_is_the_last() -> None:
    run = played(saying(DONE, {"do": "result", "value": "another"}, None), honest)
    assert (run.failure, run.results) == (None, ["honest", "honest"])


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def floods(message: Callable[[int], Any]) -> Script:
    def script(line: socket.socket) -> None:
        for key in range(10**9):
            frames.send(line, message(key))

    return script


LARGE = np.zeros(4 * MEBIBYTE // 8)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (lambda key: send(key, LARGE), "MiB on their way at once"),
        (lambda _key: {"do": "note", "name": "x", "value": LARGE}, "notes of more than"),
        (lambda _key: {"do": "note", "name": "x", "value": None}, "notes of more than"),
    ],
)
def test_a_flood_is_ended_before_memory_is(message: Callable[[int], Any], words: str) -> None:
    before = peak()
    run = played(floods(message), honest, deadline_seconds=60.0)
    assert words in str(run.failure)
    assert peak() - before < 2 * MOST_HELD_BYTES


def test_who_does_not_take_an_answer_holds_up_nobody() -> None:
    """Rank 1 is sent more than a socket holds and does not read; what rank 0 then says is heard all the same."""

    def deaf(line: socket.socket) -> None:
        frames.send(line, receive(2**25))
        frames.send(line, wait(1))
        hung_up = select.poll()
        hung_up.register(line, 0)
        hung_up.poll(30_000)

    def fails(line: socket.socket) -> None:
        frames.send(line, send(1, LARGE))
        frames.send(line, wait(1))
        frames.receive(line)
        frames.send(line, {"do": "error", "text": "on its own", "where": ""})
        line.recv(1)

    assert played(fails, deaf, deadline_seconds=4.0).failure == "rank 0: on its own"


def test_who_asks_on_without_taking_answers_is_ended() -> None:
    def deaf(line: socket.socket) -> None:
        frames.send(line, receive(2**25))
        frames.send(line, wait(1))
        while True:
            time.sleep(0.01)
            frames.send(line, BUSY)

    run = played(saying(send(1, LARGE)), deaf)
    assert "sent a request before" in str(run.failure)


def test_a_process_that_has_ended_is_no_longer_waited_for_though_its_line_is_open() -> None:
    run = played(honest, lambda line: line.recv(1) and None, ended=(0, 1))
    assert run.failure == "rank 1: its process ended before its work was done: exit code 0"
    assert run.results[0] == "honest"


def test_the_deadline_names_who_computes_before_who_waits() -> None:
    def waits(line: socket.socket) -> None:
        frames.send(line, send(1))
        frames.send(line, wait(1))
        line.recv(1)

    run = played(waits, lambda line: line.recv(1) and None, deadline_seconds=0.2)
    assert run.failure == "rank 1: not finished after 0.2 s, the deadline"


def test_ranks_that_get_little_processor_time_are_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "STILL_SECONDS", 0.1)

    def slow(line: socket.socket) -> None:
        time.sleep(0.6)
        honest(line)

    assert played(slow, deadline_seconds=0.2, computed=(0.01, 0.02)).results == ["honest"]
    assert played(slow, deadline_seconds=0.2, computed=(0.01, 0.1)).late, "half the deadline is enough"
