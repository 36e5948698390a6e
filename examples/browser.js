// A conversation over WS /v1/realtime: typed text is sent while it is typed, a reply survives a dropped connection.
"use strict";
const $ = (id) => document.getElementById(id);
const RETRY_MS = [500, 10_000]; // after the first drop, and at the most

let socket = null;
let sent = ""; // what the server has of the message that is being typed; null: unknown
let reply = null; // {id, seq, box}: the newest one
let running = false;
let wait = RETRY_MS[0];

function connect() {
  // A browser cannot set headers: the key is the second subprotocol, and the server answers with the first alone.
  const key = $("key").value;
  socket = new WebSocket($("url").value, ["realtime", ...(key ? [`openai-insecure-api-key.${key}`] : [])]);
  socket.onmessage = (message) => receive(JSON.parse(message.data));
  socket.onclose = (event) => {
    $("state").textContent = `closed (${event.code})`;
    if (event.target !== socket) return;
    setTimeout(connect, wait);
    wait = Math.min(wait * 2, RETRY_MS[1]);
  };
}

function send(type, fields = {}) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type, ...fields }));
}

// What was only added to is appended; a revised message is cleared first, and the server keeps what both begin with.
function typed(text) {
  if (sent === null || !text.startsWith(sent)) {
    send("input_text.clear");
    sent = "";
  }
  if (text !== sent) send("input_text.append", { text: text.slice(sent.length) });
  sent = text;
}

function ask() {
  const text = $("message").value;
  if (!text.trim() || running || socket?.readyState !== WebSocket.OPEN) return;
  typed(text);
  send("input_text.commit");
  send("response.create", { response: { x_resume: true } });
  [sent, running, reply] = ["", true, null];
  $("message").value = "";
  show("user", text);
}

function show(kind, text) {
  const box = document.createElement("div");
  box.className = kind;
  box.textContent = text;
  $("log").append(box);
  return box;
}

function receive(event) {
  switch (event.type) {
    case "session.created": // also on the connection after a drop, which goes on with the conversation of the old one
      $("state").textContent = "open";
      wait = RETRY_MS[0];
      running &&= reply !== null; // what was asked for and had not begun is lost
      if (reply) send("x_response.resume", { response_id: reply.id, starting_after: reply.seq });
      sent = null;
      typed($("message").value);
      break;
    case "response.created":
      if (reply?.id !== event.response.id) reply = { id: event.response.id, seq: 0, box: show("assistant", "") };
      break;
    case "response.output_text.delta":
      reply.box.textContent += event.delta;
      reply.seq = event.x_seq;
      break;
    case "response.done":
      running = false;
      $("state").textContent = `open, ${event.response.status}`;
      break;
    case "error":
      if (["response_not_found", "resume_gone"].includes(event.error.code)) [reply, running] = [null, false];
      if (event.error.code !== "response_cancel_not_active") show("error", event.error.message);
  }
}

$("connect").onclick = () => {
  const old = socket;
  connect();
  old?.close();
};
$("message").oninput = () => typed($("message").value);
$("send").onclick = ask;
$("cancel").onclick = () => send("response.cancel");
