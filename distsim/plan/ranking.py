"""Ways to train, simulated and ranked by the time or the price of a sample; the frontier and the verdict in words.

Steps take the times of the profile, without stragglers. What does not fit into memory is not simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import replace
from typing import Literal

from distsim.errors import InputError
from distsim.metrics import summary
from distsim.plan.ways import Way
from distsim.policies import Pipeline
from distsim.simulation import simulate
from distsim.units import show

NEAR = 1.01  # times the best: predictions are not that precise

By = Literal["time", "price"]  # of a sample


def simulated(way: Way) -> Way:
    """The way with its times."""
    found = summary(simulate(way.scenario))
    steps = found.step_seconds
    assert steps is not None, "a run has several steps"
    return replace(way, seconds_per_sample=steps.median / way.samples, exposed_share=found.exposed_communication_share)


def plan(
    found: Sequence[Way], executor: Executor | None = None, tell: Callable[[int, int], object] | None = None
) -> Iterator[Way]:
    """Simulates those of `found` that fit, and yields each as soon as it is there; the others come first.

    executor: where to simulate; None: here. tell: called with how many are done, and of how many.
    """
    fitting = [way for way in found if not (way.missing_bytes or way.untried)]
    yield from (way for way in found if way.missing_bytes or way.untried)
    if executor is None:
        done: Iterator[Way] = map(simulated, fitting)
    else:
        done = (one.result() for one in as_completed([executor.submit(simulated, way) for way in fitting]))
    for number, way in enumerate(done, start=1):
        if tell is not None:
            tell(number, len(fitting))
        yield way


def ranked(found: Sequence[Way], by: By = "time") -> list[Way]:
    """The simulated ways, those with the least time, or price, of a sample first.

    Of equal ones, the one that holds less comes first, and then the one with fewer settings.
    """
    known = [(round_off(value), way) for way in found if (value := value_of(way, by)) is not None]
    known.sort(key=lambda pair: (pair[0], pair[1].held.total, len(pair[1].name), pair[1].name))
    return [way for _, way in known]


def value_of(way: Way, by: By) -> float | None:
    """What ways are ranked by: the time or the price of a sample."""
    return way.seconds_per_sample if by == "time" else way.price_per_sample


def distinct(order: Sequence[Way]) -> list[Way]:
    """The first of those in `order` that take the same time and memory, such as buckets that hold one layer each."""
    first: dict[tuple[float, float], Way] = {}
    for way in order:
        first.setdefault((round_off(way.seconds_per_sample or 0.0), round_off(way.held.total)), way)
    return list(first.values())


def round_off(value: float) -> float:
    """Twelve digits: times that differ by less are equal but for rounding."""
    return float(f"{value:.12g}")


def frontier(found: Sequence[Way], by: By = "time") -> list[Way]:
    """The ways that no other beats both in time, or price, and in memory; the fastest, or cheapest, first."""
    best: list[Way] = []
    for way in ranked(found, by):
        if not best or way.held.total < best[-1].held.total:
            best.append(way)
    return best


def verdict(found: Sequence[Way], by: By = "time") -> str:
    """The winner, the runner-up and the reason, in words. Raises InputError where nothing fits or was simulated."""
    order, large = ranked(found, by), [way for way in found if way.missing_bytes]
    if not order and not large:
        raise InputError("the plan has no way that was simulated. Cure: plan for fewer workers")
    if not order:
        least = min(large, key=lambda way: way.missing_bytes)
        room = least.held.total - least.missing_bytes
        cures = ["take devices with more memory", "profile a smaller batch"]
        if least.held.activations < room:
            cures.insert(1, "take more of them")
        if not any(isinstance(way.scenario.policy, Pipeline) for way in found):
            cures.append("add --activation, for pipelines")
        raise InputError.of(
            "--memory", show(room, "byte"),
            f"is too little for every way: {least.name} needs least, and lacks {show(least.missing_bytes, 'byte')}",
            f"{', '.join(cures[:-1])}, or {cures[-1]}",
        )  # fmt: skip
    winner, best = order[0], round_off(value_of(order[0], by) or 0.0)
    told = {
        "time": f"Fastest: {winner.name}, with {show(winner.seconds_per_sample or 0.0, 'second')} a sample",
        "price": f"Cheapest: {winner.name}, a million samples cost {1e6 * (winner.price_per_sample or 0.0):.4g}",
    }[by]
    others = [way for way in order if round_off(value_of(way, by) or 0.0) > best]
    if not others:
        return f"{told}."
    second, ratio = others[0], (value_of(others[0], by) or 0.0) / best
    told += f". Next: {second.name}, {_more(ratio, by)}"
    if ratio < NEAR:
        return f"{told}, too near to tell which is {'faster' if by == 'time' else 'cheaper'} in a real run."
    if second.scenario.cluster.workers != winner.scenario.cluster.workers:
        return f"{told}, on fewer workers." if second.samples < winner.samples else f"{told}, on more workers."
    return f"{told}: {_reason(winner, second)}."


def _reason(winner: Way, second: Way) -> str:
    """The part of a sample's time that differs most to the winner's advantage."""
    (exposed, rest), (exposed_of_second, rest_of_second) = _parts(winner), _parts(second)
    if exposed_of_second - exposed >= rest_of_second - rest:
        what, least, more = "communication that nothing hides takes", exposed, exposed_of_second
    else:
        what, least, more = "computing and waiting take", rest, rest_of_second
    return f"{what} {show(least, 'second')} of a sample against {show(more, 'second')}"


def _parts(way: Way) -> tuple[float, float]:
    """Seconds of a sample: communication that nothing hides, and the rest."""
    assert way.seconds_per_sample is not None and way.exposed_share is not None
    exposed = way.exposed_share * way.seconds_per_sample
    return exposed, way.seconds_per_sample - exposed


def _more(ratio: float, by: By) -> str:
    """How much more than the winner, such as "3 % slower" or "12.5 times the price"."""
    if ratio >= 2.0:
        return f"{ratio:.3g} times the {by}" if ratio < 1000.0 else f"more than 1000 times the {by}"
    return f"{100 * (ratio - 1.0):.3g} % {'slower' if by == 'time' else 'dearer'}"
