// Chat completions through the stock SDK: node chat.mjs BASE_URL MODEL; prints one JSON object.
import OpenAI from "openai";

const [baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${baseURL}/v1`, apiKey: "unused" });
const request = {
  model,
  messages: [{ role: "user", content: "hello" }],
  max_completion_tokens: 12,
  temperature: 0,
  seed: 7,
  logit_bias: { 2: -100 },
  unknown_field: { ignored: true },
};

const whole = await client.chat.completions.create(request);
let streamed = "";
let finish = null;
let usage = null;
for await (const chunk of await client.chat.completions.create({
  ...request,
  stream: true,
  stream_options: { include_usage: true },
})) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  finish = chunk.choices[0]?.finish_reason ?? finish;
  usage = chunk.usage ?? usage;
}

let refusal = null;
try {
  await client.chat.completions.create({ ...request, n: 0 });
} catch (error) {
  refusal = { status: error.status, param: error.param };
}

const models = [];
for await (const each of client.models.list()) models.push(each.id);

console.log(
  JSON.stringify({
    text: whole.choices[0].message.content,
    finish: whole.choices[0].finish_reason,
    usage: whole.usage.completion_tokens,
    streamed: { text: streamed, finish, usage: usage.completion_tokens },
    refusal,
    models,
  }),
);
