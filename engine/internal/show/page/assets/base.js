// What every page uses: elements, texts, data, theme. Texts become text nodes and nothing else.

// element makes an element. Attributes that begin with "on" are listeners; false and null are
// left out. Children are nodes, texts, or lists of these.
export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? "" : String(value));
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// visible makes characters visible that would not show, or would change how others show: escape
// sequences of terminals, and marks that turn the direction of writing.
export function visible(text) {
  return String(text)
    .replace(/\r\n/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g,
      (c) => "\u27e8U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
}

// shorten cuts a text to about so many characters.
export function shorten(text, most) {
  text = String(text);
  return text.length > most ? text.slice(0, most).replace(/[\ud800-\udbff]$/, "") + "…" : text;
}

// quoted is a text of the data, apart from what stands around it, in its own direction. Its lines may end behind _ and /,
// as in labels.
export function quoted(text, attributes = {}) {
  return element("bdi", { dir: "auto", ...attributes }, visible(text).split(/(?<=[\p{L}\p{N}][_/])/u).map((part, i) => (i ? [element("wbr"), part] : part)));
}

export const percent = (share, digits = 1) => (100 * share).toFixed(digits) + " %";
export const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ","); // of a whole number
export const plural = (n, noun) => count(n) + " " + noun + (n === 1 ? "" : "s");
export const rounded = (x, digits = 3) => (Math.abs(x) >= 1000 ? x.toFixed(0) : x.toPrecision(digits)).replace(/^(-?\d+\.\d*?)0+$/, "$1").replace(/\.$/, "");
// costUnit is what amounts of money are in: a file's prices name no currency.
export const costUnit = "in the currency of the file's prices";
export const money = (cost) => (cost === 0 ? "0" : cost < 0.01 ? cost.toPrecision(2) : cost.toFixed(2));

// load returns the data of a block of the page; undefined: there is none.
export async function load(id) {
  const block = document.getElementById(id);
  if (!block) return undefined;
  if (block.type === "application/json") return JSON.parse(block.textContent);
  const packed = atob(block.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(unpacked).text());
}

// announce has a screen reader say what changed.
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

// badge is a word that says how something stands: good, bad, warn or plain.
export function badge(text, kind = "plain") {
  return element("span", { class: "badge " + kind }, text);
}

// meter shows a share from 0 to 1 beside its figure.
export function meter(share, text) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" }, element("i"));
  bar.firstChild.style.width = 100 * Math.min(Math.max(share, 0), 1) + "%";
  return element("span", { class: "meter" }, bar, element("span", { class: "number" }, text));
}

// A theme that was chosen stays for the next page, where the browser keeps such things.
const themes = ["system", "light", "dark"];
function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
function themeChooser() {
  let kept = "system";
  try {
    kept = localStorage.getItem("racflow-theme") || kept;
  } catch { /* it keeps nothing */ }
  if (!themes.includes(kept)) kept = "system";
  setTheme(kept);
  const select = element("select", {
    id: "theme",
    onchange: () => {
      setTheme(select.value);
      try {
        localStorage.setItem("racflow-theme", select.value);
      } catch { /* as above */ }
    },
  }, themes.map((t) => element("option", { value: t, selected: t === kept }, t)));
  return element("label", { class: "theme" }, "Theme ", select);
}
document.title = visible(document.title);
document.querySelector("h1").textContent = document.title;
document.getElementById("tools").append(themeChooser());
