// The console's own script: completion, live quote, drafts, copying, and looking again at a running question.
"use strict";

const DELAY = 350;
const SHOWN = 8;
const KEYWORD =
  /^(select|from|where|group|by|having|order|limit|offset|asc|desc|nulls|first|last|and|or|not|between|in|is|like|ilike|escape|null|true|false|unknown|as|distinct|within|case|when|then|else|end)$/i;
const TOKENS = /--[^\n]*|\/\*.*?(?:\*\/|$)|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|\d+(?:\.\d+)?|[\p{L}_][\p{L}\p{N}_]*|\s+|./gsu;

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function amount(text) {
  if (text === null) return "no cap";
  const [above, below] = text.split("/").map(Number);
  const value = below === undefined ? above : above / below;
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(3).replace(/\.?0*e/, "e");
  if (text.length <= 6 && below === undefined) return text;
  const close = String(Number(value.toPrecision(4)));
  return close === text ? close : `≈\u202f${close}`;
}

function quantity(text, letter = "ε") {
  const shown = amount(text);
  return shown.startsWith("≈") ? `${letter} ${shown}` : `${letter} = ${shown}`;
}

function rough(text) {
  return amount(text).replace("≈\u202f", "");
}

function figure(text) {
  const [above, below] = text.split("/").map(Number);
  const value = below === undefined ? above : above / below;
  if (Number.isNaN(value)) return text;
  return value.toLocaleString("en", { maximumSignificantDigits: 6 }).replace("-", "−");
}

// The lines of a field that divides ε, as the API wants them; null if there are none.
function readSplit(text) {
  const pairs = [];
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const at = line.lastIndexOf("=");
    const [name, number] = [line.slice(0, Math.max(at, 0)).trim(), line.slice(at + 1).trim()];
    if (!name || !number) {
      const wanted = "to divide ε, write lines of the form NAME = NUMBER, such as COUNT(*) = 2";
      throw new TypeError(`${wanted}; this one is not: ${line.trim()}`);
    }
    if (pairs.some(([other]) => other === name)) {
      throw new TypeError(`to divide ε, name each statistic once; this one is there twice: ${name}`);
    }
    pairs.push([name, number]);
  }
  return pairs.length ? Object.fromEntries(pairs) : null;
}

// What the visitor wrote into that field; an even split that the page offered does not count.
function ownSplit(field) {
  return field.value === field.dataset.offered ? "" : field.value.trim();
}

// What is being written, kept in this tab alone, for its writer alone, until they ask it or sign out.
// A session that ends meanwhile takes nothing with it.
class Draft {
  static KEY = "idios.draft";

  static read() {
    const kept = JSON.parse(sessionStorage.getItem(Draft.KEY));
    const who = document.body.dataset.who;
    if (kept === null || who === undefined || kept.who === who) return kept;
    Draft.forget();
    return null;
  }

  static forget() {
    sessionStorage.removeItem(Draft.KEY);
  }

  // A page that shows a question which was asked: it is no draft any more.
  static asked(sql) {
    if (Draft.read()?.sql.trim() === sql.trim()) Draft.forget();
  }

  constructor(form) {
    this.form = form;
    const kept = Draft.read();
    if (kept !== null && !form.elements.sql.value.trim()) {
      for (const name of ["sql", "epsilon", "check", "split"]) form.elements[name].value = kept[name] ?? "";
      if (kept.split) form.querySelector(".divide").open = true;
    }
    form.addEventListener("input", () => this.keep());
    form.addEventListener("submit", () => this.keep());
  }

  keep() {
    const { sql, epsilon, check, split } = this.form.elements;
    if (!sql.value.trim()) return Draft.forget();
    const written = { sql: sql.value, epsilon: epsilon.value, check: check.value, split: ownSplit(split) };
    sessionStorage.setItem(Draft.KEY, JSON.stringify({ ...written, who: document.body.dataset.who }));
  }
}

// After signing in again: where to go on.
function offerDraft() {
  const before = document.referrer && new URL(document.referrer).pathname;
  if (before !== "/console/sign-in" || document.querySelector("[data-ask]") || !document.body.dataset.who) return;
  if (Draft.read() === null) return;
  const link = make("a", { href: "/console/ask", textContent: "Go on with it" });
  const said = make("p", {}, "You were writing a question when your session ended. ", link, ".");
  const told = make("div", { className: "notice" }, said);
  told.setAttribute("role", "status");
  document.querySelector("main").prepend(told);
}

