"""A rule of a submission decides in a confined process of its own. It sees arrivals, and nothing of the simulation.

    python -m distsim.contest.rule_process CHANNEL FOLDER FILE:CLASS WORKERS TRUSTED

starts that process for the other end of the socket with the descriptor CHANNEL, and ends with it. It is started anew
for each run, from a process that holds nothing of the contest, so a rule can find neither seeds nor other entries.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from distsim.errors import InputError
from distsim.policies.own_rule import load_rule
from distsim.policies.rule import Decision
from distsim.testbed import frames
from distsim.testbed.sandbox import Limits, Sandbox

ANSWER_SECONDS = 20.0  # for one decision, and for the start of the rule; both usually take milliseconds
RUN_SECONDS = 60.0  # for all decisions of one run
MOST_DECISIONS = 20  # for each update that the run needs; a rule that drops gradient after gradient never ends
LIMITS = Limits(memory_bytes=2**30, processes=8, cpu_seconds=30)
MOST_ANSWERS = 10_000


class ConfinedRule:
    """Asks the rule in the other process. It serves one run; a rule that does not answer raises InputError.

    cancel: as the rule says. updates: of the run, which bounds how many decisions it may take.
    """

    def __init__(self, channel: socket.socket, updates: int) -> None:
        self._channel = channel
        self._frames, self._come = frames.Frames(), list[Any]()
        self._left = MOST_DECISIONS * updates
        self._until = monotonic() + RUN_SECONDS
        self.cancel = bool(self._received("cancel")["cancel"])

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        """The rule's decision. Its form is checked by `OwnRule`, which asks this object."""
        if self._left == 0:
            raise InputError(
                "the rule drops so many gradients that the run does not end. Cure: make updates of those that arrive"
            )
        self._left -= 1
        try:
            frames.send(self._channel, [worker, step, read_version])
        except OSError:
            raise _silent("its process has ended") from None
        found = self._received("version", "applied", "answers")
        answers = found["answers"]
        if not isinstance(answers, list) or len(answers) > MOST_ANSWERS:
            raise _silent(f"it answers with no list of at most {MOST_ANSWERS} pairs")
        return Decision(found["version"], found["applied"], tuple(map(_pair, answers)))

    def _received(self, *keys: str) -> dict[str, Any]:
        allowed = min(ANSWER_SECONDS, self._until - monotonic())
        if allowed <= 0.0:
            raise _silent(f"it takes more than {RUN_SECONDS:g} s for a run")
        try:
            found = self._answer(monotonic() + allowed)
        except TimeoutError:
            raise _silent(f"it takes more than {allowed:.0f} s for one decision") from None
        except (EOFError, OSError):
            raise _silent("its process has ended, or used more than it may") from None
        except frames.FrameError as error:
            raise _silent(str(error)) from None
        if isinstance(found, dict) and isinstance(found.get("error"), str):
            raise InputError(found["error"])
        if not isinstance(found, dict) or set(found) != set(keys):
            raise _silent("it answers with no decision")
        return found

    def _answer(self, until: float) -> Any:
        """The next message, which must be whole at that moment: a process that sends byte by byte gains no time."""
        while not self._come:
            self._channel.settimeout(max(until - monotonic(), 1e-3))
            data = self._channel.recv(2**16)
            if monotonic() > until:
                raise TimeoutError
            if not data:
                raise EOFError
            self._come += self._frames.feed(data)
        return self._come.pop(0)


def _pair(found: Any) -> Any:
    return tuple(found) if isinstance(found, list) else found


def _silent(why: str) -> InputError:
    return InputError(f"the rule gives no decision: {why}. Cure: return a Decision for every gradient")


@contextmanager
def confined_rule(
    folder: Path, spec: str, workers: int, updates: int, *, trusted: bool = False
) -> Iterator[ConfinedRule]:  # fmt: skip
    """The rule that `spec` names in `folder`, in a process of its own while the block lasts.

    updates: of the run. trusted: without confinement, for machines that cannot confine.
    """
    own, other = socket.socketpair()
    with own, other:
        command = [
            sys.executable, "-m", "distsim.contest.rule_process",
            str(other.fileno()), str(folder.resolve()), spec, str(workers), str(int(trusted)),
        ]  # fmt: skip
        process = subprocess.Popen(
            command, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        other.close()
        try:
            yield ConfinedRule(own, updates)
        finally:
            own.close()
            process.terminate()  # its sandbox ends every process of the rule
            process.wait()


def main() -> None:
    """Starts the confined process and waits for its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the contest, which then ends this process
    signal.signal(signal.SIGTERM, _leave)
    descriptor, folder, spec, workers, trusted = sys.argv[1:]
    channel = socket.socket(fileno=int(descriptor))
    place = Path(folder)
    names = sorted(path.name for path in place.glob("*.py"))
    with Sandbox.start(
        [lambda: _decide(channel, spec, int(workers))], folder=place, names=names, limits=LIMITS,
        keep=[[channel.fileno()]], trusted=trusted == "1",
    ) as sandbox:  # fmt: skip
        channel.close()
        sandbox.wait()


def _decide(channel: socket.socket, spec: str, workers: int) -> None:
    """Runs in the confined process, in a folder with the files of the entry."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # what the rule prints is for nobody
        os.dup2(nowhere, stream)
    try:
        rule = load_rule(spec, workers)
        frames.send(channel, {"cancel": rule.cancel})
        while True:
            found = rule.arrived(*frames.receive(channel))
            frames.send(channel, {"version": found.version, "applied": found.applied, "answers": list(found.answers)})
    except InputError as error:
        frames.send(channel, {"error": str(error)})
    except EOFError:
        return


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
