import { element, quoted, badge, meter, percent, count, plural, rounded, money, costUnit, shorten } from "../../assets/base.js";
import { table } from "../../assets/table.js";
import { chart } from "../../assets/chart.js";
import { answer } from "../../assets/item.js";

const points = (share) => (100 * share).toFixed(1);
export const between = (i) => `${points(i.low)} to ${points(i.high)} %`;
const shares = [0, 0.2, 0.4, 0.6, 0.8, 1];

export function card(name, value, ...notes) {
  return element("div", { class: "card" }, element("dt", {}, name), element("dd", {}, value), notes.filter(Boolean).map((n) => element("dd", { class: "note" }, n)));
}

export function duration(seconds) {
  if (seconds < 120) return rounded(seconds) + " s";
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? minutes + " min" : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
}

// sections lists those sections of a page that hold something, and removes the others.
export function sections() {
  const list = document.getElementById("contents");
  for (const section of document.querySelectorAll("section[data-name]")) {
    const filled = [...section.children].some((c) => c.tagName !== "H2" && c.childNodes.length > 0);
    if (filled) list.append(element("li", {}, element("a", { href: "#" + section.id }, section.dataset.name)));
    else section.remove();
  }
}

export function fill(id, ...children) {
  document.getElementById(id).append(...children.flat(Infinity).filter(Boolean));
}

export function notice(...text) {
  return element("p", { class: "notice" }, text);
}

// coverage draws the accuracy of the surest items of one run or of two.
export function coverage(runs) {
  const [first] = runs;
  const low = Math.min(...runs.flatMap((r) => r.curve.map((c) => c.accuracy)));
  const floor = Math.max(0, Math.floor(low * 10 - 0.5) / 10);
  const ticks = [];
  for (let t = floor; t < 1.001; t += floor < 0.5 ? 0.2 : 0.1) ticks.push(Math.round(t * 100) / 100);
  if (ticks[ticks.length - 1] !== 1) ticks.push(1);
  const at = (run, share) => run.curve.find((c) => c.share >= share - 1e-9);
  const eighty = at(first, 0.8);
  return chart({
    title: "Accuracy by coverage",
    about: runs.length > 1 ? "How often the surest items are right, for each run." :
      `The surest 80 % of the items are right in ${percent(eighty.accuracy)} of cases: those from ${first.eval.calibration.measured} ${eighty.confidence.toFixed(2)} on.`,
    x: { name: "share of the items, the surest first", low: 0, high: 1, ticks: shares, shown: (v) => Math.round(100 * v) + " %" },
    y: { name: "of these right", low: floor, high: 1, ticks, shown: (v) => Math.round(100 * v) + " %" },
    series: runs.map((r, i) => ({
      name: r.name || "accuracy", class: i ? "second quiet" : "quiet",
      points: r.curve.map((c) => ({ x: c.share, y: c.accuracy, about: `the surest ${percent(c.share, 0)}: ${percent(c.accuracy)} right, from ${c.confidence.toFixed(3)} on` })),
    })),
    figures: table({
      caption: "Accuracy by coverage", hideCaption: true, size: 100, rows: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
      columns: [
        { name: "Surest", number: true, cell: (s) => percent(s, 0) },
        ...runs.flatMap((r) => [
          { name: (r.name ? r.name + ": " : "") + "right", number: true, cell: (s) => percent(at(r, s).accuracy) },
          { name: "from " + r.eval.calibration.measured, number: true, cell: (s) => at(r, s).confidence.toFixed(3) }]),
      ],
    }).element,
  });
}

// calibration draws how often answers are right by how sure they are.
export function calibration(run) {
  const c = run.eval.calibration;
  const verdict = c.ece > c.ece_by_chance ? "more than chance alone makes it" : "no more than chance makes it";
  return chart({
    title: run.name ? "Calibration of " + run.name : "Calibration",
    about: `Where the line is on the dotted one, ${c.measured} can be taken at its word. The mean distance (ECE) is ${c.ece.toFixed(3)}, ${verdict}.`,
    x: { name: c.measured, low: 0, high: 1, ticks: shares, shown: (v) => v.toFixed(1) },
    y: { name: "share that is right", low: 0, high: 1, ticks: shares, shown: (v) => v.toFixed(1) },
    series: [
      { name: "as it should be", class: "ideal", points: [{ x: 0, y: 0 }, { x: 1, y: 1 }] },
      { name: "as it is", class: "as-is", points: run.bins.map((b) => ({ x: b.confidence, y: b.right, about: `${plural(b.items, "item")} of ${c.measured} ${b.confidence.toFixed(2)}: ${percent(b.right)} right` })) },
    ],
    figures: table({
      caption: "Calibration", hideCaption: true, size: 100, rows: run.bins,
      columns: [
        { name: "From", number: true, cell: (b) => b.low.toFixed(2) }, { name: "To", number: true, cell: (b) => b.high.toFixed(2) },
        { name: "Items", number: true, cell: (b) => count(b.items) }, { name: "Mean " + c.measured, number: true, cell: (b) => b.confidence.toFixed(3) },
        { name: "Right", number: true, cell: (b) => percent(b.right) },
      ],
    }).element,
  });
}

