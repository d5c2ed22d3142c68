// Plays the figures of distsim.figures.lanes_and_loss: one cursor goes through the lanes and the losses of all runs.
// The layout and the still picture come from Python (lanes_scene.py, loss_scene.py), the colours from the style sheet.

const percent = (share) => `${(100 * share).toFixed(3)}%`;

// How many of these numbers, in their order, are at most this one.
function upTo(numbers, most) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

const threeDigits = (value) => String(Number(value.toPrecision(3)));

// The page of the axis with this moment, and the moment's place on it.
class Axis {
  constructor(axis) {
    Object.assign(this, axis);
  }

  page(seconds) {
    const number = Math.min(Math.floor(seconds / this.end * this.zoom), this.zoom - 1);
    return [number / this.zoom, (number + 1) / this.zoom];
  }

  place(seconds) {
    const [start, end] = this.page(seconds);
    return (seconds / this.end - start) / (end - start);
  }
}

// What lanes and losses share: a plot that turns its pages, a veil over the future, and the cursor.
class Picture {
  constructor(svg, axis) {
    this.svg = svg;
    this.axis = axis;
    this.plot = svg.querySelector(".plot");
    this.told = svg.querySelector(".told");
    this.future = svg.querySelector(".future");
    this.cursor = svg.querySelector(".cursor");
    this.moments = [];
    lift(svg, [svg.querySelector(".over")]);
  }

  draw(seconds) {
    const [start, end] = this.axis.page(seconds);
    const { units } = this.axis;
    const view = `${start * units} 0 ${(end - start) * units} ${this.plot.getAttribute("height")}`;
    if (this.plot.getAttribute("viewBox") !== view) {
      this.plot.setAttribute("viewBox", view);
      this.turn(start, end);
    }
    const x = percent(this.axis.place(seconds));
    set(this.future, "x", x);
    set(this.cursor, "x1", x);
    set(this.cursor, "x2", x);
  }

  turn() {}

  tell(text) {
    if (this.told.textContent !== text) this.told.textContent = text;
  }
}

class Lanes extends Picture {
  constructor(svg, axis, run) {
    super(svg, axis);
    this.run = run;
    this.moments = run.moments;
    this.shown = true;
  }

  draw(seconds) {
    super.draw(seconds);
    const { updates, staleness } = this.run;
    const made = upTo(updates, seconds);
    const mean = (made ? staleness[made - 1] / 10 : 0).toFixed(1);
    this.tell(`${made} ${made === 1 ? "update" : "updates"}, loss ${threeDigits(this.lossAt(seconds))}, staleness ${mean}`);
  }

  lossAt(seconds) {
    const { updates, evaluated, losses } = this.run;
    return losses[Math.max(upTo(evaluated, upTo(updates, seconds)) - 1, 0)];
  }

  says() {
    return this.shown ? `${this.run.name}: ${this.told.textContent}.` : "";
  }

  show(shown) {
    this.shown = shown;
    this.svg.parentElement.hidden = !shown;
  }
}

class Losses extends Picture {
  constructor(svg, axis, scale, lanes) {
    super(svg, axis);
    this.scale = scale;
    this.lanes = lanes;
    this.layer = svg.nextSibling;
    this.marks = this.layer.querySelectorAll(".mark");
    this.ticks = svg.querySelector(".ticks");
  }

  draw(seconds) {
    super.draw(seconds);
    const x = percent(this.axis.place(seconds));
    for (const [number, one] of this.lanes.entries()) {
      set(this.marks[number], "x", x);
      set(this.marks[number], "y", this.y(one.lossAt(seconds)).toFixed(2));
    }
    if (this.lanes.length === 1) return;
    const shown = this.lanes.filter((one) => one.shown);
    const lowest = Math.min(...shown.map((one) => one.lossAt(seconds)));
    const first = shown.filter((one) => one.lossAt(seconds) === lowest);
    this.tell(first.length === 1 ? `${first[0].run.name} has the lowest loss: ${threeDigits(lowest)}` : "no run leads");
  }

  y(loss) {
    const { low, high, logarithmic, pixels } = this.scale;
    const share = logarithmic ? Math.log(loss / low) / Math.log(high / low) : (loss - low) / (high - low);
    return pixels * (1 - share);
  }

  turn(start, end) {
    const { ticks, zoom, perSecond } = this.axis;
    const [step, decimals] = ticks[zoom];
    const whole = this.axis.end * perSecond;
    const made = [];
    for (let number = Math.ceil(start * whole / step - 1e-9); number <= end * whole / step + 1e-9; number += 1) {
      const x = percent((number * step / whole - start) / (end - start));
      const text = element("text", { x, y: this.scale.pixels + 17 });
      text.textContent = (number * step).toFixed(decimals);
      made.push(element("line", { x1: x, x2: x, y1: 0, y2: this.scale.pixels }), text);
    }
    this.ticks.replaceChildren(...made);
  }

  says() {
    return this.told.textContent && `${this.told.textContent}.`;
  }

  show(number, shown) {
    for (const part of [this.svg, this.layer]) {
      for (const one of part.querySelectorAll(`.run-${number}`)) one.classList.toggle("away", !shown);
    }
  }
}

begin("distsim-lanes-and-loss", (figure, content) => {
  const pictures = [...figure.querySelectorAll(".scenes > svg")];
  const axis = new Axis(content.axis);
  const lanes = content.runs.map((run, place) => new Lanes(pictures[place], axis, run));
  const losses = new Losses(pictures.at(-1), axis, content.losses, lanes);
  const redraw = () => figure.player.draw(figure.player.seconds);
  figure.querySelector(".zoom").addEventListener("change", (event) => {
    axis.zoom = Number(event.target.value);
    redraw();
  });
  for (const box of figure.querySelectorAll("[type=checkbox]")) {
    box.addEventListener("change", () => {
      lanes[box.value].show(box.checked);
      losses.show(box.value, box.checked);
      redraw();
      figure.player.tell();
    });
  }
  return [...lanes, losses];
});
