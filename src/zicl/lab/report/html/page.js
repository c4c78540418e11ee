// The prediction browser. Everything is inserted as text, never as HTML.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const browser = document.getElementById("browser");
  if (!browser || !data.predictions.length) return;

  const PAGE = 10;
  const form = browser.querySelector("form");
  const list = document.getElementById("list");
  const article = document.getElementById("prediction");
  const count = document.getElementById("count");
  const [previous, next] = ["previous", "next"].map((id) => document.getElementById(id));
  const choices = ["from", "model", "task", "title", "template", "inference", "seed"];
  let matches = [];
  let at = 0;

  // Return an element with a class, and texts or elements in it.
  function make(name, kind, ...inside) {
    const element = document.createElement(name);
    if (kind) element.className = kind;
    element.append(...inside.filter((part) => part !== null && part !== ""));
    return element;
  }

  // Return the probability of each label, or its score if scores are not log-probabilities.
  function shares(prediction) {
    const scores = prediction.scores.map((score) => (score === null ? -Infinity : score));
    if (!data.cells[prediction.cell].probabilities) return scores;
    const top = Math.max(...scores);
    const raised = scores.map((score) => Math.exp(score - top));
    const sum = raised.reduce((one, other) => one + other, 0);
    // An option that a text does not have is left out; it has no probability, not 0.
    return raised.map((value, number) => (prediction.scores[number] === null ? -Infinity : value / sum));
  }

  function margin(prediction) {
    const [first, second] = [...prediction.shares].filter(Number.isFinite).sort((a, b) => b - a);
    return second === undefined ? 1 : first - second;
  }

  for (const prediction of data.predictions) {
    prediction.shares = shares(prediction);
    prediction.margin = margin(prediction);
    prediction.correct = prediction.gold === prediction.predicted;
  }

  function fillChoices() {
    for (const name of choices) {
      const values = [...new Set(data.cells.map((cell) => cell[name]))];
      const select = form.elements[name];
      select.append(new Option("all", ""));
      for (const value of values) select.append(new Option(value === "-" ? "none drawn" : value, value));
      select.parentElement.hidden = values.length < 2;
    }
  }

  function bound(name, fallback) {
    const value = parseFloat(form.elements[name].value);
    return Number.isNaN(value) ? fallback : value;
  }

  function filter() {
    const filters = choices.map((name) => [name, form.elements[name].value]).filter(([, value]) => value);
    const outcome = form.elements.outcome.value;
    const [low, high] = [bound("low", 0), bound("high", 1)];
    matches = data.predictions.filter((each) => {
      const cell = data.cells[each.cell];
      // A margin of 0.99999 is written as 1.
      const rounded = Math.round(each.margin * 1000) / 1000;
      return filters.every(([name, value]) => cell[name] === value)
        && (!outcome || (outcome === "correct") === each.correct)
        && rounded >= low && rounded <= high;
    });
    const order = Number(form.elements.order.value);
    if (order) matches.sort((one, other) => order * (one.margin - other.margin));
    show(0);
  }

  function show(index) {
    at = Math.max(0, Math.min(index, matches.length - 1));
    // Not disabled: a disabled button loses the focus.
    previous.setAttribute("aria-disabled", String(at <= 0));
    next.setAttribute("aria-disabled", String(at >= matches.length - 1));
    article.replaceChildren();
    fillList();
    if (!matches.length) {
      count.textContent = "No prediction is like that. Change or clear the filters.";
      return;
    }
    const one = matches[at];
    const position = `${(at + 1).toLocaleString("en")} of ${matches.length.toLocaleString("en")}`;
    count.textContent = `Prediction ${position}: ${one.correct ? "correct" : "wrong"}, predicted ${label(one, one.predicted)}.`;
    article.append(...detail(one, position));
  }

  function fillList() {
    const first = Math.floor(at / PAGE) * PAGE;
    list.start = first + 1;
    list.replaceChildren(...matches.slice(first, first + PAGE).map((one, number) => {
      const example = data.examples[one.example];
      const button = make("button", one.correct ? "right" : "wrong",
        make("span", "mark", one.correct ? "✓" : "✗"),
        make("span", "sr", one.correct ? " correct: " : " wrong: "),
        make("span", "snippet", example.text ? example.text.join(" / ") : `example ${example.id}`));
      button.type = "button";
      if (first + number === at) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => {
        show(first + number);
        article.focus({ preventScroll: true });
        if (article.getBoundingClientRect().top > innerHeight * 0.6) article.scrollIntoView();
      });
      return make("li", "", button);
    }));
  }

  function label(one, number) {
    const options = data.examples[one.example].options;
    return options && options.length ? options[number] : data.cells[one.cell].labels[number];
  }

  function detail(one, position) {
    const cell = data.cells[one.cell];
    const example = data.examples[one.example];
    const title = make("h3", "", `Prediction ${position}`, make("span", one.correct ? "badge right" : "badge wrong",
      one.correct ? "✓ correct" : "✗ wrong"));
    title.id = "prediction-title";
    const seed = cell.seed === "-" ? "nothing drawn" : `seed ${cell.seed}`;
    const inference = cell.inference === "none" ? "no prompt" : cell.inference;
    const facts = [cell.task, cell.title, inference, seed, `example ${example.id}`, `margin ${one.margin.toFixed(3)}`];
    const text = example.text || [`The text of example ${example.id} is not in this page.`];
    return [
      title,
      make("p", "meta", facts.join(" · ")),
      make("h4", "", "Input"),
      make("blockquote", example.text ? "" : "absent", ...text.map((part) => make("p", "", part))),
      one.cut ? make("p", "hint", "The input was cut to its token limit.") : "",
      make("h4", "", "Labels"),
      scoreTable(one, cell),
      ...demonstrations(one),
    ].filter((part) => part !== "");
  }

  function scoreTable(one, cell) {
    const top = Math.max(...one.shares.filter(Number.isFinite), 1e-9);
    const heading = cell.probabilities ? "Probability" : "Score";
    const column = (name) => Object.assign(make("th", "", name), { scope: "col" });
    const rows = one.shares.map((share, number) => {
      if (!Number.isFinite(share)) return null;
      const bar = make("span", "bar");
      bar.style.width = `${100 * Math.max(0, cell.probabilities ? share : share / top)}%`;
      const track = make("span", "track", bar);
      track.setAttribute("aria-hidden", "true");
      const tags = [];
      if (number === one.predicted) tags.push(make("span", "tag", "predicted"));
      if (number === one.gold) tags.push(make("span", "tag gold", "gold"));
      const name = make("th", "", label(one, number), ...tags);
      name.scope = "row";
      const value = cell.probabilities ? `${(100 * share).toFixed(1)} %` : share.toFixed(3);
      const row = make("tr", number === one.predicted ? "chosen" : "", name, make("td", "value", value),
        make("td", "wide", track), make("td", "value raw", one.scores[number].toFixed(2)));
      return row;
    });
    const head = make("tr", "", column("Label"), column(heading), make("td", ""), column("Log score"));
    const table = make("table", "scores", make("thead", "", head), make("tbody", "", ...rows));
    table.setAttribute("aria-label", "The scores of each label");
    return table;
  }

  function demonstrations(one) {
    if (!one.demos.length) return [make("p", "hint", "No demonstrations.")];
    const items = one.demos.map(([place, words, similarity, kept, nearest]) => {
      const sentence = data.sentences[place];
      const beside = nearest.filter((other) => other !== place).map((other) => data.sentences[other]);
      const origin = [sentence.source, sentence.domain, `#${sentence.id}`];
      const near = similarity === null ? "" : `similarity ${similarity.toFixed(3)}`;
      // The similarity is that of the sentence it was found through, which may be another.
      const through = near && data.cells[one.cell].through;
      if (through && !beside.length) origin.push(`found through a sentence of ${near}`);
      else if (near && !through) origin.push(near);
      const lead = `Nearest${beside.length > 1 ? ", one of" : ""}${through ? ` (${near})` : ""}: `;
      return make("li", kept ? "" : "dropped",
        make("p", "demo", make("span", "tag words", data.words[words]), " ", sentence.text || `sentence ${sentence.id}`),
        make("p", "origin", origin.filter(Boolean).join(" · ")),
        beside.length ? make("p", "beside", make("span", "lead", lead),
          beside.map((other) => other.text || `sentence ${other.id}`).join(" — ")) : "",
        kept ? "" : make("p", "hint", "Not in the prompt: there was no room for it."));
    });
    const shown = make("ol", "demos", ...items);
    // Without similarities they are in the order of the prompt.
    const known = one.demos.every(([, , similarity]) => similarity !== null);
    const title = known ? "Demonstrations, nearest first" : "Demonstrations";
    shown.setAttribute("aria-label", title);
    return [make("h4", "", `${title} (${one.demos.length})`), shown];
  }

  previous.addEventListener("click", () => show(at - 1));
  next.addEventListener("click", () => show(at + 1));
  // Apply a choice when it is made, a number while it is typed.
  form.addEventListener("change", (event) => event.target.matches("select") && filter());
  form.addEventListener("input", (event) => event.target.matches("input") && filter());
  form.addEventListener("submit", (event) => event.preventDefault());
  // The fields are reset only after the event.
  form.addEventListener("reset", () => setTimeout(filter));
  browser.querySelector(".panes").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const inList = list.contains(document.activeElement);
    show(at + step);
    // The focused button was replaced: focus that of the new prediction.
    if (inList) list.querySelector("[aria-current]").focus();
  });

  browser.hidden = false;
  fillChoices();
  filter();
})();
