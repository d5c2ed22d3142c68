"""What lab 14 asks of tasks.py. States, sizes, seeds and moments are drawn from `testbed.rng`.

The space of the inputs:
* the first save, one over another, one after a killed one; killed before each call that changes files, at several bytes
  of a write, and after the return; with and without a loss of power; another checkpoint in the same folder;
* states with tensors of several types, numpy arrays, tuples, None and keys that are no texts;
* SGD with momentum and Adam, two groups with two rates, schedules, batch normalization; snapshots that are restored in
  a new training, twice, and in one that has gone on;
* worlds of 1 to 5 ranks; epochs that batches and ranks divide or not; positions at the beginning, in the middle and at
  the end of an epoch, also of a later one; several failures, in one process and in new ones; more ranks and fewer;
* checkpoints that take far less time than it takes until a failure, as much, and more.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.grading import Finding, check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from distsim.testbed import Run, Testbed

WIDTH = 5  # of the networks
CLOSE = 1e-9  # losses are float64; a state that is missing changes far more
NEVER = 10**6  # an update that no training reaches
EVERY = 3  # updates between two checkpoints of the trainings with failures
NAME = "model.checkpoint"  # as in ranks.py
AGAIN = 7  # between the seeds of two checkpoints, as in ranks.py
STOP, END = 4, 8  # of the trainings with a snapshot
WITHIN = 0.01  # of the best useful share
WHOLE = "the state of the last complete save, or the new one, whole"


@check(
    points=3,
    hint="What lies at path while save is writing? What does load find if that is half a file?",
    how="Write a new file beside path. When the file is whole, put it in its place: os.replace changes names at once.",
)
def whole_after_a_kill(testbed: Testbed) -> Finding:
    """Real kills; the states that were loaded come from another process, which knows nothing but the files."""
    return _lost_in_saves(testbed, power=False) or _fine(WHOLE)


@check(
    points=2,
    hint="What is safe at the moment of the rename: the content of the new file, and the name? What does flush do?",
    how="file.flush(), os.fsync(file.fileno()), os.replace; then os.open the folder, and os.fsync that, too.",
)
def whole_after_a_loss_of_power(testbed: Testbed) -> Finding:
    """As after a kill; but contents and names since the last fsync may be lost."""
    return _lost_in_saves(testbed, power=True) or _fine(WHOLE)


@check(
    points=3,
    hint="Which numbers does the next update use that are not parameters? Does the snapshot share any memory?",
    how="state_dict of model, optimizer and schedule, and three generators' states; copy.deepcopy, in restore as well.",
)
def snapshot_of_everything(testbed: Testbed) -> Finding:
    """Losses after `restore` in a new process, beside those of a training that was never disturbed."""
    seed = _whole(testbed, 0, 10**6)
    counts = [_whole(testbed, 5, 100), _whole(testbed, 2, 9), _whole(testbed, 1, 50)]
    kinds = [
        {"seed": _whole(testbed, 0, 2**31), "width": WIDTH, "optimizer": name, "buffers": True}
        for name in ("sgd", "adam", "sgd with warm restarts")
    ]
    inputs, targets = testbed.rng.normal(size=(4 * END, WIDTH)), testbed.rng.normal(size=(4 * END, 1))
    data = {"inputs": inputs, "targets": targets, "end": END}
    right = testbed.run("undisturbed", arguments=[{"kinds": kinds, "seed": seed, **data}], student=False)
    if right.failure:
        raise RuntimeError(right.failure)
    expected = "the losses of a training that was never disturbed"
    given = {"kinds": kinds, "seed": seed, "counts": counts, "stop": STOP, **data}
    taken = testbed.run("snapshots", arguments=[given])
    if taken.failure:
        return Finding.failed(taken, expected)
    for one, due, kind in zip(taken.results[0], right.results[0], kinds, strict=True):
        if told := _about_losses(one["losses"], due):
            return _wrong(f"snapshot has changed the training: {told}", expected, kind["optimizer"])
    given = {
        "kinds": kinds, "states": [one["state"] for one in taken.results[0]], "seed": seed + 10, "stop": STOP, **data,
    }  # fmt: skip
    back = testbed.run("restores", arguments=[given])
    if back.failure:
        return Finding.failed(back, expected)
    rounds = ("in a new training", "again, after it has gone on", "in a training that has made updates")
    for found, due, kind in zip(back.results[0], right.results[0], kinds, strict=True):
        for one, name in zip(found, rounds, strict=True):
            where = f"{kind['optimizer']}, restored {name}"
            if told := _about_losses(one["losses"], due[2 * STOP :]):
                return _wrong(told, expected, where)
            if one["counts"] != counts:
                return _wrong(f"update, epoch, done: {_listed(one['counts'])}", _listed(counts), where)
            if not one["same"]:
                return _wrong("another object than before", "the same model, optimizer, schedule, parameters", where)
    return _fine(expected)


@check(
    points=2,
    hint="On what does the order depend? Take 11 samples, batches of 4, and compare 2 ranks with 3.",
    how="One generator of your own from (seed, epoch) shuffles; slice order[done:] by batch, and a slice by ranks.",
)
def samples_that_are_left(testbed: Testbed) -> Finding:
    """Three worlds take the samples of the same epochs, in updates of one sample and of more, from any place on."""
    expected = "in any world the same samples in each update, each once, in even shares"
    seed = _whole(testbed, 0, 10**6)
    epochs = []  # count, batch, seed, epoch
    for count, batch in ((_whole(testbed, 40, 60), 8), (24, 6), (13, 5), (7, 2)):
        one = _whole(testbed, 1, 10**4) if count != 24 else 0
        epochs += [(count, batch, one, 0), (count, batch, one, _whole(testbed, 2, 30)), (count, batch, one + 1, 0)]
    cases = []
    for count, batch, one, epoch in epochs:
        case = {"count": count, "batch": batch, "seed": one, "epoch": epoch}
        places = {0, batch, batch * (count // batch // 2), batch * ((count - 1) // batch), count}
        places |= {batch * _whole(testbed, 0, count // batch - 1) + _whole(testbed, 1, batch - 1)}
        cases += [case | {"batch": 1, "done": 0}, *(case | {"done": done} for done in sorted(places))]
    cases = [cases[number] for number in testbed.rng.permutation(len(cases))]
    right = testbed.run("begun_and_drawn", arguments=[{"kinds": [], "seeds": [seed]}], student=False, start=False)
    [drawn] = right.results[0]["drawn"]
    orders: dict[tuple[int, ...], list[int]] = {}
    for world in (1, 2, int(testbed.rng.choice([3, 5]))):
        run = testbed.run("samples", arguments=[{"cases": cases, "seed": seed}] * world)
        if run.failure:
            return Finding.failed(run, expected)
        if run.log.collectives or run.log.messages:
            return _wrong("ranks exchange messages", "nothing goes over the network", f"{world} ranks")
        whole = sorted(range(len(cases)), key=lambda number: (cases[number]["done"], cases[number]["batch"]))
        for number in whole:
            case = cases[number]
            where = ", ".join(f"{name} {value}" for name, value in case.items()) + f", {world} ranks"
            found = [result[number] for result in run.results]
            if told := _about_samples([one["updates"] for one in found], case, orders):
                return _wrong(*told, where)
            if any(not np.allclose(one["drawn"], drawn) for one in found):
                return _wrong("a global generator draws other numbers afterwards", "as it was", where)
    for (one, here), (other, there) in itertools.combinations(orders.items(), 2):
        if one[0] == other[0] > 20 and here == there:
            return _wrong("the same order again", "another epoch or seed has another order", f"{one} and {other}")
    if any(here == list(range(one[0])) for one, here in orders.items() if one[0] > 20):
        return _wrong("the samples come by their numbers", "in a random order")
    return _fine(expected)


@check(
    points=2,
    hint="Who opens files, when may another rank go on, and whose generators does the checkpoint hold?",
    how="all_gather_object the generators; rank 0 saves; then a barrier. In resume, each rank takes its own.",
)
def one_writes_for_all(testbed: Testbed) -> Finding:
    """Each call that changes files takes a second of virtual time, so a rank that does not wait sees it."""
    worlds = (3, 1, 2)
    counts = [_whole(testbed, 5, 50), _whole(testbed, 1, 9), _whole(testbed, 1, 50)]
    kinds = {world: _kind(testbed) for world in worlds}
    others = {world: kinds[world] | {"seed": kinds[world]["seed"] + 1} for world in worlds}
    seeds = {world: [[_whole(testbed, 0, 10**6) for _ in range(2)] for _ in range(world)] for world in worlds}
    fresh = [_whole(testbed, 0, 10**6) for _ in worlds]  # of the ranks that resume
    flat = [*fresh, *(seed + AGAIN for seed in fresh), *(seed for own in seeds.values() for one in own for seed in one)]
    given = {"kinds": [*kinds.values(), *others.values()], "seeds": flat}
    right = testbed.run("begun_and_drawn", arguments=[given], student=False, start=False).results[0]
    draws = dict(zip(flat, right["drawn"], strict=True))
    expected = "rank 0 writes, and every rank goes on when the checkpoint is complete"
    saved: dict[int, Any] = {0: {}}
    for world in worlds:
        given = {"kind": kinds[world], "files": {}, "counts": counts}
        run = testbed.run("together", arguments=[given | {"seeds": own} for own in seeds[world]], shared=True)
        if run.failure:
            return Finding.failed(run, expected)
        if told := _about_writers(run):
            return _wrong(told, "rank 0 alone changes files", f"{world} ranks")
        final = [result["saved"] for result in run.results]
        for rank, number in itertools.product(range(world), range(2)):
            one, where = final[rank][number], f"rank {rank} of {world}, checkpoint {number + 1}"
            if not one["later"]:
                return _wrong("no file in the end", "a checkpoint", where)
            if one["at once"] != final[0][number]["later"]:
                return _wrong("save_together returned before the files were complete", expected, where)
            if not np.allclose(one["drawn"], draws[seeds[world][rank][number]]):
                return _wrong("a generator draws other numbers after save_together", "as if nothing was saved", where)
        saved[world] = final[0][1]["later"]
        own = [[[False, [0, 0, 0]], right["weights"][len(worlds) + worlds.index(world)], draws[seed]] for seed in fresh]
        states = [own[:world]]  # what resume may bring back: nothing, the first checkpoint, the second one
        for number in range(2):
            there, weights = [True, [counts[0] + number, *counts[1:]]], right["weights"][worlds.index(world)]
            states.append([[there, weights, draws[seeds[world][rank][number]]] for rank in range(world)])
        given = {"kind": others[world]}
        arguments = [given | {"seed": seed} for seed in fresh[:world]]
        if lost := _lost_in_crashes(testbed, final[0], states, arguments):
            return lost
    expected = "each rank gets back the training and its own generators"
    for before, now in ((3, 3), (3, 2), (2, 3), (0, 2)):
        place = worlds.index(before or now)
        own = [seeds[before][rank][1] if rank < before else fresh[rank] for rank in range(now)]
        given = {"kind": others[worlds[place]], "files": saved[before]}
        run = testbed.run("resumed", arguments=[given | {"seed": seed} for seed in fresh[:now]], shared=True)
        if run.failure:
            return Finding.failed(run, expected)
        there = [bool(before), [counts[0] + 1, *counts[1:]] if before else [0, 0, 0]]
        weights = right["weights"][place if before else len(worlds) + place]
        again = [draws[seed + AGAIN] for seed in fresh]
        if told := _about_resume(run, there, weights, [draws[seed] for seed in own], again):
            return _wrong(told, expected, f"{now} ranks, {f'saved by {before}' if before else 'nothing was saved'}")
    return _fine("one checkpoint, of all ranks")


@check(
    points=3,
    hint="Compare the first update after the restart: its samples, its rate, its momentum, each rank's random numbers.",
    how="resume; for each of updates_left: step, count update and done; at the epoch's end begin the next one.",
)
def the_same_losses(testbed: Testbed) -> Finding:
    """Two failures in one process, then a new process; checkpoints at an epoch's end and in the middle of one."""
    for world, fails, optimizer, updates in (
        (2, [5, 5, 8], "sgd", 16), (3, [4, 11], "adam", 16), (1, [5, 10], "sgd", 18)
    ):  # fmt: skip
        if lost := _lost_in_training(testbed, world, [world], fails, updates, _kind(testbed, optimizer)):
            return lost
    return _fine("after each restart, the losses of a training without failures")


