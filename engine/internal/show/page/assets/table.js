import { element, announce, count, plural } from "./base.js";

let tables = 0;

// table shows rows in pages, sorted by a column that the reader chooses.
//
// columns: [{ name, value: (row) => what it sorts by (omitted: it does not), cell: (row) => child,
//   number: true (aligned right; descending first), class, wide }]
// options: caption, rows, size of a page (50), empty (what is shown without rows), id, hideCaption,
//   stack (on a phone the cells of a row stand below each other), open: async (row, element) => fills what unfolds below a row; opener: (row) => its name.
// It returns { element, show(rows) } where show replaces the rows and turns to the first page.
export function table({ caption, columns, rows, size = 50, empty = "Nothing here.", open, opener, hideCaption, stack }) {
  const id = "table-" + ++tables;
  let sorted = null; // { column, descending }
  let shown = rows, page = 0;
  const head = element("tr");
  const body = element("tbody");
  const pager = element("div", { class: "pager", role: "group", "aria-label": "Pages of " + caption });
  const grid = element("table", { id },
    element("caption", { class: hideCaption ? "unseen" : null }, caption), element("thead", {}, head), body);
  const all = element("div", { class: stack ? "table stack" : "table" },
    element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, grid), pager);

  const headers = columns.map((column) => {
    const th = element("th", { scope: "col", class: [column.number && "number", column.class].filter(Boolean).join(" ") || null });
    if (column.value) th.append(element("button", { type: "button", class: "sort", onclick: () => sort(column) }, column.name));
    else th.append(column.name);
    return th;
  });
  head.append(...headers);

  function sort(column) {
    const first = Boolean(column.number);
    if (!sorted || sorted.column !== column) sorted = { column, descending: first };
    else if (sorted.descending === first) sorted.descending = !first;
    else sorted = null; // as it came
    page = 0;
    draw();
    announce(sorted ? `sorted by ${column.name}, ${sorted.descending ? "descending" : "ascending"}` : "in the order in which it came");
  }

  function ordered() {
    if (!sorted) return shown;
    const { column: { value }, descending } = sorted;
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0);
    const keyed = shown.map((row, i) => [value(row), i, row]);
    keyed.sort((a, b) => (descending ? compare(b[0], a[0]) : compare(a[0], b[0])) || a[1] - b[1]);
    return keyed.map((k) => k[2]);
  }

  function draw() {
    headers.forEach((th, i) => {
      const by = sorted && sorted.column === columns[i];
      if (columns[i].value) th.setAttribute("aria-sort", by ? (sorted.descending ? "descending" : "ascending") : "none");
    });
    const list = ordered();
    const last = Math.max(Math.ceil(list.length / size) - 1, 0);
    page = Math.min(page, last);
    body.replaceChildren(...list.slice(page * size, (page + 1) * size).map(line));
    if (!list.length) body.append(element("tr", {}, element("td", { colspan: columns.length, class: "empty" }, empty)));
    pager.hidden = last === 0;
    const turn = (name, to) => element("button", { type: "button", disabled: to < 0 || to > last || to === page, onclick: () => go(to) }, name);
    pager.replaceChildren(turn("First", 0), turn("Previous", page - 1),
      element("span", {}, `${count(page * size + 1)}–${count(Math.min((page + 1) * size, list.length))} of ${count(list.length)}`),
      turn("Next", page + 1), turn("Last", last));
  }

  function go(to) {
    const name = document.activeElement?.textContent;
    page = to;
    draw();
    const again = [...pager.querySelectorAll("button")];
    (again.find((b) => b.textContent === name && !b.disabled) || again.find((b) => !b.disabled))?.focus();
    announce(pager.querySelector("span").textContent);
  }

  function line(row) {
    const cells = columns.map((column) =>
      element("td", { class: [column.number && "number", column.class].filter(Boolean).join(" ") || null, "data-name": stack && column.value ? column.name : null }, column.cell(row)));
    const tr = element("tr", {}, cells);
    if (!open) return tr;
    const button = element("button", { type: "button", class: "opener", "aria-expanded": "false" }, opener(row));
    cells[0].replaceChildren(button);
    tr.classList.add("opens");
    const unfold = () => {
      const is = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!is));
      tr.classList.toggle("is-open", !is);
      if (is) {
        tr.nextElementSibling.remove();
        return;
      }
      const inside = element("div", { class: "inside" }, element("p", { class: "muted" }, "Opening …"));
      tr.after(element("tr", { class: "unfolded" }, element("td", { colspan: columns.length }, inside)));
      Promise.resolve(open(row, inside)).catch((err) => inside.replaceChildren(element("p", { class: "bad-text" }, String(err))));
    };
    button.addEventListener("click", unfold);
    tr.addEventListener("click", (event) => {
      if (!event.target.closest("button, a") && !String(getSelection())) unfold();
    });
    tr.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || event.target !== button) return;
      const openers = [...body.querySelectorAll(".opener")];
      const to = openers[openers.indexOf(button) + step];
      if (to) {
        event.preventDefault();
        to.focus();
      }
    });
    return tr;
  }

  draw();
  return {
    element: all,
    show(next) {
      shown = next;
      page = 0;
      draw();
      announce(plural(next.length, "row"));
    },
  };
}
