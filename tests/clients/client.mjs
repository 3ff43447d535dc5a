// The official OpenAI client for Node through Grapevine.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import OpenAI from 'openai';

const model = 'sim';
const client = new OpenAI({ maxRetries: 0 });
const messages = [{ role: 'user', content: 'hello' }];

async function test(name, body) {
    await body();
    console.log(`ok - ${name}`);
}

await test('chat', async () => {
    const answer = await client.chat.completions.create({ model, messages, max_tokens: 8 });
    assert.ok(answer.choices[0].message.content);
});
await test('stream', async () => {
    const stream = await client.chat.completions.create({
        model, messages, max_tokens: 8, stream: true, stream_options: { include_usage: true } });
    let text = '';
    let usage;
    for await (const chunk of stream) {
        text += chunk.choices[0]?.delta?.content ?? '';
        usage = chunk.usage ?? usage;
    }
    assert.ok(text);
    assert.equal(usage.completion_tokens, 8);
});
await test('tools', async () => {
    const answer = await client.chat.completions.create({
        model, messages, max_tokens: 8, tool_choice: 'required',
        tools: [{ type: 'function', function: { name: 'clock', parameters: { type: 'object', properties: {} } } }] });
    assert.equal(answer.choices[0].message.tool_calls[0].function.name, 'clock');
});
await test('cancel', async () => {
    const stream = await client.chat.completions.create({
        model, messages, max_tokens: 4000, ignore_eos: true, stream: true });
    for await (const chunk of stream) {
        assert.ok(chunk.id);
        stream.controller.abort();
        break;
    }
    const again = await client.chat.completions.create({ model, messages, max_tokens: 4 });
    assert.ok(again.id);
});
await test('errors', async () => {
    await assert.rejects(client.chat.completions.create({ model: 'nope', messages }),
        (error) => error instanceof OpenAI.NotFoundError && /does not exist/.test(error.message));
});
await test('models', async () => {
    const list = await client.models.list();
    assert.deepEqual(list.data.map((m) => m.id), [model]);
});
const version = JSON.parse(readFileSync(new URL('./node_modules/openai/package.json', import.meta.url))).version;
console.log(`openai ${version} for Node: all passed`);
