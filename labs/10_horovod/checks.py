"""What lab 10 asks of tasks.py. Tensors, batches, starts and images are drawn; only their owner has them.

The corners of what may be given always occur: one process and more, an odd number of them, every form, every option,
and more than one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.overlap import bucket_ready_seconds, overlapped_step_seconds

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed

Array = NDArray[np.float64]
Generator = np.random.Generator

CLOSE = 1e-9  # double precision loses far less, the smallest mistake far more
SINGLE_CLOSE = 1e-5
LAYERS, WIDTH = 6, 8  # of the model of layers
FAST_SECONDS, SLOW_SECONDS = 0.0128, 0.0512  # of a link, for one layer's bytes
SMALL_WIDTH = 6  # of the network with tied, frozen and special layers
SECONDS = 0.050  # of a layer's backward
REST_SECONDS = 0.010  # between the last backward and the step: less than any exchange
OPTIMIZERS = ("SGD with momentum", "Adam")  # sums in place of means pass under Adam, means of parameters under SGD
RATE = 0.1  # of its optimizer
BYTES_PER_SECOND = 1e6
LATENCY_SECONDS = 1e-3
WITHOUT_LATENCY = {"latency_seconds": 0.0}
STEPS = 3  # whose exchanges are timed
LARGE = 40_000.0  # the largest number of a gradient; half precision ends at 65,504
FROM_THE_ROOT = {"broadcast", "scatter"}
ENVELOPE_BYTES = 800  # of a tensor that travels as a Python object, with its name
SETTINGS_PACKED = 4  # an optimizer's settings fill as many envelopes
HALF_CLOSE = 4e-3  # at most four sums in half precision, of the largest number
HALF_SUM_CLOSE = 2e-2  # of a few numbers, none of them large
ODD = (3, 5, 7)
PIXELS, CLASSES = 64, 10  # of the script's images
BEGUN = 1  # epoch that the checkpoint of the script is from
EPOCHS = 3  # of the script, with that one


@check(
    points=1,
    hint="Which numbers does torch.distributed tell, and which only the environment? What if `init` is called twice?",
    how="dist.init_process_group() reads RANK and WORLD_SIZE, and may be called once; LOCAL_RANK is there, too.",
)
def places(testbed: Testbed) -> Finding:
    """On one machine, and on several of unlike sizes; `init` twice, as a notebook may call it.

    Some ranks ask for their numbers more often than others, as scripts do that print on rank 0 alone.
    """
    rng = testbed.rng
    unlike = [int(count) for count in rng.permutation([1, 2, int(rng.integers(3, 6))])]
    for machines, on_gpus in (([1], False), ([2], False), ([1, 2], True), (unlike, False)):
        locals_ = [(local, count) for count in machines for local in range(count)]
        world = len(locals_)
        numbers = [int(one) for one in rng.choice(10**9, world, replace=False)]
        arguments = [
            {"local_rank": local, "local_size": count, "secret": number, "on_gpus": on_gpus}
            for (local, count), number in zip(locals_, numbers, strict=True)
        ]
        run = testbed.run("places", arguments=arguments, start=False)
        expected = [_place(rank, world, *place, range(world)) for rank, place in enumerate(locals_)]
        if run.failure:
            return Finding.failed(run, expected[0])
        for rank, result in enumerate(run.results):
            asked = [note["backend"] for note in run.log.notes_of(rank, "init_process_group")]
            if on_gpus and asked == ["nccl"]:
                expected_backend = "a back end for tensors on CPUs as well, such as that of init_process_group()"
                where = f"rank {rank} of {world}, on machines with GPUs"
                return Finding.of(observed="nccl alone", expected=expected_backend, passed=False, where=where)
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
    """Tensors of many shapes and types, each shape for a mean and for a sum; on the testbed, in the time of a ring."""
    rng = testbed.rng
    for world, backend in (
        (1, "testbed"), (2 * int(rng.integers(1, 5)), "testbed"), (int(rng.choice(ODD)), "testbed"), (3, "gloo"),
    ):  # fmt: skip
        given = [_tensors(rng) for _ in range(world)]
        totals = [own.dtype.kind == "i" or place // 2 % 2 == 0 for place, own in enumerate(given[0])]
        cluster = Cluster(workers=world, bandwidth=f"{BYTES_PER_SECOND} B/s", latency=f"{LATENCY_SECONDS} s")
        run = testbed.run(
            "allreduce",
            arguments=[{"tensors": own, "totals": totals} for own in given],
            backend=backend,
            cluster=cluster,
        )
        expected = "new tensors with the means or sums of all ranks' tensors, and those as they were"
        if run.failure:
            return Finding.failed(run, expected)
        for place, total in enumerate(totals):
            tensors = [own[place] for own in given]
            added = np.sum(tensors, axis=0, dtype=np.result_type(tensors[0], np.int64))
            right = added if total else added / world
            for rank, result in enumerate(run.results):
                observed = _about_tensor(result["found"][place], result["given"][place], tensors[rank], right)
                if observed := observed or ("" if result["new"][place] else "the argument itself comes back"):
                    kind = "sum" if total else "mean"
                    told = f"{kind} of tensors of {tensors[0].dtype} and shape {tensors[0].shape}"
                    where = f"rank {rank} of {world}, {told}, on {backend}"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        if backend == "testbed" and (reason := _more_than_rings(run, given[0], cluster)):
            where = f"{world} ranks, links of 1 MB/s and {1e3 * LATENCY_SECONDS:g} ms"
            expected = "for each tensor, the time and the bytes of a ring all-reduce"
            return Finding.of(observed=reason, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=2,
    hint="Which call of one rank meets which call of another? Which tensors may be in a state_dict?",
    how="dict(params) takes all forms; go through the names in sorted order and dist.broadcast each.",
)
def parameters_of_the_root(testbed: Testbed) -> Finding:
    """A model with a frozen weight and buffers of many types; names in another order on each rank; other roots.

    Two names differ by a capital letter alone, and most matrices are parts of a larger one.
    """
    rng = testbed.rng
    odd, even = int(rng.choice(ODD)), int(rng.choice((2, 4)))
    given = {
        "state_dict": "state_dict()", "mapping": "a Mapping that is no dict", "pairs": "a list of named parameters",
        "iterator": "named_parameters()",
    }  # fmt: skip
    for world, backend, cases in (
        (even, "testbed", [("state_dict", 0), ("iterator", int(rng.integers(1, even)))]),
        (odd, "testbed", [("state_dict", odd - 1), ("pairs", 1), ("mapping", 0)]),
        (3, "gloo", [("state_dict", 1)]),
    ):
        models = [_Model(rng, world, *case) for case in cases]
        arguments = [{"cases": [model.arguments[rank] for model in models]} for rank in range(world)]
        run = testbed.run("broadcast_parameters", arguments=arguments, backend=backend)
        for place, model in enumerate(models):
            expected = f"the tensors of rank {model.root} in those of every rank, by their names"
            if run.failure:
                return Finding.failed(run, expected)
            for rank, results in enumerate(run.results):
                if observed := model.about(results[place], rank):
                    where = f"rank {rank} of {world}, root {model.root}, {given[model.form]}"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        needed = [one for model in models for one in model.needed]
        if reason := _more_than_from_the_root(run, sum(one.nbytes for one in needed), len(needed)):
            where = f"{world} ranks, {' and '.join(given[model.form] for model in models)}"
            return Finding.of(observed=reason, expected="each tensor of the root once", passed=False, where=where)
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
        run = testbed.run(
            "optimizer_states", arguments=[{"cases": [case[rank] for case in by_case]} for rank in range(world)]
        )
        expected = "state and settings of the root on every rank, so that all make the same step"
        if run.failure:
            return Finding.failed(run, expected)
        every = [one for case in by_case for one in case]
        found = testbed.run("optimizer_states", arguments=[{"cases": every}], student=False).results[0]
        alone = [found[first : first + world] for first in range(0, len(every), world)]  # by case and rank
        for rank, results in enumerate(run.results):
            for (optimizer, made_steps, root), own, result in zip(cases, alone, results, strict=True):
                if observed := _about_state(result, own[root], own[rank]):
                    told = f"{_listed(made_steps)} steps on ranks 0 to {world - 1}, root {root}"
                    where = f"rank {rank}, {optimizer}, after {told}"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        roots = [own[root] for (*_, root), own in zip(cases, alone, strict=True)]
        numbers = sum(np.size(one) for own in roots for one in own["state"])
        packed = sum(own["tensors"] + SETTINGS_PACKED for own in roots)
        if reason := _more_than_from_the_root(run, 8 * numbers, packed):
            where = f"{world} ranks, {len(cases)} optimizers"
            return Finding.of(observed=reason, expected="state and settings once", passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=3,
    hint="Whose gradients are in .grad when the class's own step is made? Of which parameters? And if there is none?",
    how="Sum each .grad with all_reduce, in one order on all ranks, divide, and only then call the class's own step.",
)
def steps_as_one_process(testbed: Testbed) -> Finding:
    """Tied, frozen, unused and empty parameters, two groups, state from before, changing rates; after every step.

    On gloo, too, where exchanges under way really share what memory they have been given.
    """
    rng = testbed.rng
    trainings = ((int(rng.choice((2, 4))), "testbed"), (int(rng.choice(ODD)), "testbed"), (2, "gloo"))
    cases = [[_Steps(rng, world, optimizer) for optimizer in OPTIMIZERS] for world, _ in trainings]
    arguments = [{"cases": [case.of_one_process() for some in cases for case in some]}]
    every = iter(testbed.run("steps", arguments=arguments, student=False).results[0])
    for (world, backend), some in zip(trainings, cases, strict=True):
        alone = [next(every) for _ in some]
        arguments = [{"cases": [case.of(rank) for case in some]} for rank in range(world)]
        run = testbed.run("steps", arguments=arguments, backend=backend)
        expected = "on every rank, after every step, the parameters of one process with the joined batch"
        if run.failure:
            return Finding.failed(run, expected)
        for rank, results in enumerate(run.results):
            for case, result, right in zip(some, results, alone, strict=True):
                where = f"rank {rank} of {world}, {case.optimizer}, {backend}"
                if not result["same_class"]:
                    observed = f"DistributedOptimizer returns no {case.optimizer.split()[0]}"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
                if observed := _about_states(result["states"], right["states"], right["names"]):
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=3,
    hint="What does backward wait for, in every step? And what may happen to a gradient while it travels?",
    how="In the hook, all_reduce(..., async_op=True) whoever is next; wait() in synchronize alone; see who must raise.",
)
def exchanges_beside_backward(testbed: Testbed) -> Finding:
    """When each gradient leaves and how long steps take, against the formula; on fast and on slow links.

    With one and with two backwards for a step; on one of the links, one rank is slower than the others. With one
    optimizer the layers are in another order than in the model, with one they are in two groups, with one each layer
    has a single number, and with one half precision travels.
    """
    rng = testbed.rng
    passes = [int(one) for one in rng.permutation([1, 2])]
    orders = rng.permutation([[*range(LAYERS)], _other_order(rng)]).tolist()
    seconds_begin = rng.permutation([0, int(rng.integers(1, LAYERS))]).tolist()
    widths = [int(one) for one in rng.permutation([1, WIDTH])]
    plain: dict[str, Any] = {}
    other = [{"op": "Sum"}, {"gradient_predivide_factor": 2.0}][int(rng.integers(2))]
    half = {"compression": "fp16", **other}
    runs = [
        *zip((FAST_SECONDS, SLOW_SECONDS), (1.0, 1.5), passes, orders, seconds_begin, widths, [plain] * 2, strict=True),
        (FAST_SECONDS, 1.0, passes[1], orders[1], seconds_begin[1], WIDTH, half),
    ]
    for layer_seconds, slow, count, order, second, width, options in runs:
        layer_bytes = (2 if options else 8) * width * width
        bandwidth = f"{layer_bytes / layer_seconds:.0f} B/s"
        cluster = Cluster.model_validate({"workers": 4, "bandwidth": bandwidth, "latency": "1 ms"})
        weights, seconds = _weights(rng, width), [SECONDS] * cluster.workers
        seconds[int(rng.integers(cluster.workers))] *= slow
        arguments = [
            {
                "weights": weights, "order": order, "inputs": rng.normal(size=(4, width)), "seconds": one,
                "rest": REST_SECONDS, "passes": count, "steps": STEPS, "second": second, "options": options,
            }
            for one in seconds
        ]  # fmt: skip
        run = testbed.run("overlap", arguments=arguments, cluster=cluster)
        each = ring_all_reduce_seconds(layer_bytes, 4, cluster.bandwidth_bytes_per_second, cluster.latency_seconds)
        step = overlapped_step_seconds(_ready(max(seconds), count, order), [each] * LAYERS)
        ready = _milliseconds(_ready(SECONDS, count, order))
        expected = f"{STEPS} steps of {1e3 * step:.1f} ms, each with all-reduces that begin at {ready}"
        if run.failure:
            return Finding.failed(run, expected)
        groups = f"; a second group begins at place {second}" if second else ""
        told = f"in the order {_listed(order)} in the optimizer{groups}"
        layers = f"{LAYERS} layers of {width * width} numbers"
        given = "".join(f", {name}={value}" for name, value in options.items())
        where = f"4 ranks, {layers}, {told}, {count} backwards for a step, links of {bandwidth}{given}"
        if reason := _other_times(run, seconds, count, order, step):
            return Finding.of(observed=reason, expected=expected, passed=False, where=where)
        if abs(run.seconds - STEPS * step) > 1e-6:
            observed = f"{1e3 * run.seconds:.1f} ms for {STEPS} steps"
            return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    weights = _weights(rng)
    arguments = [{"weights": weights, "inputs": rng.normal(size=(4, WIDTH)), "counts": passes} for _ in range(2)]
    refused = "an AssertionError while gradients are exchanged or complete, and a ValueError for wrong options"
    for world in (2, 1):
        run = testbed.run("refusals", arguments=arguments[:world])
        if run.failure:
            return Finding.failed(run, refused)
        for rank, results in enumerate(run.results):
            for count, result in zip(passes, results, strict=True):
                for observed, is_so in result.items():
                    if is_so:
                        where = f"rank {rank} of {world}, {count} backwards for a step"
                        return Finding.of(observed=observed, expected=refused, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=3,
    hint="Count the exchanges of an update, and follow one gradient: divided, compressed, summed, and back.",
    how="synchronize once for each update, after the closure; divide before compress, and after decompress.",
)
def one_exchange_for_each_update(testbed: Testbed) -> Finding:
    """With and without clipping and closures, one backward or several, and every option; some layers stay at home."""
    for cases in _cases(testbed.rng):
        arguments = [{"cases": [case.arguments[rank] for case in cases]} for rank in range(cases[0].world)]
        run = testbed.run("updates", arguments=arguments)
        for place, case in enumerate(cases):
            expected = f"the {case.kind} of all ranks' own sums in every .grad, and the step that it makes"
            if run.failure:
                return Finding.failed(run, expected)
            if observed := case.about([results[place] for results in run.results]):
                return Finding.of(observed=observed, expected=expected, passed=False, where=case.told)
        seen = [(entry.kind, entry.num_bytes) for entry in run.log.collectives]
        seen += [("message", message.num_bytes) for message in run.log.messages]
        wanted = [("all_reduce", case.num_bytes) for case in cases for _ in range(case.exchanges)]
        if seen != wanted:
            expected = f"{_told(wanted)}: one for each trained layer and update"
            where = "; then ".join(case.told for case in cases)
            return Finding.of(observed=_told(seen), expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=3,
    hint="Which of the checks above is not yet green? They see each function by itself.",
    how="Get the checks above first. Then read how train.py calls what they check, and in which order.",
)
def the_training_script(testbed: Testbed) -> Finding:
    """train.py on drawn images, from a checkpoint that rank 0 alone has. What a rank never takes is NaN there."""
    rng = testbed.rng
    trainings = ((int(rng.choice((2, 4))), 0.0, "testbed"), (3, 0.5, "testbed"), (2, 0.5, "gloo"))
    cases = [_Script(rng, world, clip) for world, clip, _ in trainings]
    arguments = [{"cases": [case.of_one_process() for case in cases]}]
    every = testbed.run(
        "script_alone", arguments=arguments, student=False, start=False, deadline_seconds=len(cases) * 20.0
    ).results[0]
    for (world, clip, backend), case, alone in zip(trainings, cases, every, strict=True):
        run = testbed.run("script", arguments=case.of_ranks(alone["samples"]), start=False, backend=backend)
        expected = (
            "on every rank, in every batch, the parameters of one process with the joined batch; its test results"
        )
        if run.failure:
            return Finding.failed(run, expected)
        for rank, result in enumerate(run.results):
            where = f"rank {rank} of {world}, {'clipping' if clip else 'no clipping'}, {backend}"
            observed = _about_states(result["states"], alone["states"], before=True)
            if not observed and not _close(np.asarray(result["history"]), np.asarray(alone["history"])):
                found, right = _first(result["history"]), _first(alone["history"])
                observed = f"test loss and accuracy of the epochs: {found}; one process has {right}"
            if observed:
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


class _Model:
    """A model, whose tensors `broadcast_parameters` gets in one form, and what must come of it."""

    def __init__(self, rng: Generator, world: int, form: str, root: int) -> None:
        self.form, self.root = form, root
        self._states = [_state(rng) for _ in range(world)]
        kinds = ("weights", "buffers") if form == "state_dict" else ("weights",)
        tensors = [one for kind in kinds for one in self._states[root][kind]]
        self.needed = [*self._states[root]["weights"][:2], *tensors]  # what has to travel
        self.needed += [] if form in ("pairs", "iterator") else self._states[root]["weights"][2:3]  # its second name
        self.arguments = [
            {**state, "root": root, "order": [int(one) for one in rng.permutation(len(tensors))], "form": form}
            for state in self._states
        ]

    def about(self, result: Any, rank: int) -> str | None:
        """What is wrong with one rank's tensors."""
        root, own = self._states[self.root], self._states[rank]
        for kind in ("weights", "buffers"):
            source = root if self.form == "state_dict" or kind == "weights" else own
            for place, (found, right) in enumerate(zip(result[kind], source[kind], strict=True)):
                if found.dtype != right.dtype or not np.array_equal(found, right):
                    kept = np.array_equal(found, own[kind][place])
                    return f"{kind[:-1]} {place} {'is still its own' if kept else _other(found, right)}"
        for found, right in zip(result["first"], root["weights"], strict=False):
            if not np.array_equal(found, right):
                return f"what broadcast returns {_other(found, right)}"
        return None


