"""What lab 01 asks of tasks.py. Contents, losses and counts are drawn anew for every run; only their owner has them.

What is asked of one call is asked of several, one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.grading import Finding, check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distsim.testbed import Run, Testbed

MORE_WORLDS = (5, 7)  # more ranks than two machines have; one of them beside one and two ranks
MANY_SAMPLES = 60_000  # as MNIST has
CALLS = 3
FILES = 2  # the last call is for the first file again
# Local ranks, by the GPUs of each machine.
MACHINES = {
    2: (0, 1, 0, 1),
    3: (0, 1, 0, 1),
    16: (0, 9, 10, 15),
    1: (0, 0),
    0: (0, 1),
}
SECONDS = 10.0  # of a download, and of writing a checkpoint
LATE_SECONDS = 1.0  # of rank 0, in every call but the first
LITTLE_SECONDS = 0.1  # barriers and a few messages on the testbed's links take less


@check(
    points=2,
    hint="Who tells a process its number, and what brings the processes together?",
    how="`dist.init_process_group(backend)` reads rank and world size from the environment.",
)
def ranks_and_world(testbed: Testbed) -> Finding:
    """In several worlds, so that no number can be written down; who has met knows all secrets."""
    for world, backend in ((1, "nccl"), (2, "mpi"), (_several(testbed), "gloo")):
        expected = f"each rank its own number, of {world}, and all in one group"
        numbers = [int(one) for one in testbed.rng.choice(10**9, world, replace=False)]
        run = testbed.run("start", arguments=[{"backend": backend, "secret": one} for one in numbers], start=False)
        if run.failure:
            return Finding.failed(run, expected)
        for rank, result in enumerate(run.results):
            met = [numbers.index(one) if one in numbers else "nobody knows whom" for one in result["met"].tolist()]
            if (result["rank"], result["world"], met) != (rank, world, list(range(world))):
                observed = f"rank {result['rank']!r} of {result['world']!r}, in a group with ranks {met}"
                right = f"rank {rank} of {world}, in a group with ranks {list(range(world))}"
                return Finding.of(observed=observed, expected=right, passed=False, where=f"rank {rank}")
            given = [note["backend"] for note in run.log.notes_of(rank, "init_process_group")]
            if given != [backend]:
                observed = f"init_process_group is called with {given}"
                where = f"rank {rank}, start({backend!r})"
                return Finding.of(observed=observed, expected=[backend], passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=1,
    hint="Which number has the first GPU of the second machine? And what if there is no GPU?",
    how="On a second machine, rank 5 may be local rank 1: the GPU's number is the local one, `LOCAL_RANK`.",
)
def device_of_the_local_rank(testbed: Testbed) -> Finding:
    """As if on two machines with two GPUs each, with three of which one is idle, with 16, with one, and without."""
    for gpus, local_ranks in MACHINES.items():
        run = testbed.run("own_device", arguments=[{"gpus": gpus, "local_rank": local} for local in local_ranks])
        expected = [f"cuda:{local}" if gpus else "cpu" for local in local_ranks]
        if run.failure:
            return Finding.failed(run, expected)
        observed = [result["device"] for result in run.results]
        if observed != expected:
            return Finding.of(observed=observed, expected=expected, passed=False, where=f"machines with {gpus} GPUs")
    return Finding.of(observed=observed, expected=expected, passed=True)


@check(
    points=2,
    hint="Try 7 samples and 3 ranks on paper: who has how many, and whose is the last one?",
    how="Let each rank begin at its own number and go on in steps of the world size.",
)
def samples_disjoint_complete_and_even(testbed: Testbed) -> Finding:
    """All counts from none to ten for each rank, in any order, one of many samples, and that one again."""
    for world in (1, 3, 4, 7):
        rest = int(testbed.rng.integers(1, max(world, 2)))
        counts = [*testbed.rng.permutation(10 * world + 1).tolist(), *2 * [MANY_SAMPLES // world * world + rest]]
        run = testbed.run("own_samples", arguments=[{"counts": counts}] * world)
        for number, count in enumerate(counts):
            expected = f"each of {count} samples once, in shares that differ by at most 1"
            if run.failure:
                return Finding.failed(run, expected)
            shares = [result[number] for result in run.results]
            taken = sorted(sample for share in shares for sample in share)
            sizes = [len(share) for share in shares]
            if taken != list(range(count)) or max(sizes) - min(sizes) > 1:
                missing, twice = count - len(set(taken) & set(range(count))), len(taken) - len(set(taken))
                observed = f"{missing} samples are nobody's, {twice} are given more than once, shares of {sizes}"
                where = f"{count} samples, world size {world}, call {number + 1}"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=2,
    hint="When may the others read, and how do they learn it? And which rank is the only one to download?",
    how="If rank 0: download. Then a barrier that every rank reaches. Then everybody reads.",
)
def one_download(testbed: Testbed) -> Finding:
    """Each rank's download would bring something else, so what a rank has read tells whose it was.

    One content of rank 0 is empty; the others have bytes that files of text would change.
    """
    contents = [[testbed.rng.bytes(64) + b"\r\n\0" for _ in range(CALLS)] for _ in range(_several(testbed))]
    contents[0][1] = b""
    late = [LATE_SECONDS] + [0.0] * (len(contents) - 1)
    arguments = [
        {"contents": own, "files": FILES, "seconds": SECONDS, "late": one}
        for own, one in zip(contents, late, strict=True)
    ]
    run = testbed.run("fetch", arguments=arguments, shared=True)
    expected = "one download in each call, by rank 0, and its whole content on every rank when it is over"
    if run.failure:
        return Finding.failed(run, expected)
    return _one_at_work(run, "download", contents[0], expected)


@check(
    points=2,
    hint="Which generators does `build` draw from, and in which state is each of them on each rank?",
    how="Seed torch, numpy and random alike on every rank before the model is built.",
)
def same_parameters(testbed: Testbed) -> Finding:
    """Ranks begin with generators in different states; a seed twice, and another, each as `build` builds its model."""
    seeds = 0, int(testbed.rng.integers(1, 10**6)), 0
    starts = _starts(testbed, seeds, 3)
    run = testbed.run("same_start", arguments=starts)
    expected = "the same parameters on every rank"
    if run.failure:
        return Finding.failed(run, expected)
    models = []  # without the secret
    for call, start in enumerate(starts[0]["calls"]):
        found = [result[call]["parameters"] for result in run.results]
        models.append(found[0][:-1])
        if not np.isclose(found[0][-1], start["secret"]) or len(np.unique(found[0])) < found[0].size:
            observed, where = "a model that `build` has not built", f"call {call + 1}"
            return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        for rank, parameters in enumerate(found):
            if not np.array_equal(parameters, found[0]):
                observed = (
                    f"{np.count_nonzero(parameters != found[0])} of {parameters.size} numbers differ from rank 0's"
                )
                where = f"rank {rank}, call {call + 1}"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    first, other, again = models
    for passed, observed in (
        (not np.array_equal(first, other), "the same model for two seeds"),
        (np.array_equal(first, again), "two models for the same seed"),
    ):
        if not passed:
            return Finding.of(observed=observed, expected="a model for each seed", passed=False)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=2,
    hint="In which state are the three generators when the model is built, and does it differ from rank to rank?",
    how="Seed again once the model is built, now with a number that differs from rank to rank.",
)
def own_random_numbers(testbed: Testbed) -> Finding:
    """What the three generators draw after the model was built, where all ranks began in one state, or each in its own.

    Processes that are forked begin in one state, others each in its own.
    """
    seeds = 0, int(testbed.rng.integers(10**6))
    starts = _starts(testbed, seeds, _several(testbed))
    for start in starts:
        start["calls"][-1]["state"] = starts[0]["calls"][-1]["state"]
    run = testbed.run("same_start", arguments=starts)
    expected = "numbers that differ from rank to rank, from torch, numpy and random"
    if run.failure:
        return Finding.failed(run, expected)
    for call in range(len(seeds)):
        for name in ("torch", "numpy", "random"):
            drawn = [float(number) for result in run.results for number in result[call][name]]
            if len(set(drawn)) < len(drawn):
                observed, where = f"{name} draws the same numbers on several ranks", f"call {call + 1}"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=2,
    hint="What does a rank find in the file if it goes on at once? And which rank is the only one to write?",
    how="If rank 0: write. Then a barrier, so that nobody goes on before the file is whole.",
)
def one_writer(testbed: Testbed) -> Finding:
    """Each rank would write something else; what is in the file when a rank goes on tells whose it was.

    One state of rank 0 is empty.
    """
    seal = testbed.rng.bytes(8)
    states = [[{"secret": float(state)} for state in testbed.rng.random(CALLS)] for _ in range(_several(testbed))]
    states[0][1] = {}
    late = [LATE_SECONDS] + [0.0] * (len(states) - 1)
    arguments = [
        {"states": own, "files": FILES, "seal": seal, "seconds": SECONDS, "late": one}
        for own, one in zip(states, late, strict=True)
    ]
    run = testbed.run("save", arguments=arguments, shared=True)
    expected = "one file, written in each call by rank 0, whole when any rank goes on"
    if run.failure:
        return Finding.failed(run, expected)
    return _one_at_work(run, "write", [seal + repr(state).encode() for state in states[0]], expected)


@check(
    points=2,
    hint="What does a rank know of the others' losses? And who needs the result?",
    how="Sum over all ranks with `all_reduce`, then divide by the world size.",
)
def mean_of_losses(testbed: Testbed) -> Finding:
    """Losses that only their own rank knows, of all sizes, also 0, nan and inf; alone, and on several machines."""
    for world in (1, 2, 7):
        losses = testbed.rng.uniform(1.0, 5.0, (world, 1)) * [1.0, 1.0, 1.0, 1.0, -1.0, 1e-9, 1e6]
        losses[-1, 1], losses[0, 2], losses[-1, 3] = 0.0, np.nan, np.inf
        run = testbed.run("mean_loss", arguments=[{"losses": own} for own in losses.tolist()])
        for call, mean in enumerate(losses.mean(axis=0)):
            if run.failure:
                return Finding.failed(run, "in each call the mean of all ranks' losses, also of 0, nan and inf")
            expected = f"{mean:.6g} on every rank, the mean of {', '.join(f'{loss:.6g}' for loss in losses[:, call])}"
            means = [result[call] for result in run.results]
            where = f"world size {world}, call {call + 1}"
            if not np.allclose(means, mean, rtol=1e-5, atol=0.0, equal_nan=True):
                observed = ", ".join(f"{one:.6g}" for one in means)
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
            if len(numbers := {repr(one) for one in means}) > 1:  # ranks that stop below some loss must stop together
                observed, expected = f"{' and '.join(sorted(numbers))}, by rank", "one number, to its last digit"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=means, expected=mean, passed=True)


def _starts(testbed: Testbed, seeds: Sequence[int], world: int) -> list[dict[str, Any]]:
    """The arguments of `same_start`, by rank: a call for each seed, with a secret and the state of all generators."""
    secrets = [float(secret) for secret in testbed.rng.random(len(seeds))]
    states = testbed.rng.choice(2**31, (world, len(seeds)), replace=False).tolist()
    return [
        {
            "calls": [
                {"seed": seed, "secret": secret, "state": state}
                for seed, secret, state in zip(seeds, secrets, own, strict=True)
            ]
        }
        for own in states
    ]


def _several(testbed: Testbed) -> int:
    """Ranks of several machines, an odd number."""
    return int(testbed.rng.choice(MORE_WORLDS))


def _one_at_work(run: Run, kind: str, rights: list[bytes], expected: str) -> Finding:
    """Rank 0 alone did each, once; every rank has what it made; and nobody waited for more than that."""
    ranks = [busy.rank for busy in run.log.busy if busy.kind == kind]
    observed = (
        f"{len(rights)} calls, the last one for a file that is there; {len(ranks)} times {kind}, by ranks {ranks}"
    )
    if set(ranks) - {0}:
        return Finding.of(observed=observed, expected=expected, passed=False)
    for rank, result in enumerate(run.results):
        for call, (contents, right) in enumerate(zip(result, rights, strict=True)):
            for content in contents:  # what was given back, and what is in the file
                if content != right:
                    part = f"when the call is over, {len(content)} of {len(right)} bytes are there"
                    told = part if right.startswith(content) else "other content"
                    where = f"rank {rank}, call {call + 1}"
                    return Finding.of(observed=told, expected=expected, passed=False, where=where)
    if len(ranks) != len(rights):
        return Finding.of(observed=observed, expected=expected, passed=False)
    late = run.seconds > len(rights) * (SECONDS + LITTLE_SECONDS) + (len(rights) - 1) * LATE_SECONDS
    observed = f"all ranks go on after {run.seconds:.2f} s; each of {len(rights)} calls of {kind} took {SECONDS:g} s"
    return Finding.of(observed=observed, expected=expected, passed=not late)
