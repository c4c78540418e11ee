// What each expert says about a text, what they say together, and which words of the labels were near.

const EXPERTS = {
  encoder: ["The encoder", "how close the text is to what a label means"],
  cosine: ["The encoder, plain", "how close the text is to a label's description"],
  pile: ["The pile", "which of the texts it learned from it is like"],
  channel: ["The model, channel", "how well it predicts the text from the label"],
  direct: ["The model, direct", "how well it predicts the label from the text"],
};
const likeliest = (shares) => Object.keys(shares).reduce((best, name) => (shares[name] > shares[best] ? name : best));

/* One sentence: who says what, and what came of it. */
function expertWords(said, result) {
  const label = (name) => h("b", {}, name);
  const [, before] = said.find(([name]) => name === "encoder") ?? [],
    [, pile] = said.find(([name]) => name === "pile") ?? [];
  if (!before || !pile) return null;
  const [alone, taught, now] = [likeliest(before), likeliest(pile), labelWords(result)];
  if (alone === now && taught === now) return h("p", {}, "The encoder and the pile agree on ", label(now), ".");
  const kept =
    now === alone
      ? "the encoder's answer stays"
      : now === taught
        ? "the pile changes the answer"
        : "together they say another";
  const both = ["The encoder alone says ", label(alone), ", the pile says ", label(taught)];
  return h("p", {}, ...both, `: ${kept}, `, label(now), ".");
}

function expertsCard(explanation, result, names) {
  const said = Object.entries(explanation.experts ?? {}),
    id = newId();
  if (!said.length) return "";
  const column = (title, words, shares, labels) =>
    h(
      "div",
      { class: "expert" },
      h("h3", {}, title),
      h("p", { class: "small quiet" }, words),
      bars({ labels, probabilities: shares }, names, { thin: true, most: 6 }),
    );
  return h(
    "section",
    { class: "panel block", "aria-labelledby": id },
    h("header", {}, h("h2", { id }, "What each expert says"), expertWords(said, result)),
    h(
      "div",
      { class: "experts" },
      said.map(([name, shares]) => column(...(EXPERTS[name] ?? [name, ""]), shares, [likeliest(shares)])),
      said.length > 1 ? column("Together", "what the text gets", result.probabilities, result.labels) : null,
    ),
    nearWords(explanation.nearest ?? {}, names),
  );
}

/* The words and descriptions of each label by their similarity to the text; the nearest of all is marked. */
function nearWords(nearest, names) {
  const rows = names.filter((name) => nearest[name]?.length);
  if (!rows.length) return null;
  const best = Math.max(...rows.map((name) => nearest[name][0].similarity));
  return h(
    "div",
    { class: "near-words" },
    h("h3", {}, "Nearest words of each label"),
    h("p", { class: "small quiet" }, "The encoder compared the text with these; 1 would be the same."),
    h(
      "dl",
      {},
      rows.slice(0, 12).flatMap((name) => [
        h("dt", {}, name),
        h(
          "dd",
          {},
          nearest[name].slice(0, 3).map(({ words, similarity }) =>
            h("span", { class: similarity === best ? "chip" : "tag" }, `${words} `, h("b", {}, similarity.toFixed(2))),
          ),
        ),
      ]),
    ),
  );
}
