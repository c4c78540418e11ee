// Probabilities as bars.

function bars(result, names, { thin = false, most = 6 } = {}) {
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
      { class: name === result.label ? "bar first" : "bar" },
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
