// Follows /live and hands its content to the parts of the page.
import { $, ago, clock, count, h, keep, mark, number, percent, say, seconds } from './dom.js';
import * as ask from './ask.js';
import * as strip from './attention.js';
import * as log from './decisions.js';
import * as cluster from './figures.js';
import * as table from './replicas.js';
import { routers } from './routers.js';
import { spark } from './spark.js';
import { follow } from './stream.js';
import { endings, failedText, headline, othersText, readers } from './words.js';

const SECONDS = 180, MINUTES = 60, LATELY = 60, EVENTS = 100, EVENTS_FOLDED = 10, FOLD_MS = 10000, SILENT_MS = 2500;
let token = ''; // kept in memory only
let history = [], minutes = [], hour = false, events = new Map(), snap = null, frame = 0, made = null;
let heard = 0, refused = '', wanting = false; // wanting: waits for a token

const KINDS = {
  death: 'died', join: 'came', leave: 'left', drain: 'drains', retry: 'retry', avoided: 'avoided',
  replica: 'replica', config: 'settings', key: 'keys', differs: 'differs', trouble: 'trouble',
};

function call(method, path, body, signal) {
  const headers = token ? { Authorization: 'Bearer ' + token } : {};
  return fetch(path, { method, headers, body, signal, cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' });
}

/* --- what is shown --- */

function figures() {
  const last = history[history.length - 1];
  if (!last) return;
  const per = (x) => (x.requests * 1000) / x.ms;
  const sum = (key, n) => history.slice(-n).reduce((a, x) => a + x[key], 0);
  say($('f-requests'), number(per(last)));
  const lately = endings(history.slice(-LATELY));
  say($('f-requests-foot'), `here; ${failedText(lately)} in a minute`);
  mark($('f-requests-foot'), 'data-state', lately.failed > 0 ? 'bad' : null);
  say($('f-requests-others'), othersText(lately));
  mark($('f-requests-others'), 'hidden', othersText(lately) ? null : '');
  const cached = sum('cached_tokens', 10), prompt = sum('prompt_tokens', 10);
  say($('f-cached'), percent(cached, prompt));
  say($('f-cached-foot'), prompt > 0 ? `of ${number(prompt)} tokens in 10 s` : 'no answer reported this in the last 10 s');
  const ttft = [...history].reverse().find((x) => x.ttft_p50_s !== null);
  const fresh = ttft && last.time_ms - ttft.time_ms < 10000;
  say($('f-ttft'), fresh ? seconds(ttft.ttft_p50_s) : '–');
  say($('f-ttft-foot'), fresh ? `95 of 100 within ${seconds(ttft.ttft_p95_s)}` : 'no stream ended lately');
  say($('f-flight'), String(last.in_flight));
  say($('f-flight-foot'), last.queued ? `${count(last.queued, 'waits', 'wait')} for a replica` : 'no request waits for a replica');
  const range = hour ? minutes : history, times = range.map((x) => x.time_ms), slots = hour ? MINUTES : SECONDS;
  const draw = (id, of, most, text) => spark($(id), range.map(of), { most, times, text: (v) => (v === null ? 'none' : text(v)), slots });
  draw('s-requests', per, 1, (v) => `${number(v)} a second`);
  draw('s-cached', (x) => (x.prompt_tokens > 0 ? x.cached_tokens / x.prompt_tokens : null), 1, (v) => percent(v, 1));
  draw('s-ttft', (x) => x.ttft_p50_s, 0, seconds);
  draw('s-flight', (x) => x.in_flight, 4, String);
}

let unfolded = false;

const subject = (e) => e.text.split(' ')[0]; // a router is not hidden behind replicas

// A start makes many events in a moment: the folded list shows them in a single line.
export function folded(list) {
  const out = [];
  for (const e of list) {
    const before = out[out.length - 1], quiet = e.kind === 'join' || e.kind === 'replica' || e.kind === 'config' || e.kind === 'key';
    if (before && quiet && before.quiet && subject(before) === subject(e) && before.last_ms - e.last_ms < FOLD_MS) before.more += 1;
    else out.push({ ...e, quiet, more: 0 });
  }
  return out;
}

function showEvents() {
  const all = [...events.values()].sort((a, b) => b.last_ms - a.last_ms || b.id - a.id);
  const list = unfolded ? all.slice(0, EVENTS) : folded(all).slice(0, EVENTS_FOLDED);
  keep($('events'), list, (e) => e.id,
    (e) => h('li', { 'data-kind': e.kind }, h('time', { datetime: new Date(e.last_ms).toISOString() }), h('span', { class: 'kind' }, KINDS[e.kind] || e.kind), h('p')),
    (node, e) => {
      say(node.children[0], clock(e.last_ms));
      say(node.children[2], e.text + (e.count > 1 ? ` (${e.count} times since ${clock(e.time_ms)})` : '') + (e.more ? ` (and ${count(e.more, 'event')} before it)` : ''));
    });
  mark($('events-more'), 'hidden', unfolded || all.length > list.length ? null : '');
  mark($('events-more'), 'aria-expanded', String(unfolded));
  say($('events-more'), unfolded ? 'Show fewer' : `Show all ${all.length}`);
}

function state(name, text) {
  mark($('live'), 'data-state', name);
  say($('live-text'), text);
}

function advise(text, links) {
  const node = $('advice');
  mark(node, 'hidden', text ? null : '');
  if (text && node.dataset.text !== text) node.replaceChildren(text, ...(links || []));
  node.dataset.text = text || '';
}

function show(next) {
  snap = next;
  if (snap.figures && (!history.length || snap.figures.time_ms > history[history.length - 1].time_ms)) history = [...history, snap.figures].slice(-SECONDS);
  if (snap.minute && (!minutes.length || snap.minute.time_ms > minutes[minutes.length - 1].time_ms)) minutes = [...minutes, snap.minute].slice(-MINUTES);
  const { text, state: how } = headline(snap), bad = how === 'red';
  say($('headline'), text);
  mark($('headline'), 'data-state', bad ? 'bad' : how);
  strip.attention(snap);
  say($('router-name'), `${snap.router.name ? snap.router.name + ' · ' : ''}${snap.router.policy} · ${snap.router.version}`);
  document.title = `${bad ? '▲ ' : ''}${snap.router.name || 'Grapevine'} · Grapevine`;
  advise('');
  cluster.figures(snap);
  figures();
  routers(snap);
  log.names(table.replicas(snap));
  const rate = made !== null ? snap.made - made : 0;
  made = snap.made;
  say($('decisions-lead'), `Each line is one decision of this router alone; others have their own page. Open one to see what every replica would have cost.${rate > 16 ? ` Of ${rate} a second, only some are shown.` : ''}`);
  say($('who'), readers(snap));
}

/* --- the stream --- */

async function missed() {
  const [d, e] = await Promise.all([call('GET', 'decisions?n=32'), call('GET', 'events?n=64')]);
  if (d.ok) log.decisions((await d.json()).decisions);
  if (e.ok) for (const x of (await e.json()).events) events.set(x.id, x);
  showEvents();
}

function take(name, data) {
  heard = performance.now();
  refused = '';
  mark($('token-form'), 'hidden', '');
  state('live', 'live');
  if (name === 'hello') {
    if (snap && snap.router.since_ms !== data.router.since_ms) {
      log.forget();
      events = new Map();
    }
    history = data.history;
    minutes = data.minutes;
    frame = data.frame;
    made = null;
    cluster.forget();
    table.forget();
    log.decisions(data.decisions);
  } else if (name === 'snap') {
    if (data.frame > frame + 1) missed();
    frame = data.frame;
  } else {
    log.decisions(data.decisions);
    log.ends(data.ends);
  }
  if (data.events && data.events.length) {
    for (const e of data.events) events.set(e.id, e);
    for (const id of [...events.keys()].sort((a, b) => a - b).slice(0, Math.max(0, events.size - 256))) events.delete(id);
    showEvents();
  }
  if (name === 'news') return;
  table.take(data);
  show(data);
}

function askForToken() {
  wanting = true; // the router lives: do not report it gone
  state('lost', 'a token is needed');
  mark($('token-form'), 'hidden', null);
  say($('headline'), !token ? 'This router\u2019s page requires a token.' : heard ? 'This token is no longer accepted.' : 'This token is not accepted.');
  mark($('headline'), 'data-state', null);
  advise('');
  $('token').focus();
}

// Called if the router is silent, or the stream ended.
function gone() {
  const name = (snap && snap.router.name) || 'This router';
  const since = ago(performance.now() - heard);
  state('lost', 'no answer');
  say($('headline'), refused ? 'This router refuses to show its page here.' : snap ? `${name} has not answered for ${since}: it died, was stopped, or the network in between is cut.` : 'This router does not answer yet.');
  mark($('headline'), 'data-state', 'bad');
  document.title = '▲ ' + name;
  const others = ((snap && snap.members) || []).filter((m) => !m.self && m.admin && m.state === 'alive');
  if (refused) advise(refused);
  else if (others.length) advise('Below is its last report. Other routers of the cluster: ', others.map((m) => h('a', { href: `${location.protocol}//${m.admin}/` }, m.name, ' ')));
}

const live = follow(call, {
  event: take,
  token: askForToken,
  lost: (why) => {
    refused = why;
    gone();
  },
});

setInterval(() => {
  if (heard && !wanting && performance.now() - heard > SILENT_MS) gone();
  live.look();
}, 500);

$('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  token = $('token').value.trim();
  $('token').value = '';
  wanting = false;
  live.begin();
});
$('range').addEventListener('click', () => {
  hour = !hour;
  mark($('range'), 'aria-pressed', String(hour));
  figures();
});
$('events-more').addEventListener('click', () => {
  unfolded = !unfolded;
  showEvents();
});
strip.begin();
log.begin(call);
ask.begin(call, (text) => {
  token = text;
});
live.begin();
