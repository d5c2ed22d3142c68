// One plotly figure, kept and updated in place. See distsim/explorers/picture.py.

const PANEL_WIDTH = 340;

// Plotly.js, once per page: as JupyterLab's own extension loaded it, else from the kernel, which has it from the
// installed plotly package. No other host is asked.
function loaded(model) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  window.distsimPlotly ??= new Promise((resolve, reject) => {
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
  return window.distsimPlotly;
}

// Below this many pixels the figure would be unreadable: what it says itself, and some for each panel in a row.
function leastWidth(layout) {
  const axes = Object.keys(layout).filter((name) => /^xaxis\d*$/.test(name));
  const panels = new Set(axes.map((name) => layout[name].domain?.[0] ?? 0)).size;
  return Math.max(layout.meta?.leastWidth ?? 0, panels > 1 ? PANEL_WIDTH * panels : 0);
}

async function render({ model, el }) {
  const place = document.createElement("div");
  place.className = "distsim-picture";
  place.setAttribute("role", "figure");
  el.style.overflowX = "auto";
  el.append(place);
  const Plotly = await loaded(model);
  let busy = false;
  let waiting = false; // a newer figure came while one was being drawn: only the newest is drawn next
  let drawnWidth = 0;

  async function draw() {
    if (busy || !place.clientWidth || !model.get("figure")) {
      waiting = busy;
      return;
    }
    busy = true;
    place.setAttribute("aria-busy", "true");
    do {
      waiting = false;
      drawnWidth = place.clientWidth;
      place.setAttribute("aria-label", model.get("says"));
      const figure = JSON.parse(model.get("figure"));
      place.style.minWidth = `${leastWidth(figure.layout)}px`; // on a small screen it scrolls sideways
      await Plotly.react(place, { ...figure, config: model.get("config") });
      await new Promise(requestAnimationFrame); // lets keys be handled between two drawings
    } while (waiting);
    busy = false;
    place.setAttribute("aria-busy", "false");
  }

  const resized = new ResizeObserver(() => {
    if (!place.clientWidth || place.clientWidth === drawnWidth) return;
    if (drawnWidth === 0 || busy) draw();
    else {
      drawnWidth = place.clientWidth;
      Plotly.Plots.resize(place);
    }
  });
  resized.observe(place);
  model.on("change:figure", draw);
  await draw();
  return () => {
    resized.disconnect();
    model.off("change:figure", draw);
    Plotly.purge(place);
  };
}

export default { render };
