"""What lab 10 asks of tasks.py. Tensors, batches, starts and images are drawn; only their owner has them.

The corners of what may be given always occur: one process and more, an odd number of them, every form, every option,
and more than one step.
"""

from __future__ import annotations

from collections.abc import Sequence
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
Generator = np.random.Generator

CLOSE = 1e-9  # double precision loses far less, the smallest mistake far more
SINGLE_CLOSE = 1e-5
LAYERS, WIDTH = 6, 8  # of the model of layers
LAYER_BYTES = WIDTH * WIDTH * 8
SMALL_WIDTH = 6  # of the network with tied, frozen and special layers
SECONDS = 0.050  # of a layer's backward
OPTIMIZERS = ("SGD with momentum", "Adam")  # sums in place of means pass under Adam, means of parameters under SGD
RATE = 0.1  # of its optimizer
BYTES_PER_SECOND = 1e6
PADDING_BYTES = 100.0  # for each tensor, so that it can be cut into pieces of one size
STEPS = 3  # whose exchanges are timed
LARGE = 40_000.0  # the largest number of a gradient; half precision ends at 65,504
TWICE = 1.5  # times what must travel: less than everything twice
ENVELOPE_BYTES = 800  # of a tensor that travels as a Python object, with its name
HALF_CLOSE = 4e-3  # four sums in half precision, of the largest number
ODD = (3, 5, 7)
BEGUN = 1  # epoch that the checkpoint of the script is from
EPOCHS = 3  # of the script, with that one


@check(
    points=1,
    hint="Which numbers does torch.distributed tell, and which only the environment? What if `init` is called twice?",
    how="dist.init_process_group() reads RANK and WORLD_SIZE, and may be called once; LOCAL_RANK is there, too.",
)
def places(testbed: Testbed) -> Finding:
    """On one machine, and on several of unlike sizes; `init` twice, as a notebook may call it."""
    rng = testbed.rng
    unlike = [int(count) for count in rng.permutation([1, 2, int(rng.integers(3, 6))])]
    for machines in ([2], [1, 2], unlike):
        locals_ = [(local, count) for count in machines for local in range(count)]
        world = len(locals_)
        numbers = [int(one) for one in rng.choice(10**9, world, replace=False)]
        arguments = [
            {"local_rank": local, "local_size": count, "secret": number}
            for (local, count), number in zip(locals_, numbers, strict=True)
        ]
        run = testbed.run("places", arguments=arguments, start=False)
        expected = [_place(rank, world, *place, range(world)) for rank, place in enumerate(locals_)]
        if run.failure:
            return Finding.failed(run, expected[0])
        for rank, result in enumerate(run.results):
            met = [numbers.index(one) if one in numbers else "nobody knows whom" for one in result["met"].tolist()]
            observed = _place(result["rank"], result["size"], result["local_rank"], result["local_size"], met)
            if observed != expected[rank]:
                where = f"rank {rank} of {world}, machines with {_listed(machines)} processes"
                return Finding.of(observed=observed, expected=expected[rank], passed=False, where=where)
    return Finding.of(observed=expected[0], expected=expected[0], passed=True)


