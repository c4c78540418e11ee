// One text, explained.

class Reasons {
  /* The answer to one text, under several methods, each with its demonstrations and its prompt. */
  constructor(place, text, settings) {
    Object.assign(this, {
      place,
      text,
      settings,
      answers: new Map(),
      chosen: settings.method,
      abort: new AbortController(),
    });
    this.methods = [...new Set([...compared(settings.method), settings.method])];
    this.branch = null;
    this.all = false;
    this.draw();
  }
  async run() {
    // The chosen method enters the queue first.
    const order = [this.chosen, ...this.methods.filter((method) => method !== this.chosen)];
    await Promise.all(order.map((method) => this.ask(method)));
    return this.answers.get(this.settings.method);
  }
  async ask(method) {
    try {
      const body = { ...bodyFor(this.settings, method), text: this.text, explain: true };
      const { signal } = this.abort;
      const question = async () => (await call("v1/classify", { body, signal })).json();
      const answer = await patiently(
        () => ("fit" in body ? this.settings.learned.ask(question, signal) : question()),
        signal,
        say,
      );
      this.answers.set(method, { result: answer.results[0], settings: answer.settings });
      if (method === "z-icl") noteSynonyms(answer.settings.labels);
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.answers.set(method, { problem: asProblem(error) });
    }
    this.redraw(method);
  }
  draw() {
    this.verdict = h("div", { class: "verdict" });
    this.compare = h("div", { class: "compare", role: "group", "aria-label": "Methods compared" });
    this.change = h("p", { class: "change" });
    this.evidence = h("div", { class: "stack" });
    const [one, two] = [newId(), newId()];
    this.ways = new Map(
      this.methods.map((method) => [
        method,
        h("button", {
          class: "way",
          type: "button",
          "aria-pressed": String(method === this.chosen),
          onclick: () => this.choose(method),
        }),
      ]),
    );
    this.compare.append(...this.ways.values());
    this.place.replaceChildren(
      h(
        "section",
        { class: "panel block", "aria-labelledby": one },
        h("h2", { class: "unseen", id: one }, "Prediction"),
        this.verdict,
      ),
      h(
        "section",
        { class: "panel block", "aria-labelledby": two },
        h(
          "header",
          {},
          h("h2", { id: two }, `What the ${learns(this.settings.method) ? "pile changes" : "demonstrations change"}`),
          this.change,
        ),
        this.compare,
      ),
      this.evidence,
    );
    this.methods.forEach((method) => this.redraw(method));
  }
  choose(method) {
    this.chosen = method;
    this.all = false;
    for (const [each, way] of this.ways) way.setAttribute("aria-pressed", String(each === method));
    this.drawVerdict();
    this.drawEvidence();
    const answer = this.answers.get(method);
    if (answer?.result) say(`Shown: ${methodName(method)}, which says ${labelWords(answer.result)}`);
  }
  redraw(method) {
    const answer = this.answers.get(method),
      { names } = this.settings;
    const head = h(
      "span",
      { class: "head" },
      h("b", {}, methodName(method)),
      h("span", { class: "quiet" }, methodWords(method)),
    );
    const way = this.ways.get(method);
    if (!answer) way.replaceChildren(head, bones("half", "", ""));
    else if (answer.problem)
      way.replaceChildren(head, h("span", { class: "small quiet" }, `No answer: ${answer.problem.title}`));
    else
      way.replaceChildren(
        head,
        h("span", { class: "says" }, labelWords(answer.result)),
        bars(answer.result, names, { thin: true, most: 4 }),
      );
    way.setAttribute("aria-busy", String(!answer));
    this.drawChange();
    if (method === this.chosen) {
      this.drawVerdict();
      this.drawEvidence();
    }
  }
  drawChange() {
    const result = (method) => this.answers.get(method)?.result,
      pair = learns(this.settings.method) ? ["encoder", this.settings.method] : ["no-demos", "z-icl"];
    const [before, after] = pair.map(result),
      label = (words) => h("b", {}, words);
    if (!before || !after) {
      this.change.replaceChildren(
        h("span", { class: "quiet" }, "The same text under several methods. Choose one to see what it rests on."),
      );
      return;
    }
    const { margin: was } = before,
      { margin: is } = after;
    const pile = learns(this.settings.method) ? this.answers.get(this.settings.method).settings.pile : null;
    const who = pile === null ? "the model" : "the encoder",
      what = pile === null ? "pseudo-demonstrations" : `what was learned from ${count(pile, "text", "texts")}`;
    const words =
      before.label === after.label
        ? [`With and without ${what} ${who} says `, label(after.label)]
        : [`Alone ${who} says `, label(before.label), `, ${points(was)} ahead. With ${what} it says `, label(after.label)];
    if (pile === 0)
      this.change.replaceChildren("Nothing was learned from texts yet: classify many, and it learns from them.");
    else if (before.label === after.label)
      this.change.replaceChildren(...words, `; its lead moves from ${points(was)} to ${points(is)}.`);
    else this.change.replaceChildren(...words, `, ${points(is)} ahead.`);
  }
  drawVerdict() {
    const answer = this.answers.get(this.chosen),
      { names } = this.settings;
    this.verdict.setAttribute("aria-busy", String(!answer));
    const input = h("p", { class: "asked", tabindex: this.text.length > 400 ? "0" : null }, this.text);
    if (!answer) {
      this.verdict.replaceChildren(
        h(
          "div",
          {},
          h("span", { class: "over-line" }, `Asking the ${promptless(this.chosen) ? "encoder" : "model"} · ${methodName(this.chosen)}`),
          h("p", { class: "winner" }, bones("big")),
          input,
        ),
        bones("", "half", "", "half"),
      );
      return;
    }
    if (answer.problem) {
      // A problem that the form can correct is shown there.
      const mended =
        this.place.id === "single" &&
        this.chosen === this.settings.method &&
        placeOf(answer.problem) !== "run-problem";
      this.verdict.replaceChildren(
        h(
          "div",
          {},
          mended
            ? h("p", {}, h("b", {}, "No answer yet. "), "What to change is marked in the form.")
            : problemBox(answer.problem),
          input,
        ),
      );
      return;
    }
    const { result } = answer,
      second = namesOf(result, names)
        .filter((name) => !result.labels.includes(name))
        .sort((a, b) => result.probabilities[b] - result.probabilities[a])[0];
    // Where a threshold decides, the margin is the distance to it.
    const ahead = result.probabilities[result.label] - result.probabilities[second];
    const lead =
      Math.abs(ahead - result.margin) < 1e-6
        ? `${points(result.margin)} ahead of ${second}`
        : `${points(result.margin)} from another answer`;
    this.verdict.replaceChildren(
      h(
        "div",
        {},
        h("span", { class: "over-line" }, `Prediction · ${methodName(this.chosen)}`),
        h("p", { class: "winner" }, labelWords(result)),
        h("p", { class: "quiet" }, lead),
        result.truncated ? h("p", { class: "cut" }, "The text is too long: only a part of it was read.") : null,
        input,
      ),
      h("div", {}, bars(result, names), this.numbers(result)),
    );
  }
  numbers(result) {
    const scores = result.explanation?.scores ?? {},
      terms = Object.entries(result.explanation?.terms ?? {});
    const alone = likeliestWins(scores),
      asked = Object.keys(result.log_likelihoods ?? {}).length > 0;
    const cell = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : "–");
    return h(
      "details",
      { class: "numbers" },
      h("summary", {}, asked ? "Log-likelihoods" : "Scores"),
      h(
        "div",
        { class: "scroll" },
        h(
          "table",
          {},
          h(
            "caption",
            {},
            asked ? "What the model gave the scored part, label by label" : "What each expert gave, label by label",
          ),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              [
                "label",
                ...(asked ? ["log-likelihood", "tokens"] : []),
                ...terms.map(([term]) => term),
                ...(alone ? [] : ["compared"]),
                "probability",
              ].map((name, at) =>
                h("th", { scope: "col", class: at ? "number" : null }, name),
              ),
            ),
          ),
          h(
            "tbody",
            {},
            namesOf(result, this.settings.names).map((name) =>
              h(
                "tr",
                {},
                h("th", { scope: "row" }, name),
                asked ? h("td", { class: "number" }, cell(result.log_likelihoods[name], 3)) : null,
                asked ? h("td", { class: "number" }, cell(scores[name]?.tokens, 0)) : null,
                terms.map(([, values]) => h("td", { class: "number" }, cell(values[name], 3))),
                alone ? null : h("td", { class: "number" }, cell(scores[name]?.value, 3)),
                h("td", { class: "number" }, cell(result.probabilities[name], 4)),
              ),
            ),
          ),
        ),
      ),
    );
  }
  drawEvidence() {
    const answer = this.answers.get(this.chosen);
    if (!answer) {
      this.evidence.replaceChildren(
        h("section", { class: "panel block", "aria-busy": "true" }, bones("half", "", "", "half", "")),
      );
      return;
    }
    const explanation = answer.result?.explanation;
    this.evidence.replaceChildren(
      ...(explanation ? [expertsCard(explanation, answer.result, this.settings.names)] : []),
      ...(explanation?.prompt
        ? [this.demonstrations(explanation), this.prompt(explanation, answer.result.label)]
        : []),
    );
  }
  prompt(explanation, label) {
    const { names } = this.settings;
    if (!names.includes(this.branch)) this.branch = label;
    return promptCard(explanation, names, this.branch, (name) => {
      this.branch = name;
    });
  }
  demonstrations(explanation) {
    const id = newId(),
      near = explanation.demonstrations.every((demo) => Number.isFinite(demo.similarity)),
      { prompt } = explanation;
    // In the prompt the nearest come last, unless the server orders them otherwise; random ones keep their order.
    const shown = near
      ? [...explanation.demonstrations].reverse().sort((a, b) => b.similarity - a.similarity)
      : explanation.demonstrations;
    const notes = [];
    if (prompt.dropped)
      notes.push(`${count(prompt.dropped, "farther one was", "farther ones were")} left out to fit the token limit`);
    if (prompt.demos_cut) notes.push(`${prompt.demos_cut} shortened`);
    if (prompt.input_cut) notes.push("your text was cut to its token limit");
    const list = h("div", { class: "demos" });
    const most = this.all ? shown.length : 6;
    list.append(...shown.slice(0, most).map((demo, at) => demoCard(demo, at + 1)));
    const more =
      shown.length > most
        ? h(
            "div",
            { class: "below" },
            h(
              "button",
              {
                class: "button",
                type: "button",
                onclick: (event) => {
                  this.all = true;
                  const cards = shown.slice(most).map((demo, at) => demoCard(demo, most + at + 1));
                  list.append(...cards);
                  event.currentTarget.remove();
                  cards[0].querySelector("button")?.focus();
                },
              },
              `Show all ${shown.length}`,
            ),
          )
        : null;
    const intro = shown.length
      ? `${near ? "Nearest first" : "As in the prompt"}. None was labelled by anyone.`
      : "This method shows the model nothing but your text.";
    return h(
      "section",
      { class: "panel block", "aria-labelledby": id },
      h(
        "header",
        {},
        h(
          "h2",
          { id },
          shown.length ? count(shown.length, "pseudo-demonstration", "pseudo-demonstrations") : "No demonstrations",
        ),
        h("p", { class: "quiet" }, notes.length ? `${intro} ${notes.join("; ")}.` : intro),
      ),
      list,
      more,
    );
  }
}
