import { element, load, quoted, visible, badge, percent, count, plural, money, costUnit, shorten } from "../../assets/base.js";
import { table } from "../../assets/table.js";
import { answer, item } from "../../assets/item.js";
import { card, duration, between, chance, coverage, what, fill, notice, sections } from "./figures.js";
import { finder, explained, whole } from "./items.js";

const data = await load("data");
const { report, a, b } = data;
const rows = data.items.line.map((line, i) => Object.fromEntries(Object.entries(data.items).map(([name, column]) => [name, column[i]])));
const right = report.right;

// Whether one is better.
function verdict() {
  if (right.lost + right.gained === 0) return "Both are right and wrong on the same items.";
  const better = right.gained > right.lost ? `B (${b.id})` : `A (${a.id})`;
  if (right.lost === right.gained) return "Neither is right more often.";
  return right.chance < 0.05 ? `${better} is right more often, by more than chance.` : `${better} is right more often; chance alone may make that.`;
}
fill("cards",
  card("Answered by both", count(report.both), report.only_a || report.only_b ? `${count(report.only_a)} by A alone, ${count(report.only_b)} by B alone` : null),
  right && card("Gained", element("span", { class: "good-text" }, count(right.gained)), "B is right, A is wrong"),
  right && card("Lost", element("span", { class: "bad-text" }, count(right.lost)), "A is right, B is wrong"),
  right && card("Difference", `${right.difference > 0 ? "+" : ""}${(100 * right.difference).toFixed(1)} points`, between(right.interval).replace(" %", " points")),
  right && card("McNemar's test", chance(right.chance), verdict()),
  !right && card("Answered differently", count(data.all), "of the items that both answered"));
if (report.relabelled) fill("notices", notice(`${plural(report.relabelled, "item")} left out: A and B expect different labels.`));
if (data.explained < rows.length) fill("notices", notice(`This file holds what made the answers of ${plural(data.explained, "item")}, which is as much as a page can hold.`));
for (const run of [a, b]) for (const g of run.gone) fill("notices", notice(`${run.id}: not there any more: `, quoted(g)));

const sides = [{ name: "A", run: a, side: report.A }, { name: "B", run: b, side: report.B }];
const fact = (name, cell) => ({ name, cell });
fill("both", table({
  caption: "The two runs", hideCaption: true,
  rows: [
    fact("Run", (s) => s.run.id),
    fact("Started", (s) => s.run.started.replace("T", " ").slice(0, 16) + " UTC"),
    fact("Answered", (s) => count(s.side.answered)),
    fact("Accuracy", (s) => (s.side.accuracy === undefined ? "" : [percent(s.side.accuracy), element("div", { class: "muted" }, between(s.side.interval), ` of ${count(s.side.scored)}`)])),
    fact("Flagged", (s) => (s.run.totals ? count(s.run.totals.flagged) : "")),
    fact("Failed", (s) => (s.run.totals ? count(s.run.totals.failed) : "")),
    fact("ECE", (s) => (s.run.eval ? s.run.eval.calibration.ece.toFixed(3) : "")),
    fact("Tokens", (s) => count(s.side.tokens)),
    fact("Cost, " + costUnit, (s) => money(s.side.cost)),
    fact("Took", (s) => (s.run.totals ? duration(s.run.totals.seconds) : "")),
    ...[...new Set(sides.flatMap((s) => s.run.stages.map((t) => t.stage)))].map((stage) => fact(stage, (s) => {
      const of = s.run.stages.find((t) => t.stage === stage);
      return of ? [duration(of.busy_seconds), of.cost ? `, cost ${money(of.cost)}` : ""] : element("span", { class: "muted" }, "not there");
    })),
  ],
  columns: [{ name: "Figure", cell: (row) => element("span", { class: "muted" }, visible(row.name)) }, ...sides.map((s) => ({ name: s.name, number: true, cell: (row) => row.cell(s) }))],
}).element);
if (a.eval && b.eval && a.eval.calibration.measured === b.eval.calibration.measured) fill("both", coverage([{ ...a, name: "A" }, { ...b, name: "B" }]));

