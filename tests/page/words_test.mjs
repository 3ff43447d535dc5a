// The page's texts about a snapshot.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { World, attention, modules, problem, replica, second, snapshot } from './world.mjs';

new World();
const [words, replicas, strip, cluster, routers] = await modules('words.js', 'replicas.js', 'attention.js', 'figures.js', 'routers.js');
const three = ['r1', 'r2', 'r3'];
const names = (n) => Array.from({ length: n }, (_, i) => `grapevine-7d9c8b6f5d-${i}`);

test('all is well', () => {
  assert.deepEqual(words.headline(snapshot(three)), { text: 'All 3 routers agree; the only replica takes requests.', state: 'well' });
  assert.match(words.agreement(snapshot(three)), /^All 3 living routers hold the same state/);
  assert.deepEqual(words.disagreement(snapshot(three)), []);
});

test('routers that do not hear each other', () => {
  const cut = problem('amber', 'routers_cut', 'r2 and r3', { what: 'routers r2 and r3 do not hear each other' });
  const deaf = problem('amber', 'router_deaf', 'r3', { what: 'router r3 does not hear r2, but is heard there' });
  const snap = snapshot(three, (a, b) => (a !== 'r1' && b !== 'r1' ? null : 50), { attention: attention(cut, deaf) });
  assert.equal(words.headline(snap).text, 'Clients are served; 2 problems. All 3 routers agree; the only replica takes requests.');
  assert.deepEqual(words.disagreement(snap).map((x) => x.split('. ')[0]), ['Routers r2 and r3 do not hear each other', 'Router r3 does not hear r2, but is heard there']);
  assert.deepEqual([words.hears(snap, 'r2', 'r3'), words.hears(snap, 'r1', 'r3'), words.hears(snap, 'r3', 'r1')], [false, true, true]);
  // This router itself, by its own figures.
  assert.equal(words.hears(snapshot(three, (a, b) => (a === 'r1' && b === 'r2' ? 60000 : 50)), 'r1', 'r2'), false);
});

test('the ring is small and digests are hidden while all is well', () => {
  const card = document.getElementById('routers-card'), calm = () => card.getAttribute('data-calm') !== null;
  const show = (more, change) => {
    const snap = snapshot(three, undefined, more);
    change?.(snap);
    routers.routers(snap);
  };
  show();
  assert.ok(calm());
  const row = document.getElementById('routers').tBodies[0].children[1];
  assert.deepEqual([row.children[0].textContent, row.children[3].textContent], ['r2', '0']);
  show({ attention: attention(problem('amber', 'replica_out', 'e1')) });
  assert.ok(calm());
  show({ attention: attention(problem('amber', 'routers_cut', 'r2 and r3')) });
  assert.ok(!calm());
  show({}, (snap) => (snap.members[2].state = 'dead'));
  assert.ok(!calm());
  show({}, (snap) => (snap.agreement.state = 'differ'));
  assert.ok(!calm());
  show({ members: null, agreement: { state: 'alone', since_ms: 1, differ: [], nodes: {} } });
  assert.deepEqual([calm(), document.getElementById('ring').hidden], [true, true]);
});

test('routers that cannot be compared', () => {
  const snap = snapshot(three);
  snap.agreement.state = 'incomparable';
  snap.attention = attention(problem('amber', 'routers_incomparable', ''));
  assert.deepEqual(words.headline(snap), { text: 'Clients are served; 1 problem. 3 routers; the only replica takes requests.', state: 'amber' });
  assert.equal(words.disagreement(snap).length, 1);
});

test('routers that do not report which others they hear are not taken for deaf', () => {
  const many = names(65);
  const snap = snapshot(many, (a) => (a === many[0] ? 50 : undefined));
  snap.agreement.nodes[many[0]].hears = {};
  assert.match(words.headline(snap).text, /^All 65 routers agree/);
  assert.match(words.agreement(snap), /^All 65 living routers hold the same state.* In a cluster this large, routers do not report which others they hear/);
});

test('a snapshot without digests, which were too many', () => {
  const snap = snapshot(names(85));
  snap.agreement.nodes = {};
  assert.match(words.agreement(snap), /^All 85 living routers hold the same state/);
  assert.match(words.headline(snap).text, /^All 85 routers agree/);
});

