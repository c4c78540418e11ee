"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const size = data.x.length, perPage = 25;
// Colours that people with any kind of colour vision tell apart (Okabe and Ito), then lighter ones of other hues.
const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8a7f00", "#7a5195",
  "#6b7a8f", "#b3446c", "#2b8c8c", "#a6611a"];
const colour = (label) => label < colours.length ? colours[label] : "#9aa2ab";
const find = (id) => document.getElementById(id);
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// Without WebGL the picture is drawn as SVG: slower, and the same.
const kind = document.createElement("canvas").getContext("webgl") ? "scattergl" : "scatter";
const known = data.margin.some((value) => value !== null);
let limit = data.unsure, shown = [], page = 0, chosen = -1;
const wanted = new Set(data.labels.keys());

const isUnsure = (n) => data.margin[n] !== null && data.margin[n] < limit;

function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function filter() {
  const words = find("search").value.toLowerCase(), unsure = find("only-unsure").checked;
  const outlying = find("only-outlying").checked;
  shown = [];
  for (let n = 0; n < size; n++) {
    if (wanted.has(data.label[n]) && (!unsure || isUnsure(n)) && (!outlying || data.outlying[n])
        && (!words || data.text[n].toLowerCase().includes(words))) shown.push(n);
  }
  // What a person should look at comes first.
  shown.sort((a, b) => (data.margin[a] ?? 2) - (data.margin[b] ?? 2) || a - b);
  page = 0;
  draw();
  list();
}