class _Steps:
    """Steps by an optimizer: what each rank is given of every batch, and one process with the joined batches."""

    def __init__(self, rng: Generator, world: int, optimizer: str) -> None:
        self.optimizer = optimizer
        earlier = [rng.normal(size=(4, SMALL_WIDTH)), rng.normal(size=(4, SMALL_WIDTH))]
        self._same = {"optimizer": optimizer, "seed": int(rng.integers(2**31)), "earlier": earlier}
        self._batches = [_parts(rng, world) for _ in range(4)]

    def of(self, rank: int) -> dict[str, Any]:
        """One rank's part of each batch."""
        inputs, targets = zip(*(parts[rank] for parts in self._batches), strict=True)
        return {**self._same, "inputs": [*inputs], "targets": [*targets]}

    def of_one_process(self) -> dict[str, Any]:
        """Whole batches."""
        joined = [[np.concatenate(kind) for kind in zip(*parts, strict=True)] for parts in self._batches]
        return {**self._same, "inputs": [inputs for inputs, _ in joined], "targets": [right for _, right in joined]}


class _Script:
    """One training by train.py: its images, its checkpoint, and what each process is given of them."""

    def __init__(self, rng: Generator, world: int, clip: float) -> None:
        self.rng, self.world, self.batch, self.clip = rng, world, 6, clip
        self.count, self.test_count = 22 * world, 5 * world  # so that the last batch is a smaller one
        every = self.count + self.test_count
        self.images, self.classes = rng.uniform(size=(every, PIXELS)), rng.integers(CLASSES, size=every)
        self.checkpoint = {
            "file": "checkpoint.pt", "epoch": BEGUN,
            "seed": int(rng.integers(2**31)), "rate": float(rng.uniform(0.02, 0.05)),
        }  # fmt: skip

    def of_ranks(self, samples: list[list[int]]) -> list[dict[str, Any]]:
        """Each rank's own samples; rank 0 has the checkpoint."""
        return [self._of(rank, set(own), self.world) for rank, own in enumerate(samples)]

    def of_one_process(self) -> dict[str, Any]:
        """All samples, in batches as large as those of all ranks together; and what tells each rank's own samples."""
        samplers = {"world": self.world, "count": self.count, "epochs": list(range(BEGUN, EPOCHS))}
        return {"script": self._of(0, set(range(self.count)), 1), "samplers": samplers}

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

    passes: backwards for an update. clips: by update; 0: none. options: of the optimizer. calls: how often a step calls
    a closure; 0: steps without one. short: whether the second update has one backward less. large: how many times
    `LARGE` gradients reach, on all ranks alike; 0: as they come. second: whether some layers have another optimizer,
    which divides before the exchange. reset: how gradients become zero. idle: whether one rank makes no backward for
    the second update. by_hand: whether one rank sets its gradients itself. again: whether updates without clipping are
    synchronized once more. On one rank one layer has no gradient, in any update, and on all ranks another.
    """

    def __init__(
        self, rng: Generator, world: int, passes: int, clips: Sequence[float], *, reset: str = "to None",
        calls: int = 0, short: bool = False, large: float = 0.0, second: bool = False, idle: bool = False,
        by_hand: bool = False, again: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        layers = [int(one) for one in rng.choice(range(1, LAYERS - second), 4, replace=False)]
        frozen, other, missing = ([], [], layers[2:3]) if large else (layers[:1], layers[1:2], layers[2:3])
        nowhere = [] if large or second else layers[3:]
        other += [LAYERS - 1] if second else []  # whose gradients come first
        self.world, self.passes, self.clips, self.options, self.reset = world, passes, clips, options, reset
        self.calls = max(calls, 1)
        self.parts = [[layer for layer in range(LAYERS) if layer not in frozen + other], *([other] if second else [])]
        self.exchanged = sorted(layer for part in self.parts for layer in part)
        self.exchanges = (len(clips) * self.calls + again * clips.count(0.0)) * len(self.exchanged)
        self.compression = options.get("compression", "")
        self.num_bytes = WIDTH * WIDTH * {"fp16": 2, "single": 4}.get(self.compression, 8)
        self.kind = "sum" if options.get("op") == "Sum" else "mean"
        self.weights = _weights(rng)
        # With two optimizers, a rank that sends less beside backward would send in another order than the others.
        self.missing = [nowhere + (missing if rank == world - 1 and not second else []) for rank in range(world)]
        base, spread = (rng.normal(size=(4, WIDTH)), 0.01) if large else (np.zeros((4, WIDTH)), 1.0)
        counts = [passes - (short and update == 1) for update in range(len(clips))]
        self.inputs = [
            [
                [base + spread * rng.normal(size=(4, WIDTH)) for _ in range(count)]
                if (rank, update, idle) != (world - 1, 1, True) else []
                for update, count in enumerate(counts)
            ]
            for rank in range(world)
        ]  # fmt: skip
        self.scale, self.largest = 1.0, large * LARGE
        if large:
            own = [self._sums(self.weights, rank, 0)[1] for rank in range(world)]
            self.scale = self.largest / max(np.max(np.abs(layer)) for layers in own for layer in layers)
        self.arguments = [
            {
                "weights": self.weights, "inputs": inputs, "passes": passes, "clips": list(clips), "frozen": frozen,
                "others": other, "missing": missing, "scale": self.scale, "options": options, "closure": calls > 0,
                "calls": self.calls, "reset": reset, "second": second, "by_hand": by_hand and rank == world - 1,
                "again": again,
            }
            for rank, (inputs, missing) in enumerate(zip(self.inputs, self.missing, strict=True))
        ]  # fmt: skip
        given = "".join(f", {name}={value}" for name, value in options.items())
        steps = f"steps that call a closure {calls} times" if calls else "steps without closures"
        clipping = f"{'clipping' if any(clips) else 'no clipping'}, gradients set {reset}"
        several = ", two optimizers, of which the second divides before the exchange" if second else ""
        several += f", no backward of rank {world - 1} for update 2" if idle else ""
        several += ", synchronized before the step" if again else ""
        several += f", gradients set by hand on rank {world - 1}" if by_hand else ""
        self.told = f"{world} ranks, {_listed(counts)} backwards for the updates, {steps}, {clipping}{several}{given}"

    def about(self, results: Sequence[Any]) -> str | None:
        """What is wrong with the ranks' losses, gradients and weights of the updates."""
        weights = self.weights
        tolerance = {"fp16": HALF_CLOSE * self.largest, "single": SINGLE_CLOSE}.get(self.compression, CLOSE)
        gradients = [iter(result["gradients"]) for result in results]
        for update, clip in enumerate(self.clips):
            for call in range(self.calls):
                own = [self._sums(weights, rank, update) for rank in range(self.world)]
                sums = np.sum([layers for _, layers in own], axis=0)
                exchanged = {layer: sums[layer] / (1 if self.kind == "sum" else self.world) for layer in self.exchanged}
                for rank, result in enumerate(results):
                    where = f"rank {rank}, update {update + 1}"
                    loss = result["losses"][update]
                    close = SINGLE_CLOSE if self.compression else CLOSE
                    if call == 0 and (loss is None or not _close(loss, own[rank][0], close)):
                        told = "nothing" if loss is None else _first(loss)
                        return f"{where}: step returns {told}; the loss is {own[rank][0]:.6g}"
                    # What is clipped is seen in every call of a closure, and else what the last one leaves.
                    found = next(gradients[rank]) if clip or call == self.calls - 1 else exchanged
                    for layer, right in exchanged.items():
                        if found[layer] is None or not _near(found[layer], right, tolerance):
                            told = "no gradient" if found[layer] is None else _first(found[layer])
                            return f"{where}, layer {layer}: {told}; the {self.kind} is {_first(right)}"
                for part in self.parts:
                    factor = _clipping(clip, [exchanged[layer] for layer in part])
                    for layer in part:
                        weights = [
                            *weights[:layer],
                            weights[layer] - RATE * factor * exchanged[layer],
                            *weights[layer + 1 :],
                        ]
            for rank, result in enumerate(results):
                for layer, weight in enumerate(weights):
                    if not _near(result["weights"][update][layer], weight, RATE * tolerance + CLOSE):
                        where = f"rank {rank}, update {update + 1}, layer {layer}"
                        return f"{where}: other weights than the step makes of the right gradient"
        return self._about_resets(results)

    def _about_resets(self, results: Sequence[Any]) -> str | None:
        """What zero_grad left in place of None or, with set_to_none=False, of zeros."""
        for rank, result in enumerate(results):
            for found in result["resets"][1:]:
                for layer in self.exchanged:
                    zeros = found[layer] is not None and not np.any(found[layer])
                    if not (zeros if self.reset == "to zero" else found[layer] is None):
                        left = "None" if found[layer] is None else _first(found[layer])
                        return f"rank {rank}, layer {layer}: gradients set {self.reset} are {left}"
        return None

    def _sums(self, weights: list[Array], rank: int, update: int) -> tuple[float, list[Array]]:
        """The loss and the gradients of one rank, added up over the backwards of an update."""
        found = [_gradients(weights, batch, self.missing[rank]) for batch in self.inputs[rank][update]]
        zeros = np.zeros((WIDTH, WIDTH))
        gradients = [self.scale * sum((layers[layer] for _, layers in found), zeros) for layer in range(LAYERS)]
        return self.scale * sum(loss for loss, _ in found), gradients


