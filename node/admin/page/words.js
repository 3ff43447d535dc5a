// The page's sentences: figures and states in words.
import { ago, clock, count, list, seconds, whole } from './dom.js';

export const upper = (text) => text[0].toUpperCase() + text.slice(1);

const CLASSES = {
  registry: 'the list of replicas',
  reports: 'the load and speed of replicas',
  poison: 'the requests that killed engines',
  index: 'which replica holds which prefix',
};

export const lives = (m) => m.state === 'alive' || m.state === 'suspect';

// Returns true if router a hears router b; undefined if a did not say.
function look(snap, found, a, b) {
  if (found.self && a === found.self.name) {
    const m = found.members.get(b);
    return !!m && m.heard_ms !== null && m.heard_ms < found.heard_ms && lives(m);
  }
  const node = snap.agreement.nodes[a], ms = node && node.hears ? node.hears[b] : undefined;
  return ms === undefined ? undefined : ms !== null && ms < found.heard_ms;
}

// Caches values needed more than once, for each snapshot.
const known = new WeakMap();

function of(snap) {
  let found = known.get(snap);
  if (!found) {
    const members = snap.members || [];
    // Older reports do not count. Each router sends something to some other router eight times a second.
    found = { self: members.find((m) => m.self), members: new Map(members.map((m) => [m.name, m])), heard_ms: Math.max(1000, 350 * members.length) };
    known.set(snap, found);
  }
  return found;
}

export const hears = (snap, a, b) => look(snap, of(snap), a, b);

// Returns true in a large cluster, where routers do not report which others they hear.
function untold(snap) {
  const told = Object.values(snap.agreement.nodes).some((n) => n.hears && Object.keys(n.hears).length > 0);
  return !told && snap.agreement.state !== 'unknown' && snap.members.filter(lives).length > 2;
}

const digestOf = (n) => [n.registry, n.poison, n.reports, n.whole_index].join();

// Returns six hex digits, equal if all digests are equal.
export function digestCode(node) {
  if (!node || node.error || !node.registry) return null;
  let x = 0x811c9dc5;
  for (const c of digestOf(node)) x = Math.imul(x ^ c.charCodeAt(0), 0x01000193) >>> 0;
  return (x >>> 8).toString(16).padStart(6, '0');
}

function silent(snap) {
  return Object.entries(snap.agreement.nodes).filter(([, n]) => n.error).map(([name]) => name);
}

export function agreement(snap) {
  if (!snap.members) return 'This router runs alone: there is no other router to compare with.';
  return agreed(snap) + (untold(snap) ? ' In a cluster this large, routers do not report which others they hear. So this page cannot show whether two other routers hear each other.' : '');
}

function agreed(snap) {
  const a = snap.agreement;
  // There may be too many routers to send all digests.
  const n = Object.keys(a.nodes).length || snap.members.filter(lives).length;
  const since = a.since_ms ? ` Since ${clock(a.since_ms)} (${ago(snap.now_ms - a.since_ms)}), as far as routers have compared.` : '';
  switch (a.state) {
    case 'equal':
      return (n > 1 ? `All ${n} living routers hold the same state: their digests are equal.` : 'No other living router is there to compare with.') + (n > 1 ? since : '');
    case 'moving':
      return `All ${n} living routers agree, except for updates still on their way.${since}`;
    case 'joining':
      return 'A router is joining and has not copied the state yet.';
    case 'silent':
      return `${list(silent(snap))} did not answer: it died, is cut off, or is very busy.`;
    case 'incomparable':
      return 'The routers\u2019 states cannot be compared: their clocks or settings differ too much.';
    case 'differ':
      return `The routers differ in ${list(a.differ.map((c) => CLASSES[c] || c))}.${since}`;
    default:
      return 'The routers\u2019 states are being compared.';
  }
}

