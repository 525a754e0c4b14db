import { element, quoted, visible, badge, meter, percent, rounded, money, costUnit, count, plural } from "./base.js";
import { table } from "./table.js";

// item fills a place with one item and what made its answer: package explain's Item, as JSON.
// What is not known of it is left out. options: votes or lists that are false are left out,
// where the page shows them elsewhere; rest is an element that gets everything below the text and the
// summary (left out: it stands below them); level is that of its headings (4); right says whether the answer
// counts as right, null that nobody measures it (where it is left out, answer and expected label decide).
export function item(place, it, options = {}) {
  const level = "h" + (options.level || 4);
  const part = (title, ...children) => element("section", {}, element(level, {}, title), children);
  const first = [
    element("div", { class: "said", ...(it.text.length > 1500 ? { tabindex: "0", role: "group", "aria-label": "The text of the item" } : {}) }, quoted(it.text)),
    summary(it, options.right),
  ];
  const parts = [
    it.error && part("Why it failed", element("pre", { tabindex: "0" }, visible((it.error.stage ? it.error.stage + ": " : "") + it.error.message))),
    options.votes !== false && it.votes?.length && part("Votes", votes(it)),
    it.rules?.length && part("Rules that decided something", element("ul", {}, it.rules.map(rule))),
    it.retries?.length && part("Asked again", element("ul", {}, it.retries.map(retry))),
    it.citations?.length && part("What the answer cites", citations(it)),
    options.lists !== false && lists(it).map((list) => part(list.title, candidates(list))),
    it.prompts?.length && part("Prompts", it.prompts.flatMap(prompts)),
    it.replies?.length && part("Replies", it.replies.map((r, i) => element("details", {}, element("summary", {}, `${r.voter}, reply ${i + 1}`), element("pre", { tabindex: "0" }, visible(r.text))))),
    costs(it) && part("What it took", costs(it)),
    it.fields && Object.keys(it.fields).length > 0 && part("Other columns of the input", facts(Object.entries(it.fields))),
    it.gone?.length && part("Not there any more", element("ul", {}, it.gone.map((g) => element("li", {}, visible(g))))),
  ];
  const evidence = parts.flat().filter(Boolean);
  if (options.rest) options.rest.replaceChildren(element("div", { class: "item" }, evidence));
  place.replaceChildren(element("div", { class: "item" }, first, options.rest ? [] : evidence));
}

// among says whether a vote is for a label, or for one of a set: voters vote for single labels.
const among = (it, label, of) => label === of || Boolean(it.labels && of?.split("; ").includes(label));

// answer is a label or text that was answered, or that there is none.
export function answer(text) {
  return text ? quoted(text) : element("span", { class: "muted" }, "no answer");
}

function facts(pairs) {
  return element("dl", { class: "facts" }, pairs.map(([name, value]) => [
    element("dt", {}, visible(name)), element("dd", {}, value instanceof Node ? value : quoted(typeof value === "string" ? value : JSON.stringify(value)))]));
}

function summary(it, counts = it.answer === it.expected) {
  const right = it.expected && !it.error && counts !== null ? (counts ? badge("as expected", "good") : badge("not as expected", "bad")) : null;
  const pairs = [];
  if (!it.error && !it.candidates?.length) pairs.push(["answer", element("span", {}, answer(it.answer), " ", right, it.flagged && badge("flagged", "warn"))]);
  if (it.decided) pairs.push(["decided", `by ${it.decided.by || "a person"}${it.decided.at ? " on " + it.decided.at.slice(0, 10) : ""}`]);
  if (it.expected) pairs.push(["expected", it.expected]);
  if (it.confidence) pairs.push(["confidence", percent(it.confidence)]);
  if (it.labels?.length) pairs.push(["labels", element("span", {}, it.labels.map((l, i) => [i ? ", " : "", quoted(l.label), " " + percent(l.confidence)]))]);
  if (it.unknown) pairs.push(["no label fits", percent(it.unknown)]);
  if (it.agreement && !it.error) pairs.push(["agreement", percent(it.agreement)]);
  if (it.runner_up) pairs.push(["runner-up", it.runner_up]);
  if (it.reason) pairs.push(["why no answer", it.reason]);
  if (it.missing?.length) pairs.push(["without the voters", it.missing.join(", ")]);
  return facts(pairs);
}

// votes shows what each voter said. Votes without weight decide nothing, so they are folded beside others.
function votes(it) {
  const weightless = (v) => v.weight === 0 || it.weights?.[v.voter] === 0;
  const [idle, counted] = [it.votes.filter(weightless), it.votes.filter((v) => !weightless(v))];
  if (!idle.length || !counted.length) return voteTable(it, it.votes);
  return [voteTable(it, counted), element("details", {}, element("summary", {}, `${plural(idle.length, "vote")} of weight zero`), voteTable(it, idle, "Votes of weight zero"))];
}