const across = 12; // labels of a matrix

// confusion shows a matrix of the labels, of many those with the most errors, and the pairs that are confused most; choose
// filters the items by expected label and answer.
export function confusion(report, choose) {
  const errors = new Map(report.labels.map((l) => [l.label, 0]));
  for (const p of report.confused) for (const label of [p.expected, p.answered]) if (errors.has(label)) errors.set(label, errors.get(label) + p.items);
  let labels = [...errors.keys()];
  if (labels.length > across) labels = labels.filter((l) => errors.get(l)).sort((a, b) => errors.get(b) - errors.get(a)).slice(0, across).sort();
  const parts = [];
  if (labels.length > 1) parts.push(matrix(report, labels, choose));
  if (report.confused.length) {
    parts.push(table({
      caption: "The most confused pairs", size: 10, rows: report.confused,
      columns: [
        { name: "Expected", class: "label", value: (p) => p.expected, cell: (p) => quoted(p.expected) },
        { name: "Answered", class: "label", value: (p) => p.answered, cell: (p) => answer(p.answered) },
        { name: "Items", number: true, value: (p) => p.items, cell: (p) => element("button", { type: "button", onclick: () => choose(p.expected, p.answered), "aria-label": `Show the ${plural(p.items, "item")} of ${p.expected} answered ${p.answered || "not at all"}` }, count(p.items)) },
      ],
    }).element);
  }
  parts.push(table({
    caption: "Labels, the weakest first", size: 10, rows: [...report.labels].sort((a, b) => a.f1 - b.f1 || (a.label < b.label ? -1 : 1)),
    columns: [
      { name: "Label", class: "label", value: (l) => l.label, cell: (l) => quoted(l.label) },
      { name: "Items", number: true, value: (l) => l.support, cell: (l) => element("button", { type: "button", onclick: () => choose(l.label, null), "aria-label": `Show the ${plural(l.support, "item")} of ${l.label}` }, count(l.support)) },
      { name: "Precision", number: true, value: (l) => l.precision, cell: (l) => percent(l.precision) },
      { name: "Recall", number: true, value: (l) => l.recall, cell: (l) => percent(l.recall) },
      { name: "F1", number: true, value: (l) => l.f1, cell: (l) => l.f1.toFixed(3) },
    ],
  }).element);
  return parts;
}

function matrix(report, labels, choose) {
  const items = new Map(report.confused.map((p) => [p.expected + "\u0000" + p.answered, p.items]));
  for (const l of report.labels) items.set(l.label + "\u0000" + l.label, Math.round(l.recall * l.support));
  const columns = report.confused.some((p) => !p.answered) ? [...labels, ""] : labels;
  const cell = (row, column) => {
    const n = items.get(row + "\u0000" + column) || 0;
    const td = element("td", { class: "number cell" + (row === column ? " right" : "") }, n ? element("button", { type: "button", onclick: () => choose(row, column), "aria-label": `${plural(n, "item")} of ${row} answered ${column || "not at all"}` }, count(n)) : "");
    const support = report.labels.find((l) => l.label === row).support;
    if (n) td.style.setProperty("--share", Math.min(n / Math.max(support, 1), 1));
    return td;
  };
  const rest = (row) => report.confused.reduce((sum, p) => sum + (p.expected === row && !columns.includes(p.answered) ? p.items : 0), 0);
  const others = labels.some(rest);
  return element("div", { class: "table wide" }, element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Confusion matrix" },
    element("table", { class: "matrix" }, element("caption", {}, labels.length < report.labels.length ? `Confusion matrix of the ${labels.length} labels with the most errors: expected by row, answer by column` : "Confusion matrix: expected by row, answer by column"),
      element("thead", {}, element("tr", {}, element("td"), columns.map((c) => element("th", { scope: "col", title: c }, answer(shorten(c, 28)))), others && element("th", { scope: "col" }, "others"))),
      element("tbody", {}, labels.map((r) => element("tr", {}, element("th", { scope: "row" }, quoted(r)), columns.map((c) => cell(r, c)), others && element("td", { class: "number" }, rest(r) || "")))))));
}