test('each pair of routers is looked up once', () => {
  const snap = snapshot(names(200));
  let asked = 0;
  snap.members = new Proxy(snap.members, { get: (array, key) => (key === 'find' && asked++, Reflect.get(array, key)) });
  words.headline(snap);
  words.disagreement(snap);
  for (let i = 1; i < 200; i++) words.hears(snap, snap.members[0].name, snap.members[i].name);
  assert.ok(asked < 10, `${asked} searches`);
});

test('a draining router, and several replicas that take no requests', () => {
  const down = ['e1', 'e2', 'e3', 'e4', 'e5'].map((name) => replica(name, { health: 'down', text: 'down' }));
  const snap = snapshot(three, undefined, { replicas: down, replica_count: 6, replicas_well: 1 });
  snap.members.find((m) => m.name === 'r3').draining = true;
  assert.deepEqual(words.headline(snap), { text: 'All 3 routers agree; 1 of 6 replicas take requests.', state: 'well' });
  assert.match(words.disagreement(snap).join(), /r3 drains: it takes no new requests, and leaves when/);
});

test('a router whose gossip port takes UDP only', () => {
  const snap = snapshot(three);
  snap.members.find((m) => m.name === 'r3').tcp_filtered = '10.0.0.3:7490';
  assert.match(words.disagreement(snap).join(), /TCP to r3 at 10.0.0.3:7490 is filtered and UDP is not/);
});

// Shows these snapshots, one after another, in the table of replicas.
function showReplicas(...snaps) {
  replicas.forget();
  for (const snap of snaps) {
    replicas.take(snap);
    replicas.replicas(snap);
  }
}

test('a thousand replicas, some in each snapshot', () => {
  const list = Array.from({ length: 1000 }, (_, i) => replica(`10.0.0.${i}:8000`, { slot: i, models: ['m'] }));
  const of = (from, to, more) => snapshot(three, undefined, { replicas: list.slice(from, to), replicas_span: [from, to], replica_count: 1000, replicas_well: 1000, ...more });
  const body = document.getElementById('replicas'), lead = () => document.getElementById('replicas-lead').textContent;
  assert.equal(words.headline(of(0, 300)).text, 'All 3 routers agree; all 1,000 replicas take requests.');
  showReplicas(of(0, 900, { answered: { prompt_tokens: 400, cached_tokens: 300 } }));
  assert.match(lead(), /^1,000 replicas; 75\s% of all prompt tokens.* 900 are here so far; the others follow\.$/);
  const next = of(900, 1000);
  showReplicas(of(0, 900), next);
  assert.equal(lead(), '1,000 replicas.');
  assert.equal(body.children.length, 1001);
  assert.deepEqual([1, 2, 3].map((i) => body.children[i].dataset.key), ['r 10.0.0.0:8000', 'r 10.0.0.1:8000', 'r 10.0.0.2:8000']);
  // One replica out of turn, one that is gone, and slots that the snapshot reports as empty.
  const down = { ...list[7], health: 'down', text: 'down: it rests' };
  showReplicas(of(0, 900), next, of(0, 0, { replicas: [down], replicas_gone: [3] }), of(10, 20, { replicas: list.slice(12, 20) }));
  assert.equal(body.children.length, 998);
  assert.equal(body.children[1].dataset.key, 'r 10.0.0.7:8000');
  const keys = body.children.map((x) => x.dataset.key);
  for (const [slot, is] of [[3, false], [10, false], [11, false], [12, true], [999, true]]) assert.equal(keys.includes(`r 10.0.0.${slot}:8000`), is, slot);
});

test('streams that are cut with status 200 count as failures', () => {
  const cut = (n) => second({ requests: 50, answers: 50, failed: { status_5xx: 0, queue_full: 0, cut: n } });
  const e = words.endings([cut(0), cut(30), cut(20)]);
  assert.deepEqual([e.requests, e.failed, e.cut], [150, 50, 50]);
  assert.equal(words.failedText(e), '50 failed (50 cut)');
});

