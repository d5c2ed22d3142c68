// The clock of an animation of distsim.figures: it plays, steps and goes to any moment, by buttons and by keys. Each kind
// of animation brings scenes, which draw themselves at a moment and tell of it in words.

const SVG = "http://www.w3.org/2000/svg";
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
const STEADY_MILLISECONDS = 1000; // between two steps, for readers who prefer reduced motion
const TELLING_MILLISECONDS = 500; // between two lines of text while the figure plays
const CLOCK_MILLISECONDS = 100; // between two moves of the clock and its slider while the figure plays
const LONGEST_FRAME = 0.25; // seconds; a page in the background stands still
const UNITS = { s: ["s", "ms", "µs", "ns"], B: ["TB", "GB", "MB", "kB", "B"] };
const SIZES = { s: [1, 1e-3, 1e-6, 1e-9], B: [1e12, 1e9, 1e6, 1e3, 1] };

const lessMotion = matchMedia("(prefers-reduced-motion: reduce)");

function element(name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// A value with three digits, in the unit that suits it.
function shown(value, unit) {
  if (!value) return `0 ${unit}`;
  const found = SIZES[unit].findIndex((size) => value >= size * 0.9995);
  const place = found < 0 ? SIZES[unit].length - 1 : found;
  return `${Number((value / SIZES[unit][place]).toPrecision(3))} ${UNITS[unit][place]}`;
}

// A moment, with as many decimals as the end has, so that a running clock does not jump.
function moment(seconds, end) {
  const [number, unit] = shown(end, "s").split(" ");
  const decimals = Math.max(number.split(".")[1]?.length ?? 0, Number(number) < 10 ? 2 : 1);
  return `${(seconds / SIZES.s[UNITS.s.indexOf(unit)]).toFixed(decimals)} ${unit}`;
}

// Lays the parts that move in every frame into a layer of their own over the picture, which is then painted seldom.
function lift(svg, parts) {
  const layer = element("svg", { class: `${svg.getAttribute("class")} above`, "aria-hidden": true });
  for (const name of ["viewBox", "style"]) if (svg.hasAttribute(name)) layer.setAttribute(name, svg.getAttribute(name));
  layer.append(...parts);
  const both = document.createElement("div");
  both.className = "scene";
  svg.before(both);
  both.append(svg, layer);
}

// Sets an attribute that differs; the browser would work for one that does not, too.
function set(part, name, value) {
  if (part.getAttribute(name) !== value) part.setAttribute(name, value);
}

// scenes: each has `draw(seconds, still)`, `says()` and `moments`, to which steps go.
class Player {
  constructor(figure, content, scenes) {
    this.figure = figure;
    this.content = content;
    this.scenes = scenes;
    this.moments = [...new Set(scenes.flatMap((scene) => scene.moments))].sort((one, other) => one - other);
    this.seconds = content.still;
    this.fresh = true; // the still picture is shown: playing begins at 0
    this.playing = false;
    this.frames = []; // times of the latest drawings, for tests
    const [controls, stage, button, back, on, slider, clock, speed, says] = [
      ".controls", ".scenes", ".play", ".back", ".on", "[type=range]", "output", ".speed", ".says",
    ].map((selector) => figure.querySelector(selector));
    Object.assign(this, { stage, button, slider, clock, speed, says });
    for (const times of SPEEDS) speed.append(new Option(`${times} ×`, times, times === 1, times === 1));
    button.addEventListener("click", () => this.toggle());
    back.addEventListener("click", () => this.step(-1));
    on.addEventListener("click", () => this.step(1));
    slider.addEventListener("input", () => this.goTo(slider.value / slider.max * content.end));
    figure.addEventListener("keydown", (event) => this.pressed(event));
    stage.tabIndex = 0;
    controls.hidden = false;
    this.draw(this.seconds);
    this.tell();
  }

  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, summary, [type=checkbox]")) return;
    const onButton = event.target.closest("button");
    const does = { ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1),
      Home: () => this.goTo(0), End: () => this.goTo(this.content.end), " ": () => this.toggle() };
    if (!(event.key in does) || (event.key === " " && onButton)) return;
    event.preventDefault();
    event.stopPropagation();
    does[event.key]();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.fresh || this.seconds >= this.content.end) this.draw(0);
    this.playing = true;
    this.button.textContent = "Pause";
    this.says.setAttribute("aria-live", "off"); // a line twice a second would drown all others
    this.before = this.toldAt = performance.now();
    this.tell();
    requestAnimationFrame((now) => this.frame(now));
  }

  pause() {
    this.playing = false;
    this.button.textContent = "Play";
    this.says.setAttribute("aria-live", "polite");
    this.tell();
  }

  frame(now) {
    if (!this.playing) return;
    if (!this.figure.isConnected) { // taken out of the page, perhaps for a while
      this.pause();
      return;
    }
    if (lessMotion.matches) this.playInSteps(now);
    else {
      const passed = Math.min(Math.max(now - this.before, 0) / 1000, LONGEST_FRAME);
      this.before = now;
      this.draw(Math.min(this.seconds + passed * this.content.pace * this.speed.value, this.content.end));
    }
    this.frames.push(now);
    if (this.frames.length > 1000) this.frames.shift();
    if (now - this.toldAt > TELLING_MILLISECONDS) {
      this.toldAt = now;
      this.tell();
    }
    if (this.seconds >= this.content.end) this.pause();
    else requestAnimationFrame((later) => this.frame(later));
  }

  playInSteps(now) {
    if (now - this.before < STEADY_MILLISECONDS / this.speed.value) return;
    this.before = now;
    this.draw(this.next(1));
  }

  next(way) {
    const near = 1e-8 * this.content.end;
    const beyond = this.moments.filter((moment) => way * (moment - this.seconds) > near);
    return (way > 0 ? beyond[0] : beyond.at(-1)) ?? (way > 0 ? this.content.end : 0);
  }

  step(way) {
    this.goTo(this.next(way));
  }

  goTo(seconds) {
    this.draw(seconds);
    this.pause();
  }

  draw(seconds) {
    this.seconds = seconds;
    this.fresh = false;
    for (const scene of this.scenes) scene.draw(seconds, lessMotion.matches);
    const now = performance.now();
    if (this.playing && now - this.clockAt < CLOCK_MILLISECONDS && seconds < this.content.end) return;
    this.clockAt = now;
    this.tellTheTime(seconds);
  }

  tellTheTime(seconds) {
    const { end } = this.content;
    const text = `${moment(seconds, end)} of ${shown(end, "s")}`;
    this.clock.textContent = text;
    this.slider.value = end ? seconds / end * this.slider.max : 0;
    this.slider.setAttribute("aria-valuetext", text);
  }

  tell() {
    this.says.textContent = this.scenes.map((scene) => scene.says()).join(" ");
  }
}

// Begins each figure of this kind in the page that does not play yet. scenesOf: makes the scenes of a figure.
function begin(kind, scenesOf) {
  for (const figure of document.querySelectorAll(`.${kind}:not([data-plays])`)) {
    figure.dataset.plays = "true";
    const content = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    figure.player = new Player(figure, content, scenesOf(figure, content));
    figure.player.fresh = true;
  }
}
