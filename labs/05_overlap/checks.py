"""What lab 05 asks of tasks.py. Weights, batches and sizes are drawn anew for every run."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.data_parallel import data_parallel_step
from distsim.theory.overlap import bucket_ready_seconds, overlapped_step_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distsim.testbed import Run, Testbed

LAYERS, WIDTH = 6, 8
LAYER_BYTES = WIDTH * WIDTH * 8
SECONDS = 0.050  # of a layer's backward
TOLERANCE = 1e-9
Arrays = list[Any]


@check(points=2, hint="Go through the parameters backwards; close a bucket once it holds bucket_bytes or more.")
def buckets_in_the_order_of_backward(testbed: Testbed) -> Finding:
    """Parameters of many sizes, some frozen; one bucket for all, and one for each."""
    cases = [
        {
            "sizes": [random.randrange(1, 50) for _ in range(12)],
            "frozen": random.sample(range(12), 4),
            "bucket_bytes": bucket_bytes,
        }
        for bucket_bytes in (1, random.randrange(200, 300), 10**6)
    ]
    cases.append({"sizes": [3, 4], "frozen": [0, 1], "bucket_bytes": 8})
    for case in cases:
        expected = _buckets(**case)
        run = testbed.run("buckets", arguments=[case])
        if run.failure:
            return Finding.failed(run, expected)
        if (observed := run.results[0]["buckets"]) != expected:
            where = f"float32 sizes {case['sizes']}, frozen {sorted(case['frozen'])}, {case['bucket_bytes']} bytes"
            return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed="as asked", expected="as asked", passed=True)


@check(points=3, hint="Sum with all_reduce, divide by the world size, and write the result back into each .grad.")
def gradients_are_the_mean(testbed: Testbed) -> Finding:
    """Three steps on two and three ranks, with frozen layers, against each rank's own gradients averaged by us."""
    for world in (2, 3):
        frozen = random.sample(range(1, LAYERS), 2)
        arguments = _arguments(world, steps=3, frozen=frozen, bucket_bytes=2 * LAYER_BYTES)
        if (finding := _compared(testbed, arguments)) is not None:
            return finding
    return _fine("the mean over all ranks in every .grad, after every step")


@check(points=2, hint="Send a bucket in finish() if a gradient of it never came; what is missing counts as zero.")
def layers_that_a_rank_does_not_use(testbed: Testbed) -> Finding:
    """Each rank leaves out another layer: it has no gradient there, and the others have."""
    arguments = _arguments(3, steps=2, bucket_bytes=2 * LAYER_BYTES)
    for given, skipped in zip(arguments, random.sample(range(LAYERS), 3), strict=True):
        given["skipped"] = [skipped]
    if (finding := _compared(testbed, arguments)) is not None:
        return finding
    return _fine("the mean over all ranks, also of layers that one of them does not use")


@check(points=2, hint="One all_reduce for each bucket and step, of one flat tensor of the bucket's gradients.")
def one_all_reduce_for_each_bucket(testbed: Testbed) -> Finding:
    """The collectives that the network has seen, and their bytes."""
    frozen = [random.randrange(1, LAYERS)]
    arguments = _arguments(2, steps=2, frozen=frozen, bucket_bytes=2 * LAYER_BYTES)
    run = testbed.run("train", arguments=arguments)
    sizes = [len(bucket) * LAYER_BYTES for bucket in _buckets([WIDTH * WIDTH] * LAYERS, frozen, 2 * LAYER_BYTES, 8)]
    expected = f"2 steps, each with an all_reduce of {', '.join(map(str, sizes))} bytes"
    if run.failure:
        return Finding.failed(run, expected)
    seen = [(entry.kind, entry.num_bytes) for entry in run.log.collectives]
    passed = seen == [("all_reduce", size) for size in sizes * 2] and not run.log.messages
    observed = f"{len(run.log.messages)} messages, " + ", ".join(f"{kind} of {size} bytes" for kind, size in seen)
    return Finding.of(observed=observed, expected=expected, passed=passed)


