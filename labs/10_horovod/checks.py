"""What lab 10 asks of tasks.py. Tensors, batches, starts and images are drawn anew; only their owner has them."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.learning.digits import digits
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.overlap import bucket_ready_seconds, overlapped_step_seconds

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed

Array = NDArray[np.float64]

CLOSE = 1e-9  # double precision loses far less, the smallest mistake far more
SINGLE_CLOSE = 1e-5
LAYERS, WIDTH = 6, 8  # of the model of layers
LAYER_BYTES = WIDTH * WIDTH * 8
SMALL_WIDTH = 6  # of the network with tied, frozen and special layers
SECONDS = 0.050  # of a layer's backward
OPTIMIZERS = ("SGD with momentum", "Adam")  # sums in place of means pass under Adam, means of parameters under SGD
RATE = 0.1  # of its optimizer
BYTES_PER_SECOND = 1e6
PADDING_BYTES = 100.0  # so that tensors can be cut into pieces of one size
BEGUN = 1  # epoch that the checkpoint of the script is from
EPOCHS = 3  # of the script, with that one


@check(points=1, hint="dist.init_process_group() reads RANK and WORLD_SIZE; LOCAL_RANK is in the environment too.")
def places(testbed: Testbed) -> Finding:
    """On one machine, and as if on two; `init` twice, as a notebook may call it; who has met knows all secrets."""
    for local_ranks in ((0, 1), (0, 1, 0, 1), (0, 0, 1)):
        world = len(local_ranks)
        numbers = random.sample(range(10**9), world)
        arguments = [
            {"local_rank": local, "local_size": max(local_ranks) + 1, "secret": number}
            for local, number in zip(local_ranks, numbers, strict=True)
        ]
        run = testbed.run("places", arguments=arguments, start=False)
        expected = [_place(rank, world, local, range(world)) for rank, local in enumerate(local_ranks)]
        if run.failure:
            return Finding.failed(run, expected[0])
        for rank, result in enumerate(run.results):
            met = [numbers.index(one) if one in numbers else "nobody knows whom" for one in result["met"].tolist()]
            observed = _place(result["rank"], result["size"], result["local_rank"], met)
            if observed != expected[rank]:
                where = f"rank {rank} of {world}"
                return Finding.of(observed=observed, expected=expected[rank], passed=False, where=where)
    return Finding.of(observed=expected[0], expected=expected[0], passed=True)


@check(points=2, hint="all_reduce a copy of the tensor, and divide the sum by size() unless op is Sum.")
def mean_and_sum(testbed: Testbed) -> Finding:
    """Numbers and matrices of two types, on the testbed and on gloo; and, without latency, the bytes on a link."""
    shapes = [(), (30, 40), (5,)]
    for world, backend, kind in (
        (2, "testbed", "mean"), (3, "testbed", "sum"), (4, "testbed", "mean"), (3, "gloo", "mean"),
    ):  # fmt: skip
        given = [[_normal(shape) for shape in shapes] for _ in range(world)]
        for own in given:
            own[-1] = own[-1].astype(np.float32)
        links = {"workers": world, "bandwidth": f"{BYTES_PER_SECOND} B/s", "latency": "0 s"}
        run = testbed.run(
            "allreduce",
            arguments=[{"tensors": own, "total": kind == "sum"} for own in given],
            backend=backend,
            cluster=Cluster.model_validate(links),
        )
        expected = f"a new tensor with the {kind} of all ranks' tensors, and those as they were"
        if run.failure:
            return Finding.failed(run, expected)
        added = [np.sum([own[place].astype(np.float64) for own in given], axis=0) for place in range(len(shapes))]
        right = [total / world if kind == "mean" else total for total in added]
        for rank, result in enumerate(run.results):
            if observed := _about_tensors(result, given[rank], right):
                where = f"rank {rank} of {world}"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        num_bytes = sum(own.nbytes for own in given[0])
        needed = BYTES_PER_SECOND * ring_all_reduce_seconds(num_bytes, world, BYTES_PER_SECOND, 0.0)
        carried = BYTES_PER_SECOND * run.seconds
        if backend == "testbed" and abs(carried - needed) > PADDING_BYTES:
            observed = f"{carried:,.0f} bytes on the busiest link"
            expected = f"{needed:,.0f} bytes on each link, as a ring needs for {num_bytes:,} bytes"
            return Finding.of(observed=observed, expected=expected, passed=False, where=f"{world} ranks")
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=2, hint="dict(params) takes both forms; go through the names in sorted order and dist.broadcast each.")
def parameters_of_the_root(testbed: Testbed) -> Finding:
    """A model with a frozen weight and buffers of three types; names in another order on each rank; other roots."""
    for world, root, state_dict, backend in (
        (2, 0, True, "testbed"), (3, 2, True, "testbed"), (3, 1, False, "testbed"), (3, 1, True, "gloo"),
    ):  # fmt: skip
        states = [_state() for _ in range(world)]
        names = 6 if state_dict else 3
        arguments = [
            {**state, "root": root, "order": random.sample(range(names), names), "state_dict": state_dict}
            for state in states
        ]
        run = testbed.run("broadcast_parameters", arguments=arguments, backend=backend)
        given = "state_dict()" if state_dict else "named_parameters()"
        expected = f"the tensors of rank {root} in those of every rank, by their names"
        if run.failure:
            return Finding.failed(run, expected)
        for rank, result in enumerate(run.results):
            for kind in ("weights", "buffers"):
                source = states[root] if state_dict or kind == "weights" else states[rank]
                for place, (found, right) in enumerate(zip(result[kind], source[kind], strict=True)):
                    if found.dtype != right.dtype or not np.array_equal(found, right):
                        kept = np.array_equal(found, states[rank][kind][place])
                        observed = f"{kind[:-1]} {place} ({right.dtype}) {'is still its own' if kept else 'is other'}"
                        where = f"rank {rank} of {world}, root {root}, {given}"
                        return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=3, hint="state_dict() has both; broadcast_object_list sends it, load_state_dict takes it.")
def optimizer_state_of_the_root(testbed: Testbed) -> Finding:
    """State on the root alone, on all ranks, and on all but the root; then every rank makes one more step."""
    shapes = [(3, 4), (5,), ()]
    sgd, adam = OPTIMIZERS
    for optimizer, made_steps, root in (
        (sgd, (2, 0, 0), 0), (adam, (1, 3, 2), 1), (sgd, (2, 1, 0), 2), (adam, (2, 0, 1), 0),
    ):  # fmt: skip
        following = [_normal(shape) for shape in shapes]
        arguments = [
            {
                "optimizer": optimizer, "rate": random.uniform(0.05, 0.5), "root": root,
                "gradients": [*([_normal(shape) for shape in shapes] for _ in range(steps)), following],
            }
            for steps in made_steps
        ]  # fmt: skip
        run = testbed.run("optimizer_state", arguments=arguments)
        expected = f"state and settings of rank {root} on every rank, so that all make the same step"
        if run.failure:
            return Finding.failed(run, expected)
        alone = testbed.run("optimizer_state", arguments=arguments, student=False)
        for rank, result in enumerate(run.results):
            observed = _about_state(result, alone.results[root], alone.results[rank])
            if observed:
                where = f"rank {rank}, {optimizer}, after {_listed(made_steps)} steps on ranks 0 to 2"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=3, hint="Sum each .grad with all_reduce, divide by size(), and only then call the class's own step.")
def steps_as_one_process(testbed: Testbed) -> Finding:
    """Tied, frozen and unused parameters, two groups, state from before, changing rates; after every step."""
    for world, optimizer in zip((2, 3), OPTIMIZERS, strict=True):
        seed = secrets.randbelow(2**31)
        earlier = [_normal((4, SMALL_WIDTH)), _normal((4, SMALL_WIDTH))]
        parts = [_parts(world) for _ in range(4)]
        run = testbed.run(
            "steps",
            arguments=[
                {
                    "optimizer": optimizer, "seed": seed, "earlier": earlier,
                    "inputs": [part[rank][0] for part in parts], "targets": [part[rank][1] for part in parts],
                }
                for rank in range(world)
            ],
        )  # fmt: skip
        expected = "on every rank, after every step, the parameters of one process with the joined batch"
        if run.failure:
            return Finding.failed(run, expected)
        joined = {
            "optimizer": optimizer, "seed": seed, "earlier": earlier,
            "inputs": [np.concatenate([inputs for inputs, _ in part]) for part in parts],
            "targets": [np.concatenate([targets for _, targets in part]) for part in parts],
        }  # fmt: skip
        alone = testbed.run("steps", arguments=[joined], student=False).results[0]
        for rank, result in enumerate(run.results):
            where = f"rank {rank} of {world}, {optimizer}"
            if not result["same_class"]:
                observed = f"DistributedOptimizer returns no {optimizer.split()[0]}"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
            observed = _about_states(result["states"], alone["states"], alone["names"])
            if observed:
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=3, hint="In the hook, all_reduce(..., async_op=True) whoever is next; wait() in synchronize alone.")
def exchanges_beside_backward(testbed: Testbed) -> Finding:
    """When each gradient leaves and how long a step takes, against the formula; on fast and on slow links."""
    for bandwidth in ("40 kB/s", "10 kB/s"):
        cluster = Cluster.model_validate({"workers": 4, "bandwidth": bandwidth, "latency": "1 ms"})
        weights = _weights()
        arguments = [
            {"weights": weights, "inputs": _normal((4, WIDTH)), "seconds": SECONDS} for _ in range(cluster.workers)
        ]
        run = testbed.run("overlap", arguments=arguments, cluster=cluster)
        each = ring_all_reduce_seconds(LAYER_BYTES, 4, cluster.bandwidth_bytes_per_second, cluster.latency_seconds)
        ready = [float(seconds) for seconds in bucket_ready_seconds(0.0, LAYERS * SECONDS, [1] * LAYERS)]
        step = overlapped_step_seconds(ready, [each] * LAYERS)
        expected = f"{1e3 * step:.1f} ms, all-reduces that begin at {_milliseconds(ready)}"
        if run.failure:
            return Finding.failed(run, expected)
        where = f"4 ranks, {LAYERS} layers, links of {bandwidth}"
        if reason := _other_times(run, ready):
            return Finding.of(observed=reason, expected=expected, passed=False, where=where)
        if abs(run.seconds - step) > 1e-6:
            observed = f"{1e3 * run.seconds:.1f} ms"
            return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        if not all(result["refused"] for result in run.results):
            observed = "zero_grad goes through while gradients are being exchanged"
            return Finding.of(observed=observed, expected="an AssertionError", passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=2, hint="synchronize once for each update: step leaves it out inside of skip_synchronize.")
def one_exchange_for_each_update(testbed: Testbed) -> Finding:
    """With and without clipping, with one and with three backwards for an update; some layers stay at home."""
    for world, passes in ((2, 1), (3, 3)):
        clips = [random.uniform(0.05, 0.1), 0.0]
        frozen, other = random.sample(range(1, LAYERS), 2)
        weights = _weights()
        arguments = [
            {
                "weights": weights, "inputs": [_normal((4, WIDTH)) for _ in range(2 * passes)], "passes": passes,
                "clips": clips, "frozen": [frozen], "others": [other],
            }
            for _ in range(world)
        ]  # fmt: skip
        run = testbed.run("updates", arguments=arguments)
        where = f"{world} ranks, {passes} backwards for each update; the first update clips"
        expected = "the mean of all ranks' sums in every .grad, and the step that it makes"
        if run.failure:
            return Finding.failed(run, expected)
        if observed := _about_updates(testbed, run, arguments):
            return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        exchanges = 2 * (LAYERS - 2)
        expected = f"{exchanges} all-reduces of {LAYER_BYTES} bytes: one for each trained layer and update"
        seen = [(entry.kind, entry.num_bytes) for entry in run.log.collectives]
        if seen != [("all_reduce", LAYER_BYTES)] * exchanges or run.log.messages:
            num_bytes = sum(size for _, size in seen)
            observed = f"{len(seen)} collectives of {num_bytes} bytes together, {len(run.log.messages)} messages"
            return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=4, hint="The checks above see each function by itself: get them first.")
def the_training_script(testbed: Testbed) -> Finding:
    """train.py on digits, from a checkpoint that rank 0 alone has. Images that a rank never takes are NaN there."""
    for world, clip, backend in ((2, 0.0, "testbed"), (4, 0.5, "testbed"), (2, 0.5, "gloo")):
        case = _Script(world, clip)
        shares = testbed.run("shares", arguments=case.of_samplers(), student=False)
        arguments = case.of_ranks([result["samples"] for result in shares.results])
        run = testbed.run("script", arguments=arguments, start=False, backend=backend)
        expected = (
            "on every rank, in every batch, the parameters of one process with the joined batch; its test results"
        )
        if run.failure:
            return Finding.failed(run, expected)
        alone = testbed.run("script", arguments=[case.of_one_process()], student=False, start=False).results[0]
        for rank, result in enumerate(run.results):
            where = f"rank {rank} of {world}, {'clipping' if clip else 'no clipping'}, {backend}"
            observed = _about_states(result["states"], alone["states"], before=True)
            if not observed and not _close(np.asarray(result["history"]), np.asarray(alone["history"])):
                found, right = _first(result["history"]), _first(alone["history"])
                observed = f"test loss and accuracy of the epochs: {found}; one process has {right}"
            if observed:
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


class _Script:
    """One training by train.py: its images, its checkpoint, and what each process is given of them."""

    def __init__(self, world: int, clip: float) -> None:
        self.world, self.batch, self.clip = world, 6, clip
        self.count, self.test_count = 22 * world, 5 * world  # so that the last batch is a smaller one
        generator = np.random.default_rng()
        images, classes = digits()[0]
        chosen = generator.choice(len(images), self.count + self.test_count, replace=False)
        noise = generator.uniform(0.0, 0.01, size=(len(chosen), images.shape[1]))  # nobody can look these images up
        self.images, self.classes = images[chosen] + noise, classes[chosen]
        self.checkpoint = {
            "file": "checkpoint.pt", "epoch": BEGUN,
            "seed": secrets.randbelow(2**31), "rate": random.uniform(0.02, 0.05),
        }  # fmt: skip

    def of_samplers(self) -> list[dict[str, Any]]:
        """To ask DistributedSampler for each rank's samples."""
        return [{"count": self.count, "epochs": list(range(BEGUN, EPOCHS))}] * self.world

    def of_ranks(self, samples: list[list[list[int]]]) -> list[dict[str, Any]]:
        """Each rank's own samples; rank 0 has the checkpoint."""
        return [self._of(rank, {one for epoch in own for one in epoch}, self.world) for rank, own in enumerate(samples)]

    def of_one_process(self) -> dict[str, Any]:
        """All samples, in batches as large as those of all ranks together."""
        return self._of(0, set(range(self.count)), 1)

    def _of(self, rank: int, known: set[int], world: int) -> dict[str, Any]:
        images, test = self.images[: self.count].copy(), self.images[self.count :].copy()
        images[sorted(set(range(self.count)) - known)] = np.nan
        if world > 1:
            test[[place for place in range(self.test_count) if place % world != rank]] = np.nan
        options = {
            "epochs": EPOCHS, "batch-size": self.batch * self.world // world, "clip": self.clip,
            "seed": secrets.randbelow(2**31), "resume": self.checkpoint["file"],
        }  # fmt: skip
        return {
            "arguments": [f"--{name}={value}" for name, value in options.items()],
            "training": [images, self.classes[: self.count]],
            "test": [test, self.classes[self.count :]],
            "checkpoint": self.checkpoint if rank == 0 else None,
        }


