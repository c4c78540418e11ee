// What is downloaded.

// A cell that a spreadsheet would take for a formula gets an apostrophe before it.
const guard = (words) => (/^[\s\u00a0]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(words) ? `'${words}` : words);
const cellOf = (value) => {
  const words = typeof value === "number" ? String(value) : guard(String(value ?? ""));
  return /[",\r\n;\t']/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
};
function download(name, words, type) {
  const link = h("a", { href: URL.createObjectURL(new Blob([words], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 30_000);
}
