// Problems, shown at the part of the form they are about.

const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1) + (/[.!?…]$/.test(words) ? "" : ".");
function problemBox(problem, ...more) {
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("b", {}, problem.title),
    problem.detail ? h("span", {}, sentence(problem.detail)) : null,
    problem.expected ? h("span", { class: "quiet" }, sentence(`Expected: ${problem.expected}`)) : null,
    problem.hint ? h("span", { class: "quiet" }, sentence(problem.hint)) : null,
    ...more,
  );
}
function showProblem(slot, problem, ...more) {
  (typeof slot === "string" ? $(slot) : slot).replaceChildren(...(problem ? [problemBox(problem, ...more)] : []));
}
const asProblem = (error) =>
  error instanceof Problem
    ? error
    : new Problem({
        title: "The page failed",
        detail: String(error?.message || error),
        hint: "Reload it; the server is not to blame.",
      });

// The part of the form that a problem is about.
function placeOf({ where, field }) {
  if (where) return where;
  const part = (field ?? "").split(".")[0];
  if (part === "labels") return "labels-problem";
  if (part === "text" || part === "texts") return "text-problem";
  return ["method", "template", "inference", "k", "seed"].includes(part) ? "method-problem" : "run-problem";
}
const SLOTS = ["text-problem", "labels-problem", "method-problem", "run-problem"];
function clearProblems() {
  SLOTS.forEach((slot) => showProblem(slot, null));
  document.querySelectorAll("form [aria-invalid]").forEach((field) => field.removeAttribute("aria-invalid"));
}
function placeProblem(problem) {
  const slot = placeOf(problem);
  showProblem(slot, problem);
  if (slot === "text-problem") {
    const field = mode() === "one" ? $("text") : $("texts");
    field.setAttribute("aria-invalid", "true");
    field.focus({ preventScroll: true });
  } else if (slot === "method-problem") {
    $(problem.field)?.setAttribute("aria-invalid", "true");
  }
  $(slot).scrollIntoView({ block: "nearest" });
}
