"""The real rank, with a fault: DISTSIM_TEST_FAULT = {"rank": who, "where": module, "call": n, "fault": name}.

The fault happens in the n-th sleep of the module (peers or worker), or at a call of the server.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

from distsim.runtime.launch import rank_context


def print_forever() -> None:
    while True:
        print("x" * 1023)


def loop() -> None:
    while True:
        pass


def fail() -> None:
    raise ValueError("broken on purpose")


FAULTS: dict[str, Any] = {
    "raise": fail,
    "exit": lambda: os._exit(7),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "loop": loop,
    "print": print_forever,
    "fill": lambda: fill_disk(),
    "wait": lambda: threading.Event().wait(),
}


def break_sleep(module: Any, call: int, fault: Any) -> None:
    calls = 0
    true_sleep = module.sleep_until

    def sleep_until(moment: float) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            fault()
        true_sleep(moment)

    module.sleep_until = sleep_until


def break_rule(call: int, fault: Any) -> None:
    from distsim.policies.synchronous import SynchronousRule

    calls = 0
    true_rule = SynchronousRule.arrived

    def arrived(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            fault()
        return true_rule(self, *arguments)

    SynchronousRule.arrived = arrived  # type: ignore[method-assign]


def fill_disk() -> None:
    """Takes what is left of the disk that the run's folder is on."""
    with (Path(os.environ[rank_context.FOLDER_VARIABLE]) / "filler").open("wb", buffering=0) as filler:
        size = 1 << 20
        while size:
            try:
                while filler.write(bytes(size)):
                    pass
            except OSError:
                size //= 2


def break_call(call: int) -> None:
    """From its n-th all-reduce on, this rank calls another collective than the others."""
    from distsim.runtime.transport import backend

    calls = 0
    true_all_reduce = backend.dist.all_reduce

    def all_reduce(tensor: Any, **options: Any) -> None:
        nonlocal calls
        calls += "op" not in options  # the agreement on a start has one
        if calls == call:
            backend.dist.barrier()
        true_all_reduce(tensor, **options)

    backend.dist.all_reduce = all_reduce


def break_length(call: int) -> None:
    """The n-th message of this rank is longer than the other side expects."""
    import torch

    from distsim.runtime.transport import backend

    calls = 0
    true_send = backend.dist.send

    def send(tensor: Any, **options: Any) -> None:
        nonlocal calls
        calls += 1
        true_send(torch.cat([tensor, tensor]) if calls == call else tensor, **options)

    backend.dist.send = send


def break_sum() -> None:
    from distsim.runtime.transport import backend

    true_sum = backend.dist.all_reduce

    def all_reduce(tensor: Any, **options: Any) -> None:
        true_sum(tensor, **options)
        if "op" not in options:
            tensor[-1] += 1

    backend.dist.all_reduce = all_reduce


def break_parameters() -> None:
    from distsim.runtime.transport import backend

    true_receive = backend.dist.recv

    def recv(tensor: Any, **options: Any) -> None:
        true_receive(tensor, **options)
        tensor[-1] ^= 1

    backend.dist.recv = recv


def break_update() -> None:
    from distsim.runtime.ranks.server_parameters import Parameters

    true_add = Parameters.add

    def add(self: Any, worker: int, gradient: Any) -> None:
        true_add(self, worker, gradient)
        self._pending[-1] += 1

    Parameters.add = add  # type: ignore[method-assign]


if __name__ == "__main__":
    with rank_context.entered() as context:
        context.slot.doing("import torch")
        from distsim.runtime.ranks import peers, session, worker

        task = json.loads(os.environ["DISTSIM_TEST_FAULT"])
        if task["rank"] == context.rank:
            match task["where"]:
                case "peers":
                    break_sleep(peers, task["call"], FAULTS[task["fault"]])
                case "worker":
                    break_sleep(worker, task["call"], FAULTS[task["fault"]])
                case "rule":
                    break_rule(task["call"], FAULTS[task["fault"]])
                case "collective":
                    break_call(task["call"])
                case "length":
                    break_length(task["call"])
                case "sum":
                    break_sum()
                case "parameters":
                    break_parameters()
                case "update":
                    break_update()
        session.run(context)