@check(
    points=2,
    hint="Whose memory has the result, and what becomes of the argument? With one process, too?",
    how="all_reduce a copy of the tensor, and divide the sum by size() unless op is Sum.",
)
def mean_and_sum(testbed: Testbed) -> Finding:
    """Tensors of many shapes and types, on the testbed and on gloo; and, without latency, the bytes on a link."""
    rng = testbed.rng
    for world, backend in (
        (1, "testbed"), (2 * int(rng.integers(1, 5)), "testbed"), (int(rng.choice(ODD)), "testbed"), (3, "gloo"),
    ):  # fmt: skip
        given = [_tensors(rng) for _ in range(world)]
        totals = [own.dtype == np.int64 or place % 3 == 0 for place, own in enumerate(given[0])]
        links = {"workers": world, "bandwidth": f"{BYTES_PER_SECOND} B/s", "latency": "0 s"}
        run = testbed.run(
            "allreduce",
            arguments=[{"tensors": own, "totals": totals} for own in given],
            backend=backend,
            cluster=Cluster.model_validate(links),
        )
        expected = "new tensors with the means or sums of all ranks' tensors, and those as they were"
        if run.failure:
            return Finding.failed(run, expected)
        for place, total in enumerate(totals):
            tensors = [own[place] for own in given]
            added = np.sum(tensors, axis=0, dtype=np.result_type(tensors[0], np.int64))
            right = added if total else added / world
            for rank, result in enumerate(run.results):
                if observed := _about_tensor(result["found"][place], result["given"][place], tensors[rank], right):
                    kind = "sum" if total else "mean"
                    told = f"{kind} of tensors of {tensors[0].dtype} and shape {tensors[0].shape}"
                    where = f"rank {rank} of {world}, {told}, on {backend}"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        num_bytes = sum(own.nbytes for own in given[0])
        needed = BYTES_PER_SECOND * ring_all_reduce_seconds(num_bytes, world, BYTES_PER_SECOND, 0.0)
        carried = BYTES_PER_SECOND * run.seconds
        if backend == "testbed" and abs(carried - needed) > PADDING_BYTES * len(totals):
            observed = f"{carried:,.0f} bytes on the busiest link"
            expected = f"{needed:,.0f} bytes on each link, as a ring needs for {num_bytes:,} bytes"
            return Finding.of(observed=observed, expected=expected, passed=False, where=f"{world} ranks")
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=2,
    hint="Which call of one rank meets which call of another? Which tensors may be in a state_dict?",
    how="dict(params) takes all forms; go through the names in sorted order and dist.broadcast each.",
)
def parameters_of_the_root(testbed: Testbed) -> Finding:
    """A model with a frozen weight and buffers of many types; names in another order on each rank; other roots."""
    rng = testbed.rng
    odd = int(rng.choice(ODD))
    for world, root, form, backend in (
        (2, 0, "state_dict", "testbed"), (odd, odd - 1, "state_dict", "testbed"), (3, 1, "pairs", "testbed"),
        (4, int(rng.integers(1, 4)), "iterator", "testbed"), (3, 1, "state_dict", "gloo"),
    ):  # fmt: skip
        states = [_state(rng) for _ in range(world)]
        kinds = ("weights", "buffers") if form == "state_dict" else ("weights",)
        names = sum(len(states[0][kind]) for kind in kinds)
        arguments = [
            {**state, "root": root, "order": [int(one) for one in rng.permutation(names)], "form": form}
            for state in states
        ]
        run = testbed.run("broadcast_parameters", arguments=arguments, backend=backend)
        given = {"state_dict": "state_dict()", "pairs": "a list of named parameters", "iterator": "named_parameters()"}
        expected = f"the tensors of rank {root} in those of every rank, by their names"
        if run.failure:
            return Finding.failed(run, expected)
        for rank, result in enumerate(run.results):
            where = f"rank {rank} of {world}, root {root}, {given[form]}"
            for kind in ("weights", "buffers"):
                source = states[root] if form == "state_dict" or kind == "weights" else states[rank]
                for place, (found, right) in enumerate(zip(result[kind], source[kind], strict=True)):
                    if found.dtype != right.dtype or not np.array_equal(found, right):
                        kept = np.array_equal(found, states[rank][kind][place])
                        observed = f"{kind[:-1]} {place} ({right.dtype}) {'is still its own' if kept else 'is other'}"
                        return Finding.of(observed=observed, expected=expected, passed=False, where=where)
            if not np.array_equal(result["first"], states[root]["weights"][0]):
                observed = f"broadcast gives {_first(result['first'])}"
                return Finding.of(observed=observed, expected="the root's tensor", passed=False, where=where)
        needed = [states[root]["weights"][0], *(one for kind in kinds for one in states[root][kind])]
        num_bytes = sum(one.nbytes + ENVELOPE_BYTES for one in needed)
        if reason := _too_much(run, num_bytes):
            where = f"{world} ranks, root {root}, {given[form]}"
            return Finding.of(observed=reason, expected="each tensor once", passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=3,
    hint="What has the root that another rank may lack, and what may a rank have that the root lacks?",
    how="state_dict() has both state and settings; broadcast_object_list sends it, load_state_dict takes it.",
)
def optimizer_state_of_the_root(testbed: Testbed) -> Finding:
    """State on the root alone, on all ranks, and on all but the root; then every rank makes one more step."""
    rng = testbed.rng
    sgd, adam = OPTIMIZERS
    drawn = int(rng.choice((2, 4, 5)))
    for cases in (
        [(sgd, [2, 0, 0], 0), (adam, [1, 3, 2], 1), (sgd, [2, 1, 0], 2), (adam, [2, 0, 1], 0)],
        [(str(rng.choice(OPTIMIZERS)), [int(one) for one in rng.integers(0, 3, drawn)], drawn - 1)],
    ):
        world = len(cases[0][1])
        by_case = [_optimizers(rng, *case) for case in cases]
        arguments = [{"cases": [case[rank] for case in by_case]} for rank in range(world)]
        run = testbed.run("optimizer_states", arguments=arguments)
        expected = "state and settings of the root on every rank, so that all make the same step"
        if run.failure:
            return Finding.failed(run, expected)
        alone = testbed.run("optimizer_states", arguments=arguments, student=False)
        for rank, results in enumerate(run.results):
            for place, ((optimizer, made_steps, root), result) in enumerate(zip(cases, results, strict=True)):
                observed = _about_state(result, alone.results[root][place], alone.results[rank][place])
                if observed:
                    told = f"{_listed(made_steps)} steps on ranks 0 to {world - 1}, root {root}"
                    where = f"rank {rank}, {optimizer}, after {told}"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        states = [np.size(one) for place, (*_, root) in enumerate(cases) for one in alone.results[root][place]["state"]]
        if reason := _too_much(run, sum(8 * count + ENVELOPE_BYTES for count in states)):
            where = f"{world} ranks, {len(cases)} optimizers"
            return Finding.of(observed=reason, expected="state and settings once", passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=3,
    hint="Whose gradients are in .grad when the class's own step is made? Of which parameters? And if there is none?",
    how="Sum each .grad with all_reduce, in one order on all ranks, divide, and only then call the class's own step.",
)
def steps_as_one_process(testbed: Testbed) -> Finding:
    """Tied, frozen and unused parameters, two groups, state from before, changing rates; after every step."""
    rng = testbed.rng
    worlds = (int(rng.choice((2, 4))), int(rng.choice(ODD)))
    for world, optimizer in zip(worlds, OPTIMIZERS, strict=True):
        seed = int(rng.integers(2**31))
        earlier = [rng.normal(size=(4, SMALL_WIDTH)), rng.normal(size=(4, SMALL_WIDTH))]
        parts = [_parts(rng, world) for _ in range(4)]
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


