"""The template of HTML pages with figures (head, style, places for the content), and the HTML of one figure."""

from __future__ import annotations

from html import escape
from string import Template

from distsim.figures.captioned import Captioned, table_html
from distsim.figures.theme import SCROLLING, config, dark_style

PAGE = Template(
    """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>distsim: $title</title>
<link rel="icon" href="data:,">
<style>
  :root { color-scheme: light dark; --ink: #222222; --quiet: #555555; --line: #d4d4d4; --accent: #0072b2;
          --paper: #ffffff; --ground: #f4f5f7; --note: #eef4f9; }
  @media screen and (prefers-color-scheme: dark) {
    :root { --ink: #e0e0e0; --quiet: #b4b4b4; --line: #444444; --accent: #56b4e9;
            --paper: #121212; --ground: #1c1c1e; --note: #1b2833; }
  }
  * { box-sizing: border-box; }
  body { margin: 0; background: var(--ground); color: var(--ink);
         font: 16px/1.5 "Open Sans", "DejaVu Sans", Verdana, Arial, sans-serif; }
  header, main { max-width: 1000px; margin: 0 auto; padding: 0 20px; }
  header { padding-top: 32px; }
  h1 { font-size: 28px; line-height: 1.2; margin: 0 0 4px; }
  h2 { font-size: 21px; margin: 0 0 8px; }
  h3 { font-size: 16px; margin: 28px 0 8px; }
  p { margin: 0 0 12px; max-width: 75ch; }
  a { color: var(--accent); }
  a:focus-visible, summary:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  section { background: var(--paper); border: 1px solid var(--line); border-radius: 8px;
            padding: 22px 24px 24px; margin: 22px 0; }
  figure { margin: 0; }
  figcaption { color: var(--quiet); font-size: 14px; margin: 4px 0 12px; max-width: 85ch; }
  ul.notes { margin: 0 0 14px; padding: 8px 14px 8px 30px; background: var(--note);
             border-left: 4px solid var(--accent); font-size: 14px; overflow-wrap: anywhere; }
  nav ul { margin: 0 0 14px; padding-left: 20px; }
  .scroll { overflow-x: auto; }
  .scroll:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  .distsim-scrolls::before { content: "scrolls sideways →"; display: block; position: sticky; left: 0;
                             width: max-content; font-size: 13px; color: var(--quiet); }
  .plot { min-width: 720px; }  /* a small screen scrolls, and labels stay apart */
  table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; margin: 4px 0 10px; }
  caption { text-align: left; color: var(--quiet); padding-bottom: 4px; }
  th, td { padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); text-align: right; }
  th:first-child { text-align: left; }
  thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; }
  tbody th { font-weight: 400; white-space: nowrap; }
  details { margin-top: 20px; }
  summary { cursor: pointer; color: var(--accent); }
  pre { background: var(--ground); padding: 12px; overflow-x: auto; font-size: 13px; }
  @media (max-width: 600px) { header, main { padding: 0 8px; } section { padding: 14px 12px; } }
  @media print { body { background: var(--paper); } section { border: 0; padding: 0; } }
</style>
"""
    + dark_style()
    + """
<script>$plotly</script>
<script>
  Plotly.setPlotConfig({ plotlyServerURL: "" });  // no figure is sent anywhere
  // plotly rejects a promise without a reason when an animation is interrupted, as by its own pause button.
  addEventListener("unhandledrejection", (event) => { if (event.reason === undefined) event.preventDefault(); });
</script>
</head>
<body class="distsim-page">
<header>
<h1>$heading</h1>
<p>$lead</p>
</header>
<main>
$sections
</main>
"""
    + f"<script>{SCROLLING.read_text('utf-8')}</script>"
    + """
</body>
</html>
"""
)


def figure_html(name: str, captioned: Captioned) -> str:
    """A figure with its sentence and its table."""
    caption, table = f"<figcaption>{escape(captioned.summary)}</figcaption>", table_html(captioned.table)
    return f'<figure>{drawing_html(name, captioned)}{caption}</figure><div class="scroll">{table}</div>'


def drawing_html(name: str, captioned: Captioned) -> str:
    """The plot without its text; a screen reader reads the sentence instead of the plot."""
    plot = captioned.figure.to_html(
        full_html=False, include_plotlyjs=False, div_id=name, config=config() | {"responsive": True}, auto_play=False
    )
    label = escape(captioned.summary)
    return f'<div class="scroll"><div class="plot" role="figure" aria-label="{label}">{plot}</div></div>'