function wrapped(text) {
  const words = (text.length > 240 ? text.slice(0, 240) + " …" : text).split(/\s+/), lines = [""];
  for (const word of words) {
    const last = lines.length - 1;
    if (lines[last].length + word.length > 60) lines.push(word); else lines[last] += (lines[last] ? " " : "") + word;
  }
  return lines.map((line) => line.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")).join("<br>");
}

function middle(values) {
  const sorted = Float64Array.from(values).sort();
  return sorted[sorted.length >> 1];
}

const short = (name) => name.length > 24 ? name.slice(0, 23) + "…" : name;

// Many points are small ones: they hide each other less, and are drawn faster.
const point = Math.max(3, Math.min(7, 7 * Math.pow(1000 / size, 0.25)));
// What all points of a trace share is drawn faster than what each has for itself.
const looks = [
  { has: (n) => !isUnsure(n) && !data.outlying[n], size: point, symbol: "circle", ring: 0 },
  { has: (n) => isUnsure(n) && !data.outlying[n], size: point + 2, symbol: "circle", ring: 1.5 },
  { has: (n) => Boolean(data.outlying[n]), size: point + 3, symbol: "x", ring: 0 },
];

function trace(rows, marker) {
  return { type: kind, mode: "markers", showlegend: false, hoverinfo: "none", customdata: rows,
    x: rows.map((n) => data.x[n]), y: rows.map((n) => data.y[n]), marker };
}

function traces() {
  const groups = data.labels.map(() => []), made = [];
  for (const n of shown) groups[data.label[n]].push(n);
  for (const look of looks) {
    groups.forEach((rows, label) => {
      const line = { color: style("--ink"), width: look.ring };
      made.push(trace(rows.filter(look.has), { color: colour(label), size: look.size, symbol: look.symbol, opacity: size > 5000 ? 1 : .8, line }));
    });
  }
  const ring = { size: 18, symbol: "circle-open", color: style("--focus"), line: { width: 3 } };
  return [...made, { ...trace(chosen >= 0 ? [chosen] : [], ring), hoverinfo: "skip" }];
}

function axis(values) {
  const [low, high] = extent(values), room = .06 * (high - low) + .01;
  return { visible: false, range: [low - room, high + room] };
}

// Of all texts, so that the picture stays where it is when they are filtered.
function extent(values) {
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
}

function layout() {
  const names = [];
  data.labels.forEach((name, label) => {
    const rows = shown.filter((n) => data.label[n] === label);
    // Many labels would hide the points.
    if (rows.length > 1 && label < 30) names.push({ x: middle(rows.map((n) => data.x[n])), y: middle(rows.map((n) => data.y[n])),
      text: short(name).replace(/&/g, "&amp;").replace(/</g, "&lt;"), showarrow: false, bgcolor: style("--paper"),
      bordercolor: colour(label), borderpad: 3, opacity: .92, captureevents: false, font: { color: style("--ink"), size: 13 } });
  });
  return { margin: { l: 0, r: 0, t: 0, b: 0 }, xaxis: axis(data.x), yaxis: axis(data.y), annotations: names, dragmode: false,
    hovermode: "closest", paper_bgcolor: style("--paper"), plot_bgcolor: style("--paper"), uirevision: "same",
    hoverdistance: 12 };
}

const options = { scrollZoom: true, displaylogo: false, responsive: true,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoom2d", "pan2d"] };

function draw() {
  return Plotly.react("plot", traces(), layout(), options);
}

// Without a graphics card it takes longer than a frame to draw all points: while they are dragged, what is drawn is moved,
// and drawn anew a few times a second.
const redraw = 200;

function pan(plot) {
  let from = null, last = 0;
  const shift = (x, y) => {
    const moved = x || y ? `translate(${x}px, ${y}px)` : "";
    for (const layer of plot.querySelectorAll(".gl-container, .infolayer, .cartesianlayer")) layer.style.transform = moved;
  };
  const drawAt = (x, y) => {
    const { xaxis, yaxis } = plot._fullLayout;
    const right = (xaxis.range[1] - xaxis.range[0]) * (from.x - x) / xaxis._length;
    const up = (yaxis.range[1] - yaxis.range[0]) * (y - from.y) / yaxis._length;
    Plotly.relayout(plot, { "xaxis.range": xaxis.range.map((value) => value + right), "yaxis.range": yaxis.range.map((value) => value + up) });
    shift(0, 0);
    from = { x, y };
    last = performance.now();
  };
  plot.addEventListener("pointerdown", (event) => {
    if (event.isPrimary && event.button === 0 && event.target.closest(".draglayer")) {
      from = { x: event.clientX, y: event.clientY };
      last = performance.now();
    }
  });
  addEventListener("pointermove", (event) => {
    if (!from) return;
    tip.style.display = "none";
    if (performance.now() - last > redraw) drawAt(event.clientX, event.clientY);
    else shift(event.clientX - from.x, event.clientY - from.y);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    addEventListener(end, (event) => {
      if (from && (event.clientX !== from.x || event.clientY !== from.y)) drawAt(event.clientX, event.clientY);
      from = null;
    });
  }
}

const tip = element("div");
tip.id = "tip";
tip.style.cssText = "position:fixed;z-index:10;pointer-events:none;max-width:26rem;padding:.4rem .6rem;border-radius:5px;"
  + "border:1px solid var(--line);background:var(--paper);color:var(--ink);font-size:13px;display:none";
document.body.append(tip);

function hover(event) {
  const n = event.points[0].customdata;
  if (typeof n !== "number") return;
  tip.replaceChildren(element("strong", data.labels[data.label[n]]), element("br"));
  const text = element("span");
  text.innerHTML = wrapped(data.text[n]);
  tip.append(text, ...data.reasons[n].map((line) => element("div", line, "quiet")));
  tip.style.display = "block";
  const { clientX: x, clientY: y } = event.event, width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + 14 + height > innerHeight ? Math.max(4, y - height - 10) : y + 14}px`;
}

function choose(n) {
  chosen = n;
  const facts = [data.labels[data.label[n]]];
  if (data.probability[n] !== null) facts.push(`probability ${(100 * data.probability[n]).toFixed(0)} %`);
  if (data.margin[n] !== null) facts.push(`margin ${data.margin[n].toFixed(2)}${isUnsure(n) ? ", unsure" : ""}`);
  if (data.outlying[n]) facts.push("like no other text");
  find("chosen").replaceChildren(element("p", facts.join(" · "), "quiet"), element("p", data.text[n], "text"),
    ...data.reasons[n].map((line) => element("p", line, "quiet")), element("p", `id ${data.id[n]}`, "quiet"));
  draw();
  for (const row of find("rows").children) row.setAttribute("aria-selected", String(Number(row.dataset.n) === n));
}

function list() {
  const pages = Math.max(1, Math.ceil(shown.length / perPage));
  const rows = shown.slice(page * perPage, (page + 1) * perPage).map((n) => {
    const row = element("tr"), cell = element("td"), button = element("button", data.text[n].slice(0, 200));
    row.dataset.n = n;
    row.setAttribute("aria-selected", String(n === chosen));
    button.type = "button";
    button.addEventListener("click", () => choose(n));
    cell.append(button);
    const margin = data.margin[n] === null ? "–" : data.margin[n].toFixed(2);
    row.append(element("td", data.labels[data.label[n]]), element("td", margin, "number"), cell);
    return row;
  });
  find("rows").replaceChildren(...rows);
  find("count").textContent = shown.length === size ? `All ${size.toLocaleString("en")} texts` + (known ? ", the least certain first" : "")
    : `${shown.length.toLocaleString("en")} of ${size.toLocaleString("en")} texts`;
  find("page").textContent = `${page + 1} of ${pages}`;
  find("back").disabled = page === 0;
  find("next").disabled = page >= pages - 1;
  find("export").disabled = shown.length === 0;
}

function save() {
  const cell = (value) => {
    // A spreadsheet would run a text that begins like this as a formula.
    const text = String(value ?? ""), safe = /^[=+\-@\t\r]/.test(text) && isNaN(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const head = ["id", "text", "predicted", "probability", "margin", "outlying", "label"];
  // The last column is for the person who looks at these rows.
  const lines = shown.map((n) => [data.id[n], data.text[n], data.labels[data.label[n]], data.probability[n], data.margin[n],
    data.outlying[n] ? "yes" : "no", ""].map(cell).join(","));
  const link = element("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff" + [head.join(","), ...lines].join("\r\n") + "\r\n"], { type: "text/csv" }));
  link.download = "for-review.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function setUp() {
  const counts = data.labels.map(() => 0);
  for (const label of data.label) counts[label] += 1;
  data.labels.forEach((name, label) => {
    const line = element("label", undefined, "line"), box = element("input"), dot = element("span", "", "dot");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => { box.checked ? wanted.add(label) : wanted.delete(label); filter(); });
    dot.style.background = colour(label);
    line.append(box, dot, element("span", name || "(no label)"), element("span", counts[label].toLocaleString("en"), "number"));
    find("labels").append(line);
  });
  const boxes = () => find("labels").querySelectorAll("input");
  find("all").addEventListener("click", () => { boxes().forEach((box, n) => { box.checked = true; wanted.add(n); }); filter(); });
  find("nothing").addEventListener("click", () => { boxes().forEach((box) => { box.checked = false; }); wanted.clear(); filter(); });
  const slider = find("limit");
  slider.value = limit;
  const say = () => { find("limit-value").textContent = Number(slider.value).toFixed(2); };
  say();
  slider.addEventListener("input", () => { limit = Number(slider.value); say(); });
  slider.addEventListener("change", filter);
  find("only-unsure").disabled = slider.disabled = !known;
  for (const id of ["only-unsure", "only-outlying"]) find(id).addEventListener("change", filter);
  let waiting;
  find("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 200); });
  find("back").addEventListener("click", () => { page -= 1; list(); });
  find("next").addEventListener("click", () => { page += 1; list(); });
  find("export").addEventListener("click", save);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

setUp();
filter();
pan(find("plot"));
find("plot").on("plotly_hover", hover);
find("plot").on("plotly_unhover", () => { tip.style.display = "none"; });
find("plot").on("plotly_click", (event) => {
  const n = event.points[0].customdata;
  if (typeof n === "number") choose(n);
});
