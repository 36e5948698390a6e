// A realtime session through the stock SDK: node realtime.mjs BASE_URL MODEL; prints one JSON object.
import https from "node:https";
import net from "node:net";

import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

// The SDK knows wss:// alone, whatever the base URL says; a server on loopback has no certificate.
class PlainAgent extends https.Agent {
  createConnection(options) {
    return net.connect(options.port, options.host);
  }
}

const [baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${baseURL}/v1`, apiKey: "unused" });
const socket = new OpenAIRealtimeWS({ model, options: { agent: new PlainAgent() } }, client);
const seen = [];
let text = "";

const ended = new Promise((resolve, reject) => {
  socket.on("error", reject);
  socket.on("event", (event) => {
    seen.push(event.type);
    if (event.type === "response.output_text.delta") text += event.delta;
    if (event.type === "response.done") resolve(event.response);
  });
});

socket.socket.on("open", () => {
  socket.send({ type: "session.update", session: { type: "realtime", output_modalities: ["text"] } });
  socket.send({
    type: "conversation.item.create",
    item: { type: "message", role: "user", content: [{ type: "input_text", text: "hello" }] },
  });
  socket.send({
    type: "response.create",
    response: { max_output_tokens: 12, temperature: 0, seed: 7, logit_bias: { 2: -100 } },
  });
});

const response = await ended;
socket.close();
console.log(JSON.stringify({ seen, text, status: response.status, usage: response.usage.output_tokens }));
