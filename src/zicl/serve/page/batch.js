// Many texts: a table that fills, sorts and filters.

const PAGE = 50;
const undone = (row) => !row.result && !row.problem;
class Batch {
  constructor(place, items, settings, name) {
    Object.assign(this, {
      place,
      settings,
      name,
      sort: "at",
      falling: false,
      label: "",
      least: 0,
      most: 1,
      page: 0,
      abort: new AbortController(),
      done: 0,
      running: false,
      problem: null,
      drawn: [],
      pending: null,
    });
    this.rows = items.map((item, at) => ({ ...item, at, result: null }));
    this.draw();
  }
  async run() {
    this.running = true;
    this.problem = null;
    this.started = performance.now();
    this.before = this.done;
    this.drawMeter();
    say(`Classifying ${this.rows.length} texts`);
    try {
      for (const chunk of this.chunks())
        await patiently(
          () => this.stream(chunk),
          this.abort.signal,
          (words) => {
            this.note.textContent = words;
          },
        );
    } catch (error) {
      if (!this.abort.signal.aborted) this.problem = asProblem(error);
    }
    this.running = false;
    this.redraw();
    say(
      this.problem
        ? this.problem.title
        : this.done < this.rows.length
          ? `Stopped at ${this.done} of ${this.rows.length}`
          : this.labelled < this.rows.length
            ? `${this.labelled} of ${this.rows.length} texts are classified, the others were passed over`
            : `All ${this.rows.length} texts are classified`,
    );
  }
  chunks() {
    // Small enough to be answered well before the server's deadline.
    const most = Math.min(info.limits?.texts ?? 64, 64),
      room = (info.limits?.body ?? 1_000_000) / 8;
    const chunks = [];
    let chunk = [],
      size = 0;
    for (const row of this.rows.filter(undone)) {
      if (chunk.length && (chunk.length >= most || size + row.text.length > room)) {
        chunks.push(chunk);
        chunk = [];
        size = 0;
      }
      chunk.push(row);
      size += row.text.length;
    }
    return chunk.length ? [...chunks, chunk] : chunks;
  }
  async stream(chunk) {
    // A text that cannot be used ends a stream: it is passed over, and the rest asked for again.
    for (let open = chunk.filter(undone); open.length; open = chunk.filter(undone)) {
      const before = this.done;
      const body = {
        ...bodyFor(this.settings, this.settings.method),
        texts: open.map((row) => row.text),
        stream: true,
      };
      let response;
      try {
        response = await call("v1/classify", { body, signal: this.abort.signal });
      } catch (error) {
        const row = error.status === 422 && error.field !== "k" ? open[error.index] : null;
        if (!row) throw error;
        this.passOver(row, error);
        continue;
      }
      for await (const line of linesOf(response, this.abort.signal)) {
        const failed = !("label" in line),
          row = open[line.index];
        // What is wrong with k is wrong for every text.
        if (failed && (!row || line.status >= 500 || line.field === "k"))
          throw new Problem(line, line.status === 503 && this.done > before ? 1 : null);
        if (failed) this.passOver(row, line);
        else {
          this.done++;
          row.result = line;
          this.redrawSoon();
        }
      }
      if (this.done === before)
        throw new Problem({
          title: "The answer ended early",
          detail: `${this.done} of ${this.rows.length} texts are classified.`,
          hint: "Go on with the rest.",
        });
    }
  }
  passOver(row, problem) {
    this.done++;
    row.problem = problem;
    this.redrawSoon();
  }
  get labelled() {
    return this.rows.filter((row) => row.result).length;
  }
  draw() {
    const [one, two] = [newId(), newId()];
    this.bar = h("progress", { max: Math.max(1, this.rows.length), "aria-label": "Texts classified" });
    this.note = h("span", { class: "small quiet" });
    this.title = h("h2", { id: one });
    this.again = h("div", { class: "slot" });
    this.counts = h("div", { class: "counts", role: "group", "aria-label": "Texts by label" });
    this.choice = h(
      "select",
      {
        class: "field",
        onchange: () => {
          this.label = this.choice.value;
          this.page = 0;
          this.redraw();
        },
      },
      h("option", { value: "" }, "all labels"),
      this.settings.names.map((name) => h("option", { value: `=${name}` }, name)),
    );
    const edge = (what, value, words) =>
      h("input", {
        class: "field",
        type: "number",
        min: "0",
        max: "1",
        step: "0.05",
        value: String(value),
        "aria-label": words,
        oninput: (event) => {
          const given = Number.parseFloat(event.currentTarget.value);
          this[what] = Number.isFinite(given) ? given : value;
          this.page = 0;
          this.redraw();
        },
      });
    const heads = [
      ["at", "#", "number at-cell"],
      ["text", "Text", ""],
      ["label", "Label", ""],
      ["share", "Probability", "number share-cell"],
      ["margin", "Margin", "number"],
    ];
    this.heads = heads.map(([key, words, kind]) => [
      key,
      h(
        "th",
        { scope: "col", class: kind || null, "aria-sort": "none" },
        h("button", { type: "button", onclick: () => this.sortBy(key) }, words),
      ),
    ]);
    this.caption = h("caption");
    this.tbody = h("tbody");
    this.turns = [
      [-1, "Previous"],
      [1, "Next"],
    ].map(([step, words]) => [
      step,
      h("button", { class: "button slim", type: "button", onclick: () => this.turn(step) }, words),
    ]);
    this.leaf = h("span", { class: "small quiet" });
    this.pages = h(
      "nav",
      { class: "pages", "aria-label": "Pages of the table" },
      this.turns[0][1],
      this.leaf,
      this.turns[1][1],
    );
    this.save = [
      ["CSV", () => this.csv()],
      ["JSON", () => this.json()],
    ].map(([words, act]) =>
      h("button", { class: "button", type: "button", onclick: act, "aria-label": `Download as ${words}` }, words),
    );
    this.place.replaceChildren(
      h(
        "section",
        { class: "panel block", "aria-labelledby": one },
        h("div", { class: "meter" }, h("div", { class: "row" }, this.title, this.note), this.bar),
        this.again,
      ),
      h(
        "section",
        { class: "panel block", "aria-labelledby": two },
        h("h2", { class: "unseen", id: two }, "Table of results"),
        this.counts,
        h(
          "div",
          { class: "filters" },
          h("label", {}, h("span", {}, "Label"), this.choice),
          h(
            "div",
            { class: "pair", role: "group", "aria-label": "Margin" },
            h("span", { "aria-hidden": "true" }, "Margin"),
            h("div", {}, edge("least", 0, "Margin at least"), "to", edge("most", 1, "Margin at most")),
          ),
          h("div", { class: "downloads" }, this.save),
        ),
        h(
          "div",
          { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results, scrollable" },
          h(
            "table",
            {},
            this.caption,
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                this.heads.map(([, head]) => head),
                h("th", { scope: "col" }, h("span", { class: "unseen" }, "Reasons")),
              ),
            ),
            this.tbody,
          ),
        ),
        this.pages,
      ),
    );
    this.redraw();
  }
  redrawSoon() {
    this.pending ??= setTimeout(() => this.redraw(), 120);
  }
  drawMeter() {
    const all = this.rows.length,
      done = this.done;
    this.bar.value = done;
    this.title.textContent = this.running
      ? "Classifying …"
      : this.labelled === all
        ? count(all, "text classified", "texts classified")
        : `${this.labelled.toLocaleString("en")} of ${count(all, "text", "texts")} classified`;
    const seconds = (performance.now() - (this.started ?? performance.now())) / 1000,
      rate = (done - this.before) / seconds;
    this.note.textContent = !this.running
      ? `${methodName(this.settings.method)}${done === all && seconds >= 1 && rate > 0 ? `, ${rate.toFixed(1)} texts a second` : ""}`
      : `${done.toLocaleString("en")} of ${all.toLocaleString("en")}${rate > 0 && seconds > 1 ? `, about ${count(Math.max(1, Math.ceil((all - done) / rate)), "second", "seconds")} left` : ""}`;
    const tenth = Math.floor((10 * done) / all);
    if (this.running && tenth > (this.said ?? 0)) {
      this.said = tenth;
      say(`${done} of ${all} texts are classified`);
    }
    const rest = h(
      "button",
      { class: "button slim", type: "button", onclick: () => startBatch(this) },
      `Go on with the other ${(all - done).toLocaleString("en")}`,
    );
    const refused = this.rows.filter((row) => row.problem);
    const passed = refused.length
      ? [
          problemBox(
            new Problem({
              title: `${count(refused.length, "text was", "texts were")} passed over`,
              detail: refused
                .slice(0, 3)
                .map((row) => `Text ${row.at + 1}: ${row.problem.detail.replace(/^texts\.\d+ /, "it ")}`)
                .join(" · "),
              hint: refused[0].problem.hint,
            }),
          ),
        ]
      : [];
    if (this.running || done === all) this.again.replaceChildren(...passed);
    else if (this.problem) showProblem(this.again, this.problem, rest);
    else if (this.started) this.again.replaceChildren(h("div", { class: "below" }, rest));
  }
  shown() {
    const keys = {
      at: (row) => row.at,
      text: (row) => row.text.toLowerCase(),
      label: (row) => row.result.label,
      share: (row) => row.result.probabilities[row.result.label],
      margin: (row) => row.result.margin,
    };
    const key = keys[this.sort],
      sign = this.falling ? -1 : 1;
    return this.rows
      .filter(
        (row) =>
          row.result &&
          (!this.label || `=${row.result.label}` === this.label) &&
          row.result.margin >= this.least &&
          row.result.margin <= this.most,
      )
      .sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return x < y ? -sign : x > y ? sign : a.at - b.at;
      });
  }
  sortBy(key) {
    // Doubtful rows are what one looks for: a first click on a number puts the lowest on top.
    this.falling = this.sort === key ? !this.falling : false;
    this.sort = key;
    this.page = 0;
    this.redraw();
    say(
      `Sorted by ${key === "at" ? "number" : key === "share" ? "probability" : key}, ${this.falling ? "falling" : "rising"}`,
    );
  }
  turn(step) {
    const pages = Math.ceil(this.shown().length / PAGE);
    if (this.page + step < 0 || this.page + step >= pages) return;
    this.page += step;
    this.redraw();
    say(`Page ${this.page + 1} of ${pages}`);
  }
  redraw() {
    clearTimeout(this.pending);
    this.pending = null;
    this.drawMeter();
    const tally = new Map(this.settings.names.map((name) => [name, 0]));
    for (const row of this.rows) if (row.result) tally.set(row.result.label, (tally.get(row.result.label) ?? 0) + 1);
    if (!this.countButtons) {
      this.countButtons = new Map(
        this.settings.names.map((name) => [
          name,
          h(
            "button",
            {
              class: "count",
              type: "button",
              onclick: () => {
                this.label = this.label === `=${name}` ? "" : `=${name}`;
                this.choice.value = this.label;
                this.page = 0;
                this.redraw();
              },
            },
            name,
            " ",
            h("b", {}, "0"),
          ),
        ]),
      );
      this.counts.append(...this.countButtons.values());
    }
    for (const [name, button] of this.countButtons) {
      button.querySelector("b").textContent = String(tally.get(name));
      button.setAttribute("aria-pressed", String(this.label === `=${name}`));
    }
    for (const [key, head] of this.heads)
      head.setAttribute("aria-sort", key !== this.sort ? "none" : this.falling ? "descending" : "ascending");
    this.save.forEach((button) => {
      button.disabled = !this.labelled;
    });
    const rows = this.shown(),
      pages = Math.max(1, Math.ceil(rows.length / PAGE));
    this.page = Math.min(this.page, pages - 1);
    const narrowed = this.label || this.least > 0 || this.most < 1;
    this.caption.textContent = !this.done
      ? "Results appear here as they are done."
      : narrowed
        ? `${rows.length.toLocaleString("en")} of ${count(this.labelled, "text", "texts")} shown`
        : `${count(this.labelled, "text", "texts")}; open a row to see why`;
    const focused = this.tbody.contains(document.activeElement) ? document.activeElement.dataset.at : null;
    // Rows that stay are left alone: one that is being clicked or read must not be taken away while others come.
    const leaf = rows.slice(PAGE * this.page, PAGE * (this.page + 1));
    const kept = leaf.findIndex((row, at) => row !== this.drawn[at]);
    const from = kept < 0 ? leaf.length : kept;
    while (this.tbody.children.length > (leaf.length ? from : 0)) this.tbody.lastChild.remove();
    this.tbody.append(...leaf.slice(from).map((row) => this.tableRow(row)));
    this.drawn = leaf;
    if (!rows.length)
      this.tbody.append(
        this.done
          ? h("tr", {}, h("td", { colspan: "6", class: "quiet" }, "No text is like that. Widen the filters."))
          : h("tr", {}, h("td", { colspan: "6" }, bones("", "half", ""))),
      );
    if (focused !== null) this.tbody.querySelector(`[data-at="${focused}"]`)?.focus({ preventScroll: true });
    this.pages.hidden = pages === 1;
    this.leaf.textContent = `${this.page + 1} of ${pages}`;
    this.turns.forEach(([step, button]) =>
      button.setAttribute("aria-disabled", String(this.page + step < 0 || this.page + step >= pages)),
    );
  }
  tableRow(row) {
    const { result } = row;
    return h(
      "tr",
      {
        class: "opens",
        onclick: (event) => {
          if (!event.target.closest("button") && !getSelection().toString()) openWhy(row, this.settings);
        },
      },
      h("td", { class: "number quiet at-cell" }, String(row.at + 1)),
      h("td", { class: "text" }, h("span", { title: row.text.length > 200 ? row.text : null }, row.text)),
      h("td", { class: "label-cell" }, result.label),
      h("td", { class: "number share-cell" }, percent(result.probabilities[result.label])),
      h("td", { class: "number" }, result.margin.toFixed(3)),
      h(
        "td",
        {},
        h(
          "button",
          {
            class: "why",
            type: "button",
            "data-at": String(row.at),
            "aria-label": `Why is text ${row.at + 1} ${result.label}?`,
            onclick: () => openWhy(row, this.settings),
          },
          "Why?",
        ),
      ),
    );
  }
  // The columns have the names that zicl classify gives them, so that zicl check reads this file too.
  csv() {
    const { names } = this.settings,
      given = this.rows[0].columns?.map(([name]) => name) ?? ["text"];
    const head = [...given, "predicted", "probability", "margin", ...names.map((name) => `p:${name}`)];
    const round = (value) => Number(value.toFixed(6));
    const lines = this.shown().map(({ columns, text, result }) => [
      ...(columns?.map(([, value]) => value) ?? [text]),
      result.label,
      round(result.probabilities[result.label]),
      round(result.margin),
      ...names.map((name) => round(result.probabilities[name])),
    ]);
    // With this mark, spreadsheet programs read the file as UTF-8.
    download(
      `${this.name}-labelled.csv`,
      `\ufeff${[head, ...lines].map((line) => line.map(cellOf).join(",")).join("\r\n")}\r\n`,
      "text/csv",
    );
  }
  json() {
    const results = this.shown().map(({ at, text, columns, result }) => ({
      number: at + 1,
      text,
      ...(columns ? { columns: Object.fromEntries(columns) } : {}),
      label: result.label,
      margin: result.margin,
      probabilities: result.probabilities,
      log_likelihoods: result.log_likelihoods,
    }));
    download(
      `${this.name}-labelled.json`,
      JSON.stringify({ settings: bodyFor(this.settings, this.settings.method), results }, null, 2),
      "application/json",
    );
  }
}

let opened = null;
function openWhy(row, settings) {
  opened?.abort.abort();
  $("why-title").textContent = `Why is text ${row.at + 1} ${row.result.label}?`;
  opened = new Reasons($("why"), row.text, settings);
  $("why-box").showModal();
  $("why-box").scrollTop = 0;
  opened.run();
}
