import { load, quoted, badge, percent, count, plural, money, costUnit, shorten } from "../../assets/base.js";
import { answer, item } from "../../assets/item.js";
import { card, duration, between, coverage, calibration, confusion, voters, stages, what, date, fill, notice, sections } from "./figures.js";
import { finder, explained, whole } from "./items.js";

const data = await load("data");
const { run } = data;
const passages = run.answers === "passages";
const rows = data.items.line.map((line, i) => Object.fromEntries(Object.entries(data.items).map(([name, column]) => [name, column[i]])));

const many = run.form?.many; // a label is a set
const labels = (set) => (many ? set.split("; ").filter((l) => l && l !== "[]") : [set]);
const has = (set, label) => labels(set).includes(label);
const alone = (set, other, label) => !label || (has(set, label) && !has(other, label));

// What came of it.
const n = (letter) => rows.filter((r) => r.state.includes(letter)).length;
const totals = run.totals, e = run.eval;
fill("origin", "Pipeline ", quoted(run.pipeline), " of ", quoted(run.file), run.input ? [" on ", quoted(run.input)] : "", ", ", date(run));
fill("cards",
  card("Items", count(data.all), totals && totals.left ? count(totals.left) + " left unanswered" : null),
  e && card("Accuracy", percent(e.accuracy), between(e.accuracy_interval), `of ${plural(e.scored, "item")} with a label`, e.decided ? `${count(e.decided)} decided by people aside` : null),
  e?.scope && card("In scope", percent(e.scope.in_accuracy), `${plural(e.scope.out, "item")} out of scope, ${percent(e.scope.out_caught, 0)} of them flagged or left without an answer`),
  e?.sets && card("Micro F1", e.sets.micro_f1.toFixed(3), between(e.sets.micro_f1_interval), `precision ${percent(e.sets.micro_precision)}, recall ${percent(e.sets.micro_recall)}`),
  e?.tree && card("Leaves", percent(e.tree.leaves), between(e.tree.leaves_interval), `${e.tree.depth.toFixed(2)} levels of ${e.tree.expected_depth.toFixed(2)} answered`),
  e && card("Macro F1", e.macro_f1.toFixed(3), `over ${plural(e.labels.length, "label")}`),
  !passages && card("Flagged", count(totals ? totals.flagged : n("f")), e ? `${count(e.flags.caught)} of ${plural(e.flags.errors, "error")} among them` : null),
  !passages && card("No answer", count(totals ? totals.undecided : n("n"))),
  card("Failed", count(totals ? totals.failed : n("e"))),
  totals && card("Took", duration(totals.seconds), totals.seconds && totals.items > totals.earlier ? `${((totals.items - totals.earlier) / totals.seconds).toFixed(1)} items a second` : null),
  totals && (totals.cost || totals.input_tokens) ? card("Cost", money(totals.cost || 0), costUnit, `${count(totals.input_tokens)} tokens in, ${count(totals.output_tokens)} out`) : null);
if (!totals) fill("notices", notice("The run was cut off: racflow runs resume ", run.id, " resumes it. What is here is what it had answered."));
else if (!totals.complete) fill("notices", notice("The run is not complete", totals.reason ? [": ", quoted(totals.reason)] : "", "."));
if (totals?.provisional) fill("notices", notice(`${plural(totals.provisional, "answer")} are provisional, without a voter: there is no accuracy until racflow runs resume asks it`, totals.reason ? [": ", quoted(totals.reason)] : "", "."));
if (rows.length < data.all) fill("notices", notice(`The table lists ${count(rows.length)} of ${plural(data.all, "item")}: those first that failed, are wrong or flagged. The figures are of all.`));
if (data.explained < rows.length) fill("notices", notice(`This file holds what made the answers of ${plural(data.explained, "item")}, which is as much as a page can hold. racflow explain ${run.id} ID shows that of any other.`));
run.gone.forEach((g) => fill("notices", notice("Not there any more: ", quoted(g))));

if (e) {
  fill("charts", coverage([run]), calibration(run));
  fill("confused", confusion(e, (expected, answered) => list.choose({
    expected, answered, about: answered === null ? `${expected} is expected` : `${expected} is expected, ${answered || "nothing"} answered`,
  })));
  fill("voter-table", voters(e));
}
fill("stage-table", stages(run));
fill("run", what(run));

const states = {
  e: ["failed", "bad"], w: ["wrong", "bad"], r: ["right", "good"], f: ["flagged", "warn"], n: ["no answer", "warn"], d: ["decided", "accent"], p: ["lacks a voter", "warn"], u: ["not reached", "plain"],
};
const list = finder({
  caption: "Items", rows,
  states: [{ letter: "", name: "All" }, ...Object.entries(states).map(([letter, [name]]) => ({ letter, name: name[0].toUpperCase() + name.slice(1) }))],
  words: (r) => `${r.id} ${r.text} ${r.expected} ${r.answer}`,
  labels: (r) => (run.answers === "labels" ? [...labels(r.expected), ...labels(r.answer)] : []),
  pair: (r, { expected, answered }) => (answered === null ? has(r.expected, expected)
    : !r.state.includes("e") && (many && expected !== answered ? alone(r.expected, r.answer, expected) && alone(r.answer, r.expected, answered) : has(r.expected, expected) && has(r.answer, answered))),
  options: {
    size: 50, stack: true,
    opener: (r) => shorten(r.id, 40),
    open: async (r, place) => {
      if (r.at < 0) return place.replaceChildren(element("p", {}, `What made this answer is not in this file: racflow explain ${run.id} ${shorten(r.id, 80)} shows it.`));
      item(place, await whole(await explained(r.at)), { level: 3, right: r.state.includes("r") ? true : r.state.includes("w") ? false : null });
    },
    columns: [
      { name: "Item", class: "id", value: (r) => r.line, cell: () => "" },
      { name: "Text", class: "text", value: (r) => r.text, cell: (r) => quoted(r.text) },
      { name: passages ? "First passage" : "Answer", class: "label", value: (r) => r.answer, cell: (r) => (r.state.includes("e") || r.state.includes("u") ? "" : answer(shorten(r.answer, 90))) },
      rows.some((r) => r.expected) && { name: "Expected", class: "label", value: (r) => r.expected, cell: (r) => quoted(shorten(r.expected, 90)) },
      !passages && { name: e?.calibration?.measured === "agreement" ? "Agreement" : "Confidence", number: true, value: (r) => r.sure, cell: (r) => (r.sure ? percent(r.sure, 0) : "") },
      rows.some((r) => r.state) && { name: "State", class: "state", value: (r) => r.state, cell: (r) => [...r.state].map((s) => badge(...states[s])) },
    ].filter(Boolean),
  },
});
fill("item-table", list.element);
sections();
