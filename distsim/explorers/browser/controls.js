// The browser's own inputs as controls, each with its name, its bounds, and its value as a reader says it.
// See distsim/explorers/inputs.py.

function element(tag, properties = {}, ...children) {
  const found = Object.assign(document.createElement(tag), properties);
  found.append(...children);
  return found;
}

// The input under its heading, which names it.
function headed(model, input, ...beside) {
  window.distsimInputs = (window.distsimInputs ?? 0) + 1; // each widget has a module of its own, and ids are the page's
  input.id = `distsim-input-${window.distsimInputs}`;
  const heading = element("label", { className: "distsim-label", htmlFor: input.id, textContent: model.get("heading") });
  return [heading, element("div", { className: "distsim-row" }, input, ...beside)];
}

function changed(model, name, value) {
  model.set(name, value);
  model.save_changes();
}

// A slider. at: the number of a value; said: the value's text; both of a position of the slider.
function slider(model, name, bounds, said) {
  const input = element("input", { type: "range", ...bounds });
  const shown = element("span", { className: "distsim-value" });
  shown.setAttribute("aria-hidden", "true"); // it is the input's own text already
  const tell = () => {
    shown.textContent = said(Number(input.value));
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  const show = () => {
    input.value = model.get(name);
    tell();
  };
  input.addEventListener("input", tell);
  input.addEventListener("change", () => changed(model, name, Number(input.value)));
  model.on(`change:${name}`, show);
  show();
  return headed(model, input, shown);
}

const KINDS = {
  range(model) {
    const bounds = { min: model.get("min"), max: model.get("max"), step: model.get("step") };
    const unit = (value) => model.get(value === 1 ? "unit_of_one" : "unit");
    return slider(model, "value", bounds, (value) => `${Number(value.toPrecision(9))} ${unit(value)}`.trim());
  },
  steps(model) {
    const options = model.get("_options_labels");
    return slider(model, "index", { min: 0, max: options.length - 1, step: 1 }, (index) => options[index]);
  },
  list(model) {
    const options = model.get("_options_labels").map((text) => element("option", { textContent: text }));
    const input = element("select", {}, ...options);
    const show = () => (input.selectedIndex = model.get("index"));
    input.addEventListener("change", () => changed(model, "index", input.selectedIndex));
    model.on("change:index", show);
    show();
    return headed(model, input);
  },
  check(model) {
    const input = element("input", { type: "checkbox" });
    const show = () => (input.checked = model.get("value"));
    input.addEventListener("change", () => changed(model, "value", input.checked));
    model.on("change:value", show);
    show();
    return [element("label", { className: "distsim-label distsim-check" }, input, model.get("heading"))];
  },
  line(model) {
    const input = element("input", { type: "text", spellcheck: false });
    const show = () => (input.value = model.get("value"));
    const enter = () => changed(model, "value", input.value);
    input.addEventListener("change", enter);
    input.addEventListener("keydown", ({ key }) => key === "Enter" && enter());
    model.on("change:value", show);
    show();
    return headed(model, input);
  },
  fold(model) {
    const button = element("button", { type: "button", className: "distsim-fold", textContent: model.get("heading") });
    const show = () => button.setAttribute("aria-expanded", String(model.get("value")));
    button.addEventListener("click", () => changed(model, "value", !model.get("value")));
    model.on("change:value", show);
    show();
    return [button];
  },
  // A text whose place stays in the page, so that screen readers announce each new text.
  status(model, el) {
    el.setAttribute("role", "status");
    const show = () => (el.innerHTML = model.get("value"));
    model.on("change:value", show);
    show();
    return [...el.childNodes];
  },
};

function render({ model, el }) {
  el.classList.add("distsim-control", `distsim-${model.get("kind")}`);
  el.append(...KINDS[model.get("kind")](model, el));
  for (const each of el.querySelectorAll("input, select, button")) {
    each.dataset.lmSuppressShortcuts = "true"; // its keys are its own, and no shortcuts of JupyterLab
  }
}

export default { render };