const list = finder({
  caption: "Items", rows,
  states: [{ letter: "", name: "All" }, { letter: "l", name: "Lost" }, { letter: "g", name: "Gained" }, { letter: "c", name: "Changed" }],
  words: (r) => `${r.id} ${r.text} ${r.expected} ${r.a} ${r.answer}`,
  labels: (r) => (b.answers === "labels" ? [r.expected, r.a, r.answer] : []),
  pair: (r, like) => like.is(r),
  options: {
    size: 50,
    opener: (r) => shorten(r.id, 40),
    open: async (r, place) => {
      if (r.at < 0) return place.replaceChildren(element("p", {}, "What made these answers is not in this file: racflow explain shows it."));
      const both = await explained(r.at);
      const columns = await Promise.all([["A", a, both.a], ["B", b, both.b]].map(async ([name, run, it]) => {
        const side = element("div");
        if (it) item(side, await whole(it), { level: 4 });
        else side.append(element("p", { class: "muted" }, "not there any more"));
        return element("section", {}, element("h3", {}, `${name}: ${run.id}`), side);
      }));
      place.replaceChildren(element("div", { class: "grid" }, columns));
    },
    columns: [
      { name: "Item", class: "id", value: (r) => r.line, cell: () => "" },
      { name: "Text", class: "text", value: (r) => r.text, cell: (r) => quoted(r.text) },
      right && { name: "Expected", class: "label", value: (r) => r.expected, cell: (r) => quoted(shorten(r.expected, 90)) },
      { name: "A", class: "label", value: (r) => r.a, cell: (r) => answer(shorten(r.a, 90)) },
      { name: "B", class: "label", value: (r) => r.answer, cell: (r) => answer(shorten(r.answer, 90)) },
      { name: "State", class: "state", value: (r) => r.state, cell: (r) => ({ l: badge("lost", "bad"), g: badge("gained", "good"), c: badge("changed") })[r.state] },
    ].filter(Boolean),
  },
});
fill("item-table", list.element);

const show = (n, label, like) => element("button", { type: "button", "aria-label": label, onclick: () => list.choose(like) }, count(n));
if (report.flips?.length) {
  fill("flipped", table({
    caption: "Items by expected label", size: 15, rows: report.flips,
    columns: [
      { name: "Label", class: "label", value: (f) => f.label, cell: (f) => quoted(f.label) },
      ...[["Lost", "lost", "l"], ["Gained", "gained", "g"]].map(([name, key, letter]) => ({
        name, number: true, value: (f) => f[key],
        cell: (f) => (f[key] ? show(f[key], `Show the ${plural(f[key], "item")} of ${f.label} that are ${key}`, { is: (r) => r.expected === f.label && r.state === letter, about: `${f.label}, ${key}` }) : "0"),
      })),
    ],
  }).element);
}
if (report.changes?.length) {
  fill("flipped", table({
    caption: "Answers that changed", size: 15, rows: report.changes,
    columns: [
      { name: "A", class: "label", value: (c) => c.a, cell: (c) => answer(shorten(c.a, 90)) }, { name: "B", class: "label", value: (c) => c.b, cell: (c) => answer(shorten(c.b, 90)) },
      { name: "Items", number: true, value: (c) => c.items, cell: (c) => count(c.items) },
    ],
  }).element);
}
if (report.manifest.length) fill("differs", element("ul", { class: "panel differs" }, report.manifest.map((m) => element("li", {}, quoted(m)))));
else fill("differs", element("p", {}, "Nothing that answers depend on."));
fill("ran", [a, b].map((run, i) => element("div", { class: "panel" }, element("h3", {}, "AB"[i]), what(run))));
sections();
