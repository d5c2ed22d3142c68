"""The bytes that one worker of a run holds, by kind, from moment to moment: counted from the scenario and the spans.

parameters, gradients    what the worker keeps is there all the time. In sharded training a unit's gathered parameters
             are there from the gather's start to the end of the unit's forward or backward, and a unit's whole
             gradients from the backward's start to the end of their sum.
optimizer    its numbers are there all the time.
activations  grow evenly in forward, and shrink evenly in backward. A cancelled computation counts as a whole one, and
             work that a failure undid has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.memory import Division, Held, division, held_in_a_step
from distsim.policies import FlexRR
from distsim.trace import SpanKind, Spans, Trace

KINDS = tuple(field.name for field in fields(Held))
Change = tuple[float, float, float]  # bytes that come, or go, evenly from one second to another


@dataclass(frozen=True)
class MemoryOverTime:
    """What one worker holds; between neighbouring moments it changes evenly.

    time_seconds: the moments, each twice: right before, and right after what changes at once. held: the bytes of each
    kind then.
    """

    time_seconds: Floats
    held: dict[str, Floats]

    @cached_property
    def total(self) -> Floats:
        """Bytes of all kinds together."""
        total: Floats = np.sum([*self.held.values()], axis=0)
        return total


def held_over_time(trace: Trace, worker: int = 0, optimizer: str = "sgd") -> MemoryOverTime:
    """What `worker` holds from the start of the run to its end.

    trace: of a whole run, simulated or measured. optimizer: of `distsim.memory`. Activations are 0 without a profile.
    Raises InputError where the run has no such worker, the trace is a part of a run, and as `memory.held` does.

    >>> import distsim
    >>> run = distsim.example("synchronous_ring").replacing({"policy": {"kind": "sharded", "stage": 3}, "steps": 2})
    >>> found = held_over_time(distsim.simulate(run))
    >>> {kind: round(float(num_bytes.max() / run.gradient_bytes), 3) for kind, num_bytes in found.held.items()}
    {'parameters': 0.375, 'gradients': 0.375, 'optimizer': 0.0, 'activations': 0.0}
    """
    if worker not in range(trace.workers):
        raise InputError.of(
            "held_over_time(worker)", worker, f"is not a worker of this run, which has {trace.workers}", "take 0"
        )
    trace.check_whole("held_over_time(trace)")
    scenario = trace.scenario
    whole = held_in_a_step(scenario, worker, optimizer)
    spans = trace.spans.where(trace.spans.worker == worker).sorted()
    always: dict[str, float] = {kind: getattr(whole, kind) for kind in KINDS}
    changes: dict[str, list[Change]] = {kind: [] for kind in KINDS}
    always["activations"] = 0.0
    changes["activations"] = [*_activations(spans, whole.activations), *_in_pieces(trace, spans, whole.activations)]
    if divided := division(scenario):
        if divided.policy.stage == 3:
            frozen = profile.frozen_bytes if (profile := scenario.workload.profile) else 0
            always["parameters"], changes["parameters"] = divided.part + frozen, [*_gathered(spans, divided)]
        if divided.policy.stage >= 2:
            always["gradients"], changes["gradients"] = divided.part, [*_summed(spans, divided.units)]
    moments = [0.0, trace.total_seconds, *(one for kind in KINDS for change in changes[kind] for one in change[:2])]
    times = np.unique(moments)
    until = 2 * int((times <= trace.total_seconds).sum())  # some workers go on after the last update
    found = {kind: always[kind] + _course(times, changes[kind])[:until] for kind in KINDS}
    return MemoryOverTime(times.repeat(2)[:until], found)


def _course(times: Floats, changes: list[Change]) -> Floats:
    """The sum of all changes right before and right after each moment; those at once come together."""
    at_once, slope = np.zeros(len(times)), np.zeros(len(times))
    for start, end, num_bytes in changes:
        first, last = np.searchsorted(times, (start, end))
        if first == last:
            at_once[first] += num_bytes
        else:
            slope[first] += num_bytes / (end - start)
            slope[last] -= num_bytes / (end - start)
    evenly = np.concatenate([[0.0], np.cumsum(np.cumsum(slope)[:-1] * np.diff(times))])
    after = np.cumsum(at_once)
    found = np.stack([evenly + after - at_once, evenly + after], axis=1).ravel()
    return np.where(np.abs(found) < 1e-9 * sum(abs(num_bytes) for _, _, num_bytes in changes), 0.0, found)


def _activations(spans: Spans, num_bytes: float) -> Iterator[Change]:
    """The activations of each step come in its forwards and go in its backwards, in proportion to their times."""
    for kind, sign in ((SpanKind.FORWARD, 1.0), (SpanKind.BACKWARD, -1.0)):
        own = spans.of_kind(kind)
        seconds = own.end_seconds - own.start_seconds
        _, step = np.unique(own.step, return_inverse=True)
        count, together = np.bincount(step)[step], np.bincount(step, seconds)[step]
        shares = np.where(together > 0, seconds / np.where(together > 0, together, 1.0), 1.0 / count)
        columns = (own.start_seconds, own.end_seconds, sign * shares * num_bytes)
        yield from zip(*(column.tolist() for column in columns), strict=True)


def _in_pieces(trace: Trace, spans: Spans, num_bytes: float) -> Iterator[Change]:
    """The same where a trace does not divide a computation into forward and backward: of a batch, or a part of it."""
    workload, policy = trace.scenario.workload, trace.scenario.policy
    forward, profile = 1.0 - workload.backward_share, workload.profile
    if profile is not None and profile.backward_seconds:
        forward = profile.forward_seconds / (profile.forward_seconds + profile.backward_seconds)
    of_piece = num_bytes / (policy.items if isinstance(policy, FlexRR) else 1)
    own = spans.of_kind(SpanKind.COMPUTE)
    for start, end in zip(own.start_seconds.tolist(), own.end_seconds.tolist(), strict=True):
        middle = start + forward * (end - start)
        yield start, middle, of_piece
        yield middle, end, -of_piece


def _by_unit(spans: Spans, *kinds: SpanKind) -> dict[tuple[int, int, int], list[tuple[float, float]]]:
    """The starts and ends of a unit's spans, by kind, step and unit; a label ends with the unit's number."""
    found = defaultdict(list)
    own = spans.of_kind(*kinds)
    units = (int(label.split()[-1]) for label in own.label.tolist())
    for kind, step, unit, start, end in zip(
        own.kind.tolist(), own.step.tolist(), units, own.start_seconds.tolist(), own.end_seconds.tolist(), strict=True
    ):
        found[kind, step, unit].append((start, end))
    return found


def _gathered(spans: Spans, divided: Division) -> Iterator[Change]:
    """A unit's parameters, gathered for its forward and again for its backward, unless they stay in between."""
    units = divided.units
    found = _by_unit(spans, SpanKind.ALL_GATHER, SpanKind.FORWARD, SpanKind.BACKWARD)
    for (kind, step, unit), gathers in found.items():
        if kind != SpanKind.ALL_GATHER:
            continue
        in_forward, in_backward = (SpanKind.FORWARD, divided.in_forward[unit]), (SpanKind.BACKWARD, unit)
        stays = divided.stays(unit)
        for (start, _), (using, last) in zip(
            gathers, [in_backward] if stays else [in_forward, in_backward], strict=False
        ):
            yield start, start, units[unit]
            if uses := found.get((using, step, last)):
                yield uses[-1][1], uses[-1][1], -units[unit]


def _summed(spans: Spans, units: list[float]) -> Iterator[Change]:
    """A unit's gradients, whole from the start of its backward until they are summed."""
    found = _by_unit(spans, SpanKind.BACKWARD, SpanKind.REDUCE_SCATTER)
    for (kind, step, unit), pieces in found.items():
        if kind == SpanKind.BACKWARD:
            yield pieces[0][0], pieces[0][0], units[unit]
            if sums := found.get((SpanKind.REDUCE_SCATTER, step, unit)):
                yield sums[0][1], sums[0][1], -units[unit]
