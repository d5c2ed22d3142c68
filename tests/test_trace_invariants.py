"""`violations` finds each kind of broken trace, and finds nothing in a sound one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from distsim import example, simulate
from distsim.examples import NAMES
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder, violations

SCENARIO = Scenario.of(
    {
        "steps": 2,
        "cluster": {"workers": 2, "bandwidth": "8 Mbit/s", "latency": "0 s", "nic": {"1": {"up": "4 Mbit/s"}}},
        "compute": {"mean": "1 s"},
        "workload": {"gradient": "1 MB"},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "parameter_server"},
    }
).table()


def sound() -> TraceBuilder:
    """Two steps of two workers with one server; the link down to it carries 1 MB per second, and is full."""
    builder = TraceBuilder()
    for step, start in ((0, 0.0), (1, 5.0)):
        for worker in (0, 1):
            builder.span(worker, SpanKind.COMPUTE, step, start, start + 1.0)
            builder.push(worker, 2, step, 1e6, start + 1.0, start + 3.0)
            builder.applied(step + 1, worker, step, read_version=step, server=2)
        builder.update(step + 1, start + 3.0, server=2)
        for worker in (0, 1):
            builder.pull(worker, 2, step, 1e6, start + 3.0, start + 3.0, start + 5.0)
    return builder


def trace_of(builder: TraceBuilder, producer: str = "simulated") -> Trace:
    return builder.build(2, 1, producer, scenario=SCENARIO)


BROKEN: dict[str, tuple[Callable[[TraceBuilder], Any], str]] = {
    "span backwards": (lambda b: b.span(0, SpanKind.WAIT, 0, 1.0, 0.9), "a span ends before it starts"),
    "span before the clock": (lambda b: b.span(0, SpanKind.WAIT, 0, -0.5, 0.0), "a span starts before the clock"),
    "compute in compute": (lambda b: b.span(1, SpanKind.COMPUTE, 9, 0.5, 0.6), "compute spans of worker 1 overlap"),
    "backward in compute": (lambda b: b.span(0, SpanKind.BACKWARD, 9, 5.9, 6.1), "compute spans of worker 0 overlap"),
    "a version left out": (lambda b: b.update(4, 8.5, server=2), "the versions of server 2 do not count 1, 2, 3, …"),
    "a version twice": (lambda b: b.update(2, 8.5, server=2), "the versions of server 2 do not count 1, 2, 3, …"),
    "versions from 0": (lambda b: b.update(0, 0.0, server=2), "the versions of server 2 do not count 1, 2, 3, …"),
    "another server's versions": (lambda b: b.update(2, 0.0, server=3), "the versions of server 3 do not count"),
    "a version back in time": (lambda b: b.update(3, 7.9, server=2), "the versions of server 2 go backwards in time"),
    "applied to what it had read": (
        lambda b: b.applied(2, 0, 7, read_version=2, server=2),
        "a gradient went into an update that is not newer than the parameters it was computed on",
    ),
    "applied and cancelled": (
        lambda b: b.extend(
            "contributions",
            version=[2],
            server=[2],
            worker=[0],
            step=[7],
            read_version=[1],
            first_item=[0],
            items=[1],
            applied=[True],
            cancelled=[True],
        ),
        "a gradient is both applied and cancelled",
    ),
    "one step, two gradients": (
        lambda b: b.not_applied(0, 1, read_version=1, cancelled=True, server=2),
        "a step of a worker yields two gradients",
    ),
    "applied to no update": (
        lambda b: b.applied(3, 0, 2, read_version=2, server=2),
        "a gradient of worker 0 went into version 3, which no update made",
    ),
    "applied before it is computed": (
        lambda b: (b.span(0, SpanKind.COMPUTE, 2, 10.0, 11.0), b.applied(2, 0, 2, read_version=1, server=2)),
        "worker 0's gradient of step 2 is applied before it is computed",
    ),
    "transfer backwards": (lambda b: b.transfer(0, 2, 0.0, 9.0, 8.9), "a transfer ends before it starts"),
    "less than nothing": (lambda b: b.transfer(0, 2, -1.0, 20.0, 21.0), "a transfer carries less than nothing"),
    "to itself": (lambda b: b.transfer(1, 1, 1.0, 20.0, 21.0), "a transfer stays on its host"),
    "too much down": (lambda b: b.transfer(0, 2, 10.0, 1.5, 2.0), "the down-link of host 2 carries more than"),
    "too much up": (lambda b: b.transfer(2, 0, 10.0, 3.0, 4.0), "the up-link of host 2 carries more than"),
    "too much for an exception": (lambda b: b.transfer(1, 0, 0.6e6, 20.0, 21.0), "the up-link of host 1 carries more"),
}


def test_a_sound_trace_has_no_violations() -> None:
    assert violations(trace_of(sound())) == []


@pytest.mark.parametrize(("break_it", "found"), BROKEN.values(), ids=BROKEN)
def test_each_kind_of_broken_trace_is_found(break_it: Callable[[TraceBuilder], Any], found: str) -> None:
    builder = sound()
    break_it(builder)
    sentences = violations(trace_of(builder))
    assert len(sentences) == 1
    assert sentences[0].startswith(found)


def test_links_may_be_full_but_not_more() -> None:
    builder = sound()
    builder.transfer(1, 0, 0.5e6, 20.0, 21.0)
    builder.transfer(0, 1, 1e6, 20.0, 21.0)
    assert violations(trace_of(builder)) == []


def test_a_measured_trace_may_start_early_and_outrun_its_scenario() -> None:
    """Clocks of real ranks differ a little, and the links are the machine's own."""
    builder = sound()
    builder.span(0, SpanKind.WAIT, 0, -0.5, 0.0)
    builder.transfer(0, 2, 1e9, 1.0, 3.0)
    assert violations(trace_of(builder, "measured")) == []
    assert len(violations(trace_of(builder, "simulated"))) == 1


def test_several_violations_are_all_told() -> None:
    builder = sound()
    for break_it in ("span backwards", "a version left out", "one step, two gradients", "to itself"):
        BROKEN[break_it][0](builder)
    assert len(violations(trace_of(builder))) == 4


def test_rounding_is_no_violation() -> None:
    builder = sound()
    builder.span(0, SpanKind.COMPUTE, 2, 6.0 - 1e-12, 7.0)
    assert violations(trace_of(builder)) == []


def test_an_empty_trace_is_sound() -> None:
    assert violations(trace_of(TraceBuilder())) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_simulated_are_sound(name: str) -> None:
    assert violations(simulate(example(name))) == []
