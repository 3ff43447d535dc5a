// A small conversation by an SDK for Node, streamed and not: prints the texts.
import { createRequire } from 'node:module';

const [which, modules] = process.argv.slice(2);
const base = process.env.BASE;
const require = createRequire(modules + '/');
const system = 'You are a careful assistant. '.repeat(1000);
const history = [];

async function askOpenAI(client, stream) {
  const messages = [{ role: 'system', content: system }, ...history];
  const answer = await client.chat.completions.create({ model: 'm', messages, stream });
  if (!stream) return answer.choices[0].message.content;
  let text = '';
  for await (const chunk of answer) text += chunk.choices[0]?.delta?.content ?? '';
  return text;
}

async function askAnthropic(client, stream) {
  const how = { model: 'm', max_tokens: 100, system, messages: history };
  const answer = stream ? await client.messages.stream(how).finalMessage() : await client.messages.create(how);
  return answer.content[0].text;
}

const sdk = require(which === 'openai' ? 'openai' : '@anthropic-ai/sdk');
const client = new (sdk.default ?? sdk)({ baseURL: which === 'openai' ? base + '/v1' : base, apiKey: 'k' });
for (const [number, text] of ['Say what you see.', 'And again.'].entries()) {
  history.push({ role: 'user', content: text });
  const ask = which === 'openai' ? askOpenAI : askAnthropic;
  history.push({ role: 'assistant', content: await ask(client, number === 0) });
  console.log(history.at(-1).content);
}
