"""What lab 01 asks of tasks.py. Contents, losses and counts are drawn anew for every run; only their owner has them."""

from __future__ import annotations

import random
import secrets
from typing import TYPE_CHECKING

import numpy as np

from distsim.grading import Finding, check

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed

SECONDS = 2.0  # of a download, and of writing a checkpoint
LITTLE_SECONDS = 0.1  # barriers and a few messages on the testbed's links take less


@check(points=2, hint="dist.init_process_group(backend) reads rank and world size from the environment.")
def ranks_and_world(testbed: Testbed) -> Finding:
    """With two and with three processes, so that no number can be written down."""
    for world in (2, 3):
        expected = f"ranks 0 to {world - 1} of {world}, all in one group"
        run = testbed.run("start", arguments=[{"backend": "gloo"}] * world, start=False)
        if run.failure:
            return Finding.failed(run, expected)
        for rank, result in enumerate(run.results):
            seen = (result["rank"], result["world"], list(result["met"]))
            if seen != (rank, world, list(range(world))):
                observed = f"rank {seen[0]} of {seen[1]}, in a group with ranks {[int(one) for one in seen[2]]}"
                return Finding.of(observed=observed, expected=expected, passed=False, where=f"rank {rank}")
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=1, hint="On a second machine, rank 5 may be local rank 1: the GPU's number is the local one.")
def device_of_the_local_rank(testbed: Testbed) -> Finding:
    """As if on two machines with two GPUs each, and on one without."""
    for gpus, local_ranks in ((2, (0, 1, 0, 1)), (0, (0, 1))):
        run = testbed.run("own_device", arguments=[{"gpus": gpus, "local_rank": local} for local in local_ranks])
        expected = [f"cuda:{local}" if gpus else "cpu" for local in local_ranks]
        if run.failure:
            return Finding.failed(run, expected)
        observed = [result["device"] for result in run.results]
        if observed != expected:
            return Finding.of(observed=observed, expected=expected, passed=False, where=f"machines with {gpus} GPUs")
    return Finding.of(observed=observed, expected=expected, passed=True)


@check(points=2, hint="Let each rank begin at its own number and go on in steps of the world size.")
def samples_disjoint_complete_and_even(testbed: Testbed) -> Finding:
    """Counts that the ranks do not divide, fewer samples than ranks, and none."""
    for world, count in (
        (3, random.randrange(100, 200) * 3 + 1),
        (4, random.randrange(50, 90) * 4 + 3),
        (3, 2),
        (2, 0),
    ):
        run = testbed.run("own_samples", arguments=[{"count": count}] * world)
        expected = f"each of {count} samples once, in shares that differ by at most 1"
        if run.failure:
            return Finding.failed(run, expected)
        shares = [result["samples"] for result in run.results]
        taken = sorted(sample for share in shares for sample in share)
        sizes = [len(share) for share in shares]
        if taken != list(range(count)) or max(sizes) - min(sizes) > 1:
            missing, twice = count - len(set(taken) & set(range(count))), len(taken) - len(set(taken))
            observed = f"{missing} samples are nobody's, {twice} are given more than once, shares of {sizes}"
            return Finding.of(
                observed=observed, expected=expected, passed=False, where=f"{count} samples, {world} ranks"
            )
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=2, hint="if rank 0: download. Then a barrier that every rank reaches. Then everybody reads.")
def one_download(testbed: Testbed) -> Finding:
    """Each rank's download would bring something else, so what a rank has read tells whose it was."""
    contents = [secrets.token_bytes(64) for _ in range(3)]
    arguments = [{"content": content, "seconds": SECONDS} for content in contents]
    run = testbed.run("fetch", arguments=arguments, shared=True)
    expected = "one download, by rank 0, and its whole content on every rank when it is over"
    if run.failure:
        return Finding.failed(run, expected)
    return _one_at_work(run, "download", [result["content"] for result in run.results], contents[0], expected)


