// Running: one text or many.

let current = null;
function running(yes) {
  const had = document.activeElement === $("stop");
  // Not disabled: the button would lose the keyboard.
  $("run").setAttribute("aria-disabled", String(yes));
  $("stop").hidden = !yes;
  if (!yes && had) $("run").focus({ preventScroll: true });
}
function reveal(which) {
  $("empty").hidden = true;
  $("single").hidden = which !== "single";
  $("batch").hidden = which !== "batch";
  const box = $("results").getBoundingClientRect();
  if (box.top > innerHeight * 0.6)
    $("results").scrollIntoView({
      block: "start",
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
    });
}
async function startBatch(batch) {
  batch.abort = new AbortController();
  current = batch;
  running(true);
  await batch.run();
  if (current === batch) {
    running(false);
    if (batch.problem && placeOf(batch.problem) !== "run-problem" && !batch.done) placeProblem(batch.problem);
  }
}
async function run() {
  if ($("run").getAttribute("aria-disabled") === "true") return;
  document.activeElement?.closest?.(".chips") && document.activeElement.blur();
  clearProblems();
  current?.abort.abort();
  let texts, settings;
  try {
    settings = readSettings();
    texts = readTexts();
    checkTexts(texts);
  } catch (error) {
    placeProblem(asProblem(error));
    return;
  }
  lastMap?.clear();
  if (mode() === "many") {
    reveal("batch");
    // A file is its own pile: its texts are learned from, then labelled.
    const pile = learns(settings.method) && $("learn").checked
      ? new Learned(texts.map((each) => each.text), settings, file?.name)
      : null;
    await startBatch(
      new Batch($("batch"), texts, settings, file ? file.name.replace(/\.[^.]*$/, "") : "texts", pile),
    );
    return;
  }
  if (learned?.key === learnedKey(settings)) settings.learned = learned;
  const reasons = new Reasons($("single"), texts[0].text, settings);
  current = reasons;
  running(true);
  reveal("single");
  say("Classifying");
  const answer = await reasons.run();
  if (current !== reasons) return;
  running(false);
  if (answer?.result)
    say(`Predicted ${labelWords(answer.result)}, ${percent(shareOf(answer.result))}`);
  else if (answer?.problem && placeOf(answer.problem) !== "run-problem") placeProblem(answer.problem);
}
function stop() {
  const stopped = current;
  current?.abort.abort();
  current = null;
  running(false);
  if (stopped instanceof Reasons && !stopped.answers.has(stopped.chosen)) {
    $("single").hidden = true;
    $("empty").hidden = false;
  }
  say("Stopped");
}