@check(points=3, hint="all_reduce(..., async_op=True) in the hook, and wait() in finish() alone.")
def communication_beside_backward(testbed: Testbed) -> Finding:
    """The step's time against the formula: buckets travel one after the other, each from when it is whole."""
    for layers_in_bucket in (1, 2, 3):
        arguments = _arguments(4, steps=1, bucket_bytes=layers_in_bucket * LAYER_BYTES, seconds=SECONDS)
        links = Cluster.model_validate({"workers": 4, "bandwidth": "40 kB/s", "latency": "1 ms"})
        run = testbed.run("train", arguments=arguments, cluster=links)
        size = layers_in_bucket * LAYER_BYTES
        each = ring_all_reduce_seconds(size, 4, links.bandwidth_bytes_per_second, links.latency_seconds)
        buckets = LAYERS // layers_in_bucket
        ready = bucket_ready_seconds(0.0, LAYERS * SECONDS, [layers_in_bucket] * buckets)
        step = overlapped_step_seconds(ready, [each] * buckets)
        alone = LAYERS * SECONDS + buckets * each
        expected = f"{1e3 * step:.1f} ms; {1e3 * alone:.1f} ms without overlap"
        if run.failure:
            return Finding.failed(run, expected)
        if reason := _other_times(run, ready):
            return Finding.of(observed=reason, expected=expected, passed=False, where=f"{buckets} buckets, 4 ranks")
        if abs(run.seconds - step) > 1e-6:
            share = (alone - run.seconds) / (alone - step)
            observed = f"{1e3 * run.seconds:.1f} ms: {share:.0%} of the overlap that there could be"
            where = f"{buckets} buckets, 4 ranks"
            return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=2, hint="Inside no_sync nothing is sent; gradients add up in .grad until the next synchronized backward.")
def nothing_is_sent_inside_no_sync(testbed: Testbed) -> Finding:
    """Two updates of three batches each: as many all-reduces as for one batch, and the mean of the sums."""
    arguments = _arguments(2, steps=6, accumulate=3, bucket_bytes=3 * LAYER_BYTES)
    if (finding := _compared(testbed, arguments)) is not None:
        return finding
    run = testbed.run("train", arguments=arguments)
    expected = "4 all_reduces for 2 updates of 3 batches, in 2 buckets"
    observed = f"{len(run.log.collectives)} collectives"
    return Finding.of(observed=observed, expected=expected, passed=len(run.log.collectives) == 4)


@check(points=2, hint="Copies and gradients of all other devices go through one link; only launching is serial.")
def prediction_of_data_parallel(testbed: Testbed) -> Finding:
    """One device, and cases in which the interpreter or the device is the slower one."""
    cases = [
        {
            "devices": devices,
            "forward": random.uniform(0.01, 0.05),
            "backward": random.uniform(0.02, 0.1),
            "model_bytes": random.uniform(1e6, 1e8),
            "bytes_per_second": random.uniform(1e9, 1e10),
            "interpreter": interpreter,
        }
        for devices, interpreter in ((1, 0.001), (4, 0.001), (8, random.uniform(0.01, 0.02)), (2, 0.0))
    ]
    expected = [_data_parallel(**case) for case in cases]
    run = testbed.run("data_parallel", arguments=[{"cases": cases}])
    if run.failure:
        return Finding.failed(run, _milliseconds(expected))
    observed = run.results[0]["seconds"]
    passed = np.allclose(observed, expected, rtol=1e-6)
    where = "" if passed else "1, 4, 8 and 2 devices"
    return Finding.of(observed=_milliseconds(observed), expected=_milliseconds(expected), passed=passed, where=where)