def _clipping(clip: float, gradients: list[Array]) -> float:
    """What gradients are multiplied by, as torch's clip_grad_norm_ has it; clip: 0 for none."""
    norm = np.sqrt(sum(np.sum(gradient**2) for gradient in gradients))
    return float(min(1.0, clip / (norm + 1e-6))) if clip else 1.0


def _cases(rng: Generator) -> list[list[_Updates]]:
    """Every option, alone and with others. The cases of one list have one number of ranks, and make one run."""
    clip = float(rng.uniform(0.05, 0.1))
    even, odd = int(rng.choice((2, 4))), int(rng.choice(ODD))
    large = float(rng.uniform(3.0, 8.0))  # too large for half precision before the division, on each rank and together
    calls = int(rng.integers(2, 4))
    return [
        [
            _Updates(
                rng,
                even,
                1,
                (clip, 0.0),
                reset="by the model",
                idle=True,
                gradient_predivide_factor=float(rng.uniform(1.5, 4.0)),
            ),
            _Updates(rng, even, 1, (0.0,), large=large, compression="fp16", gradient_predivide_factor=large * even),
            _Updates(rng, even, 1, (0.0, clip), second=True, again=True, reset="to zero"),
        ],
        [
            _Updates(
                rng,
                odd,
                3,
                (0.0, clip, 0.0),
                short=True,
                compression="single",
                gradient_predivide_factor=float(rng.uniform(1.5, 4.0)),
            ),
            _Updates(rng, odd, 2, (0.0, 0.0), calls=calls, by_hand=True, op="Sum"),
            _Updates(rng, odd, 1, (clip, clip), calls=2, reset="to zero", compression="eighth"),
        ],
    ]


