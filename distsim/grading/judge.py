"""Who judges the checks of a lab: one judge, when a notebook asks; or several at once, ahead of the notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from distsim.errors import RunError

if TYPE_CHECKING:
    from distsim.grading.check import Check
    from distsim.grading.result import Result
    from distsim.testbed import Testbed


class Judging(Protocol):
    """What a notebook asks for."""

    def judged(self, check: Check) -> Result:
        """The result of one check. Raises RunError if no ranks can be started here."""

    def close(self) -> None:
        """Ends all processes. The next check starts new ones."""


class Judge:
    """Judges the lab in `folder`, one check after the other, on a testbed of its own.

    seed: of the inputs that checks draw. server: where a fork server for several testbeds listens; None for its own.
    """

    def __init__(self, folder: Path, *, seed: int, server: Path | None) -> None:
        self._folder, self._seed, self._server = folder, seed, server
        self._testbed: Testbed | None = None

    def judged(self, check: Check) -> Result:
        """As `Judging`. It judges once more, with new processes, if no ranks could be started: a busy machine may be
        the reason.
        """
        try:
            return check.judged(self.ready())
        except RunError:
            self.close()
            self._server = None
            return check.judged(self.ready())

    def close(self) -> None:
        """As `Judging`."""
        if self._testbed is not None:
            self._testbed.close()
        self._testbed = None

    def ready(self) -> Testbed:
        """The testbed, on which no rank has been started yet if it is new."""
        if self._testbed is None:
            from distsim.grading.trust import trusted
            from distsim.testbed import Testbed

            self._testbed = Testbed(self._folder, trusted=trusted(), seed=self._seed, server=self._server)
        return self._testbed


class JudgesAhead:
    """Judges who judge all `checks` as soon as a notebook asks for one, while it still shows the results before.

    The submission must not change meanwhile, so this is for grading. A check has the same inputs with any judge, since
    it draws them from the seed and its name alone. Only the patience with a file that ran too long is its own.
    """

    def __init__(self, judges: Sequence[Judge], checks: Iterable[Check]) -> None:
        self._judges, self._checks = judges, list(checks)
        self._free: SimpleQueue[Judge] = SimpleQueue()
        for judge in judges:
            self._free.put(judge)
        self._results: dict[str, Future[Result]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def judged(self, check: Check) -> Result:
        """As `Judging`."""
        if self._pool is None:
            for judge in self._judges:
                judge.ready()  # not in two threads at once: whether ranks can be confined is tried by a fork
            self._pool = ThreadPoolExecutor(len(self._judges), thread_name_prefix="judge")
            self._results = {one.name: self._pool.submit(self._judge, one) for one in self._checks}
        waiting = self._results.pop(check.name, None) or self._pool.submit(self._judge, check)
        return waiting.result()

    def close(self) -> None:
        """As `Judging`."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = None
        for judge in self._judges:
            judge.close()

    def _judge(self, check: Check) -> Result:
        judge = self._free.get()
        try:
            return judge.judged(check)
        finally:
            self._free.put(judge)
