// The prompt that the model read, label by label.

// Whether the log-likelihoods alone decide; otherwise they are calibrated or joined with other scores.
const likeliestWins = (scores) =>
  Object.values(scores ?? {}).every(({ value, log_likelihood }) => Math.abs(value - log_likelihood) < 1e-6);

function promptCard(explanation, names, branch, keep) {
  const id = newId(),
    { prompt } = explanation;
  const text = h("pre", { class: "prompt", tabindex: "0", "aria-label": "The prompt" });
  const parts = () => {
    const shown = prompt.branches.find((each) => each.label === branch) ?? prompt.branches[0];
    return [
      ["p-prefix", prompt.prefix],
      ["p-given", prompt.stem + shown.given],
      ["p-scored", shown.scored],
    ];
  };
  const draw = () => {
    text.replaceChildren(
      ...parts()
        .filter(([, words]) => words)
        .map(([shade, words]) => h("span", { class: shade }, words)),
    );
    const scored = text.querySelector(".p-scored");
    if (scored && text.isConnected) text.scrollTop = text.scrollHeight;
  };
  const picked = (name) => {
    branch = name;
    keep(name);
    draw();
  };
  let choice;
  if (names.length <= 4) {
    const group = newId();
    choice = h(
      "div",
      { class: "switch", role: "radiogroup", "aria-label": "The prompt of which label" },
      names.map((name) => {
        const radio = h("input", { class: "unseen", type: "radio", name: group, onchange: () => picked(name) });
        radio.checked = name === branch;
        return h("label", {}, radio, h("span", {}, name));
      }),
    );
  } else {
    choice = h(
      "select",
      {
        class: "field",
        "aria-label": "The prompt of which label",
        onchange: (event) => picked(event.currentTarget.value),
      },
      names.map((name) => h("option", { value: name }, name)),
    );
    choice.value = branch;
  }
  const copy = h(
    "button",
    {
      class: "button plain slim",
      type: "button",
      onclick: () =>
        copyWords(
          parts()
            .map(([, words]) => words)
            .join(""),
          copy,
        ),
    },
    "Copy",
  );
  draw();
  // Scroll to the end: the scored part is there.
  requestAnimationFrame(() => {
    text.scrollTop = text.scrollHeight;
  });
  return h(
    "section",
    { class: "panel block", "aria-labelledby": id },
    h(
      "header",
      {},
      h("h2", { id }, "The prompt"),
      copy,
      h(
        "p",
        { class: "quiet" },
        likeliestWins(explanation.scores)
          ? "Exactly what the model read, to the last line break. The label whose scored part is the likeliest wins."
          : "What the model read, to the last line break. Its log-likelihoods alone do not decide: their table has what is compared.",
      ),
    ),
    h(
      "div",
      { class: "branch" },
      choice,
      h(
        "div",
        { class: "key" },
        h("span", {}, h("i", { class: "k-prefix" }), "demonstrations"),
        h("span", {}, h("i", { class: "k-given" }), "given"),
        h("span", {}, h("i", { class: "k-scored" }), "scored"),
      ),
    ),
    text,
  );
}
