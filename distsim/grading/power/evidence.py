"""What the checks of a lab see of a solution: which functions they call, and all that could differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from distsim.grading.check import Check
from distsim.grading.result import Result
from distsim.testbed import Run, Testbed, frames

CALLED = "called"  # the name of the notes that a traced solution makes
RIGHT_SECONDS = 200.0  # a busy machine must not make a right solution look wrong
DIGITS = 12  # of a virtual time: additions in another order may differ by less
TRACE = """

def _trace():
    import functools
    import types
    from distsim.testbed import rank

    told = set()

    def traced(name, function):
        @functools.wraps(function)
        def called(*given, **named):
            if name not in told:
                told.add(name)
                rank.note("called", name)
            return function(*given, **named)

        return called

    for name, value in list(globals().items()):
        if getattr(value, "__module__", None) != __name__ or name == "_trace":
            continue
        if isinstance(value, types.FunctionType):
            globals()[name] = traced(name, value)
        elif isinstance(value, type):
            for inner, method in list(vars(value).items()):
                if isinstance(method, types.FunctionType):
                    setattr(value, inner, traced(f"{name}.{inner}", method))
                elif isinstance(method, staticmethod):
                    setattr(value, inner, staticmethod(traced(f"{name}.{inner}", method.__func__)))


_trace()
"""


class Recorder(Testbed):
    """A testbed that keeps its runs in `runs`. right: whether it runs a right solution, which ends, however late."""

    runs: list[Run]
    right = False

    def run(self, *given: Any, **named: Any) -> Run:
        """See `Testbed.run`."""
        found = super().run(*given, **named | ({"deadline_seconds": RIGHT_SECONDS} if self.right else {}))
        self.runs.append(found)
        return found

    def judge(self, check: Check) -> Result:
        """The result of one check, with its runs alone in `runs`."""
        self.runs = []
        return check.judged(self)


def called(runs: Sequence[Run]) -> set[str]:
    """The functions of a traced solution that some rank called. Runs on gloo have no log, so they tell nothing."""
    return {str(note.value) for run in runs for note in run.log.notes if note.name == CALLED}


def seen(runs: Sequence[Run]) -> list[tuple[str, object]]:
    """All that could differ between two solutions: results, messages, collectives and virtual times, by name.

    Objects of type bytes, such as the content of a file, stand beside the other results, as "bytes": what pickle writes
    of one state also depends on which of its equal strings are the same object.

    Times of runs on gloo are real, and results there may be a matter of chance, so both are left out.
    """
    found: list[tuple[str, object]] = []
    for number, run in enumerate(runs, 1):
        found.append((f"failure of run {number}", run.failure))
        if not run.by_chance:
            contents: list[bytes] = []
            found.append((f"results of run {number}", frames.pack(_without_bytes(run.results, contents))))
            found.append((f"bytes of run {number}", contents))
        log = run.log
        messages = sorted(
            (
                one.source,
                one.target,
                one.num_bytes,
                round(one.started_seconds, DIGITS),
                round(one.ended_seconds, DIGITS),
            )
            for one in log.messages
        )
        collectives = sorted(
            (one.kind, one.ranks, one.num_bytes, round(one.started_seconds, DIGITS), round(one.ended_seconds, DIGITS))
            for one in log.collectives
        )
        found += [(f"messages of run {number}", messages), (f"collectives of run {number}", collectives)]
        virtual = bool(log.messages or log.collectives or log.busy)
        found.append((f"virtual time of run {number}", round(run.seconds, DIGITS) if virtual else None))
    return found


def _without_bytes(value: Any, contents: list[bytes]) -> Any:
    """The value with None for each object of type bytes, all of which are added to `contents`."""
    if isinstance(value, bytes):
        contents.append(value)
        return None
    if isinstance(value, Mapping):
        return {key: _without_bytes(one, contents) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_bytes(one, contents) for one in value]
    return value


def difference(
    one: Sequence[tuple[str, object]], other: Sequence[tuple[str, object]], allowed: Collection[str] = ()
) -> str:
    """What differs first; empty if nothing does. allowed: what may differ, such as "results", which include "bytes".

    >>> difference([("results of run 1", 1)], [("results of run 1", 2)])
    'the results of run 1'
    """
    if len(one) != len(other):
        return "the number of runs"
    if "results" in allowed:
        allowed = {*allowed, "bytes"}
    for (name, mine), (_, theirs) in zip(one, other, strict=True):
        if mine != theirs and name.partition(" of run ")[0] not in allowed:
            return f"the {name}"
    return ""


def fitting(called_by: Mapping[str, set[str]], callers: Mapping[str, set[str]], function: str) -> list[str]:
    """The checks that exercise a function, or one that calls it. called_by: for each check, what its runs call.

    Checks of which nothing is known fit every function.

    >>> fitting({"sums": {"total"}, "counts": {"count"}}, {"add": {"add", "total"}}, "add")
    ['sums']
    """
    wanted = callers.get(function)
    return [check for check, called in called_by.items() if wanted is None or not called or called & wanted]
