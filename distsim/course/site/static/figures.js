// Draws each figure of the page from the JSON that its element holds.
"use strict";

// plotly rejects a promise without a reason when an animation is interrupted, as by its own pause button.
addEventListener("unhandledrejection", (event) => { if (event.reason === undefined) event.preventDefault(); });
const interrupted = (reason) => { if (reason !== undefined) throw reason; };

const AT_ONCE = { mode: "immediate", frame: { duration: 0 }, transition: { duration: 0 } };

// Draws the figure into the element; a later figure replaces it in place. frame: the number of the frame that a figure
// with an animation shows. An animation of the figure before ends.
async function distsimDraw(element, figure, frame) {
  let place = element.querySelector(".distsim-plot");
  if (place) await Plotly.animate(place, [], AT_ONCE);
  else {
    place = document.createElement("div");
    place.className = "distsim-plot";
    element.append(place);
  }
  place.style.setProperty("--least-width", `${figure.layout.meta?.leastWidth ?? 0}px`);
  // plotly forgets the figure's height when the window changes, and takes that of the element.
  place.style.height = figure.layout.height ? `${figure.layout.height}px` : "";
  await Plotly.react(place, { ...figure, config: { ...figure.config, responsive: true } });
  if (frame !== undefined) await Plotly.animate(place, [figure.frames[frame].name], AT_ONCE).catch(interrupted);
  return place;
}

for (const element of document.querySelectorAll(".distsim-figure:has(> script)")) {
  distsimDraw(element, JSON.parse(element.querySelector("script").textContent));
}