// The text of a question, painted behind the field that it is typed in.
class Paint {
  constructor(box, field, words) {
    this.layer = box.querySelector(".paint");
    this.field = field;
    this.functions = new Set(words.filter(([, kind]) => kind === "function").map(([text]) => text));
    this.wrong = null;
    box.classList.add("painted");
    field.addEventListener("scroll", () => this.follow());
    this.draw();
  }

  draw() {
    const pieces = [];
    let at = 0;
    for (const [token] of this.field.value.matchAll(TOKENS)) {
      const kind = this.kind(token);
      const here = this.wrong !== null && at <= this.wrong && this.wrong < at + token.length;
      if (here) pieces.push(make("mark", { textContent: token }));
      else pieces.push(kind ? make("span", { className: kind, textContent: token }) : token);
      at += token.length;
    }
    // A last empty line has no height of its own.
    this.layer.replaceChildren(...pieces, "\u200b");
    this.follow();
  }

  kind(token) {
    if (token.startsWith("--") || token.startsWith("/*")) return "comment";
    if (token[0] === "'") return "string";
    if (/^\d/.test(token)) return "number";
    if (this.functions.has(token.toUpperCase())) return "function";
    return KEYWORD.test(token) ? "keyword" : "";
  }

  mark(where) {
    this.wrong = null;
    if (where && where.in === "sql" && where.line) {
      const lines = this.field.value.split("\n").slice(0, where.line - 1);
      // The server counts characters, a browser counts UTF-16 units.
      const line = this.field.value.split("\n")[where.line - 1] ?? "";
      const before = [...line].slice(0, where.column - 1).join("").length;
      this.wrong = lines.reduce((sum, one) => sum + one.length + 1, 0) + before;
    }
    this.draw();
  }

  follow() {
    this.layer.scrollTop = this.field.scrollTop;
  }

  // Where the caret is, in the box's own units.
  caret() {
    const probe = make("span", { textContent: "\u200b" });
    const text = this.field.value.slice(0, this.field.selectionStart);
    this.layer.replaceChildren(text, probe, this.field.value.slice(text.length) || "\u200b");
    this.follow();
    const found = { x: probe.offsetLeft, y: probe.offsetTop - this.layer.scrollTop + probe.offsetHeight };
    this.draw();
    return found;
  }
}

// A list of words under the caret: arrows choose, Enter or Tab takes, Escape closes.
class Completion {
  constructor(box, field, words, paint) {
    this.field = field;
    this.words = words;
    this.paint = paint;
    this.box = box;
    this.found = [];
    this.chosen = 0;
    this.list = make("ul", { className: "words", id: "words", hidden: true });
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Words that fit");
    box.append(this.list);
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-haspopup", "listbox");
    field.setAttribute("role", "combobox");
    field.setAttribute("aria-multiline", "true");
    field.setAttribute("aria-expanded", "false");
    field.setAttribute("aria-controls", "words");
    field.addEventListener("input", () => this.look());
    field.addEventListener("keydown", (event) => this.key(event));
    field.addEventListener("blur", () => this.close());
    field.addEventListener("click", () => this.close());
    this.list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const item = event.target.closest("li");
      if (item) this.take([...this.list.children].indexOf(item));
    });
  }

  typed() {
    const before = this.field.value.slice(0, this.field.selectionStart);
    return /['"\p{L}_][\p{L}\p{N}_]*$/u.exec(before)?.[0] ?? "";
  }

  look() {
    const typed = this.typed();
    const lower = typed.toLowerCase();
    this.found = typed
      ? this.words.filter(([text]) => text.toLowerCase().startsWith(lower) && text !== typed).slice(0, SHOWN)
      : [];
    const whole = this.words.some(([text]) => text.toLowerCase() === lower);
    if (this.found.length === 0 || whole) return this.close();
    this.chosen = 0;
    this.list.replaceChildren(
      ...this.found.map(([text, kind, hint], number) => {
        const item = make("li", { id: `word-${number}` }, text, make("span", { textContent: hint || kind }));
        item.setAttribute("role", "option");
        return item;
      }),
    );
    this.list.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
    const { x, y } = this.paint.caret();
    this.list.style.top = `${y + 4}px`;
    this.list.style.left = `${Math.max(0, Math.min(x, this.box.clientWidth - this.list.offsetWidth))}px`;
    this.choose(0);
  }

  choose(number) {
    this.chosen = (number + this.found.length) % this.found.length;
    [...this.list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === this.chosen)));
    this.list.children[this.chosen].scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", `word-${this.chosen}`);
  }

  key(event) {
    if (this.list.hidden || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowDown") this.choose(this.chosen + 1);
    else if (event.key === "ArrowUp") this.choose(this.chosen - 1);
    else if (event.key === "Escape") this.close();
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) this.take(this.chosen);
    else return;
    event.preventDefault();
  }

  take(number) {
    const [text, kind] = this.found[number];
    const end = this.field.selectionStart;
    const after = this.field.value[end] ?? "";
    const ending = { function: "(", keyword: " " }[kind] ?? "";
    this.field.setRangeText(after === ending ? text : text + ending, end - this.typed().length, end, "end");
    this.close();
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }
}

