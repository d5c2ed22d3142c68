"""Vary some keys of a scenario, simulate every combination of values, and collect one tidy table.

A sweep runs on any `concurrent.futures.Executor`, in this process, on this machine or on a cluster. The executor gets
pieces of work of one run or of several short runs. The sweep writes each result to a journal at once, so an interrupted
sweep continues where it stopped.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import time
import tomllib
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import closing
from pathlib import Path
from typing import Any

from distsim.calibration import Calibration
from distsim.errors import InputError
from distsim.metrics import METRICS, summary
from distsim.progress import Phase, Report
from distsim.scenario import Scenario, check_scenario, with_changes
from distsim.simulation import simulate

MOST_COMBINATIONS = 100_000  # each is held as a scenario, of about 10 kB
PIECE_WORKER_STEPS = 20_000  # of the runs of one piece of work: 0.1 s, or some seconds by the story
BOUND = re.compile(r"-?[0-9]{1,30}")

Row = dict[str, Any]
RESULTS = (*(metric.column for metric in METRICS), "error")


def parse_values(text: str) -> tuple[str, list[Any]]:
    """The key and the values of "key=first:last", "key=first:last:step" or "key=one,two,three".

    Values are read as in a scenario file; a word or a quantity needs no quotes.

    >>> parse_values("policy.backups=0:4")
    ('policy.backups', [0, 1, 2, 3, 4])
    >>> parse_values("cluster.bandwidth=1 Gbit/s,10 Gbit/s")
    ('cluster.bandwidth', ['1 Gbit/s', '10 Gbit/s'])
    """
    key, equals, values = text.partition("=")
    key, values = key.strip(), values.strip()
    cure = "write such as policy.backups=0:4 or compute.cv=0.1,0.3,1.0"
    if not equals or not key or not values:
        raise InputError.of("--vary", text, "must be a key of the scenario file, =, and values", cure)
    bounds = [bound.strip() for bound in values.split(":")]
    if len(bounds) in (2, 3) and all(BOUND.fullmatch(bound) for bound in bounds):
        first, last, step = (int(bound) for bound in [*bounds, "1"][:3])
        if step == 0 or (last - first) * step < 0:
            raise InputError.of("--vary", text, "must count from the first value to the last", cure)
        _check_size(text, [(last - first) // step + 1])
        return key, list(range(first, last + (1 if step > 0 else -1), step))
    return key, [_value(value.strip()) for value in values.split(",")]


def _check_size(asked: object, counts: Sequence[int]) -> None:
    if math.prod(counts) > MOST_COMBINATIONS:
        made = f"makes {' x '.join(map(str, counts))} combinations, and a sweep may have {MOST_COMBINATIONS}"
        raise InputError.of("--vary", asked, made, "take wider steps, as in steps=100:10000:100, or sweep in parts")


def check_size(vary: Mapping[str, Sequence[Any]]) -> int:
    """The number of runs of a sweep. Raises InputError where there are more than `MOST_COMBINATIONS`.

    >>> check_size({"policy.backups": [0, 1], "compute.cv": [0.1, 0.2, 0.3]})
    6
    """
    counts = [len(values) for values in vary.values()]
    _check_size(", ".join(vary), counts)
    return math.prod(counts)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # not TOML, or a number or a nesting too long for the parser
        return text


def combinations(
    scenario: Scenario, vary: Mapping[str, Sequence[Any]], calibration: Calibration | None = None
) -> list[tuple[Row, Scenario | InputError]]:
    """Every combination of the varied values with its scenario, or with the reason why it is impossible.

    A combination to which no measurement of `calibration` applies is impossible. Raises InputError where no combination
    is possible, or where there are more than `MOST_COMBINATIONS`.
    """
    check_size(vary)
    found: list[tuple[Row, Scenario | InputError]] = []
    for values in itertools.product(*vary.values()):
        changes = dict(zip(vary, values, strict=True))
        try:
            one = scenario.replacing(changes)
            if calibration is not None:
                calibration.of(one)
            found.append((changes, one))
        except InputError as error:
            found.append((changes, error))
    if all(isinstance(one, InputError) for _, one in found):
        raise _none_possible(found[0][1])
    return found


def _none_possible(first: object) -> InputError:
    return InputError(f"no combination of the varied values is possible; the first: {first}")


def sweep(
    scenario: Scenario,
    vary: Mapping[str, Sequence[Any]],
    calibration: Calibration | None = None,
    *,
    executor: Executor | None = None,
    together: int = 1,
    journal: Path | None = None,
    progress: Report | None = None,
) -> list[Row]:
    """One row for each combination: the varied keys, the metrics of the simulated run, and `error`.

    error: why the combination is impossible, else None. calibration: measured links and overheads, as in `simulate`.
    executor: where to run (default: in this process). together: the most runs of one piece of work, for an executor
    to which a piece costs about as much time as a run. journal: a file that keeps finished rows; another call with
    this journal does not compute them again. progress: called with the `Phase`, which counts runs. A varied key of the
    name of a metric, such as `failures`, takes the place of the metric's column. Raises InputError where no
    combination is possible.

    >>> from distsim import example
    >>> rows = sweep(example("backup_server"), {"policy.backups": [0, 1]})
    >>> rows[1]["policy.backups"], rows[1]["dropped_gradients"] > 0
    (1, True)
    """
    check_scenario(scenario)
    planned = combinations(scenario, vary, calibration)
    known = {key: row for key, row in _read(journal) if row.keys() == set(RESULTS)} if journal else {}
    measured = "" if calibration is None else json.dumps(calibration.as_dict())
    keys = [_key(one, measured) if isinstance(one, Scenario) else "" for _, one in planned]
    results: list[Row | None] = [
        _impossible(one) if isinstance(one, InputError) else known.get(key)
        for (_, one), key in zip(planned, keys, strict=True)
    ]
    waiting = {
        number: one for number, (_, one) in enumerate(planned) if isinstance(one, Scenario) and results[number] is None
    }
    report = progress or (lambda _: None)
    report(Phase.counted("run", len(planned) - len(waiting), len(planned)))
    start = time.monotonic()
    with closing(_results(waiting, calibration, executor, together)) as finished:
        for computed, (number, result) in enumerate(finished, start=1):
            results[number] = result
            if journal and result["error"] is None:
                _append(journal, keys[number], result)
            done = len(planned) - len(waiting) + computed
            expected = (time.monotonic() - start) * len(waiting) / computed
            report(Phase.counted("run", done, len(planned), expected))
    if all(result is not None and result["error"] is not None for result in results):
        raise _none_possible((results[0] or {})["error"])
    return [changes | (result or {}) | changes for (changes, _), result in zip(planned, results, strict=True)]


def without_effect(rows: Sequence[Row], vary: Mapping[str, Sequence[Any]]) -> list[str]:
    """The varied keys that changed no metric of any run while the other keys stayed the same."""
    idle = []
    for key in vary:
        groups: dict[str, list[str]] = {}
        for row in rows:
            if row["error"] is None:
                others = json.dumps({other: row[other] for other in vary if other != key}, default=str)
                metrics = json.dumps([row[name] for name in RESULTS])
                groups.setdefault(others, []).append(metrics)
        compared = [metrics for metrics in groups.values() if len(metrics) > 1]
        if compared and all(len(set(metrics)) == 1 for metrics in compared):
            idle.append(key)
    return idle


def reason(row: Row) -> str:
    """Why a row is impossible, without the row's varied values.

    >>> from distsim import example
    >>> rows = sweep(example("backup_server"), {"policy.backups": [1, -1]})
    >>> reason(rows[1])
    'policy.backups = -1: must be at least 0. Cure: write 0 or more'
    """
    varied = {key: value for key, value in row.items() if key not in RESULTS}
    return str(row["error"]).removeprefix(with_changes(varied)).removeprefix(": ").lstrip()


def run_some(scenarios: Sequence[Scenario], calibration: Calibration | None = None) -> list[Row]:
    """The rows of some scenarios, one after the other. Runs in any process that can import distsim."""
    return [run_one(scenario, calibration) for scenario in scenarios]


def run_one(scenario: Scenario, calibration: Calibration | None = None) -> Row:
    """The metrics of a scenario's simulated run by column, or why the run is impossible, as where it needs too much
    memory."""
    try:
        values = summary(simulate(scenario, calibration)).values
    except InputError as error:
        return _impossible(error)
    return {metric.column: values.get(metric.name) for metric in METRICS} | {"error": None}


def _impossible(error: InputError) -> Row:
    return dict.fromkeys(RESULTS) | {"error": str(error)}


def _results(
    waiting: Mapping[int, Scenario], calibration: Calibration | None, executor: Executor | None, together: int
) -> Generator[tuple[int, Row], None, None]:
    if executor is None:
        for number, scenario in waiting.items():
            yield number, run_one(scenario, calibration)
        return
    futures: dict[Future[list[Row]], list[int]] = {
        executor.submit(run_some, [waiting[number] for number in numbers], calibration): numbers
        for numbers in pieces(waiting, together)
    }
    try:
        for future in as_completed(futures):
            yield from zip(futures[future], future.result(), strict=True)
    finally:
        for future in futures:
            future.cancel()


def pieces(waiting: Mapping[int, Scenario], together: int) -> Iterator[list[int]]:
    """The numbers of the runs of each piece of work, in order.

    A piece has at most `together` runs, of at most `PIECE_WORKER_STEPS` workers x steps; a longer run is a piece of its
    own.

    >>> from distsim import example
    >>> scenario = example("backup_server")
    >>> list(pieces({0: scenario, 1: scenario, 2: scenario.replacing({"steps": 100_000}), 3: scenario}, together=10))
    [[0, 1], [2], [3]]
    """
    piece: list[int] = []
    size = 0
    for number, scenario in waiting.items():
        own = scenario.steps * scenario.cluster.workers
        if piece and (len(piece) >= together or size + own > PIECE_WORKER_STEPS):
            yield piece
            piece, size = [], 0
        piece.append(number)
        size += own
    if piece:
        yield piece


def _key(scenario: Scenario, measured: str) -> str:
    """What a row of the journal depends on. measured: the calibration as JSON; empty without one."""
    text = (scenario.dumps() + measured).encode("utf-8")
    return hashlib.sha256(text + (scenario.compute.content or b"")).hexdigest()


def _append(journal: Path, key: str, row: Row) -> None:
    """Adds a row on a new line, also where an interrupt cut off the last line."""
    with journal.open("a+b") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":
                stream.write(b"\n")
        stream.write(json.dumps([key, row]).encode("utf-8") + b"\n")


def _read(journal: Path) -> Iterator[tuple[str, Row]]:
    """The rows of the journal by key. A line that is not a row, as where an interrupt cut it off, is left out."""
    if not journal.exists():
        return
    for line in journal.read_text("utf-8").splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        match found:
            case [str(key), dict(row)]:
                yield key, row