@check(
    points=3,
    hint="What does backward wait for, in every step? And what may happen to a gradient while it travels?",
    how="In the hook, all_reduce(..., async_op=True) whoever is next; wait() in synchronize alone; see who must raise.",
)
def exchanges_beside_backward(testbed: Testbed) -> Finding:
    """When each gradient leaves and how long steps take, against the formula; on fast and on slow links.

    With one and with two backwards for a step; on one of the links, one rank is slower than the others.
    """
    rng = testbed.rng
    passes = [int(one) for one in rng.permutation([1, 2])]
    for bandwidth, slow, count in zip(("40 kB/s", "10 kB/s"), (1.0, 1.5), passes, strict=True):
        cluster = Cluster.model_validate({"workers": 4, "bandwidth": bandwidth, "latency": "1 ms"})
        weights = _weights(rng)
        seconds = [SECONDS] * cluster.workers
        seconds[int(rng.integers(cluster.workers))] *= slow
        arguments = [
            {"weights": weights, "inputs": rng.normal(size=(4, WIDTH)), "seconds": one, "passes": count, "steps": STEPS}
            for one in seconds
        ]
        run = testbed.run("overlap", arguments=arguments, cluster=cluster)
        each = ring_all_reduce_seconds(LAYER_BYTES, 4, cluster.bandwidth_bytes_per_second, cluster.latency_seconds)
        step = overlapped_step_seconds(_ready(max(seconds), count), [each] * LAYERS)
        ready = _milliseconds(_ready(SECONDS, count))
        expected = f"{STEPS} steps of {1e3 * step:.1f} ms, each with all-reduces that begin at {ready}"
        if run.failure:
            return Finding.failed(run, expected)
        where = f"4 ranks, {LAYERS} layers, {count} backwards for a step, links of {bandwidth}"
        if reason := _other_times(run, seconds, count, step):
            return Finding.of(observed=reason, expected=expected, passed=False, where=where)
        if abs(run.seconds - STEPS * step) > 1e-6:
            observed = f"{1e3 * run.seconds:.1f} ms for {STEPS} steps"
            return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        arguments = [{"weights": weights, "inputs": rng.normal(size=(4, WIDTH)), "passes": count} for _ in range(2)]
        run = testbed.run("refusals", arguments=arguments)
        refused = "an AssertionError while gradients are being exchanged, and a ValueError for wrong options"
        if run.failure:
            return Finding.failed(run, refused)
        for rank, result in enumerate(run.results):
            for name, was in result.items():
                if not was:
                    where = f"rank {rank} of 2, {count} backwards for a step"
                    return Finding.of(observed=f"{name} goes through", expected=refused, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=3,
    hint="Count the exchanges of an update, and follow one gradient: divided, compressed, summed, and back.",
    how="synchronize once for each update, after the closure; divide before compress, and after decompress.",
)
def one_exchange_for_each_update(testbed: Testbed) -> Finding:
    """With and without clipping and closures, one backward or several, and every option; some layers stay at home."""
    rng = testbed.rng
    for case in _cases(rng):
        run = testbed.run("updates", arguments=case.arguments)
        expected = f"the {case.kind} of all ranks' own sums in every .grad, and the step that it makes"
        if run.failure:
            return Finding.failed(run, expected)
        if observed := case.about(run):
            return Finding.of(observed=observed, expected=expected, passed=False, where=case.told)
        exchanges, num_bytes = case.updates * len(case.exchanged), WIDTH * WIDTH * case.number_bytes
        expected = f"{exchanges} all-reduces of {num_bytes} bytes: one for each trained layer and update"
        seen = [(entry.kind, entry.num_bytes) for entry in run.log.collectives]
        if seen != [("all_reduce", num_bytes)] * exchanges or run.log.messages:
            together = sum(size for _, size in seen)
            observed = f"{len(seen)} collectives of {together} bytes together, {len(run.log.messages)} messages"
            return Finding.of(observed=observed, expected=expected, passed=False, where=case.told)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=3,
    hint="Which of the checks above is not yet green? They see each function by itself.",
    how="Get the checks above first. Then read how train.py calls what they check, and in which order.",
)
def the_training_script(testbed: Testbed) -> Finding:
    """train.py on digits, from a checkpoint that rank 0 alone has. Images that a rank never takes are NaN there."""
    rng = testbed.rng
    for world, clip, backend in ((int(rng.choice((2, 4))), 0.0, "testbed"), (3, 0.5, "testbed"), (2, 0.5, "gloo")):
        case = _Script(rng, world, clip)
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

    def __init__(self, rng: Generator, world: int, clip: float) -> None:
        self.rng, self.world, self.batch, self.clip = rng, world, 6, clip
        self.count, self.test_count = 22 * world, 5 * world  # so that the last batch is a smaller one
        images, classes = digits()[0]
        chosen = rng.choice(len(images), self.count + self.test_count, replace=False)
        noise = rng.uniform(0.0, 0.01, size=(len(chosen), images.shape[1]))  # nobody can look these images up
        self.images, self.classes = images[chosen] + noise, classes[chosen]
        self.checkpoint = {
            "file": "checkpoint.pt", "epoch": BEGUN,
            "seed": int(rng.integers(2**31)), "rate": float(rng.uniform(0.02, 0.05)),
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
            "seed": int(self.rng.integers(2**31)), "resume": self.checkpoint["file"],
        }  # fmt: skip
        return {
            "arguments": [f"--{name}={value}" for name, value in options.items()],
            "training": [images, self.classes[: self.count]],
            "test": [test, self.classes[self.count :]],
            "checkpoint": self.checkpoint if rank == 0 else None,
        }


