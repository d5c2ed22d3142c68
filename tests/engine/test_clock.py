"""The stories' clock means what SimPy's does."""

from __future__ import annotations

import gc
from collections.abc import Generator
from typing import Any

import pytest
import simpy

from distsim.engine.clock import Clock


def told(environment: simpy.Environment) -> list[tuple[float, str]]:
    """Two processes that wait for times, each other, and what one makes happen."""
    found: list[tuple[float, str]] = []
    bell = environment.event()

    def first() -> Generator[Any, Any, str]:
        yield environment.timeout(1.0)
        found.append((environment.now, "first"))
        bell.succeed("rung")
        value = yield environment.timeout(0.0, "at once")
        found.append((environment.now, value))
        return "over"

    def second(other: simpy.Process) -> Generator[Any, Any, None]:
        found.append((environment.now, (yield bell)))
        found.append((environment.now, (yield other)))
        yield environment.timeout(1.0) & environment.timeout(2.5)
        found.append((environment.now, "both"))

    environment.process(second(environment.process(first())))
    environment.run()
    return found


def test_a_story_is_told_as_on_simpys_clock() -> None:
    assert told(Clock(0.0)) == told(simpy.Environment(0.0))


def test_it_runs_until_a_time_as_simpys_does() -> None:
    clock = Clock(0.0)
    clock.timeout(3.0)
    clock.run(until=2.0)
    assert clock.now == 2.0
    clock.run()
    assert clock.now == 3.0


def test_what_happens_sooner_happens_once() -> None:
    clock, times = Clock(0.0), []
    timer = clock.timeout(5.0)
    timer.callbacks.append(lambda _: times.append(clock.now))
    clock.timeout(1.0).callbacks.append(lambda _: clock.sooner(timer, 2.0))
    clock.timeout(7.0)
    clock.run()
    assert times == [2.0]
    assert clock.now == 7.0


def test_what_has_happened_sooner_is_skipped_on_the_way_to_a_time() -> None:
    clock = Clock(0.0)
    clock.sooner(clock.timeout(5.0), 2.0)
    clock.run(until=6.0)
    assert clock.now == 6.0


def test_what_is_to_happen_in_the_past_happens_now() -> None:
    clock, times = Clock(0.0), []
    timer = clock.timeout(5.0)
    timer.callbacks.append(lambda _: times.append(clock.now))
    clock.timeout(1.0).callbacks.append(lambda _: clock.sooner(timer, 0.5))
    clock.run()
    assert times == [1.0]


def test_an_error_in_a_process_ends_the_run() -> None:
    clock = Clock(0.0)

    def fails() -> Generator[Any, Any, None]:
        yield clock.timeout(1.0)
        raise ValueError("no such rule")

    clock.process(fails())
    with pytest.raises(ValueError, match="no such rule"):
        clock.run()


@pytest.mark.parametrize("collecting", [True, False])
def test_a_run_leaves_the_garbage_collector_as_it_was(collecting: bool) -> None:
    clock, seen = Clock(0.0), []
    clock.timeout(1.0).callbacks.append(lambda _: seen.append(gc.isenabled()))
    clock.event().fail(RuntimeError("broken"))
    was = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        with pytest.raises(RuntimeError, match="broken"):
            clock.run()
        assert gc.isenabled() is collecting
        clock.run()
        assert gc.isenabled() is collecting
        assert seen == [False]
    finally:
        (gc.enable if was else gc.disable)()