@check(
    points=3,
    hint="Which samples come after the restart with 2 ranks, if 3 ranks have made 4 updates? How many in one update?",
    how="Save how many samples of the epoch are done, not how many steps or samples of one rank; the batch is of all.",
)
def another_number_of_ranks(testbed: Testbed) -> Finding:
    """More ranks and fewer; here the losses need no random numbers."""
    for before, after, fails, updates in ((3, [2], [5, 5, 8], 18), (2, [3, 1], [4, 11], 15), (1, [4], [5, 10], 15)):
        kind = _kind(testbed, noise=False)
        if lost := _lost_in_training(testbed, before, after, fails, updates, kind):
            return lost
    return _fine("with another number of ranks, the samples and losses of a training without failures")


@check(
    points=2,
    hint="How often does some rank fail? What happens to Young's rule where a checkpoint takes as long as that?",
    how="M = mean_seconds / ranks. Daly 2006 has the next terms; or search the best t / (exp((t + C) / M) - 1).",
)
def an_interval_near_the_best(testbed: Testbed) -> Finding:
    """From a cost of a hundred-thousandth of the time between failures to ten times this time."""
    cases = []
    for ratio in (1e-5, 1e-3, 0.03, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 10.0):
        ranks, mean = _whole(testbed, 1, 2000), float(testbed.rng.uniform(1e3, 1e6))
        share = ratio * testbed.rng.uniform(0.9, 1.1)
        cases.append({"write_seconds": float(share * mean / ranks), "mean_seconds": mean, "ranks": ranks})
    expected = f"an interval whose useful share is within {WITHIN:.0%} of the best"
    run = testbed.run("intervals", arguments=[{"cases": cases}])
    if run.failure:
        return Finding.failed(run, expected)
    for case, found in zip(cases, run.results[0], strict=True):
        mean = case["mean_seconds"] / case["ranks"]
        best = _best(case["write_seconds"] / mean)
        where = ", ".join(f"{name} {value:.4g}" for name, value in case.items())
        if not found > 0 or math.isinf(found):
            return _wrong(f"{found:.4g} s", f"about {best * mean:.4g} s", where)
        share = _useful(found / mean, case["write_seconds"] / mean) / _useful(best, case["write_seconds"] / mean)
        if not share >= 1 - WITHIN:
            observed = f"{found:.4g} s, with {share:.1%} of the best useful share"
            return _wrong(observed, f"{expected}; the best is {best * mean:.4g} s", where)
    return _fine(expected)