// What the question would cost, asked for whenever the typing pauses.
class Quote {
  constructor(form, field, paint) {
    this.field = field;
    this.epsilon = form.querySelector("#epsilon");
    this.check = form.querySelector("#check");
    this.split = form.querySelector("#split");
    this.divide = form.querySelector(".divide");
    this.paint = paint;
    this.token = form.dataset.csrf;
    this.meaning = form.dataset.rho;
    this.plurals = JSON.parse(form.dataset.plurals);
    this.shown = form.querySelector("#quote");
    this.card = form.querySelector(".quote");
    this.spend = form.querySelector("[data-spend]");
    this.empty = this.shown.textContent;
    this.flight = null;
    for (const one of [this.field, this.epsilon, this.check, this.split]) one.addEventListener("input", () => this.later());
    this.divide.addEventListener("toggle", () => this.offer());
    // What was only offered is not sent: the question may have changed since.
    form.addEventListener("submit", () => (this.split.value = ownSplit(this.split)));
    if (field.value.trim()) this.ask();
  }

  // The names of the statistics with an even split, to be changed; not while the visitor writes there.
  offer() {
    if (!this.divide.open || ownSplit(this.split) || !this.names) return;
    if (document.activeElement === this.split) return;
    const lines = this.names.length > 1 ? this.names.map((name) => `${name} = 1`) : [];
    this.split.value = this.split.dataset.offered = lines.join("\n");
  }

