"""What lab 12 asks of tasks.py. Weights, batches, gradients, sizes and times are drawn from `testbed.rng`.

The space of the inputs:
* worlds of 1 to 5 ranks; float64 and float32;
* pipelines: more and fewer micro-batches than stages, micro-batches of different sizes, orders of GPipe and 1F1B,
  backwards in another order; stages that differ in width and speed, have no weight, two weights, a weight that comes
  twice, frozen ones alone; weights that two stages share, trained or frozen; activations that are not contiguous;
  several steps, and several models in one process;
* split layers: sizes that ranks divide and others, fewer outputs than ranks; with and without bias; frozen weights and
  biases; a layer that comes twice, two layers with one weight; inputs of one to three dimensions, with and without
  gradient, not contiguous; gradients that are expanded, not contiguous, or used elsewhere;
* Adam: numbers that ranks divide and others, fewer numbers than ranks; frozen, tied, empty, single-number and
  not contiguous parameters; gradients that are missing on one rank or on all; rates that change; two optimizers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.policies import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from distsim.testbed import Run, Testbed

Array = NDArray[Any]
Part = Literal["results", "exchanges", "times", "memory"]  # of what a run is judged by, in this order
Fault = tuple[str, str, str]  # observed, expected, where

FAST = {"bandwidth": "10 GB/s", "latency": "1 us"}
SLOW = 5.0  # times the seconds of another stage
MOST_LATE = 0.0005  # seconds; all messages of a step together take less
PACES = np.array([[10, 16], [6, 20], [14, 10], [8, 24], [12, 14]]) / 1000  # seconds of each stage's forward and
# backward of a sample; a drawn part of a few percent comes on top, so that every seed has the same bottlenecks
CLOSE = {"float64": 1e-9, "float32": 1e-4}
TOTAL = 7  # times a sum: the sum, and three times that of twice the values
ITEM_BYTES = {"float64": 8, "float32": 4}
SPARE_BYTES = 64  # of an optimizer's state, for a count of steps
SPARE_MICRO_BATCHES = 1
MANY = 60  # numbers of a parameter's row: a share takes far more bytes than the spare ones
AGAINST_THE_RULES = 0.5  # of the points are for right results that break another rule
ANOTHER_RULE = "This is right where this check looks. Another check asks for the broken rule, and says more."
FEATURES = 6  # of a split layer's inputs, which 1, 2 and 3 ranks divide and 4 and 5 do not


@check(
    points=2,
    hint="How many forwards come before the first backward? What if there are fewer micro-batches than stages?",
    how="GPipe: all forwards, all backwards. 1F1B: min(p - 1 - s, m) forwards, then one and one, then what is left.",
)
def order_of_the_pieces(testbed: Testbed) -> Finding:
    """Both schedules, for every stage of pipelines with more, as many and fewer micro-batches."""
    many, few, stages_too = _whole(testbed, 6, 10), _whole(testbed, 2, 4), _whole(testbed, 6, 9)
    sizes = [(1, 3), (2, 1), (3, 3), (4, many), (5, few), (stages_too, 6)]
    cases = [
        [stage, stages, count, schedule]
        for stages, count in sizes
        for stage in range(stages)
        for schedule in ("gpipe", "1f1b")
    ]
    run = testbed.run("orders", arguments=[{"cases": cases}])
    if run.failure:
        return Finding.failed(run, "the order of the pieces of each stage")
    for case, found in zip(cases, run.results[0]["orders"], strict=True):
        stage, stages, count, schedule = case
        right = _order(stage, stages, count, schedule)
        if found != right:
            where = f"stage {stage} of {stages}, {count} micro-batches, {schedule}"
            return _wrong(_pieces(found), _pieces(right), where)
    return _fine("the pieces of every stage, in order")


@check(
    points=3,
    hint="Do all samples count alike? Which micro-batch is a gradient for? How does a message lie in memory?",
    how="Keep input and output of each micro-batch by its number; weigh its loss by its share of the batch's samples.",
)
def pipeline_as_one_process(testbed: Testbed) -> Finding:
    """Gradients and loss of the whole model, for batches of equal and unequal micro-batches, in three orders."""
    for stages, models in (
        (1, [{"samples": [2, 1, 3]}]),
        (4, [{"samples": [3, 3, 2, 2, 1, 1], "schedule": "1f1b", "turned": [1, 2], "steps": 2}]),
        (2, [{"samples": [2, 2, 2]}, {"samples": [1, 3, 2, 1], "backwards": True, "dtype": "float32"}]),
        (3, [{"samples": [1, 2], "schedule": "1f1b", "dtype": "float32"}, {"samples": [2], "turned": [0]}]),
    ):
        if lost := _lost_in_pipelines(testbed, stages, models, {"results"}):
            return lost
    return _fine("the gradients and the mean loss of one process, on every stage")


@check(
    points=3,
    hint="What does a stage wait for between two pieces, and what of a micro-batch is kept after its backward?",
    how="isend; wait for the send of an activation when its gradient has come back, and then let go of both.",
)
def no_stage_waits_or_keeps(testbed: Testbed) -> Finding:
    """Each piece begins when its input is there. Stages are equal, or some are slow; 1F1B keeps few activations."""
    for stages, models in (
        (3, [{"samples": [1] * 9, "schedule": "1f1b", "equal": True}, {"samples": [2, 1] * 4, "schedule": "1f1b"}]),
        (4, [
            {"samples": [1] * 5, "equal": True, "slow": 0},
            {"samples": [1, 2, 2, 1, 1], "backwards": True, "slow": 3},
            {"samples": [1, 2] * 4, "schedule": "1f1b", "slow": 1},
        ]),
        (5, [{"samples": [1, 2] * 5, "schedule": "1f1b"}, {"samples": [1] * 6, "equal": True}]),
    ):  # fmt: skip
        if lost := _lost_in_pipelines(testbed, stages, models, {"times", "memory", "exchanges"}):
            return lost
    return _fine("each piece as soon as its input is there, and no more activations than the schedule needs")


@check(
    points=2,
    hint="What must a stage with frozen parameters still send? Which gradients have two stages to sum, and when?",
    how="Call backward only if the output requires a gradient; all_reduce the sums of tied ones after all backwards.",
)
def frozen_and_tied_stages(testbed: Testbed) -> Finding:
    """Stages with frozen weights, some or all; without weights; weights of two stages."""
    for stages, models in (
        (4, [
            {"samples": [2, 1, 1, 2], "schedule": "1f1b", "frozen": {0: [0, 1], 2: [0]}, "tied": [[1, 3]], "empty": [2],
             "turned": [3]},
            {"samples": [1, 2], "frozen": {0: [1], 1: [0], 2: [0, 1]}, "tied": [[0, 3], [1, 2]]},
        ]),
        (3, [
            {"samples": [2, 3], "tied": [[0, 2]], "twice": [0, 1], "steps": 2},
            {"samples": [1, 1, 2], "schedule": "1f1b", "empty": [0], "tied": [[1, 2]], "frozen": {1: [0], 2: [0]}},
        ]),
        (2, [{"samples": [1, 2, 1], "frozen": {0: [0, 1], 1: [0, 1]}}, {"samples": [1, 1], "tied": [[0, 1]]}]),
    ):  # fmt: skip
        if lost := _lost_in_pipelines(testbed, stages, models, {"results", "exchanges"}):
            return lost
    return _fine("as one process, with frozen and tied parameters")


@check(
    points=3,
    hint="Which rows or columns has each rank? How often is the bias added? What else uses a gradient?",
    how="Sum a contiguous copy; add the bias of a row layer after the sum; clone a part, so that the whole is let go.",
)
def split_layers_as_one_process(testbed: Testbed) -> Finding:
    """Outputs and gradients of models of split layers, and the two sums by themselves; the parts and their memory."""
    for world in (2, 3, 4, 1):
        if lost := _lost_in_split(testbed, world, {"results", "memory"}):
            return lost
    return _fine("outputs, gradients and parts as of one process")


@check(
    points=2,
    hint="What travels in forward, and what in backward? What if nobody needs the gradient of the inputs?",
    how="A row layer has one all_reduce in forward, a column layer one in backward; autograd skips what is needless.",
)
def one_all_reduce_each_way(testbed: Testbed) -> Finding:
    """The collectives that the network has seen, and their bytes."""
    for world in (2, 5):
        if lost := _lost_in_split(testbed, world, {"exchanges"}):
            return lost
    return _fine("one all_reduce for each row layer in forward, and for each column layer in backward")


@check(
    points=3,
    hint="Is the gradient the mean over all ranks? Which step is it? What is one parameter, and what is none?",
    how="Each trained parameter once, all in one flat tensor; the mean of the gradients; Adam on your own share.",
)
def sharded_adam_as_one_process(testbed: Testbed) -> Finding:
    """All parameters after each step, on each rank, against Adam with the mean of the gradients."""
    for world in (3, 4, 1):
        if lost := _lost_in_adam(testbed, world, {"results"}):
            return lost
    return _fine("the parameters of one process with Adam, after every step and on every rank")


@check(
    points=2,
    hint="How many numbers has a rank's share, and what does a rank keep beside it? How often do tensors travel?",
    how="Means of n / N numbers, rounded up; one reduce_scatter of all gradients, one all_gather of all parameters.",
)
def a_share_of_the_state(testbed: Testbed) -> Finding:
    """The bytes of all tensors that a rank keeps between steps, and the collectives of each step."""
    for world in (2, 5):
        if lost := _lost_in_adam(testbed, world, {"memory", "exchanges"}):
            return lost
    return _fine("two numbers of state for each number of a rank's share, and two collectives in a step")


# Pipelines


@dataclass(frozen=True)
class _Model:
    """A pipeline's model and batch. Lists are by stage, or by micro-batch.

    weights: of each stage, of shape (inputs, outputs). paths: the places of a stage's weights, in the order in which
    activations meet them. tied: groups of stages whose first weights are one.
    """

    dtype: str
    weights: list[list[Array]]
    paths: list[list[int]]
    frozen: list[list[int]]
    seconds: list[list[float]]
    turned: list[int]
    orders: list[list[list[Any]]]
    inputs: list[Array]
    targets: list[Array]
    tied: list[list[int]]
    steps: int

    @classmethod
    def drawn(
        cls, testbed: Testbed, stages: int, *, samples: list[int], schedule: str = "gpipe", backwards: bool = False,
        turned: Sequence[int] = (), steps: int = 1, dtype: str = "float64", equal: bool = False,
        slow: int = -1, frozen: dict[int, list[int]] | None = None, tied: Sequence[list[int]] = (),
        empty: Sequence[int] = (), twice: Sequence[int] = (),
    ) -> _Model:  # fmt: skip
        """samples: of each micro-batch. backwards: whether the last micro-batch has the first backward.

        equal: whether stages take the same time. slow: a stage that takes some times longer. empty, twice: stages
        without weight, and those whose first weight comes twice.
        """
        rng, frozen = testbed.rng, frozen or {}
        alike = bool(tied) or bool(empty) or bool(twice)  # one width for all
        widths = [_whole(testbed, 3, 6)] * (stages + 1) if alike else [_whole(testbed, 2, 7) for _ in range(stages + 1)]
        weights, paths = [], []
        for stage in range(stages):
            rows, columns = widths[stage : stage + 2]
            shapes = [] if stage in empty else [(rows, columns), (columns, columns)]
            weights.append([np.asarray(rng.normal(size=one) / rows**0.5, dtype=dtype) for one in shapes])
            paths.append([*range(len(shapes)), *([0] if stage in twice else [])])
        for first, second in tied:
            weights[second][0] = weights[first][0]
        count = len(samples)
        orders = [_order(stage, stages, count, schedule) for stage in range(stages)]
        if backwards:
            orders = [[*order[:count], *reversed(order[count:])] for order in orders]
        return cls(
            dtype=dtype,
            weights=weights,
            paths=paths,
            frozen=[[place for place in frozen.get(stage, []) if weights[stage]] for stage in range(stages)],
            seconds=[
                (PACES[0 if equal else stage] * drawn * (SLOW if stage == slow else 1.0)).tolist()
                for stage, drawn in enumerate([rng.uniform(1.0, 1.03, 2)] * stages)
            ],
            turned=list(turned),
            orders=orders,
            inputs=[rng.normal(size=(rows, widths[0])).astype(dtype) for rows in samples],
            targets=[rng.normal(size=(rows, widths[-1])).astype(dtype) for rows in samples],
            tied=list(tied),
            steps=steps,
        )

    @property
    def stages(self) -> int:
        """The number of stages."""
        return len(self.weights)

    def argument(self, stage: int) -> dict[str, Any]:
        """For the driver of one stage."""
        last = stage == self.stages - 1
        width = self.width(stage - 1) if stage else 0
        return {
            "weights": self.weights[stage], "path": self.paths[stage], "frozen": self.frozen[stage],
            "seconds": self.seconds[stage], "turned": stage in self.turned, "order": self.orders[stage],
            "inputs": [] if stage else self.inputs, "arriving": [[len(one), width] for one in self.inputs],
            "targets": self.targets if last else [], "groups": self.tied, "steps": self.steps, "dtype": self.dtype,
            "tied": [[0, number] for number, pair in enumerate(self.tied) if stage in pair],
        }  # fmt: skip

    def width(self, stage: int) -> int:
        """The features of the activations that leave a stage."""
        widths = [one[-1].shape[1] for one in self.weights[: stage + 1] if one]
        return widths[-1] if widths else self.inputs[0].shape[1]

    def right(self) -> tuple[float, list[list[Array | None]]]:
        """The batch's mean loss, and each weight's gradient by stage: None where the weight is frozen."""
        values = [np.concatenate(self.inputs).astype(np.float64)]
        places = [(stage, place) for stage, path in enumerate(self.paths) for place in path]
        for stage, place in places:
            values.append(np.tanh(values[-1] @ self.weights[stage][place]))
        rest = values[-1] - np.concatenate(self.targets)
        gradient = 2.0 * rest / len(rest)
        found = [[np.zeros(one.shape) for one in weights] for weights in self.weights]
        for (stage, place), before, after in reversed(list(zip(places, values, values[1:], strict=False))):
            inner = gradient * (1.0 - after**2)
            found[stage][place] = found[stage][place] + before.T @ inner
            gradient = inner @ self.weights[stage][place].T
        for pair in self.tied:
            total = sum(found[stage][0] for stage in pair)
            for stage in pair:
                found[stage][0] = total
        kept = [
            [None if place in self.frozen[stage] else one for place, one in enumerate(gradients)]
            for stage, gradients in enumerate(found)
        ]
        return float((rest**2).sum() / len(rest)), kept

    def exchanges(self) -> tuple[dict[tuple[int, int], list[int]], list[tuple[tuple[int, ...], int]]]:
        """Bytes of the messages of a step, by source and target; ranks and bytes of each all_reduce."""
        messages: dict[tuple[int, int], list[int]] = {}
        for stage in range(self.stages - 1):
            size = ITEM_BYTES[self.dtype] * self.width(stage)
            for way, pair in (("forward", (stage, stage + 1)), ("backward", (stage + 1, stage))):
                order = [micro for one, micro in self.orders[pair[0]] if one == way]
                messages[pair] = [size * len(self.inputs[micro]) for micro in order]
        trained = [pair for pair in self.tied if 0 not in self.frozen[pair[0]]]
        return messages, [(tuple(pair), self.weights[pair[0]][0].nbytes) for pair in trained]

    def spans(self) -> list[list[tuple[str, float, float]]]:
        """When each stage computes what in a step, if each piece begins as soon as its input is there."""
        over: dict[tuple[int, str, int], float] = {}
        now, left = [0.0] * self.stages, [list(order) for order in self.orders]
        made: list[list[tuple[str, float, float]]] = [[] for _ in self.weights]
        idle = self.without_backward()
        while any(left):
            for stage, order in enumerate(left):
                while order:
                    way, micro = order[0]
                    ahead = way == "forward"
                    source = stage - 1 if ahead else stage + 1
                    there = over.get((source, way, micro)) if 0 <= source < self.stages else 0.0
                    if there is None:
                        break
                    start = max(now[stage], there)
                    seconds = self.seconds[stage][not ahead] * len(self.inputs[micro])
                    if not ahead and stage < idle:
                        seconds, start = 0.0, now[stage]
                    else:
                        made[stage].append((way, start, start + seconds))
                    now[stage] = over[stage, way, micro] = start + seconds
                    order.pop(0)
        return made

    def without_backward(self) -> int:
        """1 if nothing on stage 0 needs a gradient, else 0: every other stage makes the gradient that it sends."""
        return int(set(self.paths[0]) <= set(self.frozen[0]))

    def most_held(self, stage: int) -> list[int]:
        """The number of micro-batches whose activations a stage must hold, at the end of each forward."""
        found, held = [], 0
        for way, _ in self.orders[stage]:
            held += 1 if way == "forward" else -1
            if way == "forward":
                found.append(held)
        return found


def _lost_in_pipelines(
    testbed: Testbed, stages: int, options: Sequence[dict[str, Any]], asked: Collection[Part]
) -> Finding | None:
    models = [_Model.drawn(testbed, stages, **one) for one in options]
    arguments = [{"cases": [model.argument(stage) for model in models]} for stage in range(stages)]
    run = testbed.run("pipeline", arguments, cluster=Cluster.model_validate({"workers": stages, **FAST}))
    judges: dict[Part, Callable[[], Fault | None]] = {
        "results": lambda: _first(_pipeline_results(run, models)),
        "exchanges": lambda: _first(_pipeline_exchanges(run, models)),
        "times": lambda: _first(_pipeline_times(run, models)),
        "memory": lambda: _first(_pipeline_memory(run, models)),
    }
    return _lost(run, judges, asked, "one step of the pipeline as of one process")


def _pipeline_results(run: Run, models: Sequence[_Model]) -> Iterator[Fault]:
    for number, model in enumerate(models):
        loss, gradients = model.right()
        for stage, result in enumerate(run.results):
            case = result["cases"][number]
            for step, found in enumerate(case["steps"]):
                where = f"stage {stage} of {model.stages}, batch {step} of model {number}"
                expected = "the gradient of the batch's mean loss"
                for place, (one, right) in enumerate(zip(found["gradients"], gradients[stage], strict=True)):
                    if not _close(one, right, model.dtype):
                        yield _about(one, right), expected, f"{where}, weight {place}"
                if stage < model.stages - 1:
                    if found["loss"] is not None:
                        yield "a loss", "None on each stage but the last", where
                elif found["loss"] is None or not np.allclose(found["loss"], loss, rtol=CLOSE[model.dtype]):
                    yield f"the loss {found['loss']}", f"{loss:.6g}, the mean over all samples", where
                elif found["history"]:
                    yield "a loss with its history", "a loss without (`detach`)", where
            if any(not np.array_equal(*both) for both in zip(case["weights"], model.weights[stage], strict=True)):
                yield "weights were changed", "only gradients change", f"stage {stage} of {model.stages}"


def _pipeline_exchanges(run: Run, models: Sequence[_Model]) -> Iterator[Fault]:
    """The barriers before steps are the driver's."""
    starts = _starts(run)
    steps = [model for model in models for _ in range(model.steps)]
    if len(starts) != len(steps):
        yield "barriers beside the messages", "messages, and an all_reduce for each tied parameter", "all stages"
        return
    for number, (model, start, end) in enumerate(zip(steps, starts, [*starts[1:], np.inf], strict=True)):
        messages, sums = model.exchanges()
        where = f"step {number} of {model.stages} stages"
        within = [one for one in run.log.messages if start <= one.posted_seconds < end]
        for source, target in {(one.source, one.target) for one in within} | set(messages):
            own = [one for one in within if (one.source, one.target) == (source, target)]
            found = [one.num_bytes for one in sorted(own, key=lambda one: one.posted_seconds)]
            due = messages.get((source, target), [])
            if found != due:
                told = f"messages of {found} bytes" if found else "no message"
                right = f"messages of {due} bytes" if due else "no message"
                yield told, right, f"{where}, from stage {source} to stage {target}"
        seen = [
            (one.kind, one.ranks, one.num_bytes)
            for one in run.log.collectives
            if one.kind != "barrier" and start <= one.started_seconds < end
        ]
        due_sums = [("all_reduce", *one) for one in sums]
        if sorted(seen) != sorted(due_sums):
            yield _told(seen), _told(due_sums), where
    if run.log.unwaited:
        yield str(run.log.unwaited[0]), "a wait for each message, before the step ends", "all stages"