// Explains the differences, a sentence each; empty if all is well.
export function disagreement(snap) {
  if (!snap.members) return [];
  const out = [];
  const a = snap.agreement;
  const self = snap.members.find((m) => m.self);
  for (const m of snap.members) {
    if (m.state === 'dead') out.push(`Nothing was heard of ${m.name} for ${ago(m.heard_ms)}: it died, or the network in between is cut. Its load no longer counts.`);
    else if (m.state === 'suspect') out.push(`${m.name} has been silent for ${ago(m.heard_ms)}: other routers are asked to reach it.`);
    else if (m.state === 'left') out.push(`${m.name} left in order.`);
    else if (m.draining) out.push(`${m.name} drains: it takes no new requests, and leaves when its last request has ended.`);
    else if (m.tcp_filtered) out.push(`TCP to ${m.name} at ${m.tcp_filtered} is filtered and UDP is not: open its gossip port for both. Until then, only messages that fit into datagrams arrive.`);
    else if (!m.self && !m.session) out.push(`This router knows of ${m.name}, but has no session with it yet.`);
    if (lives(m) && m.lag_deltas > 0 && m.lag_ms > 500) out.push(`This router lacks ${count(m.lag_deltas, 'message')} of ${m.name}, the oldest since ${seconds(m.lag_ms / 1000)} ago, and asks for them again.`);
  }
  for (const x of snap.attention.items) if (x.kind === 'routers_cut' || x.kind === 'router_deaf') out.push(`${upper(x.what)}. Other routers relay the messages of both, so no router misses any.`);
  if (self && snap.members.length > 1 && !snap.members.some((m) => !m.self && lives(m))) out.push('This router hears no other: it is cut off, or the others are gone. It routes by the state that it has.');
  if (a.state === 'incomparable') out.push('gvctl members shows settings that differ. Compare the machines\u2019 clocks, too.');
  if (a.state === 'differ') {
    const groups = new Map();
    for (const [name, node] of Object.entries(a.nodes)) {
      const code = digestCode(node);
      if (code) groups.set(code, [...(groups.get(code) || []), name]);
    }
    if (groups.size > 1) out.push([...groups.values()].map((g) => list(g)).join(' | ') + ': within a group all routers hold the same state; the groups differ. Every second, two routers compare states and exchange what is missing.');
  }
  for (const name of silent(snap)) if (snap.members.some((m) => m.name === name && lives(m))) out.push(`${name} did not answer the request for its digests (${a.nodes[name].error}).`);
  return out;
}

export const takes = (r) => (r.health === 'up' || r.health === 'unknown') && !r.avoided && r.why !== 'asleep';

// Returns the source of knowledge about a replica's cache, appended to "believed cached".
export const knownBy = (r) => ({ events: ', by its KV-cache events', answers: ', with a size corrected by its answers', inferred: ', inferred from routed requests' })[r.cache_from] || '';

// Describes this router's reader of the replica's KV-cache events; empty: not read here.
export function eventsText(e) {
  if (!e) return '';
  if (e.state === 'off') return `Events ${e.state_text}.`;
  const until = e.believed_in_ms ? `, for ${ago(e.believed_in_ms)} more` : '';
  const reads = e.state === 'live' && !e.speaks ? ', on standby for the router that reports them' : '';
  return `Events from ${e.from} ${e.state_text}${until}${reads}: ${count(e.blocks, 'block')} in its cache${e.whole ? '' : ', perhaps more'}, ${count(e.messages, 'message')}${e.missed > 0 ? `, messages lost ${count(e.missed, 'time')}` : ''}. `
    + `${count(e.answers, 'answer')}: ${whole(e.tied)} with known blocks, ${whole(e.unmatched)} without blocks, ${whole(e.unclear)} with ambiguous blocks; ${whole(e.agreed)} confirmed the events, ${whole(e.contradicted)} contradicted them.`;
}

// Counts how requests ended in some seconds of figures: the only definition (docs/glossary.md).
export function endings(seconds) {
  const sum = (of) => seconds.reduce((a, x) => a + of(x), 0);
  const out = { requests: sum((x) => x.requests), client_errors: sum((x) => x.client_errors), client_gone: sum((x) => x.client_gone), hidden: sum((x) => x.hidden) };
  for (const reason of ['cut', 'status_5xx', 'queue_full']) out[reason] = sum((x) => x.failed[reason]);
  out.failed = out.cut + out.status_5xx + out.queue_full;
  return out;
}

// Returns the number of failures and the reasons.
export function failedText(e) {
  const why = [[e.cut, 'cut'], [e.status_5xx, 'with a 5xx'], [e.queue_full, 'for a full queue']].filter(([n]) => n > 0).map(([n, word]) => `${whole(n)} ${word}`);
  return `${whole(e.failed)} failed${why.length ? ` (${why.join(', ')})` : ''}`;
}

// Returns the other endings: no failures, or failures hidden from clients; empty: none.
export function othersText(e) {
  const other = [];
  if (e.client_errors > 0) other.push(count(e.client_errors, 'client error'));
  if (e.client_gone > 0) other.push(`${whole(e.client_gone)} abandoned by clients`);
  if (e.hidden > 0) other.push(`${count(e.hidden, 'failure')} hidden by a retry`);
  return other.join(', ');
}