def _gradients(weights: list[Array], inputs: Array, missing: Sequence[int] = ()) -> tuple[float, list[Array]]:
    """The loss of the model of layers, and the gradient of each layer: the squares' sum of tanh after tanh.

    missing: layers that are left out; their gradients are zero.
    """
    values, used = [inputs], [layer for layer in range(len(weights)) if layer not in missing]
    for layer in used:
        values.append(np.tanh(values[-1] @ weights[layer]))
    arriving, gradients = 2 * values[-1], [np.zeros_like(weight) for weight in weights]
    for layer, before, after in zip(reversed(used), values[-2::-1], values[:0:-1], strict=True):
        arriving = arriving * (1 - after**2)
        gradients[layer] = before.T @ arriving
        arriving = arriving @ weights[layer].T
    return float(np.sum(values[-1] ** 2)), gradients


def _place(rank: object, size: object, local: object, local_size: object, met: Sequence[object]) -> str:
    told = f"rank {rank!r} of {size!r}, local rank {local!r} of {local_size!r}"
    return f"{told}, in one group with ranks {_listed(met)}"


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def _milliseconds(seconds: Sequence[float]) -> str:
    return ", ".join(f"{1e3 * one:.0f} ms" for one in seconds)


def _tensors(rng: Generator) -> list[Array]:
    """Numbers, matrices, vectors, an empty tensor, most shapes twice or more, and tensors of five types."""
    numbers, matrices = [np.asarray(rng.normal()) for _ in range(2)], [rng.normal(size=(30, 40)) for _ in range(4)]
    single = [rng.normal(size=size).astype(np.float32) for size in (5, 2000, 2000)]
    whole = [rng.integers(-(2**57), 2**57, size=(2, 3)), rng.integers(-(2**25), 2**25, size=2, dtype=np.int32)]
    half = rng.normal(size=300).astype(np.float16)
    return [*numbers, *matrices, *single, np.zeros(0), rng.normal(size=1), *whole, rng.normal(size=60), half]


