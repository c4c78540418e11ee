// Labels with their synonyms and descriptions, as rows and chips.

const NOTHING = { words: "", synonyms: [], description: "", offers: [], found: [] };

function drawLabels(focus = null) {
  $("labels").replaceChildren(...labels.map((label, number) => labelRow(label, number)));
  if (focus !== null) $("labels").children[focus]?.querySelector("input").focus();
  rememberSettings();
}

function labelRow(label, number) {
  const chips = h("div", { class: "chips" });
  const field = h("input", {
    type: "text",
    "aria-label": `Add a synonym of ${label.name || "this label"}`,
    autocomplete: "off",
    spellcheck: "false",
    onkeydown: (event) => {
      if ((event.key === "Enter" && !event.ctrlKey && !event.metaKey) || event.key === ",") {
        event.preventDefault();
        add();
      } else if (event.key === "Backspace" && !field.value && label.synonyms.length) {
        label.synonyms.pop();
        draw();
        field.focus();
      }
    },
    onblur: () => add(),
  });
  function add() {
    const words = field.value
      .split(",")
      .map((word) => word.trim())
      .filter((word) => word && !label.synonyms.includes(word));
    field.value = "";
    if (words.length) {
      label.synonyms.push(...words);
      const had = document.activeElement === field;
      draw();
      if (had) field.focus();
    }
  }
  function draw() {
    field.placeholder = label.synonyms.length
      ? "add …"
      : label.found?.length
        ? `automatic: ${label.found.join(", ")}`
        : info.corpus
          ? "synonyms: automatic"
          : "synonyms, if any";
    const offers = (label.offers ?? []).map((word) =>
      h(
        "button",
        {
          class: "chip offer",
          type: "button",
          "aria-label": `Add the synonym ${word}`,
          onclick: () => {
            label.offers = label.offers.filter((each) => each !== word);
            label.synonyms.push(word);
            draw();
            field.focus();
          },
        },
        `+ ${word}`,
      ),
    );
    chips.replaceChildren(
      ...label.synonyms.map((word) =>
        h(
          "span",
          { class: "chip" },
          word,
          h(
            "button",
            {
              class: "icon",
              type: "button",
              "aria-label": `Remove the synonym ${word}`,
              onclick: () => {
                label.synonyms = label.synonyms.filter((each) => each !== word);
                draw();
                field.focus();
              },
            },
            "×",
          ),
        ),
      ),
      ...offers,
      field,
    );
    rememberSettings();
  }
  const meaning = h("input", {
    class: "meaning",
    type: "text",
    placeholder: "description, in a few words",
    autocomplete: "off",
    maxlength: "200",
    oninput: () => {
      label.description = meaning.value;
      rememberSettings();
    },
  });
  function nameParts() {
    field.setAttribute("aria-label", `Add a synonym of ${label.name || "this label"}`);
    meaning.setAttribute("aria-label", `Describe ${label.name || "this label"}`);
    meaning.value = label.description;
  }
  // Synonyms, words and a description belong to a name: another name starts without, and gets them back if it returns.
  let before = null,
    kept = true;
  function remember() {
    const { name, words, synonyms, description, offers = [], found = [] } = label;
    before = { name: name.trim(), parts: { words, synonyms, description, offers, found } };
    kept = true;
  }
  const name = h("input", {
    class: "field name",
    type: "text",
    placeholder: "label",
    "aria-label": `Label ${number + 1}`,
    autocomplete: "off",
    spellcheck: "false",
    onfocus: remember,
    oninput: () => {
      label.name = name.value;
      const back = label.name.trim() === before.name;
      if (before.name && back !== kept) {
        Object.assign(label, structuredClone(back ? before.parts : NOTHING));
        kept = back;
      }
      nameParts();
      draw();
    },
    onkeydown: (event) => {
      if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        addLabel(number + 1);
      }
    },
  });
  name.value = label.name;
  const row = h(
    "div",
    { class: "label", role: "group", "aria-label": `Label ${number + 1}, its synonyms and its description` },
    name,
    chips,
    meaning,
    h(
      "button",
      {
        class: "icon",
        type: "button",
        "aria-label": `Remove the label ${label.name || number + 1}`,
        onclick: () => {
          labels.splice(number, 1);
          drawLabels(Math.min(number, labels.length - 1));
          if (!labels.length) $("add-label").focus();
        },
      },
      "×",
    ),
  );
  remember();
  nameParts();
  draw();
  return row;
}

// Show synonyms that the server found as a placeholder only: they stay automatic.
function noteSynonyms(used) {
  const found = new Map(used.map((label) => [label.name, label.synonyms]));
  for (const label of labels) label.found = found.get(label.name.trim()) ?? [];
  if (!$("labels").contains(document.activeElement)) drawLabels();
}

function addLabel(at = labels.length) {
  labels.splice(at, 0, plainLabel(""));
  drawLabels(at);
}

async function suggestSynonyms() {
  const button = $("suggest");
  if (button.hasAttribute("aria-disabled")) return;
  showProblem("labels-problem", null);
  try {
    checkLabels();
    const open = usedLabels().filter((label) => !label.synonyms.length);
    if (!open.length)
      throw new Problem({
        title: "Every label has synonyms already",
        hint: "Remove those you want to be suggested anew.",
      });
    // Not disabled: the button would lose the keyboard.
    button.setAttribute("aria-disabled", "true");
    button.textContent = "Looking …";
    say("Looking for synonyms");
    const { synonyms } = await patiently(async () =>
      (await call("v1/synonyms", { body: { labels: usedLabels().map(sentLabel) } })).json(),
    );
    const none = [];
    for (const label of open) {
      // Take the best one, as the server would; offer the others.
      const words = (synonyms[label.name.trim()] ?? []).map((each) => each.word);
      label.synonyms = words.slice(0, 1);
      label.offers = words.slice(1, 4);
      if (!label.synonyms.length) none.push(label.name.trim());
    }
    drawLabels();
    say(none.length ? `No synonym was found for ${none.join(", ")}` : "Synonyms were added");
    if (none.length)
      throw new Problem({
        title: `No good synonym was found for ${none.join(", ")}`,
        hint: "Type one yourself, or use the method Naive, which needs none.",
      });
  } catch (error) {
    showProblem("labels-problem", asProblem(error));
  } finally {
    button.removeAttribute("aria-disabled");
    button.textContent = "Suggest synonyms";
  }
}

function checkLabels() {
  const names = usedLabels().map((label) => label.name.trim());
  if (names.length < 2)
    throw new Problem({
      title: "At least two labels are needed",
      detail: `${names.length === 1 ? "One is" : "None is"} named.`,
      hint: "Name what your texts can be, for example terrible and great.",
      where: "labels-problem",
    });
  const twice = names.find((name, number) => names.indexOf(name) !== number);
  if (twice)
    throw new Problem({
      title: `Two labels are called ${twice}`,
      hint: "Give each a name of its own.",
      where: "labels-problem",
    });
}
