// Small tools.

const $ = (id) => document.getElementById(id);

// Create an element. Strings become text nodes, never HTML.
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name === "className" ? "class" : name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const points = (margin) => `${(100 * margin).toFixed(1)} points`;
const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
const howMany = (done, all) => `${done.toLocaleString("en")} of ${all.toLocaleString("en")}`;
const say = (words) => {
  $("status").textContent = words;
};
const wait = (ms, signal) =>
  new Promise((done, fail) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        fail(signal.reason);
      },
      { once: true },
    );
  });
let lastId = 0;
const newId = () => `made-${++lastId}`;
const bones = (...sizes) =>
  h(
    "div",
    { class: "bones", "aria-hidden": "true" },
    sizes.map((size) => h("span", { class: `bone ${size}` })),
  );
