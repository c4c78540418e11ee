// The table of results: filling, sorting, filtering, paging, saving as CSV or JSON.

// A cell that a spreadsheet would take for a formula gets an apostrophe before it.
const guard = (words) => (/^[\s\u00a0]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(words) ? `'${words}` : words);
const cellOf = (value) => {
  const words = typeof value === "number" ? String(value) : guard(String(value ?? ""));
  return /[",\r\n;\t']/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
};
function download(name, words, type) {
  const link = h("a", { href: URL.createObjectURL(new Blob([words], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 30_000);
}

const PAGE = 50;
class BatchTable {
  draw() {
    const [one, two] = [newId(), newId()];
    this.bar = h("progress", { max: Math.max(1, this.rows.length), "aria-label": "Texts classified" });
    this.note = h("span", { class: "small quiet" });
    this.title = h("h2", { id: one });
    this.pileWords = h("p", { class: "small quiet pile-words" });
    this.map = new MapView(this);
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
      this.names.map((name) => h("option", { value: `=${name}` }, name)),
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
        h("div", { class: "meter" }, h("div", { class: "row" }, this.title, this.note), this.bar, this.pileWords),
        this.again,
      ),
      h(
        "section",
        { class: "panel block", "aria-labelledby": two },
        h("h2", { class: "unseen", id: two }, "Results"),
        this.tabs(),
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
        this.tablePanel,
        this.mapPanel,
      ),
    );
    this.tablePanel.append(
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
    );
    this.redraw();
  }
  /* Two views of the same rows; arrow keys move between them, as between tabs anywhere. */
  tabs() {
    const ids = [newId(), newId()];
    const panel = (at, hidden) =>
      h("div", { role: "tabpanel", id: `${ids[at]}-panel`, "aria-labelledby": ids[at], hidden });
    this.tablePanel = panel(0, false);
    this.mapPanel = panel(1, true);
    this.mapPanel.append(this.map.place);
    const panels = [this.tablePanel, this.mapPanel];
    const tabs = ["Table", "Map"].map((words, at) =>
      h(
        "button",
        {
          class: "tab",
          type: "button",
          role: "tab",
          id: ids[at],
          "aria-controls": `${ids[at]}-panel`,
          onclick: () => choose(at),
          onkeydown: (event) => {
            if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
            choose(1 - at);
            tabs[1 - at].focus();
          },
        },
        words,
      ),
    );
    const choose = (chosen) => {
      tabs.forEach((tab, at) => {
        tab.setAttribute("aria-selected", String(at === chosen));
        tab.tabIndex = at === chosen ? 0 : -1;
        panels[at].hidden = at !== chosen;
      });
      if (chosen === 1) this.map.show();
    };
    choose(0);
    return h("div", { class: "tabs", role: "tablist", "aria-label": "View of the results" }, tabs);
  }
  redrawSoon() {
    this.pending ??= setTimeout(() => this.redraw(), 120);
  }
  shown() {
    const keys = {
      at: (row) => row.at,
      text: (row) => row.text.toLowerCase(),
      label: (row) => row.result.label,
      share: (row) => shareOf(row.result),
      margin: (row) => row.result.margin,
    };
    const key = keys[this.sort],
      sign = this.falling ? -1 : 1;
    return this.rows
      .filter(
        (row) =>
          row.result &&
          (!this.label || row.result.labels.some((name) => `=${name}` === this.label)) &&
          row.result.margin >= this.least &&
          row.result.margin <= this.most,
      )
      .sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return x < y ? -sign : x > y ? sign : a.at - b.at;
      });
  }
  sortBy(key) {
    // Doubtful rows are the interesting ones: the first click on a number sorts the lowest to the top.
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
    const tally = new Map(this.names.map((name) => [name, 0]));
    for (const row of this.rows)
      for (const name of row.result?.labels ?? []) tally.set(name, (tally.get(name) ?? 0) + 1);
    if (!this.countButtons) {
      this.countButtons = new Map(
        this.names.map((name) => [
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
            hueDot(this.names.indexOf(name)),
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
    const cut = rows.filter((row) => row.result.truncated).length;
    if (cut) this.caption.textContent += `; ${count(cut, "was", "were")} too long, and only a part was read`;
    if (!this.mapPanel.hidden) this.map.draw();
    const focused = this.tbody.contains(document.activeElement) ? document.activeElement.dataset.at : null;
    // Keep the elements of rows that stay: one may be clicked or read while others arrive.
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
      h("td", { class: "label-cell" }, labelWords(result)),
      h("td", { class: "number share-cell" }, percent(shareOf(result))),
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
            "aria-label": `Why is text ${row.at + 1} ${labelWords(result)}?`,
            onclick: () => openWhy(row, this.settings),
          },
          "Why?",
        ),
      ),
    );
  }
  // The columns have the names that zicl classify gives them, so that zicl check reads this file too.
  csv() {
    const shown = this.shown(),
      several = shown.some(({ result }) => result.labels.length !== 1),
      names = shown.length ? namesOf(shown[0].result, this.settings.names) : this.settings.names,
      given = this.rows[0].columns?.map(([name]) => name) ?? ["text"];
    const added = several ? ["labels"] : ["predicted", "probability"];
    const head = [...given, ...added, "margin", ...names.map((name) => `p:${name}`)];
    const round = (value) => Number(value.toFixed(6));
    const lines = shown.map(({ columns, text, result }) => [
      ...(columns?.map(([, value]) => value) ?? [text]),
      ...(several ? [result.label] : [result.label, round(result.probabilities[result.label])]),
      round(result.margin),
      ...names.map((name) => round(result.probabilities[name])),
    ]);
    // The byte order mark makes spreadsheet programs read the file as UTF-8.
    download(
      `${this.name}-labelled.csv`,
      `\ufeff${[head, ...lines].map((line) => line.map(cellOf).join(",")).join("\r\n")}\r\n`,
      "text/csv",
    );
  }
  json() {
    const { method, body, learned } = this.settings;
    const results = this.shown().map(({ at, text, columns, result }) => ({
      number: at + 1,
      text,
      ...(columns ? { columns: Object.fromEntries(columns) } : {}),
      label: result.label,
      labels: result.labels,
      margin: result.margin,
      truncated: result.truncated,
      probabilities: result.probabilities,
      log_likelihoods: result.log_likelihoods,
    }));
    download(
      `${this.name}-labelled.json`,
      JSON.stringify(
        {
          settings: bodyFor({ ...this.settings, learned: null }, method),
          learned_from: learned?.pile ?? servedPile(method, !body.labels),
          results,
        },
        null,
        2,
      ),
      "application/json",
    );
  }
}
