import { element, quoted, visible } from "../../assets/base.js";

// matching returns the labels that a text may mean, the likeliest first, at most so many: those that
// begin with it, then those with a word that does, then those that contain it, then those
// that have its letters in order.
export function matching(labels, text, most) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return labels.slice(0, most);
  const ranked = [];
  for (const label of labels) {
    const at = rank(label.toLowerCase(), wanted);
    if (at < 4) ranked.push([at, label]);
  }
  ranked.sort((a, b) => a[0] - b[0]); // stable: alphabetical among those of one rank
  return ranked.slice(0, most).map((r) => r[1]);
}

function rank(label, wanted) {
  const at = label.indexOf(wanted);
  if (at === 0) return 0;
  if (at > 0) return /[\p{L}\p{N}]/u.test(label[at - 1]) ? 2 : 1;
  let i = 0;
  for (const c of label) if (c === wanted[i]) i++;
  return i === wanted.length ? 3 : 4;
}

// finder is a field that finds a label by what is typed: a combobox as the ARIA practices describe
// it. choose(label, isNew) is called with what was chosen; leave() when Escape is pressed in the empty field.
export function finder({ labels, choose, leave }) {
  const most = 50;
  let options = [], active = -1;
  const list = element("ul", { id: "found", role: "listbox", "aria-label": "Labels", hidden: true });
  const input = element("input", {
    type: "text", id: "search", role: "combobox", autocomplete: "off", spellcheck: "false", "aria-autocomplete": "list",
    "aria-controls": "found", "aria-expanded": "false", oninput: find, onfocus: find, onkeydown: key, onblur: close,
  });
  const whole = element("div", { class: "finder" }, element("label", { for: "search" }, "Another label ", element("kbd", {}, "/")), input, list);

  function find() {
    const text = input.value.trim();
    options = matching(labels(), text, most).map((label) => ({ label, isNew: false }));
    if (text && !labels().includes(text)) options.push({ label: text, isNew: true });
    active = text && options.length ? 0 : -1;
    draw();
  }

  function draw() {
    list.replaceChildren(...options.map((o, i) => element("li", {
      id: "found-" + i, role: "option", "aria-selected": i === active ? "true" : "false",
      onmousedown: (e) => e.preventDefault(), // the field keeps the focus
      onclick: () => take(i),
    }, o.isNew ? ["New label ", quoted(o.label)] : quoted(o.label))));
    list.hidden = !options.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (active >= 0) {
      input.setAttribute("aria-activedescendant", "found-" + active);
      list.children[active].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  function close() {
    options = [];
    active = -1;
    draw();
  }

  function take(i) {
    const chosen = options[i];
    input.value = "";
    close();
    choose(chosen.label, chosen.isNew);
  }

  function key(e) {
    if (e.isComposing) return;
    const n = options.length;
    if (e.key === "ArrowDown" && n) active = (active + 1) % n;
    else if (e.key === "ArrowUp" && n) active = (active <= 0 ? n : active) - 1;
    else if (e.key === "Enter" && active >= 0) take(active);
    else if (e.key === "Escape" && input.value) {
      input.value = "";
      find();
    } else if (e.key === "Escape") leave();
    else return;
    e.preventDefault();
    e.stopPropagation();
    if (e.key.startsWith("Arrow")) draw();
  }

  return { element: whole, focus: () => input.focus(), clear: () => { input.value = ""; close(); } };
}

// likely are labels that a text may be a slip of: those that differ by few letters.
export function likely(labels, text) {
  const most = Math.max(1, Math.floor(text.length / 4));
  return labels.map((l) => [distance(l.toLowerCase(), text.toLowerCase(), most), l]).filter((d) => d[0] <= most)
    .sort((a, b) => a[0] - b[0]).slice(0, 3).map((d) => d[1]);
}

// distance is Levenshtein's, or something above most.
function distance(a, b, most) {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length];
}
