// The page's elements. Whatever a model or a server says is put on the page as text nodes: it is never parsed as HTML.

import { decimal, milliseconds, percent } from "./figures.js";

const NAMES = { user: "You", assistant: "Model" };
const CHIPS = { connecting: "Connecting", open: "Connected", waiting: "Offline", locked: "Key needed" };
const NEAR_END = 48; // pixels from the end within which the log follows the text

/** One line that says how a finished reply came about, enough to make it again. */
export function summary({ figures, settings }) {
  const parts = [`speculation ${settings.speculation ? "on" : "off"}`];
  if (figures.ttft !== null) parts.push(`TTFT ${milliseconds(figures.ttft)}`);
  if (figures.tpot !== null) parts.push(`TPOT ${milliseconds(figures.tpot)}`);
  if (figures.perStep !== null) parts.push(`${decimal(figures.perStep)} tokens per step`);
  if (figures.tokens > 0) parts.push(figures.tokens === 1 ? "1 token" : `${figures.tokens} tokens`);
  if (settings.temperature !== 0) parts.push(`seed ${settings.seed}`);
  return parts.join(" · ");
}

class Turn {
  #document;
  #drawn = 0;
  #odd = false;
  #text;
  #note;

  constructor(document, { role }) {
    this.#document = document;
    this.node = document.createElement("article");
    this.node.className = `turn ${role}`;
    const name = document.createElement("h2");
    name.textContent = NAMES[role];
    this.#text = document.createElement("div");
    this.#text.className = "text";
    this.#text.dir = "auto";
    this.#note = document.createElement("p");
    this.#note.className = "note";
    this.node.append(name, this.#text, this.#note);
  }

  draw(item) {
    for (const { text, emitted } of item.pieces.slice(this.#drawn)) this.#append(text, emitted);
    this.#drawn = item.pieces.length;
    this.node.dataset.state = item.state;
    const running = item.state === "running";
    const note = running || !item.figures ? item.note : [item.note, summary(item)].filter(Boolean).join(" · ");
    if (this.#note.textContent !== note) this.#note.textContent = note;
  }

  // Tokens that one verify step brought together share a tint; neighbours alternate, so that each run can be seen.
  #append(text, emitted) {
    if (emitted < 2) {
      this.#text.append(text);
      return;
    }
    const run = this.#document.createElement("span");
    this.#odd = !this.#odd;
    run.className = this.#odd ? "run odd" : "run";
    run.textContent = text;
    this.#text.append(run);
  }
}

export class View {
  #document;
  #turns = new Map(); // item key -> Turn
  #spokenKey = null;
  #link = "connecting";
  #follows = true;
  #outcome = null; // the last state that was not just a try

  constructor(document) {
    this.#document = document;
    for (const id of ["log", "empty", "notice", "trouble", "send", "stop", "spoken", "chip", "settings"]) {
      this[id] = document.getElementById(id);
    }
    const { log } = this;
    let top = 0;
    log.addEventListener("scroll", () => {
      // The event comes late, when the log may have grown already: only a way up is somebody's wish to stay there.
      const ended = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END;
      this.#follows = ended || (this.#follows && log.scrollTop >= top);
      top = log.scrollTop;
    });
    // A bar or a taller composer takes room from the log; its end stays in sight.
    new ResizeObserver(() => this.#follows && this.toEnd()).observe(log);
  }

  draw(conversation) {
    this.#drawTurns(conversation.items);
    if (this.#follows) this.toEnd();
    this.empty.hidden = conversation.items.length > 0;
    this.send.hidden = conversation.busy;
    this.stop.hidden = !conversation.busy;
    this.stop.disabled = conversation.phase === "stopping";
    this.#drawFigures(conversation.reply?.figures);
    const { notice } = conversation;
    this.#bar(this.notice, notice?.text ?? "", { retry: notice?.retry ?? false });
    this.#drawChip(conversation.model);
    this.#speakReply(conversation);
  }

  /** The connection's state, and the sentence that explains it when it is not open. */
  link(state, sentence, model) {
    const before = this.#link;
    this.#link = state;
    this.#drawChip(model);
    if (state === "connecting" && before === "waiting") return; // the sentence stays until the try has an outcome
    this.#bar(this.trouble, sentence, { now: state === "waiting", key: state === "locked" });
    if (state === "connecting" || state === this.#outcome) return;
    // Said once per outage: the seconds of each further try are for the eye.
    if (sentence !== "") this.speak(sentence);
    else if (this.#outcome !== null) this.speak("Connected again.");
    this.#outcome = state;
  }

  speak(sentence) {
    this.spoken.textContent = sentence;
  }

  /** Shows the end of the log, and follows the text from there until the person scrolls away. */
  toEnd() {
    this.#follows = true;
    this.log.scrollTop = this.log.scrollHeight;
  }

  #drawTurns(items) {
    const keys = new Set(items.map(({ key }) => key));
    for (const [key, turn] of this.#turns) {
      if (keys.has(key)) continue;
      turn.node.remove();
      this.#turns.delete(key);
    }
    for (const item of items) {
      let turn = this.#turns.get(item.key);
      if (!turn) {
        turn = new Turn(this.#document, item);
        this.#turns.set(item.key, turn);
        this.log.append(turn.node);
      }
      turn.draw(item);
    }
  }

  #drawFigures(figures) {
    const show = (id, text) => {
      const cell = this.#document.getElementById(id);
      if (cell.textContent !== text) cell.textContent = text;
    };
    show("ttft", milliseconds(figures?.ttft ?? null));
    show("tpot", milliseconds(figures?.tpot ?? null));
    show("rate", decimal(figures?.rate ?? null));
    show("per-step", decimal(figures?.perStep ?? null));
    const share = percent(figures?.acceptance ?? null);
    show("acceptance", figures?.drafted > 0 ? `${share} of ${figures.drafted}` : share);
    show("tokens", figures?.tokens > 0 ? String(figures.tokens) : "–");
  }

  #drawChip(model) {
    this.chip.dataset.state = this.#link;
    const text = this.#link === "open" && model ? model : CHIPS[this.#link];
    if (this.chip.textContent !== text) this.chip.textContent = text;
  }

  #bar(bar, text, actions) {
    bar.hidden = text === "";
    const sentence = bar.querySelector(".sentence");
    if (sentence.textContent !== text) sentence.textContent = text;
    for (const [name, wanted] of Object.entries(actions)) bar.querySelector(`[data-action=${name}]`).hidden = !wanted;
  }

  // A reply is read out once, whole, when it is over: a live region that grew with every token would never be quiet.
  #speakReply({ busy, reply }) {
    if (busy || !reply || reply.key === this.#spokenKey) return;
    this.#spokenKey = reply.key;
    this.speak([...reply.pieces.map(({ text }) => text), "\n", reply.note].join(""));
  }
}