test('each kind of failure has its word, and other endings are separate', () => {
  const e = words.endings([
    second({ requests: 1000, failed: { status_5xx: 2, queue_full: 3, cut: 0 }, client_errors: 31, client_gone: 4, hidden: 1 }),
    second({ failed: { status_5xx: 0, queue_full: 0, cut: 1 }, client_errors: 0, hidden: 6 }),
  ]);
  assert.equal(words.failedText(e), '6 failed (1 cut, 2 with a 5xx, 3 for a full queue)');
  assert.equal(words.othersText(e), '31 client errors, 4 abandoned by clients, 7 failures hidden by a retry');
});

test('client errors are not failures', () => {
  const e = words.endings([second({ requests: 50, client_errors: 50 })]);
  assert.equal(words.failedText(e), '0 failed');
  assert.equal(words.othersText(e), '50 client errors');
  assert.equal(words.othersText(words.endings([])), '');
});

test('replicas by model, those in trouble first, and a card on a click', () => {
  const list = [replica('a', { models: ['m'], chosen: 5 }), replica('b', { models: ['m'], chosen: 9 }), replica('c', { models: ['z'] }),
    replica('d', { models: ['z'], health: 'down', text: 'down: it rests' })];
  const snap = snapshot(three, undefined, { replicas: list, replica_count: 4, replicas_well: 3 });
  const body = document.getElementById('replicas'), keys = () => body.children.map((x) => x.dataset.key);
  showReplicas(snap);
  assert.deepEqual(keys(), ['m z', 'r d', 'r c', 'm m', 'r a', 'r b']);
  assert.equal(body.children[0].textContent, 'z: 1 of 2 replicas take requests');
  assert.equal(body.children[1].getAttribute('data-state'), 'out');
  assert.equal(body.children[1].children[1].textContent, 'down: it rests');
  const heads = document.getElementById('replicas-head').children;
  heads[6].firstElementChild.listeners.click();
  assert.equal(heads[6].getAttribute('aria-sort'), 'descending');
  assert.deepEqual(keys().slice(3), ['m m', 'r b', 'r a']);
  heads[6].firstElementChild.listeners.click();
  assert.deepEqual(keys().slice(3), ['m m', 'r a', 'r b']);
  const button = body.children[1].firstElementChild.firstElementChild;
  button.listeners.click();
  assert.deepEqual(keys().slice(0, 4), ['m z', 'r d', 'c d', 'r c']);
  assert.equal(button.getAttribute('aria-expanded'), 'true');
  assert.match(body.children[2].textContent, /Serves z/);
  button.listeners.click();
  assert.deepEqual(keys().slice(0, 3), ['m z', 'r d', 'r c']);
});

test('figures of all routers are sums of the counts since the last snapshot', () => {
  const node = (since_ms, time_ms, requests, more) => ({ since_ms, time_ms, requests, failed: { cut: 0, status_5xx: 0, queue_full: 0 }, client_errors: 0, in_flight: 1, queued: 2, prompt_tokens: 0, cached_tokens: 0, ttft_counts: [0, 0, 0], ...more });
  const show = (now_ms, nodes) => cluster.figures(snapshot(['r1', 'r2'], undefined, { now_ms, cluster: { ttft_bounds_s: [0.1, 1], nodes } }));
  const text = (id) => document.getElementById(id).textContent;
  cluster.forget();
  show(1000, {});
  assert.equal(document.getElementById('cluster').hidden, true);
  show(2000, { r1: node(1, 2000, 100), r2: node(1, 2000, 1000) });
  assert.equal(document.getElementById('cluster').hidden, false);
  show(4000, { r1: node(1, 4000, 110, { failed: { cut: 1, status_5xx: 2, queue_full: 3 }, client_errors: 7, prompt_tokens: 400, cached_tokens: 300, ttft_counts: [10, 0, 0] }),
    r2: node(3500, 4000, 4, { ttft_counts: [0, 10, 0] }) }); // r2 restarted
  assert.deepEqual([text('c-requests'), text('c-failed'), text('c-cached')], ['7', '6', '75\u00a0%']);
  assert.equal(text('c-failed-foot'), 'in a minute: 1 cut, 2 with a 5xx, 3 for a full queue; 7 clients\u2019 own 4xx');
  assert.deepEqual([text('c-ttft'), text('c-ttft-foot')], ['100\u00a0ms', 'p50 of a minute; p95 910\u00a0ms']);
  assert.deepEqual([text('c-flight'), text('c-flight-foot'), text('h-cluster')], ['2', '4 waiting', 'All routers']);
  show(5000, { r1: node(1, 5000, 110), r2: { error: 'timeout' } });
  assert.equal(text('h-cluster'), 'All routers (1 router did not answer)');
});