def _place(rank: int, size: int, local_rank: int, met: Sequence[object]) -> str:
    return f"rank {rank} of {size}, local rank {local_rank}, in one group with ranks {_listed(met)}"


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def _milliseconds(seconds: Sequence[float]) -> str:
    return ", ".join(f"{1e3 * one:.0f} ms" for one in seconds)


def _normal(shape: int | tuple[int, ...]) -> Array:
    return np.asarray(np.random.default_rng().normal(size=shape))


def _weights() -> list[Array]:
    return [_normal((WIDTH, WIDTH)) / WIDTH**0.5 for _ in range(LAYERS)]


def _state() -> dict[str, Any]:
    """Weights of one shape, so that nothing but names tells them apart, and buffers of the types that models have."""
    generator = np.random.default_rng()
    buffers = [generator.normal(size=(2, 3)), generator.integers(0, 10**9, size=()), generator.normal(size=4) > 0]
    return {"weights": [generator.normal(size=(2, 3)) for _ in range(3)], "buffers": buffers}


def _parts(world: int) -> list[tuple[Array, Array]]:
    """A batch in parts of one size; only the first one's samples go through the special layer."""
    count = random.randrange(2, 6)
    parts = [(_normal((count, SMALL_WIDTH)), _normal((count, SMALL_WIDTH))) for _ in range(world)]
    for rank, (inputs, _) in enumerate(parts):
        inputs[:, 0] = np.abs(inputs[:, 0]) * (1 if rank == 0 else -1)
    return parts