class _Updates:
    """Some updates by an optimizer: what each rank is given, and what must come of it.

    passes: backwards for an update. clips: by update; 0: none. options: of the optimizer. closure: whether steps get
    one. large: whether gradients reach `LARGE` on all ranks alike.
    """

    def __init__(
        self, rng: Generator, world: int, passes: int, clips: Sequence[float], *,
        closure: bool = False, large: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        frozen, other = ([], []) if large else ([int(one)] for one in rng.choice(range(1, LAYERS), 2, replace=False))
        self.world, self.passes, self.clips, self.options = world, passes, clips, options
        self.updates = len(clips)
        self.exchanged = [layer for layer in range(LAYERS) if layer not in frozen + other]
        self.number_bytes = 2 if options.get("compression") == "fp16" else 8
        self.kind = "sum" if options.get("op") == "Sum" else "mean"
        self.weights = _weights(rng)
        base, spread = (rng.normal(size=(4, WIDTH)), 0.01) if large else (np.zeros((4, WIDTH)), 1.0)
        batches = self.updates * passes
        self.inputs = [[base + spread * rng.normal(size=(4, WIDTH)) for _ in range(batches)] for _ in range(world)]
        own = [_gradients(self.weights, batches[0])[1] for batches in self.inputs]
        self.scale = LARGE / max(np.max(np.abs(layer)) for layers in own for layer in layers) if large else 1.0
        self.arguments = [
            {
                "weights": self.weights, "inputs": inputs, "passes": passes, "clips": list(clips), "frozen": frozen,
                "others": other, "scale": self.scale, "options": options, "closure": closure,
            }
            for inputs in self.inputs
        ]  # fmt: skip
        given = "".join(f", {name}={value}" for name, value in options.items())
        steps = "steps with closures" if closure else "clipping" if any(clips) else "no clipping"
        self.told = f"{world} ranks, {passes} backwards for each update, {steps}{given}"

    def about(self, run: Run) -> str | None:
        """What is wrong with losses, gradients and weights of the updates."""
        weights = self.weights
        tolerance = HALF_CLOSE * LARGE if self.number_bytes == 2 else CLOSE
        for update, clip in enumerate(self.clips):
            own = [self._sums(weights, inputs, update) for inputs in self.inputs]
            sums = [np.sum([layers[layer] for _, layers in own], axis=0) for layer in range(LAYERS)]
            exchanged = {layer: sums[layer] / (1 if self.kind == "sum" else self.world) for layer in self.exchanged}
            norm = np.sqrt(sum(np.sum(gradient**2) for gradient in exchanged.values()))
            factor = min(1.0, clip / (norm + 1e-6)) if clip else 1.0  # as torch's clip_grad_norm_ has it
            weights = [weight - RATE * factor * exchanged.get(layer, 0.0) for layer, weight in enumerate(weights)]
            for rank, result in enumerate(run.results):
                where = f"rank {rank}, update {update + 1}"
                if not _close(result["losses"][update], own[rank][0]):
                    return f"{where}: step returns {_first(result['losses'][update])}; the loss is {own[rank][0]:.6g}"
                for layer, weight in enumerate(weights):
                    found, right = result["gradients"][update][layer], exchanged.get(layer)
                    if right is not None and (found is None or not _near(found, right, tolerance)):
                        told = "no gradient" if found is None else _first(found)
                        return f"{where}, layer {layer}: {told}; the {self.kind} is {_first(right)}"
                    if not _near(result["weights"][update][layer], weight, RATE * tolerance + CLOSE):
                        return f"{where}, layer {layer}: other weights than the step makes of the right gradient"
        return None

    def _sums(self, weights: list[Array], inputs: list[Array], update: int) -> tuple[float, list[Array]]:
        """The loss and the gradients of one rank, added up over the backwards of an update."""
        batches = inputs[update * self.passes : (update + 1) * self.passes]
        found = [_gradients(weights, batch) for batch in batches]
        gradients = [self.scale * np.sum([layers[layer] for _, layers in found], axis=0) for layer in range(LAYERS)]
        return self.scale * sum(loss for loss, _ in found), gradients


def _cases(rng: Generator) -> list[_Updates]:
    """Every option, alone and with others."""
    clip = float(rng.uniform(0.05, 0.1))
    return [
        _Updates(rng, 2, 1, (clip, 0.0), gradient_predivide_factor=float(rng.uniform(1.5, 4.0))),
        _Updates(rng, int(rng.choice(ODD)), 3, (0.0, clip)),
        _Updates(rng, int(rng.choice((2, 3, 4))), 2, (0.0, 0.0), closure=True, op="Sum"),
        _Updates(rng, 4, 1, (0.0,), large=True, compression="fp16", gradient_predivide_factor=4.0),
    ]


def _gradients(weights: list[Array], inputs: Array) -> tuple[float, list[Array]]:
    """The loss of the model of layers, and the gradient of each layer: the squares' sum of tanh after tanh."""
    values = [inputs]
    for weight in weights:
        values.append(np.tanh(values[-1] @ weight))
    arriving, gradients = 2 * values[-1], []
    for weight, before, after in zip(reversed(weights), values[-2::-1], values[:0:-1], strict=True):
        arriving = arriving * (1 - after**2)
        gradients.append(before.T @ arriving)
        arriving = arriving @ weight.T
    return float(np.sum(values[-1] ** 2)), gradients[::-1]


def _place(rank: object, size: object, local: object, local_size: object, met: Sequence[object]) -> str:
    told = f"rank {rank!r} of {size!r}, local rank {local!r} of {local_size!r}"
    return f"{told}, in one group with ranks {_listed(met)}"


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def _milliseconds(seconds: Sequence[float]) -> str:
    return ", ".join(f"{1e3 * one:.0f} ms" for one in seconds)


def _tensors(rng: Generator) -> list[Array]:
    """A number, matrices, an empty tensor, the same shape twice, and tensors of three types."""
    number, lone = np.asarray(rng.normal()), rng.normal(size=1)
    matrices = [rng.normal(size=(30, 40)), rng.normal(size=(30, 40))]
    single, whole = rng.normal(size=5).astype(np.float32), rng.integers(-(2**57), 2**57, size=(2, 3))
    return [number, *matrices, np.zeros(0), single, lone, whole, single * 2]


def _optimizers(rng: Generator, optimizer: str, made_steps: list[int], root: int) -> list[dict[str, Any]]:
    """Each rank's optimizer: with rates of its own, after as many steps as it has made. The further step is for all."""
    shapes = [(60, 40), (5,), (), (2,)]
    further = [np.asarray(rng.normal(size=shape)) for shape in shapes]
    return [
        {
            "optimizer": optimizer, "rates": [float(one) for one in rng.uniform(0.05, 0.5, 2)], "root": root,
            "gradients": [*([np.asarray(rng.normal(size=shape)) for shape in shapes] for _ in range(count)), further],
        }
        for count in made_steps
    ]  # fmt: skip


def _weights(rng: Generator) -> list[Array]:
    return [rng.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5 for _ in range(LAYERS)]


def _state(rng: Generator) -> dict[str, Any]:
    """Weights of one shape, so that nothing but names tells them apart, and buffers of the types that models have."""
    buffers = [
        rng.normal(size=(40, 30)), rng.integers(2**60, size=()), rng.normal(size=4) > 0,
        np.float32(rng.normal()), rng.normal(size=(40, 30)),
    ]  # fmt: skip
    return {"weights": [rng.normal(size=(40, 30)) for _ in range(3)], "buffers": [np.asarray(one) for one in buffers]}


def _parts(rng: Generator, world: int) -> list[tuple[Array, Array]]:
    """A batch in parts of one size; only the first one's samples go through the special layer."""
    count = int(rng.integers(2, 6))
    parts = [(rng.normal(size=(count, SMALL_WIDTH)), rng.normal(size=(count, SMALL_WIDTH))) for _ in range(world)]
    for rank, (inputs, _) in enumerate(parts):
        inputs[:, 0] = np.abs(inputs[:, 0]) * (1 if rank == 0 else -1)
    return parts


def _near(found: Any, right: Any, tolerance: float) -> bool:
    return np.shape(found) == np.shape(right) and np.allclose(found, right, rtol=CLOSE, atol=tolerance)


def _close(found: Any, right: Any, tolerance: float = CLOSE) -> bool:
    return np.shape(found) == np.shape(right) and np.allclose(found, right, rtol=tolerance, atol=tolerance)


def _first(array: Any) -> str:
    numbers = np.ravel(array)
    return f"{', '.join(f'{number:.6g}' for number in numbers[:3])}{', ...' if numbers.size > 3 else ''}"


def _about_tensor(found: Any, after: Any, own: Array, right: Array) -> str | None:
    """What is wrong with one rank's result. own, after: what it gave, and what that is later."""
    found = np.asarray(found)
    if not np.array_equal(after, own):
        return "the argument changes, at once or with the result"
    if found.dtype != own.dtype:
        return f"a tensor of {found.dtype} for one of {own.dtype}"
    if own.dtype == np.int64:
        return None if np.array_equal(found, right) else f"{_first(found)}; it should be {_first(right)}"
    if not _close(found, right, CLOSE if own.dtype == np.float64 else SINGLE_CLOSE):
        return f"{_first(found)} in shape {found.shape}; it should be {_first(right)} in shape {own.shape}"
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


def _too_much(run: Run, num_bytes: float) -> str | None:
    """How many bytes the ranks gave to the network, if they are many more than these."""
    seen = sum(entry.num_bytes for entry in (*run.log.collectives, *run.log.messages))
    return f"{seen:,} bytes travel" if seen > TWICE * num_bytes else None


def _ready(seconds: float, passes: int) -> list[float]:
    """When each layer's gradient is whole, after the start of a step; a backward takes `seconds` in a layer."""
    before = (passes - 1) * LAYERS * seconds
    return [before + float(one) for one in bucket_ready_seconds(0.0, LAYERS * seconds, [1] * LAYERS)]


def _other_times(run: Run, seconds: Sequence[float], passes: int, step: float) -> str | None:
    """What is wrong with when ranks computed, or when they began an exchange; None where nothing is.

    seconds: of a layer's backward, by rank. step: the seconds of a step. The time of a step alone could be made up by a
    rank that leaves out its computing, and waits in the end.
    """
    for rank, own in enumerate(seconds):
        layers = [start * step + own * (number + 1) for start in range(STEPS) for number in range(passes * LAYERS)]
        ends = [busy.end_seconds for busy in run.log.busy if busy.rank == rank]
        if len(ends) != len(layers) or not np.allclose(ends, layers, atol=1e-6):
            return f"rank {rank} does not compute its {LAYERS} layers one right after the other, in every backward"
        ready = [start * step + one for start in range(STEPS) for one in _ready(own, passes)]
        posted = [entry.posted_seconds[entry.ranks.index(rank)] for entry in run.log.collectives]
        if len(posted) != len(ready):
            return f"rank {rank} begins {len(posted)} collectives, not {len(ready)}"
        if not np.allclose(posted, ready, atol=1e-6):
            late = int(np.argmin(np.isclose(posted, ready, atol=1e-6))) // LAYERS
            found = [one - late * step for one in posted[late * LAYERS : (late + 1) * LAYERS]]
            return f"rank {rank} begins the collectives of step {late + 1} at {_milliseconds(found)}"
    return None
