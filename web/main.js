// Wiring: the person's actions and the server's events go to the conversation, its effects go to the socket and back.

import { Conversation } from "./conversation.js";
import { drawSeed, parse, recall, remember } from "./settings.js";
import { Link } from "./socket.js";
import { View } from "./view.js";

const STOP_PATIENCE_MS = 5_000; // a stop takes one verify step; after this the session is left behind
const byId = (id) => document.getElementById(id);
const local = () => localStorage;
const session = () => sessionStorage; // the key is forgotten with the tab

const conversation = new Conversation();
const view = new View(document);
const message = byId("message");
const fields = {
  instructions: byId("instructions"),
  temperature: byId("temperature"),
  seed: byId("seed"),
  maxTokens: byId("max-tokens"),
};
const wide = matchMedia("(min-width: 64rem)"); // room for settings and conversation side by side, as in the style sheet
const switches = { speculation: byId("speculation"), marks: byId("marks") };

const socketUrl = new URL("v1/realtime?model=default", document.baseURI);
socketUrl.protocol = socketUrl.protocol === "https:" ? "wss:" : "ws:";

const link = new Link({
  url: socketUrl.href,
  probe: new URL("v1/models", document.baseURI).href,
  key: recall(session).key ?? "",
  onEvent: (event) => act((now) => conversation.receive(event, now)),
  onDown: () => act(() => conversation.down()),
  onState: (state, sentence) => view.link(state, sentence, conversation.model),
});

let frame = 0; // a pending redraw: many text events may fall into one
let patience = 0; // a running wait for a stop to be confirmed

function act(what) {
  const before = conversation.phase;
  for (const effect of what(performance.now()) ?? []) {
    if (effect.do === "send") link.send(effect.event);
    else if (effect.do === "renew") link.renew();
    else restore(effect.text);
  }
  if (conversation.phase !== "stopping") {
    clearTimeout(patience);
    patience = 0;
  } else if (patience === 0) {
    patience = setTimeout(() => act(() => conversation.giveUp()), STOP_PATIENCE_MS);
  }
  if (conversation.phase !== before) draw(); // buttons change with the press that causes it
  else frame ||= requestAnimationFrame(draw);
}

function draw() {
  cancelAnimationFrame(frame);
  frame = 0;
  view.draw(conversation);
}

function restore(text) {
  message.value = message.value === "" ? text : `${text}\n${message.value}`;
}

function values() {
  const texts = Object.entries(fields).map(([name, field]) => [name, field.value]);
  const flags = Object.entries(switches).map(([name, box]) => [name, box.checked]);
  return Object.fromEntries([...texts, ...flags]);
}

function settings() {
  const { settings: parsed, problem } = parse(values(), drawSeed);
  for (const [name, field] of Object.entries(fields)) {
    field.setCustomValidity(problem?.field === name ? problem.sentence : "");
  }
  if (problem) {
    openSettings(true);
    fields[problem.field].reportValidity();
  }
  return parsed;
}

function say() {
  const text = message.value;
  if (conversation.busy || text.trim() === "") return;
  const chosen = settings();
  if (chosen === null) return;
  message.value = "";
  message.focus();
  act((now) => conversation.say(text, chosen, now));
  link.hurry();
  requestAnimationFrame(() => view.toEnd());
}

function stop() {
  act(() => conversation.stop());
  message.focus();
}

function retry() {
  const chosen = settings();
  if (chosen !== null) act((now) => conversation.retry(chosen, now));
}

function dismiss() {
  act(() => {
    conversation.notice = null;
  });
  message.focus();
}

function openSettings(open) {
  view.settings.hidden = !open;
  byId("settings-toggle").setAttribute("aria-expanded", String(open));
}

function closeSettings() {
  openSettings(false);
  message.focus();
}

function askForKey() {
  openSettings(true);
  byId("key").focus();
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  say();
});

message.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return; // Enter also ends an input method's word
  event.preventDefault();
  say();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.isComposing && conversation.busy) stop();
});

byId("new").addEventListener("click", () => {
  act(() => conversation.clear());
  message.focus();
});

byId("settings-toggle").addEventListener("click", () => openSettings(view.settings.hidden));

byId("settings-done").addEventListener("click", closeSettings);

byId("settings-form").addEventListener("submit", (event) => event.preventDefault());

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const key = byId("key").value.trim();
  remember(session, { key });
  act(() => conversation.down()); // the new session gets everything again
  link.key = key;
  if (!wide.matches) closeSettings(); // where the outcome is told
});

view.stop.addEventListener("click", stop);

for (const button of document.querySelectorAll("[data-action]")) {
  const actions = { retry, dismiss, key: askForKey, now: () => link.hurry() };
  button.addEventListener("click", actions[button.dataset.action]);
}

for (const field of [...Object.values(fields), ...Object.values(switches)]) {
  field.addEventListener("input", () => {
    field.setCustomValidity("");
    view.log.classList.toggle("marked", switches.marks.checked);
    remember(local, values());
  });
}

addEventListener("online", () => link.hurry());
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") link.hurry(); // a phone wakes up: do not sit out the wait
});

const remembered = recall(local);
for (const [name, field] of Object.entries(fields)) {
  if (typeof remembered[name] === "string") field.value = remembered[name];
}
for (const [name, box] of Object.entries(switches)) {
  if (typeof remembered[name] === "boolean") box.checked = remembered[name];
}
byId("key").value = link.key;
view.log.classList.toggle("marked", switches.marks.checked);
openSettings(wide.matches);
view.draw(conversation);
link.renew();
message.focus();