function voteTable(it, votes, caption = "Votes") {
  const most = Math.max(...it.votes.map((v) => v.weight), 1e-9);
  const idle = (v) => v.accepted && it.weights?.[v.voter] === 0;
  const any = (key) => it.votes.some((v) => v[key]);
  const counted = votes.every((v) => v.accepted && !idle(v)); // then nothing has to be said of it
  const notes = (v) => [v.model && "by " + v.model, v.reading && "read: " + v.reading, v.explanation].filter(Boolean).join("; ");
  return table({
    caption, hideCaption: true, size: 100, rows: votes,
    columns: [
      { name: "Voter", class: "label", value: (v) => v.voter, cell: (v) => quoted(v.voter) },
      { name: "Answer", class: "label", value: (v) => v.answer, cell: (v) => [answer(v.answer), " ", v.answer && among(it, v.answer, it.answer) ? badge("elected", "accent") : null, " ", among(it, v.answer, it.expected) ? badge("expected", "good") : null] },
      { name: "Weight", number: true, value: (v) => v.weight, cell: (v) => meter(v.weight / most, v.weight.toFixed(3)) },
      it.weights && { name: "Voter's weight", number: true, cell: (v) => it.weights[v.voter]?.toFixed(3) ?? "" },
      !counted && { name: "Counts", class: "text short", value: (v) => (v.accepted && !idle(v) ? "yes" : "no"), cell: (v) => (idle(v) ? element("span", {}, badge("no"), " the voter's weight is 0") : v.accepted ? badge("yes") : element("span", {}, badge("no", "bad"), " ", v.reason ? quoted(v.reason) : "")) },
      (any("model") || any("reading") || any("explanation")) && { name: "Note", class: "text", cell: (v) => quoted(notes(v)) },
    ].filter(Boolean),
  }).element;
}

function lists(it) {
  const all = (it.lists || []).map((l) => ({ title: `Found by ${l.stage}`, ...l }));
  if (!all.length && it.candidates?.length) all.push({ title: "Found", stage: "", candidates: it.candidates });
  return all;
}

// place says where a passage is from.
export function origin(meta) {
  if (!meta?.path) return "";
  const lines = meta.first_line ? `:${meta.first_line}${meta.last_line ? "-" + meta.last_line : ""}` : meta.first_page ? `, page ${meta.first_page}` : "";
  return meta.path + lines + (meta.headings ? "  " + meta.headings : "");
}

function candidates({ title, candidates: found = [] }) {
  const any = (key) => found.some((c) => c[key] !== undefined && c[key] !== null && c[key] !== "");
  const ranked = found.map((c, i) => ({ ...c, rank: i + 1 }));
  const score = (name, key) => any(key) && { name, number: true, value: (c) => c[key] ?? -Infinity, cell: (c) => (c[key] === undefined || c[key] === null ? "" : rounded(c[key], 4)) };
  return table({
    caption: title, hideCaption: true, size: 10, rows: ranked, empty: "It found nothing.",
    columns: [
      { name: "Rank", number: true, value: (c) => -c.rank, cell: (c) => c.rank },
      score("Score", "score"), score("Dense", "dense"), score("Lexical", "lexical"),
      any("label") && { name: "Label", class: "label", value: (c) => c.label || "", cell: (c) => quoted(c.label || "") },
      {
        name: "Text", class: "text", cell: (c) => [
          origin(c.meta) ? element("div", { class: "muted" }, quoted(origin(c.meta))) : null,
          c.text ? element("div", { class: "clip" }, quoted(c.text)) : element("span", { class: "muted" }, "(text not kept) ", quoted(c.id))],
      },
    ].filter(Boolean),
  }).element;
}

function citations(it) {
  return element("ul", {}, it.citations.map((c) => element("li", {}, `[${c.number}] `, quoted(origin(c) || c.id))));
}

function prompts({ stage, prompts: all = [] }) {
  return all.map((p, i) => {
    const messages = p.messages?.length ? p.messages : [{ role: "", text: p.text || "" }];
    return element("details", {}, element("summary", {}, all.length > 1 ? `${stage}, prompt ${i + 1} of ${all.length}` : stage),
      messages.map((m) => [m.role ? element("p", { class: "role" }, m.role) : null, element("pre", { tabindex: "0" }, visible(m.text || m.content || ""))]));
  });
}

function rule(r) {
  return element("li", {}, element("code", {}, visible(r.stage)), ": ", visible(r.what || r.rule), r.text ? [" — ", element("code", {}, visible(r.rule + " = " + r.text))] : null);
}

function retry(r) {
  return element("li", {}, element("code", {}, visible(r.stage)), ": ", visible(r.why), r.times > 1 ? `, ${plural(r.times, "time")}` : "");
}

function costs(it) {
  const took = (voter) => [
    it.usages?.[voter] && `${count(it.usages[voter].input)} tokens in, ${count(it.usages[voter].output)} out`,
    it.cost?.[voter] > 0 && `cost ${money(it.cost[voter])} ${costUnit}`,
  ].filter(Boolean).join(", ");
  const voters = [...new Set([...Object.keys(it.usages || {}), ...Object.keys(it.cost || {})])].sort().filter(took);
  return voters.length ? facts(voters.map((voter) => [voter, took(voter)])) : null;
}
