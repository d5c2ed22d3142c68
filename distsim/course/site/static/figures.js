// Draws each figure of the page from the JSON that its element holds.
"use strict";

// plotly rejects a promise without a reason when an animation is interrupted, as by its own pause button.
addEventListener("unhandledrejection", (event) => { if (event.reason === undefined) event.preventDefault(); });

// Draws the figure into the element; a later figure replaces it in place.
function distsimDraw(element, figure) {
  let place = element.querySelector(".distsim-plot");
  if (!place) {
    place = document.createElement("div");
    place.className = "distsim-plot";
    element.append(place);
  }
  return Plotly.react(place, { ...figure, config: { ...figure.config, responsive: true } });
}

for (const element of document.querySelectorAll(".distsim-figure:has(> script)")) {
  distsimDraw(element, JSON.parse(element.querySelector("script").textContent));
}
