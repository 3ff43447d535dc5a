// The page's requests for /live, and its texts meanwhile.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { World, modules, second, snapshot } from './world.mjs';

const world = new World();
const hello = snapshot(['r1', 'r2']);
let answer = () => {};
world.answer = (call) => answer(call);
const submit = async (token) => {
  document.getElementById('token').value = token;
  document.getElementById('token-form').listeners.submit({ preventDefault() {} });
  await world.pass(0);
};

test('the page reconnects over a slow link', async () => {
  answer = (call) => world.later(700, call, () => {
    call.respond();
    call.send('hello', hello);
  });
  await modules('app.js');
  await world.pass(1000);
  assert.match(world.text('headline'), /^All 2 routers agree/);
  answer = () => {};
  await world.pass(30000); // nothing more comes
  assert.match(world.text('headline'), /^r1 has not answered for \d+\s/);
  assert.equal(world.live()[0].aborted, true);
  answer = (call) => world.later(700, call, () => {
    call.respond();
    call.send('hello', hello);
  });
  const said = () => world.text('headline').startsWith('All 2 routers agree');
  for (let i = 0; i < 200 && !said(); i++) await world.pass(100);
  assert.ok(said(), world.text('headline'));
});

test('a stream that goes on is kept, however old the last message was', async () => {
  answer = (call) => call.respond();
  await world.pass(30000);
  const call = world.live().at(-1);
  for (let i = 0; i < 60; i++) {
    call.send('snap', { ...hello, frame: i + 2 });
    await world.pass(1000);
  }
  assert.equal(world.live().at(-1), call);
  assert.match(world.text('headline'), /^All 2 routers agree/);
});

test('a request for a token does not show the router as dead', async () => {
  answer = (call) => call.respond(401);
  const before = world.live().length;
  await world.pass(60000);
  assert.equal(world.live().length, before + 1, 'nothing is tried without a token');
  assert.equal(world.text('headline'), 'This router\u2019s page requires a token.');
  assert.equal(document.getElementById('token-form').hidden, false);
  await submit('wrong');
  await world.pass(5000);
  assert.equal(world.text('headline'), 'This token is no longer accepted.');
});

test('a token given twice makes one stream', async () => {
  answer = (call) => world.later(300, call, () => call.respond());
  const before = world.live().length;
  await submit('sesame');
  await submit('sesame');
  await world.pass(1000);
  const calls = world.live().slice(before);
  assert.deepEqual(calls.map((c) => c.aborted), [true, false]);
  assert.equal(calls[1].how.headers.Authorization, 'Bearer sesame');
  calls[1].send('hello', hello);
  await world.pass(100);
  assert.match(world.text('headline'), /^All 2 routers agree/);
  assert.equal(document.getElementById('token-form').hidden, true);
  for (let i = 0; i < 20; i++) {
    calls[1].send('snap', { ...hello, frame: i + 2 });
    await world.pass(1000);
  }
  assert.equal(world.live().length, before + 2);
});

test('the first tile counts cut answers over the last minute', async () => {
  const cut = (time_ms, n) => second({ time_ms, requests: 10, failed: { status_5xx: 0, queue_full: 0, cut: n } });
  answer = (call) => {
    call.respond();
    call.send('hello', snapshot(['r1', 'r2'], undefined, { history: [cut(1000, 100), ...Array.from({ length: 59 }, (_, i) => cut(2000 + 1000 * i, 0))] }));
  };
  document.getElementById('token-form').listeners.submit({ preventDefault() {} });
  await world.pass(0);
  assert.equal(world.text('f-requests-foot'), 'here; 100 failed (100 cut) in a minute');
  assert.equal(document.getElementById('f-requests-foot').getAttribute('data-state'), 'bad');
  const call = world.live().at(-1);
  call.send('snap', snapshot(['r1', 'r2'], undefined, { frame: 2, figures: { ...cut(61000, 3), client_errors: 2 } })); // the first second is more than a minute old
  await world.pass(0);
  assert.equal(world.text('f-requests-foot'), 'here; 3 failed (3 cut) in a minute');
  assert.equal(world.text('f-requests-others'), '2 client errors');
  assert.match(world.text('headline'), /^All 2 routers agree; the only replica takes requests\.$/);
});
