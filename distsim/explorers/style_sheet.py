"""How explorers look: one sheet for all, readable in light and dark themes of JupyterLab and in Voilà.

Colours that carry text are JupyterLab's own, which change with its theme; Voilà has the same names.
"""

from html import escape

from distsim.figures.theme import dark_style

SHEET = (
    dark_style()
    + """<style>
.distsim-explorer { container-type: inline-size; width: 100%; overflow: visible; font-size: 14px; line-height: 1.45;
  color: var(--jp-ui-font-color1, #222222); }
.distsim-explorer h3 { margin: 0 0 2px; font-size: 16px; }
.distsim-explorer h4 { margin: 10px 0 2px; font-size: 15px; }
.distsim-explorer .widget-html-content { line-height: 1.45; }
.distsim-explorer p { margin: 0 0 6px; }
.distsim-explorer ul { margin: 2px 0 6px; padding-left: 20px; }
.distsim-explorer .widget-vbox, .distsim-explorer .widget-hbox, .distsim-explorer .distsim-panes { overflow: visible; }
.distsim-explorer .widget-html, .distsim-explorer .widget-html-content { height: auto; min-width: 0; max-width: 100%; }
.distsim-explorer .distsim-panes { display: grid; gap: 8px 20px; width: 100%;
  grid-template-columns: minmax(0, 270px) minmax(0, 1fr); grid-template-rows: auto 1fr;
  grid-template-areas: "controls result" "controls files"; }
.distsim-panes > :nth-child(1) { grid-area: result; min-width: 0; }
.distsim-panes > :nth-child(2) { grid-area: controls; min-width: 0; }
.distsim-panes > :nth-child(3) { grid-area: files; min-width: 0; }
@container (max-width: 760px) {
  .distsim-explorer .distsim-panes { grid-template-columns: minmax(0, 1fr); grid-template-rows: auto;
    grid-template-areas: "result" "controls" "files"; }
}
.distsim-summary { font-size: 15px; font-weight: 600; }
.distsim-frame, .distsim-scroll { overflow-x: auto; }
.distsim-picture { width: 100%; min-height: 40px; }
.distsim-refused :is(.distsim-summary, .distsim-picture, .distsim-table, pre):not(.distsim-measured *) { opacity: 0.7;
  filter: grayscale(1); }
.distsim-control { margin: 2px 0 6px; width: 100%; }
.distsim-label { display: block; font-weight: 600; font-size: 13px; line-height: 1.3; }
.distsim-row { display: flex; align-items: center; gap: 8px; min-height: 26px; }
.distsim-row input[type=range] { flex: 1 1 auto; min-width: 0; margin: 4px 0; accent-color: #0072b2; }
.distsim-value { flex: 0 0 auto; min-width: 62px; font-variant-numeric: tabular-nums; }
.distsim-row input[type=text], .distsim-row select { flex: 1 1 auto; min-width: 0; font: inherit; padding: 3px 6px;
  color: inherit; background: var(--jp-layout-color1, #ffffff); border: 1px solid #777777; border-radius: 3px; }
.distsim-check { display: flex; gap: 6px; align-items: flex-start; }
.distsim-check input { accent-color: #0072b2; margin: 2px 0 0; }
.distsim-control :focus-visible { outline: 2px solid #0072b2; outline-offset: 2px; }
button.distsim-fold { font: inherit; font-weight: 600; color: inherit; background: none; border: none; cursor: pointer;
  padding: 4px 2px; text-align: left; }
button.distsim-fold::before { content: "▸ "; }
button.distsim-fold[aria-expanded=true]::before { content: "▾ "; }
.distsim-progress, .distsim-why { font-size: 13px; }
.distsim-message { background: #fff1e6; color: #222222; border-left: 5px solid #d55e00; padding: 6px 10px;
  font-size: 13px; overflow-wrap: anywhere; }
.distsim-changed { background: var(--jp-layout-color2, #eeeeee); border-left: 5px solid #0072b2; padding: 4px 10px;
  font-size: 13px; }
.distsim-explorer table.distsim-table { border-collapse: collapse; margin: 4px 0; font-variant-numeric: tabular-nums; }
.distsim-explorer .distsim-table th, .distsim-explorer .distsim-table td {
  padding: 3px 12px 3px 0; text-align: right; border-bottom: 1px solid var(--jp-border-color2, #d4d4d4); }
.distsim-explorer .distsim-table th:first-child { text-align: left; }
.distsim-explorer .distsim-table tbody th { font-weight: 400; }
.distsim-explorer pre { user-select: all; background: var(--jp-layout-color2, #f4f5f7); color: inherit;
  padding: 8px 10px; min-width: max-content; font-size: 12px; line-height: 1.35; }
</style>"""
)


def scrolling(html: str, name: str) -> str:
    """HTML that scrolls sideways where it is wider than its place, also by the arrow keys. name: told to readers.

    >>> scrolling("<table></table>", "results")[:61]
    '<div class="distsim-scroll" role="group" aria-label="results"'
    """
    keys = 'tabindex="0" data-lm-suppress-shortcuts="true"'  # else JupyterLab takes the arrow keys
    return f'<div class="distsim-scroll" role="group" aria-label="{escape(name)}" {keys}>{html}</div>'
