import { element, load, plural, count, announce } from "../../assets/base.js";
import { table } from "../../assets/table.js";

let entries; // a promise of the candidates' texts
const made = new Map(); // promises of blocks

// explained returns what made the answer of an item, or whatever else stands at its place.
export async function explained(at) {
  const block = Math.floor(at / 100);
  if (!made.has(block)) made.set(block, load("made-" + block));
  entries ||= load("entries");
  return (await made.get(block))[at % 100];
}

// whole replaces places of candidates by the candidates.
export async function whole(it) {
  const e = await entries;
  const candidate = ([at, score, dense, lexical]) => ({ id: e.id[at], label: e.label[at], text: e.text[at], meta: e.meta[at], score, dense, lexical });
  return { ...it, candidates: it.candidates?.map(candidate), lists: it.lists?.map((l) => ({ ...l, candidates: l.candidates?.map(candidate) })) };
}

// finder is a table of items with what finds some of them: states (letters of row.state) as
// buttons, words, a label. It returns { element, choose(expected, answer) }.
export function finder({ caption, rows, states, words, options, labels, pair }) {
  const found = rows.map((row) => words(row).toLowerCase());
  const grid = table({ caption, hideCaption: true, rows, empty: "No item is like that.", ...options });
  const total = element("p", { class: "muted" });
  let state = "", exactly = null;
  const shown = states.filter((s) => !s.letter || rows.some((r) => r.state.includes(s.letter)));
  const buttons = shown.map((s) => element("button", { type: "button", "aria-pressed": String(s.letter === ""), onclick: () => { state = s.letter; look(); } },
    s.name, " ", element("span", { class: "muted" }, count(s.letter ? rows.filter((r) => r.state.includes(s.letter)).length : rows.length))));
  const search = element("input", { type: "search", placeholder: "Search texts, ids and labels", "aria-label": "Search texts, ids and labels", oninput: () => look() });
  const names = [...new Set(rows.flatMap(labels))].filter(Boolean).sort();
  const select = element("select", { "aria-label": "Label", onchange: () => { exactly = null; look(); } }, element("option", { value: "" }, "Any label"), names.map((n) => element("option", { value: n }, n)));
  const clear = element("button", { type: "button", onclick: () => { state = ""; exactly = null; search.value = select.value = ""; look(); search.focus(); } }, "Clear");

  function look() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const list = rows.filter((row, i) => (!state || row.state.includes(state)) && wanted.every((w) => found[i].includes(w)) &&
      (!select.value || labels(row).includes(select.value)) && (!exactly || pair(row, exactly)));
    buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(shown[i].letter === state)));
    total.replaceChildren(list.length === rows.length ? plural(rows.length, "item") : `${count(list.length)} of ${plural(rows.length, "item")}`,
      exactly ? ": " + exactly.about : "");
    clear.disabled = list.length === rows.length;
    grid.show(list);
    announce(total.textContent);
  }
  const all = element("div", {},
    element("div", { class: "row controls" }, element("div", { class: "row", role: "group", "aria-label": "Which items" }, buttons), element("div", { class: "grow" }, search), names.length ? select : null, clear),
    total, grid.element);
  look();
  announce("");
  return {
    element: all,
    choose(next) {
      state = "";
      search.value = select.value = "";
      exactly = next;
      look();
      const heading = document.querySelector("#items h2");
      heading.setAttribute("tabindex", "-1");
      heading.focus();
      heading.scrollIntoView();
    },
  };
}
