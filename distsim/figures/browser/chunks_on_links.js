// Plays the figures of distsim.figures.chunks_on_links: chunks move, sums grow, bars count bytes.
// The layout and the still picture come from Python (chunk_scene.py), the colours from the style sheet.

const [SOURCE, TARGET, CHUNK, BEGIN, END, BYTES, SUMS] = [0, 1, 2, 3, 4, 5, 6]; // the places in a movement
const MOST_TOLD = 4; // transfers in a line of text
// The place at this share of a way with corners.
function along(way, share) {
  const parts = way.slice(1).map(([x, y], place) => Math.hypot(x - way[place][0], y - way[place][1]));
  let left = share * parts.reduce((sum, part) => sum + part, 0);
  let place = 0;
  while (place < parts.length - 1 && left > parts[place]) left -= parts[place++];
  const [from, to] = [way[place], way[place + 1]];
  return from.map((value, axis) => value + (parts[place] ? left / parts[place] : 0) * (to[axis] - value));
}

// One call of a collective. `call` is what Scene.content makes.
class Chunks {
  constructor(svg, call) {
    this.call = call;
    this.moments = call.moments;
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

begin("distsim-chunks-on-links", (figure, content) => {
  const pictures = figure.querySelectorAll(".distsim-scene");
  return content.scenes.map((call, place) => new Chunks(pictures[place], call));
});
