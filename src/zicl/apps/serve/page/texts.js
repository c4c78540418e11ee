// Texts: typed, dropped, chosen.

let example = 0;
let file = null;

function setMode(value) {
  document.querySelector(`input[name=mode][value=${value}]`).checked = true;
  showMode();
}
function showMode() {
  $("one-box").hidden = mode() !== "one";
  $("many-box").hidden = mode() === "one";
  drawMethodWords();
  tellLength();
}
function giveExample() {
  clearProblems();
  if (mode() === "one") {
    $("text").value = EXAMPLES[example++ % EXAMPLES.length];
    $("text").focus();
  } else {
    forgetFile();
    $("texts").value = EXAMPLE_LINES.join("\n");
    $("texts").focus();
  }
  if (!usedLabels().length) {
    labels = EXAMPLE_LABELS.map(plainLabel);
    drawLabels();
  }
  tellLength();
}

// Parse CSV: quoted cells, doubled quotes, line breaks inside quotes.
function parseTable(words, separator) {
  const rows = [];
  let row = [],
    cell = "",
    quoted = false,
    start = true;
  for (let at = 0; at < words.length; at++) {
    const sign = words[at];
    if (quoted) {
      if (sign !== '"') cell += sign;
      else if (words[at + 1] === '"') {
        cell += '"';
        at++;
      } else quoted = false;
    } else if (sign === '"' && start) {
      quoted = true;
      start = false;
    } else if (sign === separator) {
      row.push(cell);
      cell = "";
      start = true;
    } else if (sign === "\n" || sign === "\r") {
      if (sign === "\r" && words[at + 1] === "\n") at++;
      row.push(cell);
      rows.push(row);
      row = [];
      cell = "";
      start = true;
    } else {
      cell += sign;
      start = false;
    }
  }
  if (quoted)
    throw new Problem({
      title: "The file ends inside a quoted cell",
      detail: `A quotation mark that opens a cell is never closed; ${rows.length} rows were read before it.`,
      hint: "Close it, or double the quotation marks inside cells.",
      where: "text-problem",
    });
  if (cell || row.length) {
    row.push(cell);
    rows.push(row);
  }
  return rows.filter((each) => each.length > 1 || each[0].trim());
}
// The separator is the most frequent one in the first line.
function separatorOf(words) {
  const first = words.slice(0, Math.max(0, words.indexOf("\n")) || words.length).replace(/"(?:[^"]|"")*"/g, "");
  return [",", ";", "\t"]
    .map((sign) => [first.split(sign).length, sign])
    .reduce((best, each) => (each[0] > best[0] ? each : best))[1];
}

const LARGEST_FILE = 64 << 20;
async function takeFile(given) {
  clearProblems();
  try {
    if (given.size > LARGEST_FILE)
      throw new Problem({
        title: "The file is too large for a page",
        detail: `${given.name} has ${Math.round(given.size / 1048576)} MB; at most 64 MB are read.`,
        hint: "Use zicl classify --file for it.",
        where: "text-problem",
      });
    let words;
    try {
      words = new TextDecoder("utf-8", { fatal: true }).decode(await given.arrayBuffer());
    } catch {
      throw new Problem({
        title: `${given.name} is not UTF-8 text`,
        hint: "Save it as CSV (UTF-8) or plain text and drop it again.",
        where: "text-problem",
      });
    }
    const table = /\.(csv|tsv)$/i.test(given.name) || given.type === "text/csv";
    const rows = table
      ? parseTable(words, /\.tsv$/i.test(given.name) ? "\t" : separatorOf(words))
      : words
          .split(/\r\n|\n|\r/)
          .filter((line) => line.trim())
          .map((line) => [line]);
    if (!rows.length)
      throw new Problem({
        title: `${given.name} holds no text`,
        hint: "Choose another file.",
        where: "text-problem",
      });
    file = { name: given.name, rows, table, column: 0 };
    setMode("many");
    $("header").checked = table && rows.length > 1;
    drawColumns();
    drawFile();
    $("texts").value = "";
    say(`${given.name} was read: ${fileTexts().length} texts`);
  } catch (error) {
    forgetFile();
    placeProblem(asProblem(error));
  }
}
function forgetFile() {
  file = null;
  $("file").value = "";
  $("file-box").hidden = true;
  $("lines-box").hidden = false;
  tellLength();
}
const columnNames = () =>
  file.rows[0].map((name, at) =>
    file.table && $("header").checked ? name.trim() || `column ${at + 1}` : file.table ? `column ${at + 1}` : "text",
  );
const bodyRows = () => file.rows.slice(file.table && $("header").checked ? 1 : 0);
// Guess the column of texts: by its name, else the one with the longest cells.
function likelyColumn() {
  const named = $("header").checked
    ? columnNames().findIndex((name) => /^(text|texts|sentence|review|body|message|input)$/i.test(name))
    : -1;
  if (named >= 0) return named;
  const sizes = columnNames().map((_, at) =>
    bodyRows()
      .slice(0, 50)
      .reduce((sum, row) => sum + (row[at] ?? "").length, 0),
  );
  return sizes.indexOf(Math.max(...sizes));
}
function drawColumns() {
  file.column = likelyColumn();
  $("column").replaceChildren(...columnNames().map((name, at) => h("option", { value: String(at) }, name)));
  $("column").value = String(file.column);
}
function fileTexts() {
  const names = columnNames();
  return bodyRows().map((row) => ({
    text: (row[file.column] ?? "").trim(),
    columns: names.map((name, at) => [name, row[at] ?? ""]),
  }));
}
function drawFile() {
  const all = fileTexts(),
    texts = all.filter((each) => each.text);
  $("lines-box").hidden = true;
  $("file-box").hidden = false;
  $("column-box").hidden = $("header-box").hidden = !file.table;
  $("file-name").textContent = file.name;
  const left = all.length - texts.length;
  $("file-count").textContent =
    count(texts.length, "text", "texts") +
    (left ? `; ${count(left, "empty row is", "empty rows are")} left out` : "");
  $("file-first").replaceChildren(...texts.slice(0, 3).map((each) => h("li", {}, each.text.slice(0, 160))));
  tellLength();
}
function readTexts() {
  if (mode() === "one") return [{ text: $("text").value.trim() }].filter((each) => each.text);
  if (file) return fileTexts().filter((each) => each.text);
  return $("texts")
    .value.split(/\r\n|\n|\r/)
    .map((line) => ({ text: line.trim() }))
    .filter((each) => each.text);
}
function checkTexts(texts) {
  if (!texts.length)
    throw new Problem({
      title: mode() === "one" ? "There is no text yet" : "There are no texts yet",
      hint: mode() === "one" ? "Paste one, or try an example." : "Write one per line, or choose a file.",
      where: "text-problem",
    });
  const most = info.limits?.characters ?? Infinity;
  const at = texts.findIndex((each) => each.text.length > most && [...each.text].length > most);
  if (at >= 0)
    throw new Problem({
      title: texts.length === 1 ? "The text is too long" : `Text ${at + 1} is too long`,
      detail: `It has ${texts[at].text.length.toLocaleString("en")} characters; this server takes at most ${most.toLocaleString("en")}.`,
      hint: "Shorten it.",
      where: "text-problem",
    });
}
function tellLength() {
  const texts = readTexts();
  $("length").textContent =
    mode() === "many"
      ? count(texts.length, "text", "texts")
      : texts.length
        ? count(texts[0].text.length, "character", "characters")
        : "";
  $("run-words").textContent =
    mode() === "many" && texts.length ? `Classify ${count(texts.length, "text", "texts")}` : "Classify";
}
