// The map of many texts: similar ones side by side, coloured by label. The table beside it has the same texts.

// Colours that people with any kind of colour vision tell apart (Okabe and Ito), then lighter ones of other hues.
const HUES = "0072b2 e69f00 009e73 cc79a7 d55e00 56b4e9 8a7f00 7a5195 6b7a8f b3446c 2b8c8c a6611a".split(" ");
const hue = (number) => `#${HUES[number] ?? "9aa2ab"}`;
const UNSURE = 0.1;
function hueDot(number) {
  const dot = h("i", { class: "dot", "aria-hidden": "true" });
  dot.style.setProperty("--hue", hue(number));
  return dot;
}

const SVG = "http://www.w3.org/2000/svg";
function svg(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const AFTERWARDS = "The map is drawn when all texts are labelled.";
// The map that was asked for last: another run ends it.
let lastMap = null;
class MapView {
  constructor(batch) {
    Object.assign(this, { batch, rows: [], points: null, abort: null });
    this.note = h("p", { class: "small quiet" });
    this.bar = h("progress", { hidden: true, max: 1, "aria-label": "The map" });
    const act = { class: "button slim", type: "button", hidden: true, onclick: () => this.abort?.abort() };
    this.cancel = h("button", act, "Cancel");
    this.problem = h("div", { class: "slot" });
    const name = "Map of the texts; the table holds the same ones";
    this.picture = svg("svg", { class: "map", role: "img", "aria-label": name });
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.place = h(
      "div",
      { class: "map-box" },
      h("div", { class: "row" }, this.note, this.cancel),
      this.bar,
      this.problem,
      (this.frame = h("div", { class: "map-frame", hidden: true }, this.picture, this.tip)),
    );
    this.picture.addEventListener("pointerover", (event) => this.hover(event));
    this.picture.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.picture.addEventListener("click", (event) => {
      const row = this.rowOf(event);
      if (row) openWhy(row, batch.settings);
    });
    new ResizeObserver(() => this.points && this.draw()).observe(this.place);
  }
  rowOf(event) {
    const at = event.target.dataset?.at;
    return at === undefined ? null : this.batch.rows[Number(at)];
  }
  /* Forget the places, and ask for no more of them: other texts are about to be labelled. */
  clear() {
    this.abort?.abort();
    this.points = null;
    this.frame.hidden = true;
    this.note.textContent = AFTERWARDS;
  }
  /* Ask for the places once all texts are labelled. */
  async show() {
    const { batch } = this;
    if (this.points || this.abort) return;
    const labelled = batch.rows.filter((row) => row.result);
    const texts = sampleFor(labelled.map((row) => row.text));
    if (batch.running || texts.length < 3) {
      this.note.textContent = batch.running
        ? AFTERWARDS
        : "A map needs at least three different labelled texts.";
      return;
    }
    showProblem(this.problem, null);
    const numberOf = new Map(texts.map((text, at) => [text, at]));
    this.rows = labelled.filter((row) => numberOf.has(row.text));
    this.abort = new AbortController();
    lastMap = this;
    const { signal } = this.abort;
    this.cancel.hidden = this.bar.hidden = false;
    try {
      const { points, outlying, layout } = await patiently(() => this.ask(texts, signal), signal);
      // Rows with equal texts are at one place.
      this.points = this.rows.map((row) => points[numberOf.get(row.text)]);
      this.outlying = this.rows.map((row) => outlying[numberOf.get(row.text)]);
      const all = count(labelled.length, "text", "texts");
      const drawn = this.rows.length < labelled.length ? `A sample of ${this.rows.length} of ${all}` : all;
      const meaning =
        layout === "tsne" ? "neighbours are similar (t-SNE)" : "the two directions in which they differ most (PCA)";
      const looks = `Ringed: unsure, margin below ${UNSURE}. Dashed: like no other text.`;
      this.note.textContent = `${drawn}; ${meaning}. ${looks} Click one to see why.`;
      this.draw();
      say("The map is drawn; the table holds the same texts");
    } catch (error) {
      const cancelled = batch.running ? AFTERWARDS : "Cancelled. Open the map again to draw it.";
      this.note.textContent = signal.aborted ? cancelled : "";
      if (!signal.aborted) showProblem(this.problem, asProblem(error));
    }
    this.abort = null;
    this.cancel.hidden = this.bar.hidden = true;
  }
  async ask(texts, signal) {
    const body = { texts, stream: true };
    const since = performance.now();
    for await (const line of linesOf(await call("v1/map", { body, signal }), signal)) {
      if ("points" in line) return line;
      if (!("stage" in line)) throw new Problem(line, line.status === 503 ? 1 : null);
      this.bar.max = line.total;
      this.bar.value = line.done;
      const stage = line.stage === "encoding" ? "Reading the texts" : "Drawing";
      this.note.textContent = `${stage}: ${howMany(line.done, line.total)}${timeLeft(line.done, line.total, since)}`;
    }
    throw new Problem(LOST);
  }
  draw() {
    if (!this.points) return;
    const width = Math.max(260, this.place.clientWidth),
      height = Math.round(Math.min(560, Math.max(300, 0.62 * width)));
    const size = Math.max(3, Math.min(7, 7 * (150 / this.rows.length) ** 0.25)),
      edge = size + 5;
    const reach = [0, 1].map((axis) => Math.max(...this.points.map((point) => Math.abs(point[axis])), 1e-9));
    const wanted = new Set(this.batch.shown());
    this.frame.hidden = false;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.tip.hidden = true;
    this.picture.replaceChildren(
      ...this.rows.map((row, n) => {
        const [x, y] = this.points[n].map((value, axis) => (1 + value / reach[axis]) / 2);
        const { result } = row,
          unsure = result.margin < UNSURE;
        const looks = { point: true, unsure, outlying: this.outlying[n], dim: !wanted.has(row) };
        return svg("circle", {
          cx: edge + x * (width - 2 * edge),
          cy: edge + (1 - y) * (height - 2 * edge),
          r: unsure ? size + 1 : size,
          class: Object.keys(looks)
            .filter((name) => looks[name])
            .join(" "),
          fill: hue(this.batch.names.indexOf(result.labels[0])),
          "data-at": row.at,
        });
      }),
    );
  }
  hover(event) {
    const row = this.rowOf(event);
    this.tip.hidden = !row;
    if (!row) return;
    const text = row.text.length > 240 ? `${row.text.slice(0, 240)} …` : row.text;
    const answer = `${labelWords(row.result)}, ${percent(shareOf(row.result))}`;
    this.tip.replaceChildren(h("b", {}, answer), h("span", {}, text));
    const frame = this.tip.parentElement.getBoundingClientRect(),
      point = event.target.getBoundingClientRect();
    const left = Math.min(point.right - frame.left + 6, frame.width - this.tip.offsetWidth - 4);
    const below = point.bottom - frame.top + 6,
      above = Math.max(4, point.top - frame.top - this.tip.offsetHeight - 6);
    this.tip.style.setProperty("left", `${Math.max(4, left)}px`);
    this.tip.style.setProperty("top", `${below + this.tip.offsetHeight > frame.height ? above : below}px`);
  }
}