export function voters(report) {
  return table({
    caption: "Each voter alone, and the election beside it", hideCaption: true, size: 50, rows: report.voters,
    columns: [
      { name: "Voter", value: (v) => v.name, cell: (v) => quoted(v.name) },
      { name: "Accuracy alone", number: true, value: (v) => v.accuracy, cell: (v) => meter(v.accuracy, percent(v.accuracy)) },
      { name: "95 % interval", number: true, cell: (v) => between(v.accuracy_interval) },
      { name: "Asked", number: true, value: (v) => v.asked, cell: (v) => `${count(v.asked)} of ${count(report.scored)}` },
      { name: "Of these answered", number: true, value: (v) => v.accepted, cell: (v) => percent(v.accepted) },
      { name: "Answers that count", number: true, value: (v) => v.acceptable, cell: (v) => percent(v.acceptable) },
      { name: "Alone, against the election", number: true, value: (v) => v.alone.difference, cell: (v) => difference(v.alone) },
      report.voters.some((v) => v.weight != null) && { name: "Weight", number: true, value: (v) => v.weight ?? -1, cell: (v) => (v.weight?.toFixed(3) ?? "") + (v.leads ? ", leads" : "") },
    ].filter(Boolean),
  }).element;
}

// chance is the p-value of a test.
export const chance = (p) => (p < 0.001 ? "p < 0.001" : "p = " + p.toFixed(3));

// difference is that of two ways on the same items.
export function difference(pair) {
  const d = 100 * pair.difference;
  return `${d > 0 ? "+" : ""}${d.toFixed(1)} points (${chance(pair.chance)})`;
}

export function stages(run) {
  const busy = run.stages.reduce((sum, s) => sum + s.busy_seconds, 0) || 1;
  const paid = run.stages.some((s) => s.cost || s.tokens);
  return table({
    caption: "Stages in the order of the file", hideCaption: true, size: 50, rows: run.stages.map((s, i) => ({ ...s, i })),
    columns: [
      { name: "Stage", value: (s) => s.i, cell: (s) => element("code", {}, quoted(s.stage)) },
      { name: "Use", value: (s) => s.use, cell: (s) => [quoted(s.use), s.model ? [" ", badge(s.model)] : null] },
      { name: "Rows", number: true, value: (s) => s.rows, cell: (s) => count(s.rows) },
      { name: "Busy", number: true, value: (s) => s.busy_seconds, cell: (s) => meter(s.busy_seconds / busy, duration(s.busy_seconds)) },
      { name: "Per 1,000 rows", number: true, value: (s) => (s.rows ? s.busy_seconds / s.rows : 0), cell: (s) => (s.rows ? duration((1000 * s.busy_seconds) / s.rows) : "") },
      paid && { name: "Tokens in", number: true, value: (s) => s.tokens?.input || 0, cell: (s) => (s.tokens ? count(s.tokens.input) : "") },
      paid && { name: "Tokens out", number: true, value: (s) => s.tokens?.output || 0, cell: (s) => (s.tokens ? count(s.tokens.output) : "") },
      paid && { name: "Cost, " + costUnit, number: true, value: (s) => s.cost || 0, cell: (s) => (s.cost ? money(s.cost) : "") },
    ].filter(Boolean),
  }).element;
}

// date is when a run started.
export const date = (run) => new Date(run.started).toISOString().replace("T", " ").slice(0, 16) + " UTC";

// what says what was run.
export function what(run) {
  const fact = (name, ...value) => [element("dt", {}, name), element("dd", {}, value)];
  return element("dl", { class: "facts" },
    fact("run", run.id), fact("file", quoted(run.file), ", pipeline ", quoted(run.pipeline)), fact("input", quoted(run.input), run.limit ? `, ${plural(run.limit, "item")} at most` : ""),
    fact("started", date(run) + ", racflow " + run.racflow),
    run.variables.map((v) => fact("variable " + v.name, element("code", {}, quoted(v.value)), " ", element("span", { class: "muted" }, `(${v.from})`))),
    run.knowledge.map((k) => fact("knowledge " + k.name, element("code", {}, quoted(k.collection)))));
}
