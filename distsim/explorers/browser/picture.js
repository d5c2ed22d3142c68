// One plotly figure, kept and updated in place. See distsim/explorers/picture.py.

const PANEL_WIDTH = 340;

// Plotly.js, once per page: as JupyterLab's own extension loaded it, else from the kernel, which has it from the
// installed plotly package. No other host is asked.
function loaded(model) {
  window.distsimPlotly ??= first(model);
  return window.distsimPlotly;
}

// Plotly rejects a promise without a reason when an animation is interrupted, as by its own pause button.
function interrupted(reason) {
  if (reason !== undefined) throw reason;
}

function first(model) {
  addEventListener("unhandledrejection", (event) => { if (event.reason === undefined) event.preventDefault(); });
  if (window.Plotly) return Promise.resolve(window.Plotly);
  return new Promise((resolve, reject) => {
    const came = (message, buffers) => {
      if (message.is !== "plotly.js") return;
      model.off("msg:custom", came);
      const script = document.createElement("script");
      const address = URL.createObjectURL(new Blob(buffers, { type: "text/javascript" }));
      script.onload = () => {
        URL.revokeObjectURL(address);
        resolve(window.Plotly);
      };
      script.onerror = reject;
      script.src = address;
      document.head.append(script);
    };
    model.on("msg:custom", came);
    model.send({ ask: "plotly.js" });
  });
}

// Below this many pixels the figure would be unreadable: what it says itself, and some for each panel in a row.
function leastWidth(layout) {
  const axes = Object.keys(layout).filter((name) => /^xaxis\d*$/.test(name));
  const panels = new Set(axes.map((name) => layout[name].domain?.[0] ?? 0)).size;
  return Math.max(layout.meta?.leastWidth ?? 0, panels > 1 ? PANEL_WIDTH * panels : 0);
}

// Draws the figure into the place. An animation of the figure before it ends, and the next begins at the round shown.
async function replace(Plotly, place, figure) {
  const replaces = place.classList.contains("js-plotly-plot");
  if (replaces) await Plotly.animate(place, [], { mode: "immediate" });
  await Plotly.react(place, figure);
  if (!replaces || !figure.frames?.length) return;
  const { name } = figure.frames[figure.layout.sliders[0].active];
  const atOnce = { mode: "immediate", frame: { duration: 0 }, transition: { duration: 0 } };
  await Plotly.animate(place, [name], atOnce).catch(interrupted);
}

async function render({ model, el }) {
  const place = document.createElement("div");
  place.className = "distsim-picture";
  place.dataset.lmSuppressShortcuts = "true"; // else JupyterLab takes the arrow keys, which scroll the frame
  place.setAttribute("role", "figure");
  const frame = document.createElement("div"); // ipywidgets' layout resets the overflow of `el` itself
  frame.className = "distsim-frame";
  frame.append(place);
  el.append(frame);
  const Plotly = await loaded(model);
  let busy = false;
  let drawn = ""; // the model's figure that the page shows
  let drawnWidth = 0;

  // Draws the newest figure, and while that takes, whichever is the newest then. A hidden place waits to be shown.
  async function draw() {
    if (busy) return;
    busy = true;
    while (place.clientWidth && model.get("figure") !== drawn) {
      place.setAttribute("aria-busy", "true");
      drawn = model.get("figure");
      drawnWidth = place.clientWidth;
      place.setAttribute("aria-label", model.get("says"));
      const figure = JSON.parse(drawn);
      place.style.minWidth = `${leastWidth(figure.layout)}px`; // on a small screen it scrolls sideways
      await replace(Plotly, place, { ...figure, config: model.get("config") });
      await new Promise(requestAnimationFrame); // lets keys be handled between two drawings
    }
    busy = false;
    if (drawn) place.setAttribute("aria-busy", "false");
  }

  const resized = new ResizeObserver(() => {
    if (!place.clientWidth) return;
    if (frame.scrollWidth > frame.clientWidth) place.tabIndex = 0; // the arrow keys scroll what has the focus
    else place.removeAttribute("tabindex");
    if (model.get("figure") !== drawn) draw();
    else if (busy) drawn = ""; // the drawing under way has the old width
    else if (place.clientWidth !== drawnWidth) {
      drawnWidth = place.clientWidth;
      Plotly.Plots.resize(place);
    }
  });
  resized.observe(place);
  resized.observe(frame); // narrower than the least width of a figure
  model.on("change:figure", draw);
  await draw();
  return () => {
    resized.disconnect();
    model.off("change:figure", draw);
    Plotly.purge(place);
  };
}

export default { render };
