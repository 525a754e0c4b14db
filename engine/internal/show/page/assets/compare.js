import { element, load, quoted, badge, percent, count, plural, shorten } from "../../assets/base.js";
import { table } from "../../assets/table.js";
import { answer } from "../../assets/item.js";
import { card, between, coverage, calibration, chance, what, date, fill, sections } from "./figures.js";
import { finder } from "./items.js";

const data = await load("data");
const { runs, right } = data;
runs.forEach((run, i) => { run.name = "AB"[i] + ", " + run.id; });

fill("cards",
  runs.map((run) => card(run.name, run.eval ? percent(run.eval.accuracy) : "-", run.eval && `accuracy, ${between(run.eval.accuracy_interval)}`, [quoted(run.file), run.input ? [" on ", quoted(run.input)] : "", ", ", date(run)])),
  right && card("B against A", (right.difference > 0 ? "+" : "") + (100 * right.difference).toFixed(1) + " points", `${count(right.gained)} gained, ${count(right.lost)} lost of ${plural(right.items, "item")}; McNemar's test: ${chance(right.chance)}`),
  card("Answered by both", count(data.both), data.only_a || data.only_b ? `${count(data.only_a)} by A alone, ${count(data.only_b)} by B alone` : null));
const measured = runs.filter((run) => run.eval);
if (measured.length === 2) {
  const both = coverage(measured);
  both.classList.add("wide");
  fill("charts", both, measured.map(calibration));
}
if (data.flips.length) {
  fill("label-table", table({
    caption: "Labels that gained or lost", hideCaption: true, size: 20, rows: data.flips,
    columns: [
      { name: "Label", class: "label", value: (f) => f.label, cell: (f) => quoted(f.label) },
      { name: "Gained", number: true, value: (f) => f.gained, cell: (f) => count(f.gained) },
      { name: "Lost", number: true, value: (f) => f.lost, cell: (f) => count(f.lost) },
    ],
  }).element);
}
const states = { g: ["gained", "good"], l: ["lost", "bad"], c: ["changed", "warn"] };
fill("item-table", finder({
  caption: "Items that are answered differently", rows: data.items,
  states: [{ letter: "", name: "All" }, ...Object.entries(states).map(([letter, [name]]) => ({ letter, name: name[0].toUpperCase() + name.slice(1) }))],
  words: (r) => `${r.id} ${r.text} ${r.expected} ${r.a} ${r.b}`, labels: (r) => [r.expected, r.a, r.b], pair: () => true,
  options: {
    stack: true,
    columns: [
      { name: "Item", class: "id", value: (r) => r.line, cell: (r) => quoted(shorten(r.id, 40)) },
      { name: "Text", class: "text", value: (r) => r.text, cell: (r) => quoted(r.text) },
      { name: "A", class: "label", value: (r) => r.a, cell: (r) => answer(shorten(r.a, 90)) },
      { name: "B", class: "label", value: (r) => r.b, cell: (r) => answer(shorten(r.b, 90)) },
      data.items.some((r) => r.expected) && { name: "Expected", class: "label", value: (r) => r.expected, cell: (r) => quoted(shorten(r.expected, 90)) },
      { name: "State", class: "state", value: (r) => r.state, cell: (r) => badge(...states[r.state]) },
    ].filter(Boolean),
  },
}).element);
fill("differs", data.manifest.length ? element("ul", { class: "differs" }, data.manifest.map((d) => element("li", {}, quoted(d)))) : element("p", {}, "Nothing that answers depend on differs in what was run."));
fill("runs", runs.map((run) => element("div", { class: "panel" }, element("h3", {}, run.name), what(run))));
sections();