def _pipeline_times(run: Run, models: Sequence[_Model]) -> Iterator[Fault]:
    steps = [model for model in models for _ in range(model.steps)]
    starts = _starts(run)
    if len(starts) != len(steps):
        return
    for stage in range(len(run.results)):
        own = [one for one in run.log.busy if one.rank == stage]
        for number, (model, start, end) in enumerate(zip(steps, starts, [*starts[1:], np.inf], strict=True)):
            due = model.spans()[stage]
            found = [
                (one.kind, one.start_seconds - start, one.end_seconds - start)
                for one in own
                if start <= one.start_seconds < end
            ]
            where = f"stage {stage} of {model.stages}, step {number}"
            kinds, right = [kind for kind, *_ in found], [kind for kind, *_ in due]
            if kinds != right:
                yield f"the stage computes {', '.join(kinds)}", ", ".join(right), where
                continue
            for place, (seen, piece) in enumerate(zip(found, due, strict=True)):
                if abs(seen[1] - piece[1]) > MOST_LATE:
                    told = f"piece {place}, a {seen[0]}, begins after {1e3 * seen[1]:.1f} ms"
                    yield told, f"{1e3 * piece[1]:.1f} ms: its input is there then", where


def _pipeline_memory(run: Run, models: Sequence[_Model]) -> Iterator[Fault]:
    for number, model in enumerate(models):
        for stage, result in enumerate(run.results):
            for step, found in enumerate(result["cases"][number]["steps"]):
                for held, most in zip(found["held"], model.most_held(stage), strict=True):
                    if held > most + SPARE_MICRO_BATCHES:
                        rule = f"{most} of a backward to come, and {SPARE_MICRO_BATCHES} more for a moment"
                        where = f"stage {stage} of {model.stages}, step {step}, {len(model.inputs)} micro-batches"
                        yield f"activations of {held} micro-batches in memory", rule, where


