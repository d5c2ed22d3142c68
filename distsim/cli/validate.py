"""`distsim validate`: every accuracy table, and whether every row holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distsim.cli.output import PATH, console, json_option, print_json, print_notes
from distsim.errors import DistsimError, InputError, RunError
from distsim.progress import Phase, bar

if TYPE_CHECKING:
    from distsim.accuracy.simgrid import Rows

EXPECTED_SECONDS = 30.0  # of all tables


@click.command()
@click.option(
    "--simgrid",
    "cases",
    type=PATH,
    help="Only compare with SimGrid's results in a JSON file of your own, case by case.",
)
@click.option(
    "--machine", is_flag=True, help="Only compare real runs on this machine with their predictions, policy by policy."
)
@click.option("--markdown", is_flag=True, help="With --machine: print the table as Markdown.")
@json_option
def validate(cases: Path | None, machine: bool, markdown: bool, as_json: bool) -> None:
    """Recompute known results and print how far the simulator agrees with them.

    The tables: theory against simulation (deterministic cases to 1e-9, random cases within 4 standard errors, with
    fixed seeds), SimGrid's results, and published scaling. Ends with 1 and names the rows if a row does not hold.
    Published scaling cannot fail: the table shows its residuals and causes that may be missing. Takes half a minute.

    With --machine the policies that train a whole model on each worker run for real, over loopback and over emulated
    links of 1 Gbit/s and 200 Mbit/s, and the table shows the errors of the predictions: the median absolute error of a
    step, and the error of the total, which is negative where the prediction is too low. Nothing is judged; errors grow
    where other programs use the cores. Runs that fail, or cannot start here, are named under the table; ends with 3 if
    a run failed. Takes minutes.
    """
    _check_asked(cases, machine, markdown, as_json)
    if machine:
        _machine(markdown, as_json)
    elif cases is None:
        _everything(as_json)
    else:
        _simgrid(cases, as_json)


def _check_asked(cases: Path | None, machine: bool, markdown: bool, as_json: bool) -> None:
    if machine and cases is not None:
        raise InputError.of("--simgrid", str(cases), "and --machine are different tables", "ask for one of them")
    if markdown and (as_json or not machine):
        raise InputError.of("--markdown", markdown, "is a form of --machine's table", "write --machine --markdown")


def _machine(markdown: bool, as_json: bool) -> None:
    """Real runs on this machine."""
    from distsim import machine_accuracy
    from distsim.cli.accuracy_tables import machine_markdown, machine_notes, machine_tables

    with bar("validate --machine", shown=not as_json) as progress:
        found = machine_accuracy.rows(progress=progress)
    measured = [row for row in found if isinstance(row, machine_accuracy.Row)]
    missing = [row for row in found if isinstance(row, machine_accuracy.Missing)]
    failed = [row for row in missing if isinstance(row.error, RunError)]
    if missing and not measured and not failed:
        raise missing[0].error
    if as_json:
        print_json([row.as_dict() for row in found])
    elif markdown:
        tables = [machine_markdown(measured)] if measured else []
        click.echo("\n\n".join([*tables, *machine_notes(missing)]))
    else:
        console().print(machine_tables(measured))
        print_notes(machine_notes(missing))
    if failed:
        raise RunError(
            f"{len(failed)} of {len(found)} rows could not be measured, because a real run failed: see above"
        )


def _simgrid(cases: Path, as_json: bool) -> None:
    """One file of SimGrid's results."""
    with bar("validate", shown=not as_json):
        from distsim.accuracy import simgrid
        from distsim.cli.accuracy_tables import simgrid_table

        found = simgrid.validate(cases)
    if as_json:
        print_json(found)
    else:
        console().print(simgrid_table(cases.name, found["algorithms"]))
        print_notes(f"slow: {name} took {seconds:.1f} s" for name, seconds in found["slow"].items())
    _end(_simgrid_misses(found["algorithms"]))


def _everything(as_json: bool) -> None:
    """All tables. All are computed before the first is printed, with progress."""
    with bar("validate", shown=not as_json) as report:
        report(Phase("loading", seconds=EXPECTED_SECONDS))
        from distsim.accuracy import megatron, published, simgrid
        from distsim.accuracy.tables import TABLES
        from distsim.cli import accuracy_tables

        theory = []
        for number, table in enumerate(TABLES):
            report(Phase(f"theory against simulation, table {number + 1} of {len(TABLES)}", number, len(TABLES)))
            theory.append((table, table.claims()))
        report(Phase("SimGrid's results"))
        algorithms = simgrid.validate()["algorithms"]
        report(Phase("published scaling"))
        scaling = {
            "ddp_benchmark": (published.ddp_benchmark(), accuracy_tables.ddp_benchmark_table),
            "ddp_buckets": (published.ddp_buckets(), accuracy_tables.ddp_buckets_table),
            "deeplab_on_v100": (published.deeplab_on_v100(), accuracy_tables.deeplab_table),
            "cifar_with_ddp": (published.cifar_with_ddp(), accuracy_tables.cifar_table),
            "megatron": (megatron.megatron(), accuracy_tables.megatron_table),
        }
    misses = [
        f"{table.name}: {claim.case}: {claim.found:.6g} beside {claim.expression:.6g}"
        for table, claims in theory
        for claim in claims
        if not claim.holds
    ] + _simgrid_misses(algorithms)
    if as_json:
        rows: dict[str, Any] = {table.name: [table.row(claim) for claim in claims] for table, claims in theory}
        print_json(rows | {"simgrid": algorithms} | {name: found for name, (found, _) in scaling.items()})
    else:
        out = console()
        for table, claims in theory:
            out.print(accuracy_tables.claims_table(table.title, table.beside, claims))
        out.print(accuracy_tables.simgrid_table("its results, every case", algorithms))
        for found, shown in scaling.values():
            out.print(shown(found))
        if not misses:
            out.print(f"All {sum(len(claims) for _, claims in theory) + len(algorithms)} rows hold.")
    _end(misses)


def _simgrid_misses(algorithms: Rows) -> list[str]:
    from distsim.accuracy.simgrid import disagreeing

    return [f"simgrid: {name}: {algorithms[name]['max_relative_error']:.1e}" for name in disagreeing(algorithms)]


def _end(misses: Sequence[str]) -> None:
    """Raises the error that names the rows that do not hold, if there are any."""
    if misses:
        what = "one row does" if len(misses) == 1 else f"{len(misses)} rows do"
        raise DistsimError("\n  ".join([f"{what} not hold:", *misses]))
