// A pseudo-demonstration as a card.

const RELATIONS = {
  nearest: "Nearest sentence, shown itself",
  neighbour: "Its neighbour, shown instead",
  domain: "Of its domain, shown instead",
  random: "Sentence shown",
};
function demoCard(demo, rank) {
  const { nearest } = demo,
    same = nearest && nearest.row === demo.row,
    near = h("i", { "aria-hidden": "true" });
  const around = h("div", { class: "around", hidden: true, id: newId() });
  const open = h(
    "button",
    {
      class: "button plain slim",
      type: "button",
      "aria-expanded": "false",
      "aria-controls": around.id,
      onclick: () => toggle(around.hidden),
    },
    "Show the paragraph",
  );
  const card = h("article", {
    class: demo.kept ? "demo" : "demo out",
    "aria-label": `Demonstration ${rank}`,
    onkeydown: (event) => {
      if (event.key === "Escape" && !around.hidden) {
        event.preventDefault();
        event.stopPropagation();
        toggle(false);
        open.focus();
      }
    },
  });
  async function toggle(show) {
    around.hidden = !show;
    open.setAttribute("aria-expanded", String(show));
    open.textContent = show ? "Hide the paragraph" : "Show the paragraph";
    if (!show || around.dataset.read) return;
    around.replaceChildren(bones("", "half"));
    try {
      const paragraph = await patiently(async () =>
        (await call(`v1/paragraph/${encodeURIComponent(demo.row)}`)).json(),
      );
      around.dataset.read = "yes";
      around.replaceChildren(
        ...paragraph.sentences.flatMap((sentence) => [
          sentence.row === demo.row
            ? h("mark", { class: "used", title: "shown to the model" }, sentence.text)
            : sentence.row === nearest?.row
              ? h("mark", { class: "nearest", title: "nearest to your text" }, sentence.text)
              : sentence.text,
          " ",
        ]),
      );
    } catch (error) {
      around.replaceChildren(problemBox(asProblem(error)));
    }
  }
  if (Number.isFinite(demo.similarity)) near.style.setProperty("--share", String(Math.max(0, demo.similarity)));
  card.append(
    h(
      "div",
      { class: "meta" },
      h("span", { class: "rank" }, String(rank)),
      Number.isFinite(demo.similarity)
        ? h("span", { class: "near" }, near, `similarity ${demo.similarity.toFixed(2)}`)
        : h("span", {}, "drawn at random"),
      demo.domain ? h("span", { class: "tag" }, demo.domain) : null,
      demo.kept ? null : h("span", { class: "tag" }, "left out: no room"),
    ),
  );
  if (nearest && !same)
    card.append(h("div", { class: "part found" }, h("span", {}, "Nearest sentence"), h("p", {}, nearest.text)));
  card.append(
    h(
      "div",
      { class: "part used" },
      h("span", {}, RELATIONS[demo.relation] ?? "Sentence shown"),
      h("p", {}, demo.text),
    ),
    h(
      "div",
      { class: "given" },
      h(
        "span",
        {},
        "as ",
        h("span", { class: "chip" }, demo.words),
        demo.words !== demo.label ? h("span", { class: "quiet" }, ` for ${demo.label}`) : null,
      ),
      open,
    ),
    around,
  );
  return card;
}

async function copyWords(words, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(words);
    button.textContent = "Copied";
    say("Copied");
  } catch {
    button.textContent = "Copying was refused";
  }
  setTimeout(() => {
    button.textContent = before;
  }, 1600);
}