function routersText(snap) {
  if (!snap.members) return [];
  const alive = snap.members.filter(lives).length;
  if (alive < 2) return ['this router is alone'];
  const agree = snap.agreement.state === 'equal' || snap.agreement.state === 'moving';
  return [agree ? `all ${alive} routers agree` : snap.agreement.state === 'joining' ? 'a router joins' : `${alive} routers`];
}

// Returns the cluster's state in a sentence, and as a word: "well", "amber" or "red".
export function headline(snap) {
  const list = snap.attention.items, red = list.filter((x) => x.severity === 'red'), amber = list.filter((x) => x.severity === 'amber');
  const all = snap.replica_count, well = snap.replicas_well, out = routersText(snap);
  if (all === 0) out.push('there are no replicas');
  else if (well === all) out.push(all === 1 ? 'the only replica takes requests' : `all ${whole(all)} replicas take requests`);
  else out.push(`${whole(well)} of ${whole(all)} replicas take requests`);
  const facts = upper(out.join('; ') + '.');
  const state = red.length ? 'red' : amber.length || !snap.router.ready ? 'amber' : 'well';
  const lead = red.length ? `Clients are hurt: ${count(red.length, 'problem')}.` : amber.length ? `Clients are served; ${count(amber.length, 'problem')}.`
    : snap.router.ready ? '' : `This router is not ready: ${snap.router.why}.`;
  return { text: lead ? `${lead} ${facts}` : facts, state };
}

export function readers(snap) {
  const r = snap.router;
  const where = r.loopback_only ? 'only from this router\u2019s machine (its admin port listens on loopback)' : `from wherever the admin port (${r.admin_host}) can be reached`;
  return `This page is visible ${where}${r.reading_token ? ', with a token for reading' : ', without a token'}. ${count(r.viewers, 'tab shows', 'tabs show')} ${r.name || 'this router'} now. The page changes nothing.${r.loopback_only || r.reading_token ? '' : ' From another machine, asking where a request would go needs a token.'}`;
}

// Terms of the cost: name in the table, meaning, and value in a row.
export const TERMS = [
  { key: 'queue', name: 'Waits', about: 'prompts ahead of this one at the replica', of: (r) => r.queue_s },
  { key: 'uncached', name: 'Computes', about: 'the part of the prompt that is not in the replica\u2019s cache', of: (r) => r.uncached_s },
  { key: 'displaced', name: 'Pushes out', about: 'cached tokens that this prompt would evict and other requests still need', of: (r, d) => d.displaced_weight * r.displaced_s },
  { key: 'adapter', name: 'Loads', about: 'a LoRA adapter that the replica has not loaded', of: (r) => r.adapter_s },
  { key: 'decode', name: 'Slows', about: 'output tokens of this answer and of those running there', of: null },
];

// Returns the part of each term in the cost. The last part is the rest; its weight depends on the load everywhere.
export function parts(row, decision) {
  if (row.cost_s === null || row.cost_s === undefined) return null;
  const out = TERMS.slice(0, -1).map((t) => Math.max(0, t.of(row, decision) || 0));
  const sum = out.reduce((a, b) => a + b, 0);
  return [...out, Math.max(0, row.cost_s - sum)];
}

const rowOf = (d, name) => (d.replicas || []).find((r) => r.replica === name);

// Returns the term in which row a exceeds row b by most.
function dearest(a, b, d) {
  const x = parts(a, d), y = parts(b, d);
  if (!x || !y) return null;
  let most = 0;
  for (let i = 1; i < x.length; i++) if (x[i] - y[i] > x[most] - y[most]) most = i;
  return x[most] > y[most] ? { term: TERMS[most], more: x[most] - y[most] } : null;
}

const SAID = {
  queue: 'more prompts wait there', uncached: 'it would have to compute more', displaced: 'it would evict there what others need',
  adapter: 'it would have to load the adapter', decode: 'more answers are running there',
};

// Returns the reason for the choice, short enough for a line.
export function because(d) {
  const n = whole(d.prompt_tokens);
  if (d.why_text) return `${upper(d.why_text)}.`; // the router's words (node/route/reason.h); /explain has none
  const again = d.attempt > 1 ? `Attempt ${d.attempt}. ` : '';
  switch (d.why) {
    case 'cached':
      return `${again}It holds ${whole(d.cached_tokens)} of ${n} prompt tokens; no other holds more.`;
    case 'cheaper': {
      const most = (d.replicas || []).reduce((a, r) => (r.cached_tokens > a.cached_tokens ? r : a), { cached_tokens: 0 });
      const why = rowOf(d, d.choice) && most.replica ? dearest(most, rowOf(d, d.choice), d) : null;
      return `${again}${most.replica || 'Another'} holds more of the prompt (${whole(most.cached_tokens)} of ${n} tokens), but ${why ? SAID[why.term.key] : 'costs about the same'}.`;
    }
    case 'cold':
      return `${again}No replica holds any of the ${n} prompt tokens.`;
    case 'due':
      return `${again}It is slow, but nothing waits there, and it got less work than its speed allows.`;
    case 'only':
      return `${again}No other replica could take it.`;
    case 'maker':
      return `${again}It made the stored response that the request refers to.`;
    case 'load':
      return `${again}The router read no prompt: this replica had the fewest requests.`;
    default:
      return again;
  }
}

