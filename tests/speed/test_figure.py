"""Speed figures: the arithmetic of scaling, honest bounds, and what memory is counted."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from distsim.examples import example
from distsim.scenario import Scenario
from distsim.speed import figure, floor, whole_process
from distsim.speed.figure import Duration, Growth, Memory, Result, alternating

Clock = Callable[[], float]


class Machine:
    """A clock that only work moves: what the work takes, and SimPy's speed, are told in advance."""

    def __init__(self, timeouts_per_second: list[float]) -> None:
        self.now = 0.0
        self.floors = iter(timeouts_per_second)

    def process_time(self) -> float:
        return self.now

    perf_counter = process_time

    def floor(self) -> float:
        return next(self.floors)

    def work(self, *seconds: float) -> Callable[[], None]:
        left = iter(seconds)

        def run() -> None:
            self.now += next(left)

        return run


def on(monkeypatch: pytest.MonkeyPatch, *floors: float) -> Machine:
    machine = Machine(list(floors))
    monkeypatch.setattr(figure, "time", machine)
    monkeypatch.setattr(figure, "timeouts_per_second", machine.floor)
    return machine


def test_half_as_fast_a_machine_may_take_twice_as_long() -> None:
    assert floor.scaled_seconds(1.0, 1.4e6) == 1.0
    assert floor.scaled_seconds(2.0, 0.7e6) == pytest.approx(1.0)
    assert floor.scaled_seconds(0.5, 2.8e6) == pytest.approx(1.0)


def test_the_floor_is_simpys_timeouts_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sample takes as long as the clock says: the best of 0.5 s and 0.25 s counts."""
    readings = iter([0.0, 0.5, 10.0, 10.25])
    monkeypatch.setattr(floor.time, "process_time", lambda: next(readings))
    assert floor.timeouts_per_second() == 100 * floor.TIMEOUTS / 0.25


def test_the_best_time_and_the_best_floor_count_and_the_first_run_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = on(monkeypatch, 0.5e6, 0.7e6, 0.6e6)
    work = machine.work(0.01, 0.3, 0.2, 0.4)
    result = Duration("group", "name", 0.11, lambda: work, simgrid_seconds=5.0).measure(rounds=3)
    assert (result.measured, result.floor, result.repeats) == (pytest.approx(0.2), 0.7e6, 3)
    assert result.value == pytest.approx(0.1)
    assert result.met
    assert result.as_dict() == {
        "group": "group", "figure": "name", "unit": "seconds", "measured": result.measured, "floor": 0.7e6,
        "value": result.value, "bound": 0.11, "repeats": 3, "simgrid_seconds": 5.0, "slower_engine": None,
        "times_faster": None, "met": True,
    }  # fmt: skip


def test_the_next_slower_engine_is_timed_in_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = on(monkeypatch, 1e6)
    fast, slow = machine.work(0.01, 0.2), machine.work(1.0)
    result = Duration("group", "name", 1.0, lambda: fast, slower=("story", lambda: slow)).measure(rounds=1)
    assert (result.slower_engine, result.times_faster) == ("story", pytest.approx(5.0))


def test_short_work_is_repeated_within_a_round_and_long_work_not_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = on(monkeypatch, *[1e6] * 9)
    assert alternating([machine.work(*[0.02] * 100)], rounds=2)[2] == 6  # three fill a slice of 0.05 s
    assert alternating([machine.work(*[4.0] * 9)], rounds=5)[2] == 3


def test_ratios_are_of_best_times(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = on(monkeypatch, 1e6, 1e6)
    times = {50: machine.work(9.0, 1.0, 0.9), 500: machine.work(9.0, 12.0, 9.9)}
    monkeypatch.setattr(figure, "simulate", lambda scenario, **_: times[scenario.steps]())
    result = Growth("group", "name", 10.5, lambda n: example("backup_server").replacing({"steps": n}), 50, "loop")
    found = result.measure(rounds=2)
    assert (found.unit, found.measured, found.value) == ("times", pytest.approx(11.0), pytest.approx(11.0))
    assert not found.met


@pytest.mark.parametrize(("value", "met"), [(1.0, True), (1.0 + 1e-9, False), (float("nan"), False)])
def test_a_bound_is_kept_or_not(value: float, met: bool) -> None:
    assert Result("group", "name", "seconds", value, 1.4e6, value, 1.0, 3).met is met


def test_a_figure_that_has_become_slow_is_told_as_missed() -> None:
    def busy() -> None:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass

    assert not Duration("group", "name", 0.002, lambda: busy).measure(rounds=1).met
    assert Duration("group", "name", 0.2, lambda: busy).measure(rounds=1).met


def test_peak_memory_is_of_the_run_alone() -> None:
    """What this process holds does not count; what the run needs does."""
    held = bytearray(300 * 2**20)
    held[:: 2**12] = bytes(len(held[:: 2**12]))
    small, large = (whole_process.spent(of_steps(steps)).peak_bytes for steps in (10, 10_000))
    assert whole_process.own_peak_bytes() > 300 * 2**20
    assert 20 * 2**20 < small < 250 * 2**20
    assert large > small + 10 * 2**20
    result = Memory("group", "name", 2**20, lambda: of_steps(10)).measure()
    assert (result.unit, result.met, result.floor) == ("bytes", False, None)
    del held


def of_steps(steps: int) -> Scenario:
    return example("backup_server").replacing({"steps": steps})
