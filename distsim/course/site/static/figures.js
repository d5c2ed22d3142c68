// Draws each figure of the page from the JSON that its element holds.
"use strict";

const CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

// plotly rejects a promise without a reason when an animation is interrupted, as by its own pause button.
addEventListener("unhandledrejection", (event) => { if (event.reason === undefined) event.preventDefault(); });

for (const element of document.querySelectorAll(".distsim-figure")) {
  const figure = JSON.parse(element.querySelector("script").textContent);
  const place = document.createElement("div");
  place.className = "distsim-plot";
  element.append(place);
  Plotly.newPlot(place, { data: figure.data, layout: figure.layout, frames: figure.frames ?? [], config: CONFIG });
}
