// Plays the figures of distsim.figures.chunks_on_links: one clock moves the elements of all scenes of a figure.
// The layout and the still picture come from Python (chunk_scene.py), the colours from the style sheet.

const SVG = "http://www.w3.org/2000/svg";
const [SOURCE, TARGET, CHUNK, BEGIN, END, BYTES, SUMS] = [0, 1, 2, 3, 4, 5, 6]; // the places in a movement
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
const STEADY_MILLISECONDS = 1000; // between two steps, for readers who prefer reduced motion
const TELLING_MILLISECONDS = 500; // between two lines of text while the figure plays
const MOST_TOLD = 4; // transfers in a line of text
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

// The place at this share of a way with corners.
function along(way, share) {
  const parts = way.slice(1).map(([x, y], place) => Math.hypot(x - way[place][0], y - way[place][1]));
  let left = share * parts.reduce((sum, part) => sum + part, 0);
  let place = 0;
  while (place < parts.length - 1 && left > parts[place]) left -= parts[place++];
  const [from, to] = [way[place], way[place + 1]];
  return from.map((value, axis) => value + (parts[place] ? left / parts[place] : 0) * (to[axis] - value));
}

// Lays the parts that move in every frame into a layer of their own over the picture, which is then painted seldom.
function lift(svg, parts) {
  const layer = element("svg", { class: "distsim-scene above", viewBox: svg.getAttribute("viewBox"), "aria-hidden": true });
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

// One call of a collective. `call` is what Scene.content makes.
class Scene {
  constructor(svg, call) {
    this.call = call;
    this.levels = [...svg.querySelectorAll(".level")];
    this.cells = [...svg.querySelectorAll(".cell")];
    this.numbers = this.cells.map((cell) => (cell.nextSibling?.matches(".number") ? cell.nextSibling : null));
    this.bars = [...svg.querySelectorAll(".bars .up"), ...svg.querySelectorAll(".bars .down")];
    this.flows = svg.querySelector(".flows");
    this.packets = svg.querySelector(".packets");
    this.told = svg.querySelector(".told");
    this.most = svg.querySelector(".most");
    this.flows.replaceChildren();
    this.packets.replaceChildren();
    lift(svg, [svg.querySelector(".bars"), this.most, this.flows, this.packets]);
    this.moving = new Map(); // by the number of a movement, its line and its packet
    this.ended = -1;
    this.chunks = call.start[0].length;
    this.whole = call.wanted.flat().reduce((sum, one) => sum + one, 0);
  }

  // The middle of the chunks on a rank's card.
  middle(rank, chunk, chunks) {
    const { corners, cells, columns } = this.call;
    const last = chunk + chunks - 1;
    const right = (chunk % columns + last % columns) / 2;
    const down = (Math.floor(chunk / columns) + Math.floor(last / columns)) / 2;
    return [corners[rank][0] + (right + 0.5) * cells[rank], corners[rank][1] + (down + 0.5) * cells[rank]];
  }

  // Shows this moment. still: packets under way stand in the middle of their ways.
  draw(seconds, still) {
    const { movements } = this.call;
    let ended = 0; // movements are in the order of their ends
    while (ended < movements.length && movements[ended][END] <= seconds) ended += 1;
    if (ended !== this.ended) this.hold(ended);
    const [up, down] = this.carried.map((bytes) => [...bytes]);
    this.underWay = [];
    for (let number = ended; number < movements.length; number += 1) {
      const movement = movements[number];
      if (movement[BEGIN] > seconds) continue;
      const share = (seconds - movement[BEGIN]) / (movement[END] - movement[BEGIN]);
      up[movement[SOURCE]] += movement[BYTES] * share;
      down[movement[TARGET]] += movement[BYTES] * share;
      this.underWay.push(number);
      this.move(number, still ? 0.5 : share);
    }
    for (const [number, { line, packet }] of this.moving) {
      if (movements[number][BEGIN] <= seconds && seconds < movements[number][END]) continue;
      line.remove();
      packet.remove();
      this.moving.delete(number);
    }
    this.drawBars([...up, ...down]);
  }

  // bytes: of the up-links, then of the down-links.
  drawBars(bytes) {
    const { floor, pixelsPerByte } = this.call;
    for (const [place, bar] of this.bars.entries()) {
      const height = bytes[place] * pixelsPerByte;
      set(bar, "height", height.toFixed(2));
      set(bar, "y", (floor - height).toFixed(2));
    }
    this.drawMost(bytes);
  }

  // The number above the highest bar.
  drawMost(bytes) {
    this.busiest = Math.max(...bytes);
    const bar = this.bars[bytes.findIndex((value) => value >= this.call.about * this.busiest)];
    this.most.firstChild.data = shown(this.busiest, "B");
    const [left, right] = this.call.mostBetween;
    const middle = Number(bar.getAttribute("x")) + bar.getAttribute("width") / 2;
    set(this.most, "x", Math.min(Math.max(middle, left), right).toFixed(2));
    set(this.most, "y", (bar.getAttribute("y") - 4).toFixed(2));
  }

  // The line and the packet of a transfer at this share of its way.
  move(number, share) {
    const [source, target, chunk, begin, end, bytes, sums] = this.call.movements[number];
    if (!this.moving.has(number)) {
      const [x1, y1, x2, y2] = this.call.tracks[`${source} ${target}`];
      const width = Math.max(this.call.flowPerByteRate * bytes / (end - begin), this.call.thinnest);
      const line = element("line", { class: "flow", x1, y1, x2, y2, "stroke-width": width.toFixed(2) });
      const packet = this.packet(chunk, sums.length);
      this.flows.append(line);
      this.packets.append(packet);
      const [from, to] = [source, target].map((rank) => this.middle(rank, chunk, sums.length));
      this.moving.set(number, { line, packet, way: [from, [x1, y1], [x2, y2], to] });
    }
    const { packet, way } = this.moving.get(number);
    const [x, y] = along(way, share).map((place) => place.toFixed(2));
    packet.style.transform = `translate(${x}px,${y}px)`; // moves the packet's layer, and paints nothing
  }

  packet(chunk, chunks) {
    const [long, flat, single] = this.call.packet;
    const [width, height] = chunks === 1 ? [single, single] : [long, flat];
    const made = element("g", { class: "packet" });
    for (let place = 0; place < chunks; place += 1) {
      const x = place * width / chunks - width / 2;
      made.append(element("rect", { class: `k${chunk + place}`, x, y: -height / 2, width: width / chunks, height }));
    }
    made.append(element("rect", { class: "frame", x: -width / 2, y: -height / 2, width, height }));
    return made;
  }

  // What each rank holds after so many transfers.
  hold(ended) {
    const { movements, start, parts, wanted, corners, cells, columns, last, wrong } = this.call;
    const sums = start.map((row) => [...row]);
    this.carried = [start.map(() => 0), start.map(() => 0)]; // bytes of the ended transfers, up and down
    for (const [source, target, chunk, , , bytes, after] of movements.slice(0, ended)) {
      sums[target].splice(chunk, after.length, ...after);
      this.carried[0][source] += bytes;
      this.carried[1][target] += bytes;
    }
    this.complete = 0;
    for (const [rank, row] of sums.entries()) {
      const cell = cells[rank];
      for (const [chunk, value] of row.entries()) {
        const place = rank * this.chunks + chunk;
        const whole = parts[rank][chunk];
        const state = value < 0 ? "twice" : value === whole && whole ? "complete" : "partial";
        const full = whole ? Math.min(Math.abs(value) / whole, 1) * cell : 0;
        const bottom = corners[rank][1] + (Math.floor(chunk / columns) + 1) * cell;
        set(this.levels[place], "height", full.toFixed(2));
        set(this.levels[place], "y", (bottom - full).toFixed(2));
        set(this.cells[place], "class", `cell ${state}`);
        if (this.numbers[place]) this.numbers[place].textContent = Math.abs(value) || "";
        if (wanted[rank][chunk] && value === whole) this.complete += 1;
      }
    }
    this.ended = ended;
    const over = ended === movements.length;
    const soFar = `${ended} of ${movements.length} transfers ended, ${this.complete} of ${this.whole} sums complete`;
    this.told.textContent = over ? last : soFar;
    this.told.setAttribute("class", `told${over ? wrong ? " wrong" : " done" : ""}`);
  }

  says() {
    const name = this.call.name.replaceAll("_", " ");
    if (!this.underWay.length) return `${name}: ${this.told.textContent}; busiest link ${shown(this.busiest, "B")}.`;
    const some = this.underWay.slice(0, MOST_TOLD).map((number) => {
      const movement = this.call.movements[number];
      const [source, target, chunk, sums] = [SOURCE, TARGET, CHUNK, SUMS].map((place) => movement[place]);
      const chunks = sums.length === 1 ? `chunk ${chunk}` : `chunks ${chunk} to ${chunk + sums.length - 1}`;
      return `${chunks} from rank ${source} to ${target}`;
    });
    const more = this.underWay.length - some.length;
    const all = `${some.join(", ")}${more ? `, and ${more} transfers more` : ""}`;
    return `${name}: ${this.complete} of ${this.whole} sums complete; under way: ${all}.`;
  }
}

export class Player {
  constructor(figure) {
    const content = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const pictures = figure.querySelectorAll(".distsim-scene");
    this.figure = figure;
    this.content = content;
    this.scenes = content.scenes.map((call, place) => new Scene(pictures[place], call));
    this.moments = [...new Set(content.scenes.flatMap((call) => call.moments))].sort((one, other) => one - other);
    this.seconds = content.still;
    this.fresh = true; // the still picture is shown: playing begins at 0
    this.playing = false;
    this.frames = []; // times of the latest drawings, for tests
    const [controls, stage, button, back, on, slider, clock, speed, says] = [
      ".controls", ".scenes", ".play", ".back", ".on", "input", "output", "select", ".says",
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
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, summary")) return;
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

for (const figure of document.querySelectorAll(".distsim-chunks:not([data-plays])")) {
  figure.dataset.plays = "true";
  figure.player = new Player(figure);
  figure.player.fresh = true;
}
