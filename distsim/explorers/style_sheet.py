"""How explorers look: one sheet for all, readable in light and dark themes of JupyterLab and in Voilà."""

from distsim.figures.theme import dark_style

SHEET = (
    dark_style()
    + """<style>
.distsim-explorer { font-size: 14px; line-height: 1.45; color: var(--jp-ui-font-color1, #222222); }
.distsim-explorer h3 { margin: 0 0 2px; font-size: 16px; }
.distsim-explorer h4 { margin: 10px 0 2px; font-size: 15px; }
.distsim-explorer .widget-html-content { line-height: 1.45; }
.distsim-explorer p { margin: 0 0 6px; }
.distsim-explorer ul { margin: 2px 0 6px; padding-left: 20px; }
.distsim-label { font-weight: 600; font-size: 13px; }
.distsim-progress, .distsim-why { font-size: 13px; }
.distsim-message { background: #fff1e6; color: #222222; border-left: 5px solid #d55e00; padding: 6px 10px;
  font-size: 13px; overflow-wrap: anywhere; }
.distsim-changed { background: #eef4f9; color: #222222; border-left: 5px solid #0072b2; padding: 6px 10px; }
.distsim-explorer table.distsim-table { border-collapse: collapse; margin: 4px 0; font-variant-numeric: tabular-nums; }
.distsim-explorer .distsim-table th, .distsim-explorer .distsim-table td {
  padding: 3px 12px 3px 0; text-align: right; border-bottom: 1px solid #d4d4d4; }
.distsim-explorer .distsim-table th:first-child { text-align: left; }
.distsim-explorer .distsim-table tbody th { font-weight: 400; }
.distsim-explorer pre { user-select: all; background: #f4f5f7; color: #222222; padding: 8px 10px; overflow-x: auto;
  font-size: 12px; line-height: 1.35; }
</style>"""
)