test('shadow mode has a tile with both shares from cache', () => {
  const side = (requests, cached_tokens) => ({ requests, prompt_tokens: 1000, cached_tokens, first_tokens: 0, ttft_sum_s: 0 });
  const node = (mode, plain, policy) => ({ since_ms: 1, time_ms: 1000, requests: 0, failed: { cut: 0, status_5xx: 0, queue_full: 0 }, client_errors: 0, in_flight: 0, queued: 0, prompt_tokens: 0, cached_tokens: 0, ttft_counts: [0, 0, 0],
    shadow: mode && { mode, policy: 'cache_aware', plain_policy: 'least_request', minutes, hour: { plain: side(10, plain), policy: side(10, policy), moved: 8 } } });
  const show = (nodes) => cluster.figures(snapshot(['r1', 'r2'], undefined, { now_ms: 1000, cluster: { ttft_bounds_s: [0.1, 1], nodes } }));
  const text = (id) => document.getElementById(id).textContent;
  let minutes = 60;
  cluster.forget();
  show({ r1: node(null), r2: node('off', 0, 0) });
  assert.equal(document.getElementById('c-shadow-tile').hidden, true);
  show({ r1: node('shadow', 300, 800), r2: node('shadow', 320, 760) });
  assert.equal(document.getElementById('c-shadow-tile').hidden, false);
  assert.deepEqual([text('h-shadow'), text('c-shadow')], ['Shadow mode: from cache', '31\u00a0% \u2192 78\u00a0%']);
  assert.equal(text('c-shadow-foot'), 'last hour: now (least_request), predicted (cache_aware); the policy would move 80\u00a0% of 20 requests');
  minutes = 7;
  show({ r1: node('control', 250, 780) });
  assert.deepEqual([text('h-shadow'), text('c-shadow')], ['Control group: from cache', '25\u00a0% : 78\u00a0%']);
  assert.equal(text('c-shadow-foot'), 'last 7 min: least_request (10 requests), cache_aware (10 requests)');
});

test('the headline has the severity of the worst problem', () => {
  const of = (...items) => snapshot(three, undefined, { attention: attention(...items), replica_count: 17, replicas_well: 16 });
  const out = problem('amber', 'replica_out', 'e1'), old = problem('grey', 'router_old', 'r9'), fail = problem('red', 'clients_fail', 'r1');
  const facts = 'All 3 routers agree; 16 of 17 replicas take requests.';
  assert.deepEqual(words.headline(of(old)), { text: facts, state: 'well' });
  assert.deepEqual(words.headline(of(out, old)), { text: 'Clients are served; 1 problem. ' + facts, state: 'amber' });
  assert.deepEqual(words.headline(of(fail, out, out)), { text: 'Clients are hurt: 1 problem. ' + facts, state: 'red' });
});

test('the strip has a line for each problem, and is hidden without problems', () => {
  const node = document.getElementById('attention');
  const show = (...items) => strip.attention(snapshot(three, undefined, { attention: attention(...items) }));
  show(problem('red', 'model_out', 'm', { what: 'model m has no usable replica' }), problem('grey', 'router_old', 'r9', { since_ms: 0 }));
  assert.equal(node.hidden, false);
  assert.deepEqual(node.children.map((x) => x.getAttribute('data-severity')), ['red', 'grey']);
  const words_of = (i) => node.children[i].children.map((x) => x.textContent).slice(1);
  assert.equal(words_of(0)[1], 'Model m has no usable replica');
  assert.match(words_of(0)[2], /^since .* \(60\ss\)$/);
  assert.deepEqual([words_of(0)[0], ...words_of(0).slice(3)], ['red: ', 'hurts nobody yet', 'gvctl replicas']);
  assert.equal(words_of(1)[2], '');
  const fold = document.getElementById('attention-fold');
  strip.begin();
  show(...Array.from({ length: 20 }, (_, i) => problem('amber', 'replica_out', `e${i}`)));
  assert.deepEqual([node.children.length, fold.textContent], [6, 'Show all 20 problems']);
  fold.listeners.click();
  assert.equal(node.children.length, 20);
  fold.listeners.click();
  show();
  assert.equal(node.hidden, true);
  assert.deepEqual([node.children.length, fold.hidden], [0, true]);
});

