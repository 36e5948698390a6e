// The Responses API through the stock SDK, over HTTP and over a socket: node responses.mjs BASE_URL MODEL.
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";

const [baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${baseURL}/v1`, apiKey: "unused" });
const request = { model, input: "hello", max_output_tokens: 12, temperature: 0, seed: 7, logit_bias: { 2: -100 } };

const whole = await client.responses.create(request);
let streamed = "";
let order = [];
for await (const event of await client.responses.create({ ...request, stream: true })) {
  order.push(event.sequence_number);
  if (event.type === "response.output_text.delta") streamed += event.delta;
}

const socket = new ResponsesWS(client);
let spoken = "";
const response = await new Promise((resolve, reject) => {
  socket.on("error", reject);
  socket.on("event", (event) => {
    if (event.type === "response.output_text.delta") spoken += event.delta;
    if (["response.completed", "response.incomplete", "response.failed"].includes(event.type)) resolve(event.response);
  });
  socket.send({ type: "response.create", ...request });
});
socket.close();

const chained = await client.responses.create({ ...request, input: "and then?", previous_response_id: whole.id });
console.log(
  JSON.stringify({
    text: whole.output_text,
    status: whole.status,
    usage: whole.usage.output_tokens,
    streamed,
    order,
    spoken,
    socket: response.status,
    chained: chained.usage.input_tokens > whole.usage.input_tokens,
  }),
);
