// What was learned from texts: it serves single texts afterwards, and is learned again if the server has forgotten it.

const LEARNS = ["z-icl+"];
const learns = (method) => LEARNS.includes(method);
// The last thing that was learned here.
let learned = null;

class Learned {
  /* What the server learned from texts, under the settings of the form. */
  constructor(texts, settings, source) {
    Object.assign(this, { settings, source, given: new Set(texts).size });
    this.texts = sampleFor(texts);
    this.key = learnedKey(settings);
  }
  async learn(signal, report = () => {}) {
    const response = await this.send(signal);
    for await (const line of linesOf(response, signal)) {
      if ("fit" in line)
        Object.assign(this, { id: line.fit, weight: line.weight, warnings: line.warnings, pile: line.settings.pile });
      else if ("stage" in line) report(line);
      else throw new Problem(line, line.status === 503 ? 1 : null);
    }
    if (!this.id) throw new Problem(LOST);
    return this;
  }
  /* A text that cannot be used is left out; it is passed over again when it is to be labelled. */
  async send(signal) {
    const choice = bodyFor({ ...this.settings, learned: null }, this.settings.method);
    for (;;) {
      try {
        return await call("v1/fit", { body: { ...choice, texts: this.texts, stream: true }, signal });
      } catch (error) {
        if (error.status !== 422 || !(error.index in this.texts) || this.texts.length < 2) throw error;
        this.texts.splice(error.index, 1);
      }
    }
  }
  /* Ask, and if the server has forgotten what it learned, let it learn that again. */
  async ask(question, signal) {
    try {
      return await question();
    } catch (error) {
      if (error.status !== 404 || error.field !== "fit") throw error;
      await this.learn(signal);
      return question();
    }
  }
  get name() {
    const from = this.source ? ` of ${this.source}` : "";
    return this.pile === this.given
      ? `${count(this.pile, "text", "texts")}${from}`
      : `${howMany(this.pile, this.given)} texts${from}`;
  }
  /* One or two sentences: what it was learned from, and how far that counts. */
  words() {
    if (!this.pile)
      return "Too few different texts to learn from, 20 are needed: each is labelled by itself, by the encoder alone.";
    const odd = this.warnings.map((each) => each.split(/(?<=[.%]) (?=[A-Z])/)[0]);
    const trust =
      this.weight >= 1
        ? "texts that are alike get the same label."
        : this.weight > 0
          ? `they count for ${percent(this.weight)}, because two halves of them lead to different labels.`
          : "they do not count, because two halves of them lead to different labels.";
    const hint = odd.length ? ["If that is not so, describe the labels in a few words."] : [];
    return [`Learned from ${this.source ? "" : "these "}${this.name}: ${trust}`, ...odd, ...hint].join(" ");
  }
}

/* What was learned is for these labels and this method. */
const learnedKey = ({ method, body }) => JSON.stringify([method, bodyFor({ body, learned: null }, method)]);

/* How many texts the server itself learned from: that holds for its own method and labels. */
const servedPile = (method, ownLabels) =>
  ownLabels && [SERVED, info.settings?.method].includes(method) ? (info.settings?.pile ?? 0) : 0;

/* Different texts, as many as a request may hold, evenly from first to last. */
function sampleFor(texts) {
  const distinct = [...new Set(texts)];
  const sizes = distinct.map((text) => new TextEncoder().encode(JSON.stringify(text)).length + 1);
  const room = 0.9 * (info.limits?.body ?? 1_000_000),
    size = sizes.reduce((sum, each) => sum + each, 0);
  let most = Math.min(distinct.length, info.limits?.pile ?? 2000);
  if (size > room) most = Math.min(most, Math.floor((distinct.length * room) / size));
  const step = distinct.length / most;
  const sample = Array.from({ length: most }, (_, n) => Math.floor(n * step));
  // Where long texts came together, shorter ones replace none of them: the sample ends earlier.
  let used = 0;
  return sample.filter((n) => (used += sizes[n]) <= room).map((n) => distinct[n]);
}

const timeLeft = (done, total, since) => {
  const seconds = (performance.now() - since) / 1000;
  return done && seconds > 1
    ? `, about ${count(Math.max(1, Math.ceil(((total - done) * seconds) / done)), "second", "seconds")} left`
    : "";
};

/* What the chosen method does with the texts, in the form. */
function drawMethodWords() {
  const method = document.querySelector("input[name=method]:checked")?.value ?? SERVED;
  const words = [methodWords(method)];
  let forget = null;
  $("learn-box").hidden = !learns(method);
  if (learns(method) && mode() === "one") {
    const own = servedPile(method, sameLabels());
    if (learned && appliesHere(method)) {
      words.push(`learned from ${learned.name}`);
      const act = { class: "button plain slim", type: "button", id: "forget", onclick: forgetLearned };
      forget = h("button", act, "Forget");
    } else if (learned) words.push("what was learned is for other labels");
    else if (own) words.push(`this server learned from ${count(own, "text", "texts")}`);
    else words.push("classify many texts first, and it learns from them");
  }
  $("method-words").replaceChildren(words.join("; "), ...(forget ? [" ", forget] : []));
  // What only a prompt uses is hidden where none is built.
  $("finer").hidden = promptless(method);
}
function appliesHere(method) {
  try {
    return learned.key === learnedKey({ ...readSettings(), method });
  } catch {
    return false;
  }
}
function forgetLearned() {
  learned = null;
  drawMethodWords();
  say("What was learned is forgotten");
  document.querySelector("input[name=method]:checked")?.focus();
}