def _starts(run: Run) -> list[float]:
    return [one.ended_seconds for one in run.log.collectives if one.kind == "barrier"]


def _order(stage: int, stages: int, micro_batches: int, schedule: str) -> list[list[Any]]:
    policy = Pipeline(micro_batches=micro_batches, schedule=schedule)  # type: ignore[arg-type]
    return [list(piece) for piece in policy.order(stage, stages)]


def _pieces(order: Sequence[Sequence[Any]]) -> str:
    return " ".join(f"{str(kind)[:1].upper()}{micro}" for kind, micro in order) or "no piece"


# Split layers


@dataclass(frozen=True)
class _Split:
    """A model of pairs of split layers, as in `ranks.py`. layers: weight and bias of each; the bias may be None."""

    dtype: str
    layers: list[list[Any]]
    hidden: int
    path: list[int]
    tied: bool
    frozen: list[list[int]]
    inputs: Array
    needed: bool
    turned: bool
    factors: Array

    @classmethod
    def drawn(
        cls, testbed: Testbed, *, hidden: int, shape: list[int], dtype: str = "float64", biased: bool = True,
        path: Sequence[int] = (0,), tied: bool = False, frozen: Sequence[list[int]] = (), needed: bool = True,
        turned: bool = False,
    ) -> _Split:  # fmt: skip
        """hidden: of each pair's features between its layers. shape: of the inputs without their features."""
        rng, layers = testbed.rng, []
        for _ in range(max(path) + 1):
            for outputs, inputs in ((hidden, FEATURES), (FEATURES, hidden)):
                weight = rng.normal(size=(outputs, inputs)).astype(dtype)
                layers.append([weight, rng.normal(size=outputs).astype(dtype) if biased else None])
        values, factors = (rng.normal(size=(*shape, FEATURES)).astype(dtype) for _ in range(2))
        return cls(dtype, layers, hidden, list(path), tied, list(frozen), values, needed, turned, factors)

    def argument(self) -> dict[str, Any]:
        """For the driver."""
        return {
            "layers": self.layers, "path": self.path, "tied": self.tied, "frozen": self.frozen, "inputs": self.inputs,
            "needed": self.needed, "turned": self.turned, "factors": self.factors,
        }  # fmt: skip

    def right(self) -> tuple[Array, Array, list[list[Array]]]:
        """The outputs, the gradient of the inputs, and those of each layer's weight and bias."""
        layers = [
            [weight, np.zeros(FEATURES if number % 2 else self.hidden) if bias is None else bias]
            for number, (weight, bias) in enumerate(self.layers)
        ]
        if self.tied:
            layers[2][0] = layers[0][0]
        values, seen = self.inputs.reshape(-1, FEATURES).astype(np.float64), []
        for pair in self.path:
            (first, shift), (second, last) = layers[2 * pair], layers[2 * pair + 1]
            hidden = np.tanh(values @ first.T + shift)
            seen.append((values, hidden))
            values = values + hidden @ second.T + last
        gradient = self.factors.reshape(-1, FEATURES).astype(np.float64)
        found = [[np.zeros(one.shape) for one in layer] for layer in layers]
        for pair, (before, hidden) in zip(reversed(self.path), reversed(seen), strict=True):
            inner = (gradient @ layers[2 * pair + 1][0]) * (1.0 - hidden**2)
            for number, (out, entered) in ((2 * pair + 1, (gradient, hidden)), (2 * pair, (inner, before))):
                found[number][0] += out.T @ entered
                found[number][1] += out.sum(axis=0)
            gradient = gradient + inner @ layers[2 * pair][0]
        if self.tied:
            found[0][0] += found[2][0]
            found[2][0] = found[0][0]
        return values.reshape(self.inputs.shape), gradient.reshape(self.inputs.shape), found

    def exchanges(self) -> list[tuple[str, int]]:
        """Kind and bytes, in order: one for each layer of the path, but a first one whose inputs need no gradient."""
        return [("all_reduce", self.inputs.nbytes)] * (2 * len(self.path) - (not self.needed))

    def is_frozen(self, layer: int, place: int) -> bool:
        """Whether this weight (0) or bias (1) is frozen. A tied weight is the first layer's."""
        return [0 if self.tied and (layer, place) == (2, 0) else layer, place] in self.frozen