def _close(found: Any, right: Any, tolerance: float = CLOSE) -> bool:
    return np.shape(found) == np.shape(right) and np.allclose(found, right, rtol=tolerance, atol=tolerance)


def _first(array: Any) -> str:
    numbers = np.ravel(array)
    return f"{', '.join(f'{number:.6g}' for number in numbers[:3])}{', ...' if numbers.size > 3 else ''}"


def _about_tensors(result: Any, own: list[Array], right: list[Array]) -> str | None:
    """What is wrong with one rank's results. own: what it has given."""
    for place, tensor in enumerate(own):
        found = np.asarray(result["found"][place])
        if not np.array_equal(result["given"][place], tensor):
            return "the argument has changed"
        if found.dtype != tensor.dtype:
            return f"a tensor of {found.dtype} for one of {tensor.dtype}"
        if not _close(found, right[place], CLOSE if tensor.dtype == np.float64 else SINGLE_CLOSE):
            return f"{_first(found)}; it should be {_first(right[place])}"
    return None


def _about_state(result: Any, root: Any, own: Any) -> str | None:
    """What is wrong with one rank's optimizer. root, own: that of the root, and of this rank, as they were before."""
    for name, value in root["settings"].items():
        if result["settings"].get(name) != value:
            return f"{name} is {result['settings'].get(name)}, the root's is {value}"
    for place, (found, right) in enumerate(zip(result["state"], root["state"], strict=True)):
        if not _close(found, right):
            held = f"{np.size(found)} numbers, the root's {np.size(right)}: {_first(found)} and {_first(right)}"
            return f"the state of parameter {place} holds {held}"
    for found, right in zip(result["before"], own["before"], strict=True):
        if not np.array_equal(found, right):
            return "parameters were changed"
    for place, (found, right) in enumerate(zip(result["after"], root["after"], strict=True)):
        if not _close(found, right):
            return f"the next step makes parameter {place} {_first(found)}, the root's {_first(right)}"
    return None