def _optimizers(rng: Generator, optimizer: str, made_steps: list[int], root: int) -> list[dict[str, Any]]:
    """Each rank's optimizer: with settings of its own, after as many steps as it has made. The further step is for all.

    The root has a scheduler's initial_lr, too, as after a checkpoint.
    """
    shapes = [(60, 40), (5,), (), (2,)]
    further = [np.asarray(rng.normal(size=shape)) for shape in shapes]
    return [
        {
            "optimizer": optimizer, "root": root,
            "settings": [
                _settings(rng, optimizer, of_the_root=rank == root, amsgrad=(rank == root) == (root == 0))
                for _ in range(2)
            ],
            "gradients": [*([np.asarray(rng.normal(size=shape)) for shape in shapes] for _ in range(count)), further],
        }
        for rank, count in enumerate(made_steps)
    ]  # fmt: skip


def _settings(rng: Generator, optimizer: str, *, of_the_root: bool, amsgrad: bool) -> dict[str, Any]:
    """All settings of a group of parameters that a script may choose. The root's are not the default ones.

    amsgrad: with it, Adam keeps one tensor more for each parameter.
    """
    chosen = {"lr": float(rng.uniform(0.05, 0.5)), "weight_decay": float(rng.uniform(0.01, 0.1))}
    if of_the_root:
        chosen |= {"maximize": True, "initial_lr": float(rng.uniform(0.5, 1.0))}
    if optimizer == "Adam":
        betas = [float(one) for one in rng.uniform(0.5, 0.99, 2)]
        return {**chosen, "betas": betas, "eps": float(10 ** rng.uniform(-8, -4)), "amsgrad": amsgrad}
    return {**chosen, "momentum": float(rng.uniform(0.5, 0.99)), "nesterov": of_the_root}


