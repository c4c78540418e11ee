// Sets of labels with their synonyms and descriptions, kept in this browser under names.

const SETS = "zicl-label-sets";

function readSets() {
  try {
    const found = JSON.parse(localStorage.getItem(SETS) ?? "[]");
    return checkSets(found);
  } catch {
    return [];
  }
}
/* What a stranger's file or another version wrote becomes sets, or an error. */
function checkSets(found) {
  if (!Array.isArray(found)) throw new Error("no list");
  return found.map((each) => {
    if (typeof each?.name !== "string" || !each.name.trim() || !Array.isArray(each.labels)) throw new Error("no set");
    return { name: each.name.trim().slice(0, 80), labels: each.labels.map((label) => sentLabel(plainLabel(label))) };
  });
}
function writeSets(sets) {
  try {
    if (sets.length) localStorage.setItem(SETS, JSON.stringify(sets));
    else localStorage.removeItem(SETS);
  } catch {
    throw new Problem({
      title: "This browser keeps nothing for this page",
      hint: "Export the labels as a file instead, or keep the link.",
    });
  }
  drawSets();
}
const usedSet = () => {
  const now = JSON.stringify(usedLabels().map(sentLabel));
  return readSets().find((each) => JSON.stringify(each.labels) === now)?.name ?? null;
};
function drawSetName() {
  const name = usedSet();
  $("sets").textContent = name ? `Set: ${name}` : "Sets";
}

function drawSets() {
  const sets = readSets();
  $("set-list").replaceChildren(
    ...sets.map((each) =>
      h(
        "li",
        {},
        h("button", { class: "button", type: "button", onclick: () => useSet(each) }, `Use ${each.name}`),
        h("span", { class: "small quiet" }, each.labels.map((label) => label.name).join(", ")),
        h(
          "button",
          {
            class: "button plain slim",
            type: "button",
            "aria-label": `Copy a link to ${each.name}`,
            onclick: (event) => copyWords(setLink(each), event.currentTarget),
          },
          "Link",
        ),
        h(
          "button",
          {
            class: "icon",
            type: "button",
            "aria-label": `Remove the set ${each.name}`,
            onclick: () => {
              writeSets(readSets().filter((other) => other.name !== each.name));
              $("set-name").focus();
            },
          },
          "×",
        ),
      ),
    ),
  );
  $("set-none").hidden = sets.length > 0;
  $("set-export").disabled = $("set-clear").disabled = !sets.length;
  drawSetName();
}
const setLink = (each) =>
  `${location.origin}${location.pathname}#${new URLSearchParams({ labels: JSON.stringify(each.labels) })}`;
function useSet(each) {
  labels = each.labels.map(plainLabel);
  drawLabels();
  $("sets-box").close();
  say(`The labels are now those of ${each.name}`);
}
function saveSet() {
  guarded(() => {
    const name = $("set-name").value.trim();
    if (!name) throw new Problem({ title: "The set has no name yet", hint: "Type one, for example tickets." });
    checkLabels();
    writeSets([...readSets().filter((each) => each.name !== name), { name, labels: usedLabels().map(sentLabel) }]);
    $("set-name").value = "";
    say(`${name} is kept in this browser`);
  });
}
async function importSets(given) {
  guarded(async () => {
    let found;
    try {
      found = checkSets(JSON.parse(await given.text()));
    } catch {
      throw new Problem({
        title: `${given.name} holds no sets of labels`,
        hint: "Choose a file that Export wrote.",
      });
    }
    const names = new Set(found.map((each) => each.name));
    writeSets([...readSets().filter((each) => !names.has(each.name)), ...found]);
    say(`${count(found.length, "set was", "sets were")} read`);
  });
}
async function guarded(act) {
  showProblem("sets-problem", null);
  try {
    await act();
  } catch (error) {
    showProblem("sets-problem", asProblem(error));
  }
}

$("sets").addEventListener("click", () => {
  showProblem("sets-problem", null);
  drawSets();
  $("sets-box").showModal();
});
$("sets-form").addEventListener("submit", (event) => {
  event.preventDefault();
  saveSet();
});
$("sets-close").addEventListener("click", () => $("sets-box").close());
$("set-export").addEventListener("click", () =>
  download("zicl-label-sets.json", JSON.stringify(readSets(), null, 2), "application/json"),
);
$("set-import").addEventListener("click", () => $("set-file").click());
$("set-file").addEventListener("change", () => {
  if ($("set-file").files[0]) importSets($("set-file").files[0]);
  $("set-file").value = "";
});
$("set-clear").addEventListener("click", () => guarded(() => writeSets([])));