  later() {
    this.paint.mark(null);
    this.spend.textContent = "Ask (spends ε)";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), DELAY);
  }

  async ask() {
    this.flight?.abort();
    const sql = this.field.value;
    if (!sql.trim()) return this.say(this.empty);
    let split = null;
    try {
      split = readSplit(ownSplit(this.split));
    } catch (error) {
      return this.wrong(error.message);
    }
    const flight = (this.flight = new AbortController());
    this.card.classList.add("busy");
    try {
      const response = await fetch("/v1/quote", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRF-Token": this.token },
        body: JSON.stringify({ sql, epsilon: this.epsilon.value.trim(), split, check: this.check.value.trim() || null }),
        signal: flight.signal,
      });
      const body = await response.json();
      if (response.ok) this.quoted(body);
      else this.refused(response.status, body.error);
    } catch (error) {
      if (error.name !== "AbortError") this.say("The server cannot be reached at the moment.");
    } finally {
      if (this.flight === flight) this.card.classList.remove("busy");
    }
  }

  say(text) {
    this.shown.replaceChildren(make("p", { className: "muted", textContent: text }));
  }

  wrong(text) {
    this.shown.replaceChildren(make("p", {}, make("strong", { className: "bad", textContent: text })));
  }

  refused(status, error) {
    if (status === 401) {
      const link = make("a", { href: "/console/sign-in?ended=1", textContent: "Sign in again" });
      this.shown.replaceChildren(make("p", {}, "Your session has ended. ", link));
      return;
    }
    this.paint.mark(error.where);
    const place = error.where?.line ? ` (line ${error.where.line}, column ${error.where.column})` : "";
    this.wrong(error.message + place);
    if (!error.fix.includes("as the message says")) {
      this.shown.append(make("p", { className: "muted", textContent: `What to do: ${error.fix}.` }));
    }
  }

  quoted(quote) {
    this.paint.mark(null);
    this.names = Object.keys(quote.split);
    this.offer();
    const list = make("dl");
    const row = (name, ...parts) => {
      list.append(make("div", {}, make("dt", { textContent: name }), make("dd", {}, ...parts)));
    };
    const aside = (text, tag = "span") => make(tag, { className: "muted", textContent: text });
    const free = quote.rho === "0";
    const delta = quote.delta === "0" ? "" : `, ${quantity(quote.delta, "δ")}`;
    const rho = quantity(quote.rho, "ρ");
    const pure = quote.pure ? `${quantity(quote.cost)}${delta}` : "none: Gaussian noise has no ε of its own";
    const [before, after] = [quote.remaining_rho_before, quote.remaining_rho_after];
    const concentrated = before !== undefined;
    const charged = concentrated ? rho : pure;
    row("Cost", free ? "free" : charged, quote.stored ? aside(" (stored)") : "");
    if (!free) row(`With ${concentrated ? "pure" : "concentrated"} accounting`, make("span", { title: this.meaning }, concentrated ? pure : rho));
    const left = `${amount(quote.remaining_before)} → ${amount(quote.remaining_after)}`;
    if (quote.shortage) row("Remaining", make("strong", { className: "bad", textContent: `too little: ${quote.shortage}` }));
    else if (concentrated) {
      row("Remaining", `ρ: ${rough(before)} → ${rough(after)}`);
      row("Stands for", `ε: ${rough(quote.remaining_before)} → ${rough(quote.remaining_after)}`);
    } else row("Remaining", left);
    if (quote.more !== null && !quote.shortage) row("After it", `about ${figure(String(quote.more))} more like it`);
    const least = quote.least_epsilon === "0" ? "" : `, for ${quantity(quote.least_epsilon)} or more`;
    row("Released", `${quote.cells} cell${quote.cells === 1 ? "" : "s"}${least}`);
    for (const [column, share] of Object.entries(quote.split)) {
      const margin = quote.margin[column];
      const told = margin === null ? aside("margin not public") : `± ${figure(margin)}`;
      row(column, `${quantity(share)}, `, told);
    }
    const several = this.plurals[quote.guarantee.unit ?? "record"];
    for (const [column, share] of Object.entries(quote.checks ?? {})) row(`Check of ${column}`, `${quantity(share)}, tells how many ${several} off it is`);
    for (const [column, least] of Object.entries(quote.checked_from ?? {})) row(`Check of ${column}`, aside(`none below ${quantity(least)}`));
    if (quote.reduction) row("Reduced", quote.reduction);
    for (const [column, written] of Object.entries(quote.computed ?? {})) row(`Computed: ${column}`, make("code", { textContent: written }));
    row("Guarantee", make("code", { textContent: quote.guarantee.notation }));
    const risks = Object.entries(quote.null_risks ?? {}).map(([column, risk]) => make("p", { textContent: `${column}: ${risk}` }));
    const notes = (quote.notes ?? []).map((note) => make("p", { textContent: note }));
    this.shown.replaceChildren(list, ...risks, ...notes, aside(quote.guarantee.sentence, "p"));
    this.spend.textContent = free ? "Ask (free)" : `Ask (spends ${concentrated ? rho : quantity(quote.cost)})`;
  }
}

function prepareEditor(box) {
  const field = box.querySelector("textarea");
  const form = box.closest("form");
  const words = JSON.parse(box.dataset.words);
  if (form.matches("[data-ask]")) new Draft(form);
  const paint = new Paint(box, field, words);
  field.addEventListener("input", () => paint.draw());
  new Completion(box, field, words, paint);
  if (form.matches("[data-ask]")) new Quote(form, field, paint);
  for (const hint of form.querySelectorAll(".scripted")) hint.hidden = false;
}

function prepareCopying(button) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Press Ctrl+C";
    }
  });
}

// Without script the page reloads itself; with it, only when there is something new.
function watch(box) {
  const elapsed = box.querySelector("[data-elapsed]");
  const look = async () => {
    try {
      const response = await fetch(box.dataset.watch);
      if (!response.ok) return location.reload();
      const body = await response.json();
      if (body.state !== "running") return location.reload();
      elapsed.textContent = `${Math.floor(body.elapsed)} s`;
    } catch {
      // The server is away for a moment: look again.
    }
    setTimeout(look, 1500);
  };
  setTimeout(look, 1000);
}

document.querySelectorAll("[data-asked]").forEach((box) => Draft.asked(box.dataset.asked));
document.querySelectorAll("[data-words]").forEach(prepareEditor);
document.querySelectorAll("[data-sign-out]").forEach((form) => form.addEventListener("submit", Draft.forget));
offerDraft();
document.querySelectorAll("[data-copy]").forEach(prepareCopying);
document.querySelectorAll("[data-watch]").forEach(watch);
// A page that shows a secret once: reloading opens the page itself instead of sending the form again.
document.querySelectorAll("[data-forget]").forEach((box) => history.replaceState(null, "", box.dataset.forget));
