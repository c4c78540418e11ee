// Settings: method, numbers, and the link that keeps them.

const METHODS = {
  "z-icl+": ["Z-ICL+", "what the labels mean, and which texts are alike"],
  encoder: ["Encoder", "what the labels mean, text by text"],
  "z-icl": ["Z-ICL", "neighbours, synonyms"],
  naive: ["Naive", "nearest, with labels"],
  "random-inputs": ["Random inputs", "any, with labels"],
  "no-demos": ["No demos", "the model alone"],
};
const SERVED = "";
// These show sentences of a corpus, which a server need not have.
const FROM_CORPUS = ["z-icl", "naive", "random-inputs"];
// A server that asks no language model would load one for the others.
const COMPARED = ["no-demos", "naive", "z-icl"],
  ENCODED = ["encoder"];
const asksModel = () => Boolean(info.lm ?? !info.settings);
/* Whether a method builds no prompt; the server's own may, if other experts were added to it. */
const promptless = (method) =>
  ["encoder", "z-icl+"].includes(method) && !(info.lm && method === info.settings?.method);
const compared = (chosen) =>
  (asksModel() && !promptless(chosen) ? COMPARED : ENCODED).filter(
    (method) => !info.methods || info.methods.includes(method),
  );
const methodName = (method) => METHODS[method]?.[0] ?? (method === SERVED ? "As served" : method);
const methodWords = (method) => METHODS[method]?.[1] ?? "the settings of the command line";
const INFERENCES = { channel: "P(text | label)", direct: "P(label | text)", both: "both joined" };

let info = {};
let labels = [];
let served = [];

const plainLabel = (label) =>
  typeof label === "string"
    ? { name: label, words: "", synonyms: [], description: "" }
    : {
        name: String(label.name ?? ""),
        words: label.words && label.words !== label.name ? String(label.words) : "",
        synonyms: [...(label.synonyms ?? [])].map(String),
        description: String(label.description ?? ""),
      };
const sentLabel = ({ name, words, synonyms, description }) => ({
  name: name.trim(),
  ...(words ? { words } : {}),
  ...(synonyms.length ? { synonyms } : {}),
  ...(description ? { description } : {}),
});
const usedLabels = () => labels.filter((label) => label.name.trim());
const sameLabels = () => JSON.stringify(usedLabels().map(sentLabel)) === JSON.stringify(served.map(sentLabel));
const mode = () => document.querySelector("input[name=mode]:checked").value;

function number(id, what) {
  const value = $(id).value.trim();
  if (!value && !$(id).validity.badInput) return null;
  if (!/^\d{1,15}$/.test(value))
    throw new Problem({
      title: `${what} must be a whole number`,
      detail: `Found: ${value || "something else"}`,
      hint: "Use 0 or more, or leave it empty for the server's setting.",
      where: "method-problem",
    });
  return Number(value);
}

function readSettings() {
  checkLabels();
  const settings = { method: document.querySelector("input[name=method]:checked")?.value ?? SERVED };
  const k = number("k", "k"),
    seed = number("seed", "The seed");
  return {
    ...settings,
    names: usedLabels().map((label) => label.name.trim()),
    body: {
      ...(sameLabels() ? {} : { labels: usedLabels().map(sentLabel) }),
      ...($("inference").value ? { inference: $("inference").value } : {}),
      ...($("template").value ? { template: $("template").value } : {}),
      ...(k === null ? {} : { k }),
      ...(seed === null ? {} : { seed }),
    },
  };
}
const bodyFor = (settings, method) => {
  // What was learned has its own settings.
  if (settings.learned && method === settings.method) return { fit: settings.learned.id };
  const { k, ...rest } = settings.body;
  // Without demonstrations there is nothing to count.
  const counts = k !== undefined && !["no-demos", "encoder", "z-icl+"].includes(method);
  return { ...rest, ...(counts ? { k } : {}), ...(method ? { method } : {}) };
};

function fragment(withTexts = false) {
  const parts = new URLSearchParams();
  const method = document.querySelector("input[name=method]:checked")?.value;
  if (method) parts.set("method", method);
  for (const id of ["inference", "template", "k", "seed"]) if ($(id).value) parts.set(id, $(id).value);
  const named = usedLabels().map(sentLabel);
  if (named.length) parts.set("labels", JSON.stringify(named));
  if (withTexts && mode() === "one" && $("text").value) parts.set("text", $("text").value);
  if (withTexts && mode() === "many" && !file && $("texts").value) parts.set("texts", $("texts").value);
  return `#${parts}`;
}
let ready = false;
function rememberSettings() {
  if (!ready) return;
  history.replaceState(null, "", fragment());
  drawMethodWords();
  drawSetName();
}

function applyFragment() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.has("labels")) {
    try {
      const found = JSON.parse(parts.get("labels"));
      if (!Array.isArray(found)) throw new Error("no list");
      labels = found.map(plainLabel);
    } catch {
      placeProblem(
        new Problem({
          title: "The labels in the link cannot be read",
          hint: "It may have been cut when it was copied. Name them here instead.",
          where: "labels-problem",
        }),
      );
    }
  }
  for (const id of ["inference", "template", "k", "seed"]) {
    if (!parts.has(id)) continue;
    $(id).value = parts.get(id);
    if ($(id).value !== parts.get(id)) {
      $(id).value = "";
      placeProblem(
        new Problem({
          title: `The link asks for a ${id} this server does not know: ${parts.get(id)}`,
          hint: "The server's setting is used instead.",
          where: "method-problem",
        }),
      );
    }
  }
  if (parts.has("method")) {
    const tile = [...document.querySelectorAll("input[name=method]")].find(
      (each) => each.value === parts.get("method"),
    );
    if (tile) {
      tile.checked = true;
      drawMethodWords();
    } else
      placeProblem(
        new Problem({
          title: `The link asks for a method this server does not know: ${parts.get("method")}`,
          hint: "Choose one of those above.",
          where: "method-problem",
        }),
      );
  }
  if (parts.has("text")) {
    setMode("one");
    $("text").value = parts.get("text");
  }
  if (parts.has("texts")) {
    setMode("many");
    $("texts").value = parts.get("texts");
  }
  drawLabels();
  drawMethodWords();
  tellLength();
}
