"""The accuracy tables as `distsim validate` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from distsim.accuracy import megatron
from distsim.accuracy.claim import Claim
from distsim.accuracy.published import MISSING_IN_ARTICLE_002, MISSING_IN_ARTICLE_003
from distsim.accuracy.simgrid import Rows, disagreeing
from distsim.cli.output import NOT_APPLICABLE, wide_table
from distsim.machine_accuracy import Missing, Row

Published = Sequence[dict[str, Any]]


def claims_table(title: str, beside: str, claims: Sequence[Claim]) -> Table:
    """Theory against simulation. Values below a bound hold too, so a bound is shown without ±."""
    table = wide_table(title, "case", "expression", beside, "difference", "allowed", "holds")
    for claim in claims:
        table.add_row(
            claim.case,
            f"{claim.expression:.6g}",
            f"{claim.found:.6g}",
            f"{claim.difference:+.1e}",
            f"{'' if claim.at_most else '±'}{claim.allowed:.1e}",
            _mark(claim.holds),
        )
    return table


def simgrid_table(source: str, algorithms: Rows) -> Table:
    """The largest difference per algorithm."""
    table = wide_table(f"SimGrid: {source}", "algorithm", "cases", "skipped", "largest relative error", "holds")
    off = disagreeing(algorithms)
    for name, row in algorithms.items():
        error = row["max_relative_error"]
        shown = NOT_APPLICABLE if error is None else f"{error:.1e}"
        holds = Text(NOT_APPLICABLE) if error is None else _mark(name not in off)
        table.add_row(name, str(row["cases"]), str(row["skipped"]), shown, holds)
    return table


def ddp_benchmark_table(rows: Published) -> Table:
    """How a model fitted on few GPUs predicts more GPUs, beside a constant."""
    title = "PyTorch's DDP benchmark, V100, seconds per iteration: A + k 2(N - 1)/N fitted on 1, 2, 4 GPUs"
    table = wide_table(
        title, "model", "GPUs", "measured", "fit", "residual", "constant T(4)", "residual", "fit is closer"
    )
    for row in rows:
        if not row["fitted"]:
            table.add_row(
                row["model"], str(row["gpus"]), f"{row['measured_seconds']:.3f}",
                f"{row['model_seconds']:.4f}", _percent(row["model_error_pct"]),
                f"{row['constant_seconds']:.3f}", _percent(row["constant_error_pct"]),
                _mark(row["better_than_constant"]),
            )  # fmt: skip
    return table


def ddp_buckets_table(rows: Published) -> Table:
    """Whether small buckets are slower: measured, and by two models."""
    title = "The same with buckets of 1 MB instead of 25 MB: in how many comparisons they are slower"
    table = wide_table(title, "model", "measured", "if communication hides", "if every bucket costs", "µs per bucket")
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        slower = [
            f"{sum(row[sign] > 0 for row in own)} of {len(own)}"
            for sign in ("measured_sign", "hidden_sign", "paid_sign")
        ]
        costs = [row["microseconds_per_bucket"] for row in own]
        table.add_row(model, *slower, f"{min(costs):.0f} to {max(costs):.0f}")
    return table


def deeplab_table(rows: Published) -> RenderableType:
    """Speed-ups that no model fitted on four GPUs predicts, and causes that may be missing."""
    title = "Article 002, DeepLabV3-ResNet101 on V100: speed-ups, models fitted on x4"
    table = wide_table(title, "model", "x1", "x4", "x8", "gain from x4 to x8", "residual at x8")
    first = rows[0]
    at_four, at_eight, gain = (first[key] for key in ("speed_up_4", "published_speed_up_8", "published_gain_pct"))
    table.add_row("published", "1.00", f"{at_four:.2f}", f"{at_eight:.2f}", _percent(gain, 0), "")
    for row in rows:
        speed_ups = [f"{row[f'speed_up_{gpus}']:.2f}" for gpus in (1, 4, 8)]
        table.add_row(row["model"], *speed_ups, _percent(row["gain_pct"], 0), _percent(row["error_pct"], 0))
    return Group(table, _hypotheses(MISSING_IN_ARTICLE_002))


def cifar_table(rows: Published) -> RenderableType:
    """Time per step that no all-reduce explains, and causes that may explain it."""
    title = "Article 003, a CNN on CIFAR-10, 4 GPUs: steps of f + g batch and a ring all-reduce"
    table = wide_table(title, "run", "published", "model", "residual", "per step", "excess", "all-reduce")
    for row in rows:
        table.add_row(
            row["run"], f"{row['seconds']:.0f} s", f"{row['model_seconds']:.0f} s", _percent(row["error_pct"], 0),
            *(f"{1e3 * row[key]:.2f} ms" for key in ("step_seconds", "excess_seconds", "all_reduce_seconds")),
        )  # fmt: skip
    return Group(table, _hypotheses(MISSING_IN_ARTICLE_003))


def megatron_table(rows: Published) -> RenderableType:
    """Efficiency of tensor and data parallel training, by formulas for bytes and links."""
    title = "Megatron-LM, weak scaling on V100: efficiency in percent of one GPU's"
    table = wide_table(
        title, "parameters", "GPUs", "that share a model", "published", "model", "residual", "compute", "activations",
        "gradients",
    )  # fmt: skip
    for row in rows:
        table.add_row(
            f"{row['parameters'] / 1e9:.1f} billion", str(row["gpus"]), str(row["sharing"]),
            f"{row['published_pct']} %", f"{row['model_pct']:.0f} %", _percent(row["error_pct"], 0),
            *(f"{1e3 * row[key]:.0f} ms" for key in ("compute_seconds", "activation_seconds", "gradient_seconds")),
        )  # fmt: skip
    return Group(table, _hypotheses(megatron.MISSING))


def machine_tables(rows: Sequence[Row]) -> RenderableType:
    """Predictions against real runs on this machine, a table for each links; counts as predicted / measured."""
    tables: dict[str, Table] = {}
    for row in rows:
        name = row.links.name
        if name not in tables:
            columns = ("policy", "step, median |error|", "total", "mean staleness", "dropped")
            tables[name] = wide_table(f"Real runs on this machine: {name}", *columns)
        tables[name].add_row(_title(row), *_errors(row), *_counts(row))
    return Group(*tables.values())


def machine_markdown(rows: Sequence[Row]) -> str:
    """The same as Markdown: a row for each policy, a column for each links."""
    places = list(dict.fromkeys(row.links.name for row in rows))
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        cells.setdefault(_title(row), {})[row.links.name] = _cell(row)
    lines = [
        f"| policy | {' | '.join(places)} |",
        f"|{'---|' * (len(places) + 1)}",
        *(
            f"| {title} | {' | '.join(found.get(place, NOT_APPLICABLE) for place in places)} |"
            for title, found in cells.items()
        ),
    ]
    return "\n".join(lines)


def _cell(row: Row) -> str:
    """The errors, and staleness and dropped gradients where there were any."""
    ours, theirs = row.found.predicted, row.found.measured
    staleness, dropped = _counts(row)
    told = [" / ".join(_errors(row)).replace(" %", "", 1)]
    told += [f"staleness {staleness}"] if ours.mean_staleness or theirs.mean_staleness else []
    told += [f"dropped {dropped}"] if ours.dropped_gradients or theirs.dropped_gradients else []
    return "; ".join(told)


def machine_notes(rows: Sequence[Missing]) -> list[str]:
    """A sentence for each reason why rows are missing, with the names of these rows."""
    reasons: dict[str, list[Missing]] = {}
    for row in rows:
        reasons.setdefault(str(row.error), []).append(row)
    return [
        f"Not measured over {' and '.join(dict.fromkeys(row.links.name for row in concerned))}: "
        f"{'; '.join(dict.fromkeys(map(_title, concerned)))}. {reason}"
        for reason, concerned in reasons.items()
    ]


def _title(row: Row | Missing) -> str:
    return f"{row.policy}, {row.communication}".replace("_", " ")


def _errors(row: Row) -> list[str]:
    """The median absolute error of a step, and the error of the total, which has a sign."""
    errors = row.found.error_pct
    return [
        NOT_APPLICABLE if error is None else form.format(error)
        for error, form in ((errors.step_median, "{:.1f} %"), (errors.total, "{:+z.1f} %"))
    ]


def _counts(row: Row) -> list[str]:
    """Mean staleness and dropped gradients, predicted / measured."""
    ours, theirs = row.found.predicted, row.found.measured
    staleness = [
        NOT_APPLICABLE if run.mean_staleness is None else f"{run.mean_staleness:.2f}" for run in (ours, theirs)
    ]
    return [" / ".join(staleness), f"{ours.dropped_gradients} / {theirs.dropped_gradients}"]


def _hypotheses(causes: Sequence[str]) -> RenderableType:
    lines = Text("What the models leave out, as hypotheses:", style="italic")
    for cause in causes:
        lines.append(f"\n- {cause}")
    return Padding(lines, (0, 0, 1, 0))


def _percent(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f} %"


def _mark(holds: bool) -> Text:
    return Text("yes", style="green") if holds else Text("NO", style="bold red")
