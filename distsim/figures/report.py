"""The report of `distsim compare --html`: one page with all comparisons, which needs no network.

It opens with the verdict and with both timelines of each scenario on one time axis. Then come a table of all runs and,
for each scenario, its numbers, the errors by cause and step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

from plotly.offline import get_plotlyjs

from distsim.comparison import Comparison, network_difference, verdict
from distsim.figures.captioned import Row, table_html
from distsim.figures.comparison import comparison as comparison_figure
from distsim.figures.html_page import PAGE, drawing_html, figure_html
from distsim.figures.step_scatter import step_scatter
from distsim.figures.timeline import timeline
from distsim.figures.wording import counted
from distsim.trace import Trace

OVERVIEW = Template("""\
<section aria-labelledby="overview-title">
<h2 id="overview-title">All runs</h2>
<nav aria-label="Scenarios"><ul>$contents</ul></nav>
<div class="scroll">$overview</div>
</section>
""")

Compared = tuple[Comparison, Trace, Trace, Sequence[str]]


def html(compared: Sequence[Compared]) -> str:
    """The text of a page with a section for each (comparison, predicted trace, measured trace, notes).

    The page contains plotly.js (4.8 MB) once and loads nothing from a network.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("synchronous_ring"))
    >>> page = html([(distsim.compare(trace, trace), trace, trace, ["the same trace twice"])])
    >>> page[:15], page.count("<h2"), page.count('class="plotly-graph-div"')
    ('<!doctype html>', 3, 3)
    """
    sections = "\n".join(_section(number, *one) for number, one in enumerate(compared, start=1))
    timelines = "\n".join(_timelines(number, *one) for number, one in enumerate(compared, start=1))
    overview = table_html([_overview(one[0]) for one in compared], caption="Errors in percent of the measurement")
    contents = "".join(
        f'<li><a href="#scenario-{number}">{escape(one[0].name)}</a></li>'
        for number, one in enumerate(compared, start=1)
    )
    return PAGE.substitute(
        plotly=get_plotlyjs(), title="predicted and measured", heading="Predicted and measured",
        lead=escape(f"{verdict([one[0] for one in compared])} Errors are predicted minus measured.".strip()),
        sections=timelines + OVERVIEW.substitute(contents=contents, overview=overview) + sections,
    )  # fmt: skip


def _overview(comparison: Comparison) -> Row:
    step, total = comparison.error_pct.step_median, comparison.error_pct.total
    return {
        "scenario": comparison.name,
        "predicted total (s)": f"{comparison.predicted.total_seconds:,.2f}",
        "measured total (s)": f"{comparison.measured.total_seconds:,.2f}",
        "error of the total": None if total is None else f"{total:+z.1f} %",
        "step by step, median |error|": None if step is None else f"{step:.1f} %",
        "unmatched steps": comparison.error_pct.unmatched,
    }


def _timelines(number: int, comparison: Comparison, predicted: Trace, measured: Trace, notes: Sequence[str]) -> str:
    """Both timelines of a scenario on one time axis; and first, where the runs used different networks, that."""
    lanes = timeline(predicted, measured, names=["predicted", "measured"])
    network = network_difference(predicted, measured)
    parts = [
        f'<section aria-labelledby="timeline-{number}-title">',
        f'<h2 id="timeline-{number}-title">{escape(comparison.name)}: timelines</h2>',
        *([f'<ul class="notes"><li>{escape(network)}</li></ul>'] if network and network in notes else []),
        figure_html(f"timeline-{number}", lanes),
        "</section>",
    ]
    return "\n".join(parts)


def _section(number: int, comparison: Comparison, predicted: Trace, measured: Trace, notes: Sequence[str]) -> str:
    errors = comparison_figure(comparison)
    parts = [
        f'<section id="scenario-{number}" aria-labelledby="scenario-{number}-title">',
        f'<h2 id="scenario-{number}-title">{escape(comparison.name)}</h2>',
        f"<p>{escape(_description(measured))} {escape(errors.summary)}</p>",
        *([f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>'] if notes else []),
        f'<div class="scroll">{table_html(errors.table, caption="Predicted and measured")}</div>',
        "<h3>Errors and their causes</h3>",
        drawing_html(f"errors-{number}", errors),
    ]
    if comparison.error_pct.step_median is not None:
        parts += [
            "<h3>Step by step</h3>",
            figure_html(f"steps-{number}", step_scatter(predicted, measured)),
        ]
    scenario = escape(measured.scenario.dumps())
    parts += [f"<details><summary>The scenario's file</summary><pre>{scenario}</pre></details>", "</section>"]
    return "\n".join(parts)


def _description(trace: Trace) -> str:
    scenario = trace.scenario
    steps, kind = scenario.steps, scenario.policy.kind.replace("_", " ")
    through = scenario.communication.kind.replace("_", " ")
    size = f"{counted(trace.workers, 'worker')}, {counted(steps, 'step')}"
    return f"{size}, {kind} updates by {through}, seed {scenario.seed}."