def _weights(rng: Generator, width: int = WIDTH) -> list[Array]:
    return [rng.normal(size=(width, width)) / width**0.5 for _ in range(LAYERS)]


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
    if numbers.dtype == object:
        return "no tensor"
    form = "" if np.issubdtype(numbers.dtype, np.integer) else ".6g"
    return f"{', '.join(f'{number:{form}}' for number in numbers[:3])}{', ...' if numbers.size > 3 else ''}"


def _other(found: Any, right: Array, tolerance: float = 0.0) -> str:
    """What is wrong with an array, from its type to its first wrong number. tolerance: 0 for none, as of integers."""
    found = np.asarray(found)
    if found.dtype == object:
        return "is no tensor"
    for name in ("dtype", "shape"):
        if (its := getattr(found, name)) != (wanted := getattr(right, name)):
            return f"has {name} {its}, and not {wanted}"
    near = np.isclose(found, right, rtol=tolerance, atol=tolerance) if tolerance else found == right
    first = int(np.argmin(near))
    form = ".9g" if right.dtype.kind == "f" else ""
    return f"has {found.flat[first]:{form}} as number {first} of {right.size}, and not {right.flat[first]:{form}}"


def _told(exchanges: Sequence[tuple[str, int]]) -> str:
    """Kinds and bytes of exchanges in words, in their order: how many of one kind and size follow each other."""
    told = [f"{len(list(same))} {kind} of {size} bytes" for (kind, size), same in groupby(exchanges)]
    return ", then ".join(told) or "no exchange"


