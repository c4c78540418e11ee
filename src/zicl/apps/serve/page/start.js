// Start: theme, choices, events of buttons and keys.

function theme(next) {
  const known = ["auto", "light", "dark"];
  let now = "auto";
  try {
    now = next ?? localStorage.getItem("zicl-theme") ?? "auto";
    if (next) localStorage.setItem("zicl-theme", next);
  } catch {
    now = next ?? "auto";
  }
  if (!known.includes(now)) now = "auto";
  document.documentElement.dataset.theme = now;
  $("theme").setAttribute("aria-label", `Colours: ${now === "auto" ? "as the system" : now}. Change them`);
  $("theme").title = now === "auto" ? "Colours: as the system" : `Colours: ${now}`;
  $("theme").onclick = () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    // The first click always changes the colours.
    const order = dark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    theme(order[(order.indexOf(now) + 1) % 3]);
  };
}

function drawChoices() {
  const known = (info.methods ?? Object.keys(METHODS)).filter(
    (name) => info.corpus !== null || !FROM_CORPUS.includes(name),
  );
  const order = [
    ...Object.keys(METHODS).filter((name) => known.includes(name)),
    ...known.filter((name) => !(name in METHODS)),
  ];
  const method = info.settings?.method ?? null;
  if (!order.includes(method)) order.unshift(SERVED);
  $("methods").replaceChildren(
    ...order.map((name) => {
      const radio = h("input", {
        class: "unseen",
        type: "radio",
        name: "method",
        value: name,
        "aria-describedby": "method-words",
        onchange: () => {
          drawMethodWords();
          rememberSettings();
        },
      });
      radio.checked = name === (method ?? SERVED);
      return h("label", { class: "tile", title: methodWords(name) }, radio, h("b", {}, methodName(name)));
    }),
  );
  drawMethodWords();
  const fill = (id, values, chosen, words = (value) => value, served = "as served") => {
    $(id).replaceChildren(
      ...(chosen ? [] : [h("option", { value: "" }, served)]),
      ...values.map((value) => h("option", { value }, words(value))),
    );
    $(id).value = chosen ?? "";
  };
  fill(
    "inference",
    info.inferences ?? Object.keys(INFERENCES),
    info.settings?.inference,
    (value) => INFERENCES[value] ?? value,
  );
  for (const option of $("inference").options) option.title = option.value;
  const templates = Object.entries(info.templates ?? {}),
    lines = (each) => each.join(" … ");
  // Not named unless it is chosen: the server may pick it by the labels, and other labels get another one.
  const usual = templates.find(([, each]) => lines(each) === lines(info.settings?.template ?? []));
  fill(
    "template",
    templates.map(([name]) => name),
    null,
    undefined,
    usual ? `served: ${usual[0]}` : "as served",
  );
  for (const option of $("template").options)
    option.title = lines(info.templates?.[option.value] ?? info.settings?.template ?? []);
  // A server whose method has no demonstrations has no default for the other methods.
  if (info.settings?.k) $("k").value = String(info.settings.k);
  if (Number.isInteger(info.settings?.seed)) $("seed").value = String(info.settings.seed);
  if (info.limits?.k) $("k").max = String(info.limits.k);
}

async function start() {
  theme();
  $("run-key").textContent = /Mac|iP(hone|ad)/.test(navigator.platform) ? "⌘ ↵" : "Ctrl ↵";
  drawChoices();
  labels = [plainLabel(""), plainLabel("")];
  drawLabels();
  showMode();
  try {
    info = await patiently(
      async () => (await call("v1/info")).json(),
      undefined,
      (words) => {
        $("facts").textContent = words;
      },
    );
    const { corpus, lm, encoder } = info;
    const facts = [
      corpus ? `${count(corpus.sentences, "sentence", "sentences")} of raw text` : null,
      lm?.name,
      encoder?.name,
    ];
    $("facts").replaceChildren(...facts.filter(Boolean).map((fact) => h("span", {}, fact)));
    $("version").textContent = `zicl ${info.versions.zicl ?? ""}`;
    served = info.settings.labels.map(plainLabel);
    $("suggest").hidden = !corpus;
    $("learn").checked = !info.settings.pile;
    // A method that learns from texts is for many of them.
    if (learns(info.settings.method) && !info.settings.pile && !$("text").value) setMode("many");
    // Keep labels that were typed while the server started.
    if (!usedLabels().length && served.length) labels = structuredClone(served);
    drawChoices();
  } catch (error) {
    $("empty").hidden = true;
    showProblem(
      "run-problem",
      asProblem(error),
      h("button", { class: "button slim", type: "button", onclick: () => location.reload() }, "Try again"),
    );
  }
  applyFragment();
  ready = true;
  drawSetName();
  addEventListener("hashchange", () => {
    if (location.hash.includes("=")) applyFragment();
  });
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
$("stop").addEventListener("click", stop);
$("skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("results").focus();
});
$("example").addEventListener("click", giveExample);
$("example-too").addEventListener("click", () => {
  giveExample();
  run();
});
$("add-label").addEventListener("click", () => addLabel());
$("suggest").addEventListener("click", suggestSynonyms);
$("text").addEventListener("input", tellLength);
$("texts").addEventListener("input", tellLength);
$("column").addEventListener("change", () => {
  file.column = Number($("column").value);
  drawFile();
});
$("header").addEventListener("change", () => {
  drawColumns();
  drawFile();
});
$("choose").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => {
  if ($("file").files[0]) takeFile($("file").files[0]);
});
$("file-away").addEventListener("click", () => {
  forgetFile();
  $("texts").focus();
});
document.querySelectorAll("input[name=mode]").forEach((radio) => radio.addEventListener("change", showMode));
for (const id of ["inference", "template", "k", "seed"]) $(id).addEventListener("change", rememberSettings);
$("learn").addEventListener("change", drawMethodWords);
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    run();
  }
});
let over = 0;
addEventListener("dragenter", (event) => {
  if (event.dataTransfer?.types.includes("Files")) {
    over++;
    $("ask").classList.add("over");
  }
});
addEventListener("dragleave", () => {
  over = Math.max(0, over - 1);
  if (!over) $("ask").classList.remove("over");
});
addEventListener("dragover", (event) => {
  if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
});
addEventListener("drop", (event) => {
  if (!event.dataTransfer?.files.length) return;
  event.preventDefault();
  over = 0;
  $("ask").classList.remove("over");
  takeFile(event.dataTransfer.files[0]);
});
$("why-close").addEventListener("click", () => $("why-box").close());
$("why-box").addEventListener("close", () => {
  opened?.abort.abort();
  opened = null;
});
for (const box of document.querySelectorAll("dialog"))
  box.addEventListener("click", (event) => {
    if (event.target === box) box.close();
  });
$("token-cancel").addEventListener("click", () => $("token-box").close());
$("share").addEventListener("click", () => {
  $("share-texts").checked = false;
  drawLink();
  $("share-box").showModal();
  $("share-link").select();
});
$("share-texts").addEventListener("change", drawLink);
$("share-copy").addEventListener("click", () => copyWords($("share-link").value, $("share-copy")));
function drawLink() {
  $("share-link").value = location.origin + location.pathname + fragment($("share-texts").checked);
}
start();
