// Moves the explorer of a page: shows the figure, the sentence and the table of the setting that its controls choose.
"use strict";

// The reverse of distsim/course/site/packing.py: {"$": 3} stands for part 3.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function whole(value, parts) {
  if (Array.isArray(value)) return value.map((part) => whole(part, parts));
  if (value === null || typeof value !== "object") return value;
  if ("$" in value) return whole(parts[value.$], parts);
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, whole(part, parts)]));
}

async function start(explorer) {
  const [sentence, figure, numbers] = explorer.querySelectorAll(".distsim-summary, .distsim-figure, .distsim-numbers");
  const controls = [...explorer.querySelectorAll("input, select")];
  const frames = explorer.querySelector(".distsim-frames"); // leads through the frames of an animated figure
  const reset = explorer.querySelector("button");
  const firsts = controls.map((control) => control.value);
  const { values, parts } = await unpacked(explorer.querySelector("script").textContent);
  let busy = false;
  let stale = false; // the controls have moved since the figure was drawn
  let names = []; // of the figure's frames
  let followed = false;

  function setting() {
    return controls.filter((control) => control !== frames).reduce((place, control) => {
      const stops = control.options?.length ?? Number(control.max) + 1;
      return place * stops + Number(control.value);
    }, 0);
  }

  function tell(control) {
    const stops = control.parentElement.dataset.stops;
    if (!stops) return;
    const text = JSON.parse(stops)[control.value];
    control.setAttribute("aria-valuetext", text);
    control.parentElement.querySelector("output").textContent = text;
  }

  async function show() {
    const found = whole(values[setting()], parts);
    explorer.classList.toggle("distsim-refused", "refused" in found);
    if ("refused" in found) {
      sentence.textContent = `${found.refused}. The figure shows the last combination that is possible.`;
      return;
    }
    sentence.textContent = found.sentence;
    numbers.innerHTML = found.table;
    figure.setAttribute("aria-label", found.sentence);
    if (!frames) {
      await distsimDraw(figure, found.figure);
      return;
    }
    names = found.figure.frames.map(({ name }) => name);
    frames.max = names.length - 1; // a larger value becomes the last
    tell(frames);
    const place = await distsimDraw(figure, found.figure, Number(frames.value));
    if (!followed) place.on("plotly_animatingframe", follow);
    followed = true;
  }

  // The figure's own animation moves the slider of its frames.
  function follow({ name }) {
    frames.value = names.indexOf(name);
    tell(frames);
  }

  // Many moves within one frame of the screen are drawn once, and so are those that come during a drawing.
  async function moved() {
    controls.forEach(tell);
    stale = true;
    if (busy) return;
    busy = true;
    while (stale) {
      await new Promise(requestAnimationFrame);
      stale = false;
      await show();
    }
    busy = false;
  }

  for (const control of controls) {
    control.addEventListener("input", moved);
    control.disabled = false;
  }
  reset.addEventListener("click", () => {
    controls.forEach((control, place) => { control.value = firsts[place]; });
    moved();
  });
  reset.disabled = false;
  moved();
}

for (const explorer of document.querySelectorAll(".distsim-moving")) start(explorer);