test('the end of a request is that of its last attempt', () => {
  const d = (outcome) => ({ ttft_s: null, cached_tokens: 0, outcome: { end: 'ok', result: 'ok', status: 200, ms: 100, ttft_ms: null, cached_tokens: null, ...outcome } });
  assert.match(words.ended(d({})), /^It was answered with 200 after 100\sms\.$/);
  assert.match(words.ended(d({ end: 'broken', result: 'cut' })), /^The connection broke .*The request failed: its answer was cut\.$/);
  assert.match(words.ended(d({ status: 404, result: 'client_error' })), /The error is the client's own\.$/);
  assert.match(words.ended(d({ end: 'engine_error', status: 500, result: 'retried' })), /The router tried the request again\.$/);
  for (const [result, is] of [['ok', false], ['client_error', false], ['client_gone', false], ['retried', false], ['cut', true], ['status_5xx', true], ['queue_full', true]]) {
    assert.equal(words.failed({ result }), is, result);
  }
  const busy = { end: 'engine_busy', status: 429, result: 'client_error' }; // it was "the client's own"
  assert.match(words.ended(d(busy)), /full with 429 .*The request failed: its client got that answer\.$/);
  assert.equal(words.failed(busy), true);
});

test('sources of knowledge about a cache', () => {
  assert.equal(words.knownBy({ cache_from: 'events' }), ', by its KV-cache events');
  assert.equal(words.knownBy({ cache_from: 'of later' }), '');
  assert.equal(words.eventsText(null), '');
  assert.equal(words.eventsText({ state: 'off', state_text: 'are not read, because the label kv-events is off' }), 'Events are not read, because the label kv-events is off.');
  const e = { state: 'live', state_text: 'are read', speaks: true, from: 'tcp://e:1', blocks: 1200, whole: true, messages: 9, missed: 0, answers: 7, tied: 5, unmatched: 1, unclear: 1, agreed: 4, contradicted: 0, believed_in_ms: null };
  assert.equal(words.eventsText(e), 'Events from tcp://e:1 are read: 1,200 blocks in its cache, 9 messages. 7 answers: 5 with known blocks, 1 without blocks, 1 with ambiguous blocks; 4 confirmed the events, 0 contradicted them.');
  assert.match(words.eventsText({ ...e, speaks: false, whole: false, missed: 2 }), /are read, on standby for the router that reports them: .*, perhaps more, 9 messages, messages lost 2 times/);
  assert.match(words.eventsText({ ...e, state: 'block_size', state_text: 'are unusable', speaks: false }), /^Events from tcp:\/\/e:1 are unusable: /);
  assert.match(words.eventsText({ ...e, state: 'contradicts', state_text: 'are ignored', believed_in_ms: 240000 }), /^Events from tcp:\/\/e:1 are ignored, for 4\u00a0min more:/);
});

test('the router\'s reasons for a choice, and filters', () => {
  const d = { why: 'cached', attempt: 1, prompt_tokens: 5210, cached_tokens: 4900, replicas: [], why_text: 'holds 4900 of 5210 prompt tokens; e2 is next with 1200' };
  assert.equal(words.because(d), 'Holds 4900 of 5210 prompt tokens; e2 is next with 1200.');
  assert.equal(words.explained({ ...d, choice: 'e1' }), '');
  const of = (more) => words.filterQuery({ end: '', model: '', replica: '', reason: '', ...more });
  assert.equal(of({}), '');
  assert.equal(of({ end: 'failed', replica: '10.0.0.1:80' }), 'failed=1&replica=10.0.0.1%3A80');
  assert.equal(of({ end: '5000', model: 'a b', reason: 'cold' }), 'slow_ms=5000&model=a+b&reason=cold');
});
