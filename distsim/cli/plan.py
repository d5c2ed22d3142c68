"""`distsim plan`: the ways to train a model on a cluster, simulated and ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from distsim import files, toml
from distsim.cli.dask_cluster import pool_or_cluster, scheduler_option
from distsim.cli.memory_options import optimizer_option, size, warn_of_activations
from distsim.cli.output import NOT_APPLICABLE, PATH, console, json_option, print_json, print_notes, table
from distsim.cli.plan_scenarios import check_new_folder, write_ways
from distsim.cli.profile import measured_profile
from distsim.cli.sweep import MOST_PROCESSES
from distsim.errors import InputError
from distsim.files import check_writable
from distsim.plan import By, Way, distinct, frontier, plan, ranked, verdict, ways
from distsim.profile import Profile
from distsim.progress import Phase, bar
from distsim.units import show
from distsim.validated_table import LARGEST_COUNT

SHOWN = 12
LARGEST_MEGABYTES = 1
PICTURES = (".png", ".svg", ".html")


@click.command("plan")
@click.argument("model", metavar="FILE:FUNCTION")
@click.option("--cluster", type=PATH, required=True, help="A TOML file with a [cluster] table, such as a scenario.")
@click.option("--memory", metavar="SIZE", help='Of one device, such as "80GB"; ways that need more are left out.')
@optimizer_option
@click.option("--activation", metavar="SIZE",
              help="What one layer hands to the next for a batch: adds pipelines and meshes.")  # fmt: skip
@click.option("--batch", type=click.IntRange(1, LARGEST_COUNT), metavar="N", help="Samples of one worker's step.")
@click.option("--workers", type=click.IntRange(1, MOST_PROCESSES),
              help="Processes that simulate (default: one per core).")  # fmt: skip
@scheduler_option
@click.option("--by", type=click.Choice(["time", "price"]), default="time", show_default=True,
              help="Rank by the time or by the price of a sample; [cost] beside [cluster] tells prices.")  # fmt: skip
@click.option("--out", type=PATH, help="Draw time against memory: .png, .svg or .html.")
@click.option("--scenarios", type=PATH, metavar="FOLDER",
              help="Write the ways as scenarios, by their numbers, and a copy of the profile.")  # fmt: skip
@json_option
def plan_command(
    model: str, cluster: Path, memory: str | None, optimizer: str, activation: str | None, batch: int | None,
    workers: int | None, scheduler: str | None, by: By, out: Path | None, scenarios: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Rank the ways to train a model of your own on a cluster, or on a part of it.

    FILE:FUNCTION is profiled first, as by distsim profile; a file that distsim profile wrote is taken as it is. Ways
    differ in the policy, its buckets or stage, the all-reduce and the number of workers, and are simulated without
    stragglers. Each worker, or group of a mesh, computes the profile's batch. With mixed_adam, gradients
    of 2 bytes a number are assumed, so a profile in float32 counts twice. Ctrl-C shows what is there so far.

    \b
        distsim plan my_model.py:build --cluster cluster.toml --memory 80GB
        distsim plan profile.json --cluster cluster.toml --optimizer mixed_adam --out plan.html
        distsim plan my_model.py:build --cluster cluster.toml --scenarios ways
        distsim compare ways/001.toml
    """
    if out is not None:
        if out.suffix not in PICTURES:
            raise InputError.of("--out", str(out), f"must end in {' or '.join(PICTURES)}", "rename it, as in plan.html")
        check_writable(out)
    if scenarios is not None:
        check_new_folder(scenarios)
    room = None if memory is None else size("--memory", memory)
    if activation is not None:
        size("--activation", activation)
    given = _cluster(cluster)
    profile = _profile(model, batch, shown=not as_json)
    warn_of_activations(profile)
    if by == "price" and "cost" not in given:
        cure = "write a [cost] table with price_per_hour into the cluster's file"
        raise InputError.of("--by", by, f"needs a price, and {cluster} has none", cure)
    asked = ways(profile, given["cluster"], room, optimizer, activation, given.get("cost"))
    found, interrupted = _simulated(asked, scheduler, workers, shown=not as_json)
    order = ranked(found, by)
    told = verdict(found, by) if order else None
    if out is not None and order:
        from distsim.figures.plan import plan as draw

        draw(found, room, by).save(out)
    if scenarios is not None and order:
        write_ways(distinct(order), scenarios, model, profile)
    if as_json:
        best = {way.name for way in frontier(found, by)}
        untried = [way for way in found if way.untried and not way.missing_bytes]
        shown = [*order, *untried, *_too_large(found)]
        rows = [way.as_dict() | {"frontier": way.name in best} for way in shown]
        print_json({"model": profile.model, "memory_bytes": room, "complete": not interrupted, "verdict": told,
                    "ways": rows})  # fmt: skip
    elif told is not None:
        console().print(_table(profile.model, found, by))
        written = [] if scenarios is None else [f"the ways as scenarios: {scenarios}/001.toml for the first, and so on"]
        print_notes([told, *(_so_far(asked, found) if interrupted else ()), *_left_out(found, room, by), *written])
    if interrupted:
        raise KeyboardInterrupt
    if told is None:
        verdict(found)  # raises the error that says why