@dataclass(frozen=True)
class _Sum:
    """One of the two sums by itself. values, factors: by rank; without factors the gradient is expanded."""

    name: str
    turned: bool
    values: list[Array]
    factors: list[Array]

    @classmethod
    def drawn(cls, testbed: Testbed, world: int, name: str, *, turned: bool, expanded: bool, dtype: str) -> _Sum:
        """The gradient of a sum of parts is the same on every rank; the inputs of the other one are."""
        shape = (_whole(testbed, 2, 5), 3)
        values, factors = ([testbed.rng.normal(size=shape).astype(dtype) for _ in range(world)] for _ in range(2))
        if name == "SumOfParts":
            factors = factors[:1] * world
        return cls(name, turned, values, [np.zeros(0)] * world if expanded else factors)

    def right(self, rank: int) -> dict[str, Array]:
        """What the driver hands back on a rank."""
        own = [one if len(one) else np.ones(self.values[0].shape) for one in self.factors]
        sums = self.name == "SumOfParts"
        return {
            "result": TOTAL * (np.sum(self.values, axis=0) if sums else self.values[rank]),
            "gradient": TOTAL * (own[rank] if sums else np.sum(own, axis=0)),
            "given gradient": own[rank],
        }


def _lost_in_split(testbed: Testbed, world: int, asked: Collection[Part]) -> Finding | None:
    sizes = [0, 1, world - 1, world, world + 1, 3 * world, _whole(testbed, 10, 40)]
    sums = [
        _Sum.drawn(testbed, world, name, turned=turned, expanded=expanded, dtype=dtype)
        for name in ("SumOfGradients", "SumOfParts")
        for turned, expanded, dtype in ((False, False, "float64"), (True, False, "float32"), (False, True, "float64"))
    ]
    models = [
        _Split.drawn(testbed, **one)
        for one in (
            {"hidden": 2 * world + 1, "shape": [3], "path": [0, 1]},
            {"hidden": 2 * world, "shape": [2, 3], "dtype": "float32", "path": [0, 1, 0], "biased": False},
            {"hidden": 3 * world - 1, "shape": [4], "frozen": [[0, 0], [1, 1]], "turned": True},
            {"hidden": world + 1, "shape": [2], "path": [0, 1], "tied": True, "needed": False},
            {"hidden": max(world - 1, 1), "shape": [], "frozen": [[0, 1], [1, 0]], "needed": False},
            {"hidden": world, "shape": [2], "frozen": [[0, 0], [0, 1], [1, 0], [1, 1]], "dtype": "float32"},
        )
    ]
    arguments = [
        {
            "sizes": sizes,
            "sums": [
                {"name": one.name, "turned": one.turned, "values": one.values[rank], "factors": one.factors[rank]}
                for one in sums
            ],
            "models": [model.argument() for model in models],
        }
        for rank in range(world)
    ]
    run = testbed.run("split", arguments)
    due = [("all_reduce", one.values[0].nbytes) for one in sums for _ in range(2)]
    due += [one for model in models for one in model.exchanges()]
    judges: dict[Part, Callable[[], Fault | None]] = {
        "results": lambda: _first(_split_results(run, world, sizes, sums, models)),
        "exchanges": lambda: _collectives(run, due),
        "memory": lambda: _first(_split_memory(run, world, models)),
    }
    return _lost(run, judges, asked, "layers that give what one process gives")


