import { element, quoted, visible, announce, badge, percent, plural } from "../../assets/base.js";
import { table } from "../../assets/table.js";
import { item } from "../../assets/item.js";
import { finder, likely } from "./labels.js";
import { connect } from "./server.js";

{ // names of this page alone
  const server = connect();
  const page = crypto.randomUUID(); // names this page to the server
  const at = (id) => document.getElementById(id);

  let queue; // as the server sends it, kept current
  let cases; // by id
  let changes = 0; // counts what this page has changed: what was asked before a change is older
  let shown = null; // the case
  let details = null; // what made its answer; null: not there yet
  let wanted = 0; // counts what was asked to be shown: an answer that comes too late is not shown
  let finished = false;
  let asking; // for the decisions of other pages
  let working = false; // something is being done: what is pressed meanwhile was not meant for the next case
  const skipped = new Set();
  const done = []; // what undo takes back: { skip: id } or { decide: id }
  const memory = new Map(); // details by case
  const picked = new Map(); // by case: where a decision is a set, the labels that are checked

  // Notices.
  const notices = {};
  function notice(name, text, kind = "") {
    notices[name]?.remove();
    if (!text) return;
    notices[name] = element("p", { class: "notice " + kind, role: "status" }, visible(text));
    at("notices").append(notices[name]);
  }
  const failed = (error) => {
    notice("error", error.message);
    announce(error.message);
  };

  // Moving.
  const decided = (id) => queue.decided[id];
  const open = () => queue.cases.filter((c) => !decided(c.id));

  // next shows the first case that is open; those that were skipped come last.
  async function next() {
    let rest = open().filter((c) => !skipped.has(c.id));
    if (!rest.length && skipped.size) {
      skipped.clear();
      rest = open();
    }
    if (rest.length) await show(rest[0].id);
    else finish();
  }

  async function show(id) {
    const turn = ++wanted;
    shown = cases.get(id);
    details = null;
    at("review").hidden = false;
    drawCase();
    at("case-title").scrollIntoView({ block: "nearest" });
    try {
      const got = memory.get(id) || await server.ask("/api/case?id=" + encodeURIComponent(id));
      memory.set(id, got);
      if (turn !== wanted) return;
      shown = { ...shown, text: got.case.text };
      details = got;
      drawCase();
    } catch (error) {
      failed(error);
    }
    ahead(id);
  }

  // ahead asks for what is probably shown next.
  function ahead(id) {
    const after = open().find((c) => c.id !== id && !skipped.has(c.id));
    if (memory.size > 50) memory.clear();
    if (after && !memory.has(after.id)) server.ask("/api/case?id=" + encodeURIComponent(after.id)).then((got) => memory.set(after.id, got), () => {});
  }

  function step(by) {
    const i = queue.cases.findIndex((c) => c.id === shown?.id);
    const to = queue.cases[i + by];
    if (to) show(to.id);
  }

  // Drawing.
  const nameOf = (c) => (c.row ? `${c.file.split("/").pop()}, line ${c.line}` : c.items.length > 1 ? `Item ${c.items[0]} and ${plural(c.items.length - 1, "other")} with this text` : `Item ${c.items[0]}`);

  function drawCase() {
    const n = queue.cases.findIndex((c) => c.id === shown.id) + 1;
    at("case-title").replaceChildren(visible(nameOf(shown)), element("span", { class: "muted" }, ` · ${n} of ${queue.cases.length}`));
    at("why").replaceChildren(...shown.why.map((w) => element("li", {}, visible(w))));
    at("evidence").hidden = !details?.details;
    if (details?.details) item(at("case"), details.details, { level: 3, rest: at("evidence") });
    else {
      at("case").replaceChildren(element("div", { class: "item" },
        element("div", { class: "said", tabindex: shown.text.length > 1500 ? "0" : null }, quoted(shown.text)),
        element("dl", { class: "facts" }, facts()),
        details?.gone && element("p", { class: "muted" }, "What made the answer is not known: " + visible(details.gone))));
    }
    drawChoice();
  }

  const facts = () => [
    [shown.row ? "label" : "answer", shown.answer], ["expected", shown.expected],
    ["confidence", shown.confidence && percent(shown.confidence)], ["no label fits", shown.unknown && percent(shown.unknown)], ["agreement", shown.agreement && percent(shown.agreement)],
  ].filter((f) => f[1]).map(([name, value]) => [element("dt", {}, name), element("dd", {}, quoted(value))]);

  const none = "[]"; // a set without labels

  // labelsOf returns the labels of a set, or the only label.
  const labelsOf = (set) => (queue.many ? (set || "").split("; ").filter((l) => l && l !== none) : [set]);

  // picks returns the labels that are checked for the case, at first those of the decision or answer.
  function picks() {
    if (!picked.has(shown.id)) picked.set(shown.id, new Set(labelsOf(decided(shown.id)?.label || shown.answer)));
    return picked.get(shown.id);
  }

  function pick(label, on = true) {
    for (const one of labelsOf(label)) picks()[on ? "add" : "delete"](one);
    announce(`${visible(label)} ${on ? "checked" : "unchecked"}`);
    drawChoice();
  }

  // choose takes a label: as the decision, or as one more of a set.
  const choose = (what) => (queue.many ? pick(what.label, !picks().has(what.label)) : decide(what));

  const accept = () => {
    if (!picks().size && !shown.answer) return failed(new Error("No label is checked: check those that fit, or skip."));
    decide({ label: [...picks()].join("; ") || none, new: [...picks()].some((l) => !queue.labels.includes(l)) });
  };

  // suggestions are the labels to choose from, with why.
  function suggestions() {
    const it = details?.details;
    const found = it?.lists?.length ? it.lists[it.lists.length - 1].candidates || [] : [];
    const near = new Map();
    for (const c of found) for (const label of labelsOf(c.label)) if (label) near.set(label, (near.get(label) || 0) + 1);
    const all = [...shown.suggestions];
    for (const [label] of [...near].sort((a, b) => b[1] - a[1])) if (!all.includes(label)) all.push(label);
    const chosen = queue.many ? [...picks()].filter((l) => !all.slice(0, 9).includes(l)) : [];
    return [...all.slice(0, 9), ...chosen].map((label) => {
      const voters = [...new Set((it?.votes || []).filter((v) => v.accepted && v.answer === label).map((v) => v.voter))];
      const notes = [
        labelsOf(shown.answer).includes(label) && (shown.row ? "its label now" : "the answer"), it?.labels?.filter((l) => l.label === label).map((l) => percent(l.confidence))[0],
        labelsOf(shown.expected).includes(label) && "expected",
        voters.length && "voted for by " + voters.join(", "), near.has(label) && `${near.get(label)} of ${found.length} that were found`,
      ].filter(Boolean);
      return { label, note: notes.join("; ") };
    });
  }

  function drawChoice() {
    const now = decided(shown.id);
    search.element.hidden = false;
    at("choose-title").textContent = (queue.many ? "Which labels" : "Which label") + (shown.row ? ", or drop it?" : "?");
    at("decided").hidden = !now;
    if (now) {
      at("decided").replaceChildren("Decided", now.reviewer ? ` by ${visible(now.reviewer)}` : "", ": ", now.label ? quoted(now.label) : "the row is dropped");
    }
    at("suggestions").replaceChildren(...suggestions().map(({ label, note }, i) => {
      const key = i < 9 && element("kbd", {}, String(i + 1)), why = note && element("span", { class: "note" }, visible(note));
      if (!queue.many) return element("li", {}, element("button", { type: "button", "aria-pressed": now ? String(now.label === label) : null, onclick: () => decide({ label }) }, key, quoted(label), why));
      const box = element("input", { type: "checkbox", checked: picks().has(label), onchange: () => picks()[box.checked ? "add" : "delete"](label) });
      return element("li", {}, element("label", { class: "pick" }, box, element("span", {}, key, " ", quoted(label), why)));
    }));
    const action = (key, name, todo, on = true, suggested = false) => on && element("button", { type: "button", class: suggested ? "primary" : null, onclick: todo }, name, " ", element("kbd", {}, key));
    at("actions").replaceChildren(...[
      action("Enter", "Accept", accept, Boolean(queue.many), !shown.drop), action("d", "Drop the row", drop, Boolean(shown.row), shown.drop), action("s", "Skip", skip), action("u", "Undo", undo),
      action("w", "Withdraw", withdraw, Boolean(now)),
    ].filter(Boolean));
    drawProgress();
  }

  function drawProgress() {
    const n = queue.cases.length - open().length;
    at("progress").max = Math.max(queue.cases.length, 1);
    at("progress").value = n;
    at("progress-text").textContent = `${n} of ${queue.cases.length} decided`;
    if (at("all").open) list.show(queue.cases);
  }

  const list = table({
    caption: "All cases", hideCaption: true, size: 25, rows: [], empty: "There is nothing to decide.",
    columns: [
      { name: "Case", cell: (c) => element("button", { type: "button", class: "opener", onclick: () => show(c.id) }, visible(nameOf(c))) },
      { name: "Text", class: "text", value: (c) => c.text, cell: (c) => quoted(c.text) },
      { name: "Answer", class: "label", value: (c) => c.answer || "", cell: (c) => quoted(c.answer || "") },
      { name: "Confidence", number: true, value: (c) => c.confidence || c.agreement || 0, cell: (c) => (c.confidence || c.agreement ? percent(c.confidence || c.agreement) : "") },
      { name: "Decision", value: (c) => decided(c.id)?.label || "", cell: (c) => (!decided(c.id) ? (skipped.has(c.id) ? badge("skipped") : "") : [quoted(decided(c.id).label || "dropped"), " ", element("span", { class: "muted" }, visible(decided(c.id).reviewer || ""))]) },
    ],
  });

  // Deciding.
  const reviewer = () => at("reviewer").value.trim();

  // alone does one thing at a time.
  const alone = (todo) => async (...given) => {
    if (working) return;
    working = true;
    try {
      await todo(...given);
    } finally {
      working = false;
    }
  };

  const decide = alone(async (what) => {
    if (!shown) return;
    if (!reviewer()) {
      at("reviewer").focus();
      return failed(new Error("Say who you are: decisions are kept with a name."));
    }
    const about = shown;
    try {
      const got = await server.ask("/api/decide", { case: about.id, reviewer: reviewer(), page, version: decided(about.id)?.version || "", ...what });
      notice("error");
      changes++;
      keep(got);
      if (what.new) queue.labels = [...new Set([...queue.labels, ...labelsOf(what.label)])];
      done.push({ decide: about.id });
      announce(`${nameOf(about)}: ${what.withdraw ? "the decision is withdrawn" : what.drop ? "dropped" : visible(what.label)}`);
      home();
      if (what.withdraw) drawChoice();
      else await next();
    } catch (error) {
      if (error.code === "new") return confirmNew(what.label);
      if (error.code === "conflict") {
        keep({ case: about.id, decision: error.now || null });
        drawChoice();
        error.message += ". Choose again to replace that.";
      }
      failed(error);
    }
  });

  function keep({ case: id, decision }) {
    picked.delete(id);
    if (decision) queue.decided[id] = decision;
    else delete queue.decided[id];
  }

  const drop = () => shown?.row && decide({ drop: true });
  const withdraw = () => shown && decided(shown.id) && decide({ withdraw: true });

  const skip = alone(async () => {
    if (!shown) return;
    skipped.add(shown.id);
    done.push({ skip: shown.id });
    announce("skipped");
    home();
    const last = shown.id;
    await next();
    if (shown?.id === last) announce("this is the only one that is left");
  });

  const undo = alone(async () => {
    const last = done.pop();
    if (!last) return failed(new Error("There is nothing to undo on this page; a decision that was made before can be withdrawn."));
    if (last.skip) {
      skipped.delete(last.skip);
      return show(last.skip);
    }
    try {
      const got = await server.ask("/api/undo", { page });
      notice("error");
      changes++;
      keep(got);
      announce("undone");
      await show(got.case);
    } catch (error) {
      failed(error.code === "conflict" ? new Error(error.message + ". That stays.") : error);
    }
  });

  function confirmNew(label) {
    const box = at("confirm");
    const take = (what) => () => {
      box.close();
      if (what && queue.many) {
        pick(what.label);
        home();
      } else if (what) decide(what);
      else search.focus();
    };
    const alike = likely(queue.labels, label);
    box.replaceChildren(...[
      element("h2", { id: "confirm-title" }, "A new label?"),
      element("p", {}, "The knowledge does not have ", element("strong", {}, quoted(label)), "."),
      alike.length > 0 && element("p", {}, "Did you mean one of these?"),
      alike.length > 0 && element("div", { class: "row" }, alike.map((l) => element("button", { type: "button", onclick: take({ label: l }) }, quoted(l)))),
      element("div", { class: "row" },
        element("button", { type: "button", autofocus: true, onclick: take(null) }, "Back"),
        element("button", { type: "button", class: "primary", onclick: take({ label, new: true }) }, "Add the new label")),
    ].filter(Boolean));
    box.showModal();
  }

  // Ending.
  function finish() {
    shown = null;
    wanted++;
    at("case-title").textContent = "All is decided";
    at("why").replaceChildren();
    at("evidence").hidden = true;
    at("case").replaceChildren(element("div", { class: "done" },
      element("p", {}, `Decisions are in ${visible(queue.path)}.`),
      element("p", {}, "Finish to see on the terminal what to run, or look at decisions again under All cases."),
      element("button", { type: "button", class: "primary", onclick: end }, "Finish")));
    at("choose-title").textContent = "Nothing is left";
    at("suggestions").replaceChildren();
    at("decided").hidden = search.element.hidden = true;
    at("actions").replaceChildren(element("button", { type: "button", onclick: undo }, "Undo ", element("kbd", {}, "u")));
    at("review").hidden = false;
    drawProgress();
    announce("All is decided");
  }

  async function end() {
    finished = true;
    await Promise.allSettled([asking]); // a server that ends may close the connection before this is answered
    try {
      await server.ask("/api/finish", {});
    } catch { /* it has ended */ }
    at("review").hidden = at("all").hidden = true;
    notice("connection");
    notice("end", `Finished. Decisions are in ${queue.path}; the terminal shows what to run. This page can be closed.`);
  }

  // Keys.
  const keys = { s: skip, u: undo, d: drop, w: withdraw, j: () => step(1), k: () => step(-1), "?": help, "/": () => search.focus() };
  let shortcuts = true;

  function pressed(e) {
    if (!shortcuts || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || e.repeat || document.querySelector("dialog[open]")) return;
    if (e.target.closest("input:not([type=checkbox]), select, textarea")) {
      if (e.key === "Escape") home();
      return;
    }
    const choice = shown && (e.key === "Enter" && !queue.many ? suggestions()[0] : /^[1-9]$/.test(e.key) ? suggestions()[Number(e.key) - 1] : null);
    if (e.key === "Enter" && e.target.closest("button, a, summary")) return; // it has a meaning of its own
    const todo = choice ? () => choose({ label: choice.label }) : e.key === "Enter" && queue.many && shown ? accept : keys[e.key];
    if (!todo) return;
    e.preventDefault();
    todo();
  }

  const home = () => at("case-title").focus({ preventScroll: true });

  function help() {
    const box = at("help");
    const rows = [...(queue.many ? [["1 … 9", "check or uncheck a label"], ["Enter", "accept the checked labels"]] : [["1 … 9", "take a suggested label"], ["Enter", "take the first one"]]), ["/", "find another label, or type a new one"], ["s", "skip"], ["u", "undo"],
      ["d", "drop the row of the knowledge"], ["w", "withdraw the decision that there is"], ["j, k", "the next or the previous case"], ["?", "this help"]];
    const off = element("input", { type: "checkbox", checked: shortcuts, onchange: () => { shortcuts = off.checked; } });
    box.replaceChildren(element("h2", { id: "help-title" }, "Keys"),
      element("dl", { class: "facts" }, rows.map(([key, text]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, text)])),
      element("label", {}, off, " these keys work"),
      element("div", { class: "row" }, element("button", { type: "button", autofocus: true, onclick: () => box.close() }, "Close")));
    box.showModal();
  }

  // Beginning.
  const search = finder({ labels: () => queue.labels, choose: searched, leave: home });

  function searched(label, isNew) {
    if (isNew) return confirmNew(label);
    if (!queue.many) return decide({ label });
    pick(label);
    home(); // so that keys accept or check more
  }

  // told takes the decisions that there are, which may be those of other pages.
  function told({ decided: now, labels }) {
    queue.labels = labels;
    const ids = new Set([...Object.keys(queue.decided), ...Object.keys(now)]);
    const changed = [...ids].filter((id) => decided(id)?.version !== now[id]?.version);
    for (const id of changed) keep({ case: id, decision: now[id] });
    if (!changed.length) return;
    if (shown) drawChoice();
    else drawProgress();
  }

  const pause = (ms) => new Promise((then) => setTimeout(then, ms));

  // follow asks for the decisions of other pages until the review is finished.
  async function follow() {
    while (!finished) {
      const before = changes;
      try {
        asking = server.ask("/api/decided");
        const got = await asking;
        notice("connection");
        if (before === changes) told(got);
      } catch {
        if (!finished) notice("connection", "The connection to racflow is gone: either it has ended, or it comes back. What was decided is kept.");
      }
      await pause(2000);
    }
  }

  async function begin() {
    try {
      queue = await server.ask("/api/queue");
    } catch (error) {
      return failed(error);
    }
    cases = new Map(queue.cases.map((c) => [c.id, c]));
    const lines = queue.notes.filter((text) => text.includes("\n")); // to add to the file: no haste
    queue.notes.filter((text) => !lines.includes(text)).forEach((text, i) => notice("note" + i, text));
    at("notes").append(...lines.map((text) => element("pre", { class: "prose", tabindex: "0" }, visible(text))));
    at("notes").hidden = !lines.length;
    at("reviewer").value = sessionStorage.getItem("racflow-reviewer") || queue.reviewer;
    at("reviewer").addEventListener("change", () => sessionStorage.setItem("racflow-reviewer", reviewer()));
    at("finder").replaceWith(search.element);
    at("list").append(list.element);
    at("all").hidden = false;
    at("all").addEventListener("toggle", drawProgress);
    at("tools").prepend(element("button", { type: "button", onclick: help }, "Keys ", element("kbd", {}, "?")), " ", element("button", { type: "button", onclick: end }, "Finish"), " ");
    document.addEventListener("keydown", pressed);
    await next();
    home();
    follow();
  }
  begin();
}
