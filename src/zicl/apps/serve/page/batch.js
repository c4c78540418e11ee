// Many texts: sent in chunks, with progress and the rest to go on with.

const undone = (row) => !row.result && !row.problem;
class Batch extends BatchTable {
  constructor(place, items, settings, name, pile = null) {
    super();
    Object.assign(this, {
      place,
      settings,
      // What is to be learned before the texts are labelled, and how far that is.
      pile,
      stage: null,
      // A server may have a name for texts that fit no label.
      names: [...new Set([...settings.names, ...(info.settings?.none ? [info.settings.none] : [])])],
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
    this.map.clear();
    this.started = performance.now();
    this.before = this.done;
    const { signal } = this.abort,
      report = (words) => {
        this.note.textContent = words;
      };
    try {
      if (this.pile && !this.settings.learned) {
        await this.learn(signal, report);
        this.started = performance.now();
      }
      this.drawMeter();
      say(`Classifying ${this.rows.length} texts`);
      for (const chunk of this.chunks()) {
        const ask = () => this.stream(chunk);
        await patiently(() => this.settings.learned?.ask(ask, signal) ?? ask(), signal, report);
      }
    } catch (error) {
      if (!this.abort.signal.aborted) this.problem = asProblem(error);
    }
    this.running = false;
    this.stage = null;
    this.redraw();
    if (!this.mapPanel.hidden) this.map.show();
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
  async learn(signal, report) {
    const since = performance.now();
    const progress = ({ stage, done, total }) => {
      const read = `${howMany(done, total)} read${timeLeft(done, total, since)}`,
        words = stage === "learning" ? "learning which are alike" : read;
      this.stage = { done, total, words };
      this.drawMeter();
    };
    say(`Learning from ${count(this.pile.texts.length, "text", "texts")}`);
    progress({ stage: "encoding", done: 0, total: this.pile.texts.length });
    await patiently(() => this.pile.learn(signal, progress), signal, report);
    this.settings.learned = learned = this.pile;
    this.stage = null;
    drawMethodWords();
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
    // A text that cannot be used ends a stream: skip it, and send the rest again.
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
        // A wrong k is wrong for every text.
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
  drawMeter() {
    const all = this.rows.length,
      done = this.done;
    this.bar.max = this.stage?.total ?? Math.max(1, all);
    this.bar.value = this.stage?.done ?? done;
    this.pileWords.textContent = this.settings.learned?.words() ?? "";
    const finished =
      this.labelled === all
        ? count(all, "text classified", "texts classified")
        : `${this.labelled.toLocaleString("en")} of ${count(all, "text", "texts")} classified`;
    this.title.textContent = this.stage
      ? `Learning from ${count(this.stage.total, "text", "texts")} …`
      : this.running
        ? "Classifying …"
        : finished;
    const seconds = (performance.now() - (this.started ?? performance.now())) / 1000,
      fresh = done - this.before;
    const rate = done === all && seconds >= 1 && fresh > 0 ? `, ${(fresh / seconds).toFixed(1)} texts a second` : "";
    this.note.textContent = this.stage
      ? this.stage.words
      : this.running
        ? howMany(done, all) + timeLeft(fresh, all - this.before, this.started)
        : methodName(this.settings.method) + rate;
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
}

let opened = null;
function openWhy(row, settings) {
  opened?.abort.abort();
  $("why-title").textContent = `Why is text ${row.at + 1} ${labelWords(row.result)}?`;
  opened = new Reasons($("why"), row.text, settings);
  $("why-box").showModal();
  $("why-box").scrollTop = 0;
  opened.run();
}