@check(points=2, hint="Seed torch, numpy and random alike on every rank before the model is built.")
def same_parameters(testbed: Testbed) -> Finding:
    """Ranks begin with generators in different states; two seeds must give two models, each as `build` builds it."""
    models, secret = [], random.random()
    for seed in random.sample(range(10**6), 2):
        run = testbed.run("same_start", arguments=[{"seed": seed, "secret": secret}] * 3)
        expected = "the same parameters on every rank"
        if run.failure:
            return Finding.failed(run, expected)
        found = [result["parameters"] for result in run.results]
        models.append(found[0])
        if not np.isclose(found[0][-1], secret):
            return Finding.of(observed="a model that `build` has not built", expected=expected, passed=False)
        for rank, parameters in enumerate(found):
            if not np.array_equal(parameters, found[0]):
                observed = (
                    f"{np.count_nonzero(parameters != found[0])} of {parameters.size} numbers differ from rank 0's"
                )
                return Finding.of(observed=observed, expected=expected, passed=False, where=f"rank {rank}")
    passed = not np.array_equal(*models)
    observed = expected if passed else "the same model for two seeds"
    return Finding.of(observed=observed, expected=f"{expected}, and another model for another seed", passed=passed)


@check(points=2, hint="Seed again once the model is built, now with a number that differs from rank to rank.")
def own_random_numbers(testbed: Testbed) -> Finding:
    """What the three generators draw after the model was built."""
    run = testbed.run("same_start", arguments=[{"seed": random.randrange(10**6), "secret": 0.0}] * 3)
    expected = "numbers that differ from rank to rank, from torch, numpy and random"
    if run.failure:
        return Finding.failed(run, expected)
    for name in ("torch", "numpy", "random"):
        drawn = {tuple(float(number) for number in result[name]) for result in run.results}
        if len(drawn) < len(run.results):
            observed = f"{name} draws the same numbers on several ranks"
            return Finding.of(observed=observed, expected=expected, passed=False)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=2, hint="if rank 0: write. Then a barrier, so that nobody goes on before the file is whole.")
def one_writer(testbed: Testbed) -> Finding:
    """Each rank would write something else; what is in the file when a rank goes on tells whose it was."""
    states = [random.random() for _ in range(3)]
    run = testbed.run("save", arguments=[{"secret": state, "seconds": SECONDS} for state in states], shared=True)
    expected = "one file, written by rank 0, whole when any rank goes on"
    if run.failure:
        return Finding.failed(run, expected)
    contents = [result["content"] for result in run.results]
    return _one_at_work(run, "write", contents, repr(states[0]).encode(), expected)


@check(points=2, hint="Sum over all ranks with all_reduce, then divide by the world size.")
def mean_of_losses(testbed: Testbed) -> Finding:
    """Losses that only their own rank knows."""
    for world in (2, 3):
        losses = [random.uniform(1.0, 5.0) for _ in range(world)]
        mean = sum(losses) / world
        run = testbed.run("mean_loss", arguments=[{"loss": loss} for loss in losses])
        if run.failure:
            return Finding.failed(run, f"{mean:.6f} on every rank")
        means = [result["mean"] for result in run.results]
        if not np.allclose(means, mean, rtol=1e-5):
            observed = ", ".join(f"{one:.6f}" for one in means)
            expected = f"{mean:.6f} on every rank, the mean of {', '.join(f'{loss:.6f}' for loss in losses)}"
            return Finding.of(observed=observed, expected=expected, passed=False, where=f"{world} ranks")
    return Finding.of(observed=means, expected=mean, passed=True)


def _one_at_work(run: Run, kind: str, contents: list[bytes], right: bytes, expected: str) -> Finding:
    """Rank 0 alone did it, once; every rank has what it made; and nobody waited for more than that."""
    ranks = [busy.rank for busy in run.log.busy if busy.kind == kind]
    if ranks != [0]:
        return Finding.of(observed=f"a {kind} by ranks {ranks}", expected=expected, passed=False)
    for rank, content in enumerate(contents):
        if content != right:
            observed = f"{len(content)} of {len(right)} bytes" if right.startswith(content) else "other content"
            return Finding.of(observed=observed, expected=expected, passed=False, where=f"rank {rank}")
    late = run.seconds > SECONDS + LITTLE_SECONDS
    observed = f"all ranks go on after {run.seconds:.2f} s; the {kind} took {SECONDS:g} s"
    return Finding.of(observed=observed, expected=expected, passed=not late)
