// Draws each figure of the page from the JSON that its element holds.
"use strict";

// plotly rejects a promise without a reason when an animation is interrupted, as by its own pause button.
addEventListener("unhandledrejection", (event) => { if (event.reason === undefined) event.preventDefault(); });

for (const element of document.querySelectorAll(".distsim-figure")) {
  const figure = JSON.parse(element.querySelector("script").textContent);
  const place = document.createElement("div");
  place.className = "distsim-plot";
  element.append(place);
  Plotly.newPlot(place, { ...figure, config: { ...figure.config, responsive: true } });
}