def _about_tensor(found: Any, after: Any, own: Array, right: Array) -> str | None:
    """What is wrong with one rank's result. own, after: what it gave, and what that is later."""
    found = np.asarray(found)
    if not np.array_equal(after, own):
        return "the argument changes, at once or with the result"
    if found.dtype != own.dtype:
        return f"a tensor of {found.dtype} for one of {own.dtype}"
    if own.dtype.kind == "i":
        return None if np.array_equal(found, right) else f"the result {_other(found, right.astype(own.dtype))}"
    close = {"float64": CLOSE, "float32": SINGLE_CLOSE, "float16": HALF_SUM_CLOSE}[own.dtype.name]
    return None if _close(found, right, close) else f"the result {_other(found, right.astype(own.dtype), close)}"


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


def _more_than_rings(run: Run, tensors: Sequence[Array], cluster: Cluster) -> str | None:
    """What took longer than a ring all-reduce of each tensor, or what a link carried more, or less."""
    from distsim.testbed.costs import collective_seconds  # the testbed needs torch, which a list of labs does without

    world, speed = cluster.workers, cluster.bandwidth_bytes_per_second
    rounds = 2 * (world - 1)
    padded = sum(rounds / world * (one.nbytes + (world - 1) * one.itemsize) for one in tensors)  # cut into even pieces
    carried = max(run.log.bytes_sent(rank) for rank in range(world)) + sum(
        speed * collective_seconds(entry.kind, entry.num_bytes, entry.ranks, cluster.model_copy(update=WITHOUT_LATENCY))
        for entry in run.log.collectives
    )
    most = padded / speed + rounds * cluster.latency_seconds * len(tensors)
    if run.seconds > most + CLOSE:
        return f"{1e3 * run.seconds:.1f} ms for {len(tensors)} tensors, where rings take {1e3 * most:.1f} ms"
    if not rounds / world * sum(one.nbytes for one in tensors) - CLOSE <= carried <= padded + CLOSE:
        return f"{carried:,.0f} bytes on the busiest link, where rings need {padded:,.0f} bytes at most"
    return None