def _split_results(
    run: Run, world: int, sizes: Sequence[int], sums: Sequence[_Sum], models: Sequence[_Split]
) -> Iterator[Fault]:
    for rank, result in enumerate(run.results):
        on = f"rank {rank} of {world}"
        for size, part in zip(sizes, result["parts"], strict=True):
            right = _part(size, world, rank)
            if part != [right.start, right.stop]:
                yield f"the part {part}", f"{[right.start, right.stop]}", f"{on}, {size} rows"
        for case, found in zip(sums, result["sums"], strict=True):
            for name, one in case.right(rank).items():
                if not _close(found[name], one, str(case.values[0].dtype)):
                    about = f"{name} of {case.name}: {_about(found[name], one, 'right one')}"
                    yield about, "what the function's text says", on
            if found["changed"]:
                yield f"{case.name} changes the tensor that it is given", "it stays as it is", on
        for number, (model, found) in enumerate(zip(models, result["models"], strict=True)):
            yield from _model_results(model, found, world, rank, f"{on}, model {number}")


def _model_results(model: _Split, found: dict[str, Any], world: int, rank: int, where: str) -> Iterator[Fault]:
    outputs, gradient, gradients = model.right()
    if not _close(found["outputs"], outputs, model.dtype):
        yield f"outputs: {_about(found['outputs'], outputs, 'right one')}", "outputs as of one process", where
    if not _close(found["gradient"], gradient if model.needed else None, model.dtype):
        told = _about(found["gradient"], gradient if model.needed else None)
        yield f"of the inputs: {told}", "the gradient as of one process", where
    if found["changed"]:
        told = "the parameters of the whole layer have a gradient, or change when the optimizer changes the parts"
        yield told, "parts that share nothing with them", where
    for number, layer in enumerate(model.layers):
        about = f"{where}, {'row' if number % 2 else 'column'} layer {number}"
        names = [name for name, one in zip(("weight", "bias"), layer, strict=True) if one is not None]
        own = [found[what][number] for what in ("parameters", "trained", "gradients")]
        if sorted(own[0]) != sorted(names):
            yield f"parameters {sorted(own[0])}", f"{sorted(names)}", about
            continue
        for place, name in enumerate(names):
            whole = model.layers[0][0] if model.tied and (number, place) == (2, 0) else layer[place]
            parameter, trained, slope = (one[name] for one in own)
            frozen = model.is_frozen(number, place)
            if not _close(parameter, _share(whole, number, place, world, rank), model.dtype):
                yield f"another {name}", "this rank's part of the whole one", about
            elif trained is frozen:
                yield f"a {name} that is {'trained' if trained else 'frozen'}", "as the whole one", about
            elif not _close(
                slope, None if frozen else _share(gradients[number][place], number, place, world, rank), model.dtype
            ):
                right = None if frozen else _share(gradients[number][place], number, place, world, rank)
                yield f"{name}: {_about(slope, right)}", "the part of one process's gradient", about