def _other_times(run: Run, ready: Sequence[float]) -> str | None:
    """What is wrong with when ranks computed, or when they began a bucket; None where nothing is.

    The time of a step alone could be made up by a rank that leaves out its computing, and waits in the end.
    """
    layers = [SECONDS * number for number in range(LAYERS + 1)]
    for rank in range(4):
        own = [busy for busy in run.log.busy if busy.rank == rank]
        spans = [0.0, *(busy.end_seconds for busy in own)]
        if len(own) != LAYERS or not np.allclose(spans, layers, atol=1e-6):
            return f"rank {rank} does not compute its {LAYERS} layers one right after the other"
        posted = [entry.posted_seconds[rank] for entry in run.log.collectives if entry.kind == "all_reduce"]
        if len(posted) == len(ready) and not np.allclose(posted, ready, atol=1e-6):
            told = ", ".join(f"{1e3 * seconds:.0f} ms" for seconds in posted)
            return f"rank {rank} begins its all-reduces at {told}"
    return None


def _arguments(world: int, *, steps: int, bucket_bytes: int, **options: Any) -> list[dict[str, Any]]:
    """The same weights for all ranks, and batches that only their rank knows."""
    generator = np.random.default_rng()
    weights = [generator.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5 for _ in range(LAYERS)]
    return [
        {
            "weights": weights,
            "inputs": [generator.normal(size=(4, WIDTH)) for _ in range(steps)],
            "bucket_bytes": bucket_bytes,
            **options,
        }
        for _ in range(world)
    ]


def _compared(testbed: Testbed, arguments: list[dict[str, Any]]) -> Finding | None:
    """What is wrong with the gradients of the student's ranks, if anything."""
    expected = f"the mean over {len(arguments)} ranks in every .grad"
    run = testbed.run("train", arguments=arguments)
    if run.failure:
        return Finding.failed(run, expected)
    alone = testbed.run("train", arguments=arguments, student=False)
    for rank, result in enumerate(run.results):
        for step, gradients in enumerate(result["gradients"]):
            for layer, gradient in enumerate(gradients):
                mean = _mean(alone, step, layer)
                if not _close(gradient, mean):
                    where = f"rank {rank}, update {step}, layer {layer}"
                    return Finding.of(observed=_told(gradient, mean), expected=expected, passed=False, where=where)
    return None


def _mean(alone: Run, step: int, layer: int) -> Any:
    """Of the ranks' own gradients, where a missing one counts as zero; None where the layer is frozen."""
    own = [result["gradients"][step][layer] for result in alone.results]
    there = [gradient for gradient in own if gradient is not None]
    return sum(there) / len(own) if there else None


def _close(gradient: Any, mean: Any) -> bool:
    if mean is None or gradient is None:
        return gradient is None and mean is None
    return gradient.shape == mean.shape and np.allclose(gradient, mean, rtol=TOLERANCE, atol=TOLERANCE)


def _told(gradient: Any, mean: Any) -> str:
    if gradient is None:
        return "no gradient"
    if mean is None:
        return "a gradient for a frozen layer"
    ratio = np.linalg.norm(gradient) / np.linalg.norm(mean)
    return f"a gradient whose length is {ratio:.3g} times the mean's"


def _buckets(sizes: list[int], frozen: list[int], bucket_bytes: int, item_bytes: int = 4) -> Arrays:
    """As make_buckets should make them: numbers of parameters."""
    found: Arrays = []
    held = bucket_bytes
    for number in reversed(range(len(sizes))):
        if number in frozen:
            continue
        if bucket_bytes <= held:
            found.append([])
            held = 0
        found[-1].append(number)
        held += sizes[number] * item_bytes
    return found


def _data_parallel(
    devices: int, forward: float, backward: float, model_bytes: float, bytes_per_second: float, interpreter: float
) -> float:
    return data_parallel_step(
        devices, forward, backward, model_bytes, 0.0, 0.0, bytes_per_second, 0.0, interpreter
    ).seconds


def _milliseconds(seconds: list[float]) -> str:
    return ", ".join(f"{1e3 * one:.2f} ms" for one in seconds)


def _fine(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)