def _lost_in_saves(testbed: Testbed, *, power: bool) -> Finding | None:
    """Why points are lost by these saves, if any are. power: whether the machine loses power, too."""
    states = [_state(testbed) for _ in range(4)]
    shares = sorted(testbed.rng.uniform(0.1, 0.9, size=2).tolist())
    given = {"states": states[:3], "beside": states[3], "shares": shares}
    run = testbed.run("saves", arguments=[given], start=False)
    if run.failure:
        return Finding.failed(run, WHOLE)
    third = _state(testbed)
    if run.results[0]["left_open"] > 0 and not power:
        return _wrong("save or load leaves files open", "what is opened is closed")
    rights = testbed.run("right_states", arguments=[{"states": [*states, third]}], student=False, start=False)
    *saved, beside, again = [_text(one) for one in rights.results[0]]
    series = run.results[0]["series"]
    moments = [(number, one) for number, rows in enumerate(series) for one in [*rows["left"], rows["done"]]]
    folders = [folder for _, one in moments for folder in _left(one, power=power)]
    before = [rows["before"] for rows in series]
    different: list[Any] = []
    for folder in [*folders, *before]:
        if folder not in different:
            different.append(folder)
    given = {"folders": different, "contents": run.results[0]["contents"], "third": third}
    loaded = testbed.run("loads", arguments=[given], start=False)
    if loaded.failure:
        return Finding.failed(loaded, WHOLE)
    found = [{name: _text(value) for name, value in one.items()} for one in loaded.results[0]]
    nothing = _text(f"{type(None).__name__} None")
    for number, one in moments:
        old = found[different.index(before[number])]["state"]
        if old not in ([nothing], saved[:1], saved[:2])[number]:
            due = ("load gives None", "the state of save 1", "the state of save 1 or 2")[number]
            return _wrong(_told_state(old, saved, nothing), due, f"before {_series(number)}")
        where = f"{_series(number)}, {'power lost' if power else 'killed'} {one['moment']}"
        if one["error"]:
            return _wrong(one["error"], "save has no error", where)
        strange = [name for name in one["files"] if not name.startswith(NAME) and name not in series[number]["before"]]
        if strange and not power:
            return _wrong(f"save has written {_listed(strange)}", f"a name that begins with {NAME}, as path's", where)
        for folder in _left(one, power=power):
            seen = found[different.index(folder)]
            good = [saved[number]] if one is series[number]["done"] else [old, saved[number]]
            if seen["state"] not in good:
                return _wrong(_told_state(seen["state"], saved, nothing), _expected(good, nothing), where)
            if seen["beside"] != beside:
                return _wrong("the other checkpoint of the folder is not as it was", "it stays as it is", where)
            if seen["again"] != again:
                observed = _told_state(seen["again"], saved, nothing)
                return _wrong(f"after one more save, {observed}", "the state of this save", where)
    return None


