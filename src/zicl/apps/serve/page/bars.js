// Probabilities as bars, and the labels of a result in words: one, none of them, or several.

/* The labels that a result has probabilities for; the name for none of them comes last. */
function namesOf(result, names) {
  const extra = Object.keys(result.probabilities).filter((name) => !names.includes(name));
  return [...names, ...extra].filter((name) => name in result.probabilities);
}
function labelWords(result) {
  return result.labels.length ? result.labels.join(", ") : "no label";
}
/* How sure a result is: the probability of its least sure label, or that no label fits. */
function shareOf({ labels, probabilities }) {
  return labels.length
    ? Math.min(...labels.map((name) => probabilities[name]))
    : 1 - Math.max(...Object.values(probabilities));
}
function bars(result, given, { thin = false, most = 6 } = {}) {
  const names = namesOf(result, given);
  // A few labels keep their order, so that methods can be compared line by line.
  const order =
    thin && names.length <= most
      ? names
      : [...names].sort((a, b) => result.probabilities[b] - result.probabilities[a]);
  const list = h("ul", { class: thin ? "bars thin" : "bars" });
  const bar = (name) => {
    const fill = h("i");
    fill.style.setProperty("--share", String(result.probabilities[name]));
    return h(
      "li",
      { class: result.labels.includes(name) ? "bar first" : "bar" },
      h("span", { class: "word" }, name),
      h("span", { class: "share" }, percent(result.probabilities[name])),
      h("span", { class: "track", "aria-hidden": "true" }, fill),
    );
  };
  list.append(...order.slice(0, most).map(bar));
  if (order.length > most) {
    const rest = order.length - most;
    list.append(
      h(
        "li",
        { class: "small quiet" },
        thin
          ? `and ${rest} more`
          : h(
              "button",
              {
                class: "button plain slim",
                type: "button",
                onclick: (event) => event.currentTarget.parentElement.replaceWith(...order.slice(most).map(bar)),
              },
              `Show ${rest} more`,
            ),
      ),
    );
  }
  return list;
}