def _more_than_from_the_root(run: Run, num_bytes: int, count: int) -> str | None:
    """What travels beside so many bytes of so many tensors of the root; None where nothing does."""
    if others := sorted({entry.kind for entry in run.log.collectives} - FROM_THE_ROOT):
        return f"a collective to which not only the root gives, or nobody: {', '.join(others)}"
    seen = sum(entry.num_bytes for entry in (*run.log.collectives, *run.log.messages))
    return f"{seen:,} bytes travel" if seen > num_bytes + count * ENVELOPE_BYTES else None


def _other_order(rng: Generator) -> list[int]:
    """The layers in an order in which both halves are turned, so that some gradients wait for their turn."""
    half = LAYERS // 2
    return [first + int(layer) for first in (0, half) for layer in np.roll(range(half), rng.integers(1, half))]


def _ready(seconds: float, passes: int, order: Sequence[int]) -> list[float]:
    """When each layer's exchange may begin, after the start of a step, in the order of the exchanges.

    A backward takes `seconds` in a layer. order: of the layers in the optimizer, of which the last one is the first.
    """
    before = (passes - 1) * LAYERS * seconds
    whole = bucket_ready_seconds(before, LAYERS * seconds, [1] * LAYERS)[::-1]  # by layer
    return [float(one) for one in np.maximum.accumulate(whole[[*reversed(order)]])]


def _other_times(run: Run, seconds: Sequence[float], passes: int, order: Sequence[int], step: float) -> str | None:
    """What is wrong with when ranks computed, or when they began an exchange; None where nothing is.

    seconds: of a layer's backward, by rank. order: of the layers in the optimizer. step: the seconds of a step. The
    time of a step alone could be made up by a rank that leaves out its computing, and waits in the end.
    """
    for rank, own in enumerate(seconds):
        ready = [start * step + one for start in range(STEPS) for one in _ready(own, passes, order)]
        posted = [entry.posted_seconds[entry.ranks.index(rank)] for entry in run.log.collectives]
        if len(posted) != len(ready):
            return f"rank {rank} begins {len(posted)} collectives, not {len(ready)}"
        if not np.allclose(posted, ready, atol=1e-6):
            late = int(np.argmin(np.isclose(posted, ready, atol=1e-6))) // LAYERS
            found = [one - late * step for one in posted[late * LAYERS : (late + 1) * LAYERS]]
            return f"rank {rank} begins the collectives of step {late + 1} at {_milliseconds(found)}"
        layers = [own * (number + 1) for number in range(passes * LAYERS)]
        busy = [start * step + one for start in range(STEPS) for one in (*layers, layers[-1] + REST_SECONDS)]
        ends = [one.end_seconds for one in run.log.busy if one.rank == rank]
        if len(ends) != len(busy) or not np.allclose(ends, busy, atol=1e-6):
            return f"rank {rank} does not compute its {LAYERS} layers one right after the other, in every backward"
    return None