def _profile(model: str, batch: int | None, *, shown: bool) -> Profile:
    if not model.endswith(".json"):
        return measured_profile(model, batch, "cpu", 20, None, shown=shown)
    profile = Profile.load(Path(model))
    if batch is not None:
        rule = f"does not go with a profile, whose batch is {profile.batch}"
        raise InputError.of("--batch", batch, rule, "leave it out, or give FILE:FUNCTION")
    return profile


def _cluster(path: Path) -> dict[str, Any]:
    """The [cluster] table of the file, and its [cost] if it has one."""
    try:
        text = files.read(path, LARGEST_MEGABYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError.of("--cluster", str(path), f"cannot be read ({reason})", "name a TOML file") from None
    found = toml.read(text, str(path))
    if not isinstance(found.get("cluster"), dict) or "workers" not in found["cluster"]:
        raise InputError.of(
            "--cluster", str(path), "has no [cluster] table with workers",
            'write such as [cluster] workers = 64, bandwidth = "100 Gbit/s" and latency = "5 us", a line each',
        )  # fmt: skip
    return found


def _simulated(
    found: Sequence[Way], scheduler: str | None, workers: int | None, *, shown: bool
) -> tuple[list[Way], bool]:
    """The ways with their times, and whether an interrupt ended it early."""
    done: list[Way] = []
    try:
        with (
            bar("plan", shown=shown) as report,
            pool_or_cluster(scheduler, workers, len(found)) as (executor, _),
        ):
            done.extend(plan(found, executor, lambda now, of: report(Phase.counted("way", now, of))))
    except KeyboardInterrupt:
        return done, True
    return done, False


def _too_large(found: Sequence[Way]) -> list[Way]:
    return sorted((way for way in found if way.missing_bytes), key=lambda way: way.missing_bytes)


def _table(model: str, found: Sequence[Way], by: By = "time") -> Table:
    priced = any(way.price_per_sample is not None for way in found)
    price = ["price of a million samples"] if priced else []
    rows = table(f"ways to train {model}", "", "way", "a step", "a sample", "memory", "exposed", *price)
    best = {id(way) for way in frontier(found, by)}
    order = list(enumerate(distinct(ranked(found, by)), start=1))
    further = [(number, way) for number, way in order[SHOWN:] if id(way) in best]
    for number, way in order[:SHOWN] + further:
        if further and number == further[0][0]:
            rows.add_section()
        assert way.seconds_per_sample and way.step_seconds and way.exposed_share is not None
        cells = [
            f"{number:03d}", f"{way.name} *" if id(way) in best else way.name, show(way.step_seconds, "second"),
            show(way.seconds_per_sample, "second"), show(way.held.total, "byte"), f"{100 * way.exposed_share:.1f} %",
        ]  # fmt: skip
        if priced:
            cells.append(NOT_APPLICABLE if way.price_per_sample is None else _amount(1e6 * way.price_per_sample))
        rows.add_row(*cells)
    return rows


def _amount(value: float) -> str:
    """Four digits, and all of a whole number.

    >>> _amount(10968.4), _amount(0.123456)
    ('10,968', '0.1235')
    """
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.4g}"


def _so_far(asked: Sequence[Way], found: Sequence[Way]) -> list[str]:
    """That an interrupted plan says nothing of the ways that it has not simulated."""
    fitting = sum(not (way.missing_bytes or way.untried) for way in asked)
    return [f"interrupted: {len(ranked(found))} of the {fitting} ways that fit are simulated, and others may be better"]


def _left_out(found: Sequence[Way], room: float | None, by: By) -> list[str]:
    """What the table does not show."""
    told = [f"* no other way beats it both in {by} and in memory"]
    order = ranked(found, by)
    differing = len(distinct(order))
    if differing > SHOWN or differing < len(order):
        which = f"the first {SHOWN} and those with * of the {differing}" if differing > SHOWN else f"the {differing}"
        told.append(f"of {len(order)} ways that fit, {which} that differ in time or memory; --json lists all")
    untried = Counter(way.untried for way in found if way.untried and not way.missing_bytes)
    told += [f"{count} ways were not tried: {why}" for why, count in untried.items()]
    if large := _too_large(found):
        assert room is not None, "nothing is too large for unlimited memory"
        missing = ", ".join(f"{way.name} lacks {show(way.missing_bytes, 'byte')}" for way in distinct(large)[:3])
        told.append(f"{len(large)} ways need more than {show(room, 'byte')}. The nearest: {missing}")
    return told