def _about_states(states: Any, right: Any, names: Sequence[str] = (), *, before: bool = False) -> str | None:
    """What is wrong with one rank's parameters. names: of each number's tensor. before: whether steps, not after."""
    if np.shape(states) != np.shape(right):
        return f"{len(states)} steps, where one process makes {len(right)}"
    close = np.isclose(states, right, rtol=CLOSE, atol=CLOSE)
    if close.all():
        return None
    step = int(np.argmin(close.all(axis=1)))
    wrong = np.flatnonzero(~close[step])
    tensors = f", in {_listed(tuple(dict.fromkeys(names[number] for number in wrong)))}" if names else ""
    furthest = np.max(np.abs(states[step] - right[step]))
    when = f"{'before' if before else 'after'} step {step + 1}"
    return f"{when}: {wrong.size} of {len(right[step])} numbers differ, by up to {furthest:.3g}{tensors}"


def _other_times(run: Run, ready: Sequence[float]) -> str | None:
    """What is wrong with when ranks computed, or when they began an exchange; None where nothing is.

    The time of a step alone could be made up by a rank that leaves out its computing, and waits in the end.
    """
    layers = [SECONDS * number for number in range(LAYERS + 1)]
    for rank in range(len(run.results)):
        spans = [0.0, *(busy.end_seconds for busy in run.log.busy if busy.rank == rank)]
        if len(spans) != len(layers) or not np.allclose(spans, layers, atol=1e-6):
            return f"rank {rank} does not compute its {LAYERS} layers one right after the other"
        posted = [entry.posted_seconds[entry.ranks.index(rank)] for entry in run.log.collectives]
        if len(posted) != len(ready) or not np.allclose(posted, ready, atol=1e-6):
            return f"rank {rank} begins {len(posted)} collectives{', at ' if posted else ''}{_milliseconds(posted)}"
    return None