def _left(one: dict[str, Any], *, power: bool) -> list[dict[str, int]]:
    """The files that may be there after one kill. A loss of power takes away what is not safe, or leaves it."""
    return [one["files"], *(one["powerless"] if power else [])]


def _series(number: int) -> str:
    return ("the first save", "a save over another", "a save after a killed one")[number]


def _told_state(seen: str, saved: Sequence[str], nothing: str) -> str:
    if seen == nothing:
        return "load gives None"
    if seen in saved:
        return f"load gives the state of save {saved.index(seen) + 1}"
    if "'error'" in seen[:12]:
        return f"an error: {seen[11:-2]}"
    return "load gives another state than was saved"


def _expected(good: Sequence[str], nothing: str) -> str:
    if len(good) == 1:
        return "load gives the new state once save has returned"
    return "load gives None or the new state, whole" if good[0] == nothing else f"load gives {WHOLE}"


def _text(value: Any) -> str:
    """A loaded state, comparable: arrays as their numbers."""
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)


def _state(testbed: Testbed) -> dict[str, Any]:
    """Tensors of two types, and numbers; the ranks add what cannot travel."""
    length = _whole(testbed, 150, 400)
    return {
        "numbers": testbed.rng.normal(size=length).astype("float32"),
        "matrix": testbed.rng.normal(size=(3, length // 3)),
        "empty": np.zeros((0, 2)),
        "update": _whole(testbed, 0, 10**6),
        "rate": float(testbed.rng.uniform()),
    }


def _about_losses(found: Sequence[float], due: Sequence[float]) -> str:
    """What is observed if losses differ; there are two for each update, the second one in evaluation."""
    if len(found) != len(due):
        return f"{len(found)} losses in place of {len(due)}"
    wrong = np.flatnonzero(~np.isclose(found, due, rtol=CLOSE, atol=CLOSE))
    if not wrong.size:
        return ""
    first = int(wrong[0])
    part = "in evaluation" if first % 2 else "in training"
    return f"update {first // 2 + 1} {part}: loss {found[first]:.6g} in place of {due[first]:.6g}"


def _about_samples(
    updates: Sequence[list[list[int]]], case: dict[str, int], orders: dict[tuple[int, ...], list[int]]
) -> tuple[str, str] | None:
    """What is observed and expected, if ranks take the wrong samples. updates: by rank.

    orders: of whole epochs, by count, seed and epoch. The first case of each has updates of one sample: they tell it.
    """
    count, batch, done = case["count"], case["batch"], case["done"]
    due = -(-(count - done) // batch)
    for rank, own in enumerate(updates):
        if len(own) != due:
            return f"rank {rank} has {len(own)} updates", f"{due} updates on every rank"
    taken = []
    for number in range(due):
        shares = [own[number] for own in updates]
        sizes = [len(share) for share in shares]
        joined = sorted(itertools.chain(*shares))
        size = min(batch, count - done - number * batch)
        if len(set(joined)) != size or len(joined) != size or not set(joined) <= set(range(count)):
            return f"update {number} has the samples {_listed(joined)}", f"{size} samples, each once"
        if max(sizes) - min(sizes) > 1:
            return f"shares of {_listed(sizes)} samples in update {number}", "shares differ by at most one sample"
        taken.append(set(joined))
    key = (count, case["seed"], case["epoch"])
    if key not in orders:
        orders[key] = [sample for one in taken for sample in one]
        if len(set(orders[key])) != count:
            return "a sample comes twice in the epoch", "each sample once"
    for number, one in enumerate(taken):
        first = done + number * batch
        due_here = sorted(orders[key][first : first + batch])
        if sorted(one) != due_here:
            expected = f"{_listed(due_here)}: the same order in any world, with any batch, from any place on"
            return f"update {number} has the samples {_listed(sorted(one))}", expected
    return None


def _lost_in_crashes(
    testbed: Testbed, saved: Sequence[dict[str, Any]], states: Sequence[Any], arguments: Sequence[dict[str, Any]]
) -> Finding | None:
    """Why points are lost by crashes in `save_together`, if `save` alone is whole after them.

    saved: rank 0's two checkpoints. states: what `resume` may bring back: before them, and of each. arguments: by rank.
    """
    due = "the checkpoint before or the new one, whole"
    for number, one in enumerate(saved):
        run = testbed.run("resumed_after", arguments=[own | {"left": one["left"]} for own in arguments], shared=True)
        if run.failure:
            return Finding.failed(run, due)
        for results in zip(*run.results, strict=True):
            if any(_alike_on_all(results, state) for state in states[number : number + 2]):
                continue
            if _lost_in_saves(testbed, power=True):
                return None  # points are lost there
            seen = f"rank 0: resume gives {results[0]['there']!r}, and update {results[0]['counts'][0]}"
            where = f"{len(arguments)} ranks, killed or power lost in save_together, checkpoint {number + 1}"
            return _wrong(seen, due, where)
    return None


def _alike_on_all(results: Sequence[dict[str, Any]], due: Sequence[list[Any]]) -> bool:
    """Whether each rank has what is due: what `resume` returns with the counts, the parameters, the next draws."""
    return all(
        [one["there"], one["counts"]] == there
        and np.array_equal(one["weights"], weights)
        and np.allclose(one["drawn"], drawn)
        for one, (there, weights, drawn) in zip(results, due, strict=True)
    )


def _about_writers(run: Run) -> str:
    """Who changes files, if that is not rank 0 alone."""
    writers = sorted({busy.rank for busy in run.log.busy if busy.kind == "write"})
    return "" if writers in ([], [0]) else f"ranks {_listed(writers)} change files"


def _about_resume(run: Run, there: list[Any], weights: Any, draws: Sequence[Any], again: Sequence[Any]) -> str:
    """What is observed, if `resume` does not do what it should. there: what it returns, and the counts afterwards."""
    if any(busy.kind == "write" for busy in run.log.busy):
        return "resume changes files"
    for rank, (result, due) in enumerate(zip(run.results, draws, strict=True)):
        if [result["there"], result["counts"]] != there:
            seen = f"{result['there']!r}, and update, epoch, done are {_listed(result['counts'])}"
            return f"rank {rank}: resume returns {seen}; {there[0]} and {_listed(there[1])} would be right"
        if not np.array_equal(result["weights"], weights):
            return f"rank {rank} has other parameters"
        if not np.allclose(result["drawn"], due):
            return f"the generators of rank {rank} draw other numbers"
        if not np.allclose(result["drawn_again"], again[rank]):
            return f"after one more save_together and resume, the generators of rank {rank} draw other numbers"
    return ""


def _lost_in_training(
    testbed: Testbed, before: int, after: Sequence[int], fails: Sequence[int], updates: int, kind: dict[str, Any]
) -> Finding | None:
    """Why points are lost by trainings with failures, if any are. before, after: numbers of ranks, one after the other.

    fails: the updates in which the first training fails, and then the second one, in the same process. An epoch has six
    updates, and a checkpoint comes after every third one. The last training is called once more when it is over.
    """
    count = _whole(testbed, 21, 23)
    data = {
        "inputs": testbed.rng.normal(size=(count, WIDTH)), "targets": testbed.rng.normal(size=(count, 1)),
        "count": count, "batch": 4, "order": _whole(testbed, 0, 1000), "updates": updates, "every": EVERY,
    }  # fmt: skip
    seeds = [_whole(testbed, 0, 10**6) for _ in range(max(before, *after))]
    rounds = [(before, [NEVER, *fails]), *((world, [fails[-1] + 3]) for world in after[:-1]), (after[-1], [NEVER] * 2)]
    expected = "the samples and the losses of a training without failures"
    whole: list[Any] = []
    files: dict[str, bytes] = {}
    done = 0  # updates in the checkpoint
    for number, (world, ends) in enumerate(rounds):
        names = ["undisturbed" if number == place == 0 else "disturbed" for place in range(len(ends))]
        given = {
            "kind": kind | {"seed": kind["seed"] + number}, "files": files,
            "trainings": [[name, end] for name, end in zip(names, ends, strict=True)], **data,
        }  # fmt: skip
        own = [given | {"seed": seed + 10**6 * number} for seed in seeds[:world]]
        run = testbed.run("trained", arguments=own, shared=True)
        if run.failure:
            return Finding.failed(run, expected)
        if told := _about_writers(run):
            return _wrong(told, "rank 0 alone changes files", f"{world} ranks")
        for place, (name, end) in enumerate(zip(names, ends, strict=True)):
            steps = _steps(run, place)
            where = f"{world} ranks, {name}" + (f", after the checkpoint of update {done}" if done else "")
            if name == "undisturbed":
                whole = steps
                if wrong := _about_whole(whole, data, [result[place]["orders"] for result in run.results]):
                    return _wrong(*wrong, where)
            stop = min(end - 1, updates)
            if wrong := _about_steps(steps, whole[done:stop], range(done + 1, stop + 1)):
                return _wrong(*wrong, where)
            losses = [[update, loss] for update, _, loss in steps]
            for result in run.results:
                returned = result[place]["returned"]
                if end == NEVER and not _alike(returned, losses):
                    return _wrong(f"train returns {returned}", losses, where)
                if end == NEVER and (wrong := _about_counts(result[place]["counts"], updates, data)):
                    return _wrong(*wrong, where)
            if name == "disturbed":
                done = stop // EVERY * EVERY
        files = {name: one for name, one in run.results[0][-1]["files"].items() if not name.startswith("undisturbed")}
    return None


def _about_steps(steps: Sequence[Any], due: Sequence[Any], numbers: range) -> tuple[str, str] | None:
    """What is observed and expected, if a training makes other updates than one without failures."""
    made = [one[0] for one in steps]
    if made != list(numbers):
        return f"updates {_listed(made) or 'none'}", f"updates {_listed(numbers) or 'none'}"
    for (update, samples, loss), (_, right_samples, right_loss) in zip(steps, due, strict=True):
        if samples != right_samples:
            return f"update {update} has samples {_listed(samples)}", _listed(right_samples)
        if not np.isclose(loss, right_loss, rtol=CLOSE, atol=CLOSE):
            return f"update {update} has loss {loss:.6g}", f"{right_loss:.6g}, as without a failure"
    return None


def _about_counts(counts: list[int], updates: int, data: dict[str, Any]) -> tuple[str, str] | None:
    """What is observed and expected, if the counts are not those of so many updates. An epoch has six.

    Between two epochs, the one may be over, or the next one may have begun.
    """
    epoch, made = divmod(updates, 6)
    rights = [[updates, epoch, made * data["batch"]], *([[updates, epoch - 1, data["count"]]] if not made else [])]
    if counts in rights:
        return None
    due = " or ".join(_listed(right) for right in rights)
    return f"update, epoch, done after train: {_listed(counts)}", due


def _alike(found: Any, due: Any) -> bool:
    return len(found) == len(due) and bool(np.allclose(found, due, rtol=CLOSE, atol=CLOSE))


def _steps(run: Run, place: int) -> list[tuple[int, list[int], float]]:
    """The updates of one training: number, samples of all ranks, loss."""
    rows = zip(*(result[place]["steps"] for result in run.results), strict=True)
    return [(row[0]["update"], sorted(s for one in row for s in one["samples"]), row[0]["loss"]) for row in rows]


def _about_whole(
    steps: Sequence[tuple[int, list[int], float]], data: dict[str, Any], orders: Sequence[list[list[list[int]]]]
) -> tuple[str, str] | None:
    """What is observed and expected, if a training without failures is not as it should be.

    orders: what `updates_left` gives for whole epochs, by rank.
    """
    if [one[0] for one in steps] != list(range(1, data["updates"] + 1)):
        return f"updates {_listed([one[0] for one in steps])}", f"updates 1 to {data['updates']}"
    count, batch = data["count"], data["batch"]
    for first in range(0, len(steps), 6):
        epoch = steps[first : first + 6]
        sizes = [min(batch, count - done) for done in range(0, count, batch)][: len(epoch)]
        if [len(one[1]) for one in epoch] != sizes:
            return f"updates of {_listed(len(one[1]) for one in epoch)} samples", _listed(sizes)
        taken = [sample for one in epoch for sample in one[1]]
        if len(set(taken)) != len(taken):
            return f"epoch {first // 6} takes a sample twice", "each sample once"
    epochs = zip(*orders, strict=True)  # each with the updates of each rank
    due = [sorted(itertools.chain(*shares)) for epoch in epochs for shares in zip(*epoch, strict=True)]
    for update, samples, _loss in steps:
        if samples != due[update - 1]:
            return f"update {update} has samples {_listed(samples)}", f"{_listed(due[update - 1])}, as in updates_left"
    if [one[1] for one in steps[:3]] == [one[1] for one in steps[6:9]]:
        return "epoch 1 has the order of epoch 0", "another order"
    return None


def _kind(testbed: Testbed, optimizer: str = "sgd", *, noise: bool = True) -> dict[str, Any]:
    """A network and its optimizer."""
    return {"seed": _whole(testbed, 0, 2**31), "width": WIDTH, "optimizer": optimizer, "noise": noise}


def _best(ratio: float) -> float:
    """The best interval where the time between failures is 1, by a search."""
    below, above = 0.0, 1.0
    for _ in range(80):
        middle = (below + above) / 2
        below, above = (middle, above) if (1 - middle) * math.exp(middle + ratio) > 1 else (below, middle)
    return below


def _useful(interval: float, ratio: float) -> float:
    """The useful share of time, apart from a factor; the time between failures is 1. Source: Daly 2006."""
    return interval / math.expm1(interval + ratio) if interval + ratio < 700 else 0.0


def _fine(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)


def _wrong(observed: object, expected: object, where: str = "") -> Finding:
    return Finding.of(observed=observed, expected=expected, passed=False, where=where)


def _whole(testbed: Testbed, low: int, high: int) -> int:
    return int(testbed.rng.integers(low, high + 1))


def _listed(numbers: Iterator[Any] | Sequence[Any] | range) -> str:
    return ", ".join(map(str, numbers))