// Explains the choice at length: against the runner-up, and against the replica with the most cached tokens.
export function explained(d) {
  const out = [];
  const chosen = rowOf(d, d.choice);
  if (d.attempt > 1 && !d.why_text) out.push(`This is attempt ${d.attempt}: another replica failed before.`);
  if (!d.why_text) out.push(because({ ...d, attempt: 1 })); // the line above says it
  if (d.shadow_choice) out.push(d.shadow_choice === d.choice ? 'The router\u2019s own policy would have chosen the same.' : `The router\u2019s own policy would have chosen ${d.shadow_choice}.`);
  if (chosen && chosen.cost_s !== null && chosen.cost_s !== undefined) {
    const others = d.replicas.filter((r) => r.replica !== d.choice).sort((a, b) => a.cost_s - b.cost_s);
    const next = others[0];
    if (next) {
      const near = Math.abs(next.cost_s - chosen.cost_s) < Math.max(0.001, 0.05 * chosen.cost_s);
      const why = dearest(next, chosen, d);
      out.push(`It costs ${seconds(chosen.cost_s)} there, ${near ? 'about as much as' : 'against'} ${near ? '' : seconds(next.cost_s) + ' '}at ${next.replica}${near ? ': nearly equal costs are decided at random, so that routers do not all choose the same' : why ? `: ${SAID[why.term.key]} (${seconds(why.more)})` : ''}.`);
      if (next.cost_s < chosen.cost_s && !near) out.push(chosen.due ? 'Another replica was cheaper, but this slow one was idle.' : 'Another replica was cheaper: the policy does not choose by cost alone.');
    }
  } else if (chosen) {
    out.push(`The policy ${d.policy} compares no costs.`);
  }
  return out.join(' ');
}

const ENDS = {
  ok: 'It was answered', client_gone: 'The client left', engine_busy: 'The replica reported that it is full', engine_error: 'The replica failed',
  connect_failed: 'The replica could not be reached', broken: 'The connection broke', in_doubt: 'The replica failed, maybe because of the request',
  slow: 'It reached a time limit', stalled: 'The replica stalled', not_sent: 'It was not sent',
  rejected: 'The replica rejected it',
};

// Results of the request after this attempt; an attempt before the last: retried.
const RESULTS = {
  client_error: 'The error is the client\'s own.', status_5xx: 'The request failed: its client got a 5xx.',
  queue_full: 'The request failed: the queue was full when it was to be tried again.', cut: 'The request failed: its answer was cut.',
  retried: 'The router tried the request again.',
};

// An engine's 429 because it is full counts as the client's own error, but is none.
const busy = (o) => o.result === 'client_error' && o.end === 'engine_busy';

export const failed = (o) => o.result === 'status_5xx' || o.result === 'queue_full' || o.result === 'cut' || busy(o);

export function ended(d) {
  const o = d.outcome;
  if (!o) return 'It is under way.';
  const bits = [ENDS[o.end] || o.end];
  if (o.status) bits.push(`with ${o.status}`);
  bits.push(`after ${seconds(o.ms / 1000)}`);
  let text = bits.join(' ');
  if (o.ttft_ms !== null) text += `, the first token after ${seconds(o.ttft_ms / 1000)}${d.ttft_s ? ` (${seconds(d.ttft_s)} was predicted)` : ''}`;
  text += '.';
  if (busy(o)) text += ' The request failed: its client got that answer.';
  else if (RESULTS[o.result]) text += ' ' + RESULTS[o.result];
  if (o.cached_tokens !== null) text += ` The engine took ${whole(o.cached_tokens)} of ${whole(o.prompt_tokens)} prompt tokens from its cache; ${whole(d.cached_tokens)} were predicted.`;
  return text;
}


// Builds the query of GET /decisions from a form's values; empty: no filter is set.
export function filterQuery({ end, model, replica, reason }) {
  const query = new URLSearchParams();
  if (end === 'failed') query.set('failed', '1');
  else if (end) query.set('slow_ms', end);
  for (const [name, value] of Object.entries({ model, replica, reason })) if (value) query.set(name, value);
  return query.toString();
}