def _about_updates(testbed: Testbed, run: Run, arguments: list[dict[str, Any]]) -> str | None:
    """What is wrong with gradients and weights of the updates; computed anew from each rank's own gradients."""
    passes, clips, weights = (arguments[0][name] for name in ("passes", "clips", "weights"))
    left_out = arguments[0]["frozen"] + arguments[0]["others"]
    for update, clip in enumerate(clips):
        inputs = [own["inputs"][update * passes : (update + 1) * passes] for own in arguments]
        now = [{**arguments[0], "weights": weights, "inputs": own, "clips": [0.0]} for own in inputs]
        alone = testbed.run("updates", arguments=now, student=False)
        means = dict(_means(alone, left_out))
        norm = np.sqrt(sum(np.sum(mean**2) for mean in means.values()))
        scale = min(1.0, clip / (norm + 1e-6)) if clip else 1.0  # as torch's clip_grad_norm_ has it
        weights = [weight - RATE * scale * means.get(layer, 0.0) for layer, weight in enumerate(weights)]
        for rank, result in enumerate(run.results):
            for layer, weight in enumerate(weights):
                place = f"rank {rank}, update {update + 1}, layer {layer}"
                found, mean = result["gradients"][update][layer], means.get(layer)
                if mean is not None and (found is None or not _close(found, mean)):
                    told = "no gradient" if found is None else _first(found)
                    return f"{place}: {told}; the mean is {_first(mean)}"
                if not _close(result["weights"][update][layer], weight):
                    return f"{place}: other weights than the step makes of the right gradient"
    return None


def _means(alone: Run, left_out: list[int]) -> Iterator[tuple[int, Array]]:
    """Of each layer that is exchanged, the mean of the ranks' own gradients."""
    for layer in range(LAYERS):
        if layer not in left_out:
            own = [result["gradients"][0][layer] for result in alone.results]
            yield layer, sum(own) / len(own)