def _split_memory(run: Run, world: int, models: Sequence[_Split]) -> Iterator[Fault]:
    for rank, result in enumerate(run.results):
        for model, found in zip(models, result["models"], strict=True):
            for number, layer in enumerate(model.layers):
                shares = [_share(one, number, place, world, rank) for place, one in enumerate(layer) if one is not None]
                most = sum(one.nbytes for one in shares)
                if found["bytes"][number] > most:
                    told = f"the parameters of a layer hold {found['bytes'][number]} bytes of memory"
                    yield told, f"{most} bytes: of this rank's part alone", f"rank {rank} of {world}"


def _part(size: int, world: int, rank: int) -> slice:
    ends = np.cumsum([0, *(len(one) for one in np.array_split(np.zeros(size), world))]).tolist()
    return slice(ends[rank], ends[rank + 1])


def _share(whole: Any, layer: int, place: int, world: int, rank: int) -> Array:
    """A rank's part of a weight (place 0) or bias (1) of a column layer (even) or row layer (odd)."""
    if layer % 2:
        return np.asarray(whole if place else whole[:, _part(whole.shape[1], world, rank)])
    return np.asarray(whole[_part(len(whole), world, rank)])


# Sharded Adam


@dataclass(frozen=True)
class _Adam:
    """Parameters and what happens to them. gradients: by rank, step and parameter."""

    dtype: str
    parameters: list[Array]
    gradients: list[list[list[Array | None]]]
    rates: list[float]
    frozen: list[int] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)
    turned: list[int] = field(default_factory=list)
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    optimizers: int = 1

    @classmethod
    def drawn(
        cls, testbed: Testbed, world: int, *, shapes: list[list[int]], steps: int = 3, dtype: str = "float64",
        missing: Sequence[tuple[int, int]] = (), nowhere: Sequence[tuple[int, int]] = (), **options: Any,
    ) -> _Adam:  # fmt: skip
        """missing: steps and parameters without a gradient on one rank. nowhere: those without any."""
        rng = testbed.rng
        gradients = [
            [[np.asarray(rng.normal(size=shape), dtype=dtype) for shape in shapes] for _ in range(steps)]
            for _ in range(world)
        ]
        for step, place in missing:
            gradients[_whole(testbed, 0, world)][step][place] = None
        for step, place in nowhere:
            for own in gradients:
                own[step][place] = None
        return cls(
            dtype=dtype,
            parameters=[np.asarray(rng.normal(size=shape), dtype=dtype) for shape in shapes],
            gradients=gradients,
            rates=rng.uniform(0.01, 0.2, steps).tolist(),
            **options,
        )

    @property
    def share(self) -> int:
        """The numbers of one rank's share."""
        numbers = sum(one.size for place, one in enumerate(self.parameters) if place not in self.frozen)
        return -(-numbers // len(self.gradients))

    def argument(self, rank: int) -> dict[str, Any]:
        """For the driver of one rank."""
        return {
            "parameters": self.parameters, "frozen": self.frozen, "twice": self.twice, "turned": self.turned,
            "rates": self.rates, "betas": list(self.betas), "eps": self.eps, "gradients": self.gradients[rank],
            "optimizers": self.optimizers,
        }  # fmt: skip

    def right(self) -> list[list[Array]]:
        """All parameters after each step."""
        values = [one.astype(np.float64) for one in self.parameters]
        means, squares = ([np.zeros(one.shape) for one in values] for _ in range(2))
        (first, second), found = self.betas, []
        for step, rate in enumerate(self.rates, 1):
            for place in set(range(len(values))) - set(self.frozen):
                own = [one[step - 1][place] for one in self.gradients]
                mean = np.sum([one for one in own if one is not None], axis=0) / len(own)
                means[place] = first * means[place] + (1 - first) * mean
                squares[place] = second * squares[place] + (1 - second) * mean**2
                root = np.sqrt(squares[place] / (1 - second**step)) + self.eps
                values[place] = values[place] - rate * means[place] / (1 - first**step) / root
            found.append([one.copy() for one in values])
        return found


def _lost_in_adam(testbed: Testbed, world: int, asked: Collection[Part]) -> Finding | None:
    some = _whole(testbed, 2, 6)
    options: list[dict[str, Any]] = [
        {"shapes": [[MANY, some], [], [0], [3, MANY], [5]], "frozen": [3], "twice": [0, 4], "turned": [0],
         "missing": [(0, 0), (1, 4)], "nowhere": [(1, 1)]},
        {"shapes": [[world, MANY], [world]], "dtype": "float32", "betas": (0.5, 0.9), "eps": 1e-3, "steps": 2},
        {"shapes": [[1], [2, 2]], "frozen": [1], "steps": 2, "betas": (0.8, 0.7)},
        {"shapes": [[world * MANY + 1]], "steps": 2, "nowhere": [(1, 0)], "optimizers": 2},
    ]  # fmt: skip
    cases = [_Adam.drawn(testbed, world, **one) for one in options]
    run = testbed.run("adam", [{"cases": [case.argument(rank) for case in cases]} for rank in range(world)])
    due = [
        (kind, world * case.share * ITEM_BYTES[case.dtype])
        for case in cases
        for _ in range(case.optimizers * len(case.rates))
        for kind in ("reduce_scatter", "all_gather")
    ]
    judges: dict[Part, Callable[[], Fault | None]] = {
        "results": lambda: _first(_adam_results(run, cases)),
        "exchanges": lambda: _collectives(run, due),
        "memory": lambda: _first(_adam_memory(run, cases)),
    }
    return _lost(run, judges, asked, "parameters as of one process with Adam")


def _adam_results(run: Run, cases: Sequence[_Adam]) -> Iterator[Fault]:
    for number, case in enumerate(cases):
        right = case.right()
        for rank, result in enumerate(run.results):
            found = result["cases"][number]
            for step, (values, due) in enumerate(zip(found["steps"], right, strict=True)):
                for place, both in enumerate(zip(values, due * case.optimizers, strict=True)):
                    if not _close(*both, case.dtype):
                        where = f"rank {rank} of {len(run.results)}, model {number}, step {step + 1}, parameter {place}"
                        kind = "a frozen parameter has changed" if place in case.frozen else "other numbers"
                        yield f"{kind} ({_about(*both, 'right one')})", "as of one process with Adam", where
            if found["moved"]:
                yield "parameters lie elsewhere in memory", "parameters that are changed in place", f"rank {rank}"


def _adam_memory(run: Run, cases: Sequence[_Adam]) -> Iterator[Fault]:
    for number, case in enumerate(cases):
        most = case.optimizers * (2 * case.share * ITEM_BYTES[case.dtype] + SPARE_BYTES)
        for rank, result in enumerate(run.results):
            for step, found in enumerate(result["cases"][number]["bytes"]):
                if found > most:
                    numbers = f"two numbers for each of the {case.share} of its share, and {SPARE_BYTES} bytes"
                    numbers += f", for each of {case.optimizers} optimizers" if case.optimizers > 1 else ""
                    where = f"rank {rank} of {len(run.results)}, model {number}, after step {step + 1}"
                    yield f"a rank keeps {found} bytes of tensors", f"{most} bytes: {numbers}", where


# For all of them


def _lost(
    run: Run, judges: dict[Part, Callable[[], Fault | None]], asked: Collection[Part], expected: str
) -> Finding | None:
    """Why points are lost by this run, if any are. Every run of the student's code is judged by every part.

    asked: what the check is about; a fault there costs all of its points, and another fault costs a part of them.
    """
    if run.failure:
        return Finding.failed(run, expected)
    for part, judge in sorted(judges.items(), key=lambda one: one[0] not in asked):
        if (fault := judge()) is not None:
            observed, rule, where = fault
            if part in asked:
                return Finding.of(observed=observed, expected=rule, passed=False, where=where)
            return Finding.of(
                observed=observed, expected=rule, share=AGAINST_THE_RULES, where=where, hint=ANOTHER_RULE
            )  # fmt: skip
    return None


def _first(faults: Iterator[Fault]) -> Fault | None:
    return next(faults, None)


def _collectives(run: Run, due: Sequence[tuple[str, int]]) -> Fault | None:
    """A rank that is alone may leave out all exchanges."""
    seen = [(one.kind, one.num_bytes) for one in run.log.collectives]
    world = len(run.results)
    if run.log.messages:
        return f"{len(run.log.messages)} messages", "collectives alone", f"{world} ranks"
    if run.log.unwaited:
        return str(run.log.unwaited[0]), "a wait for each exchange", f"{world} ranks"
    if seen == list(due) or (world == 1 and not seen):
        return None
    place = next((number for number, both in enumerate(zip(seen, due, strict=False)) if both[0] != both[1]), None)
    if place is None:
        return f"{len(seen)} exchanges", f"{len(due)}", f"{world} ranks"
    return _told(seen[place : place + 1]), _told(due[place : place + 1]), f"{world} ranks, exchange {place}"


def _told(exchanges: Sequence[Sequence[Any]]) -> str:
    return ", ".join(f"{one[0]} of {one[-1]} bytes" for one in exchanges) or "no exchange"


def _close(found: Any, right: Any, dtype: str) -> bool:
    if right is None or found is None:
        return found is None and right is None
    alike = found.shape == right.shape and found.dtype == dtype
    return alike and np.allclose(found, right, rtol=CLOSE[dtype], atol=CLOSE[dtype])


def _about(found: Any, right: Any, name: str = "right gradient") -> str:
    if found is None:
        return f"nothing where there is a {name}"
    if right is None:
        return "a gradient where there is none"
    if found.shape != right.shape:
        return f"the shape {list(found.shape)} in place of {list(right.shape)}"
    if not np.isfinite(found).all():
        return f"{found.dtype} numbers with nan or inf among them, in place of the {name}"
    with np.errstate(over="ignore"):  # bytes that were taken for another type may be any number
        far = np.abs(found - right).max(initial=0.0) / max(np.abs(right).max(initial=0.0), 1e-300)
    return f"{found.dtype} numbers that differ from the {name} by up to {far:.2g} times its largest number"


def _fine(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)


def _wrong(observed: str, expected: str, where: str) -> Finding:
    return Finding.of(observed=observed, expected=expected, passed=False, where=where)


def _whole(testbed: Testbed, least: int, below: int) -> int:
    return int(testbed.rng.integers(least, below))
