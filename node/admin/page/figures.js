// The figures of all routers: rates, from the counters that each router reports once a second.
import { $, count, mark, number, percent, say, seconds } from './dom.js';
import { failedText } from './words.js';

const KEPT_MS = 65000, RATE_MS = 5000, CACHE_MS = 60000, FAILED_MS = 60000;
let samples = []; // {at, nodes}, the oldest first

export function forget() {
  samples = [];
}

const told = (node) => node && !node.error && node.ttft_counts;

// Sums the counts of all routers within the last `ms`, and returns the time covered. A restarted router begins at 0; a
// router not heard before does not count yet.
export function within(ms) {
  const now = samples[samples.length - 1];
  const out = { ms: 0, requests: 0, failed: 0, cut: 0, status_5xx: 0, queue_full: 0, client_errors: 0, prompt_tokens: 0, cached_tokens: 0, ttft_counts: [] };
  for (const [name, node] of Object.entries(now ? now.nodes : {})) {
    if (!told(node)) continue;
    const first = samples.find((x) => x.at >= now.at - ms && told(x.nodes[name]));
    const before = first.nodes[name].since_ms === node.since_ms ? first.nodes[name] : null;
    const since = (of) => of(node) - (before ? of(before) : 0);
    out.ms = Math.max(out.ms, node.time_ms - (before ? before.time_ms : node.since_ms));
    for (const key of ['requests', 'client_errors', 'prompt_tokens', 'cached_tokens']) out[key] += Math.max(0, since((x) => x[key]));
    for (const key of ['cut', 'status_5xx', 'queue_full']) out[key] += since((x) => x.failed[key]);
    node.ttft_counts.forEach((n, i) => (out.ttft_counts[i] = (out.ttft_counts[i] || 0) + n - (before ? before.ttft_counts[i] : 0)));
  }
  out.failed = out.cut + out.status_5xx + out.queue_full;
  return out;
}

// Returns the value that this share does not exceed, interpolated in the bucket (base/histogram.h); null: no counts.
export function quantile(counts, bounds, share) {
  const all = counts.reduce((a, b) => a + b, 0);
  if (all === 0) return null;
  let below = 0;
  for (let i = 0; i < bounds.length; i++) {
    const from = i > 0 ? bounds[i - 1] : 0;
    if (counts[i] > 0 && below + counts[i] >= share * all) return from + ((bounds[i] - from) * (share * all - below)) / counts[i];
    below += counts[i];
  }
  return bounds[bounds.length - 1];
}

// The comparison of the policy with a plain one, of the last hour: sums of the routers in that mode. Null: none is in one.
export function compared(nodes) {
  const all = Object.values(nodes).map((n) => n.shadow).filter((s) => s && s.mode !== 'off');
  const mode = all.some((s) => s.mode === 'shadow') ? 'shadow' : 'control', of = all.filter((s) => s.mode === mode);
  if (!of.length) return null;
  const sum = (get) => of.reduce((a, s) => a + get(s.hour), 0);
  const side = (name) => ({ requests: sum((h) => h[name].requests), prompt: sum((h) => h[name].prompt_tokens), cached: sum((h) => h[name].cached_tokens) });
  return { mode, routers: of.length, policy: of[0].policy, plain: of[0].plain_policy, minutes: Math.max(...of.map((s) => s.minutes)), sides: { plain: side('plain'), policy: side('policy') }, moved: sum((h) => h.moved) };
}

function shadow(nodes) {
  const c = compared(nodes), is = c && c.mode === 'shadow';
  mark($('c-shadow-tile'), 'hidden', c ? null : '');
  if (!c) return;
  const when = c.minutes < 60 ? `last ${c.minutes} min` : 'last hour';
  const share = (s) => (s.prompt > 0 ? percent(s.cached, s.prompt) : '?');
  say($('h-shadow'), is ? 'Shadow mode: from cache' : 'Control group: from cache');
  say($('c-shadow'), is ? `${share(c.sides.plain)} \u2192 ${share(c.sides.policy)}` : `${share(c.sides.plain)} : ${share(c.sides.policy)}`);
  say($('c-shadow-foot'), is
    ? `${when}: now (${c.plain}), predicted (${c.policy}); the policy would move ${percent(c.moved, c.sides.plain.requests)} of ${count(c.sides.plain.requests, 'request')}`
    : `${when}: ${c.plain} (${count(c.sides.plain.requests, 'request')}), ${c.policy} (${count(c.sides.policy.requests, 'request')})`);
}

export function figures(snap) {
  const nodes = snap.cluster.nodes, names = Object.keys(nodes).filter((n) => told(nodes[n]));
  mark($('cluster'), 'hidden', names.length ? null : '');
  if (!names.length) return;
  samples = [...samples.filter((x) => x.at > snap.now_ms - KEPT_MS), { at: snap.now_ms, nodes }];
  const rate = within(RATE_MS), minute = within(FAILED_MS), cache = within(CACHE_MS);
  const now = (key) => names.reduce((a, n) => a + nodes[n][key], 0);
  const silent = Object.keys(nodes).length - names.length;
  say($('h-cluster'), snap.members ? `All routers${silent ? ` (${count(silent, 'router')} did not answer)` : ''}` : 'This router, which runs alone');
  say($('c-requests'), rate.ms > 0 ? number((rate.requests * 1000) / rate.ms) : '\u2013');
  say($('c-failed'), number(minute.failed));
  mark($('c-failed'), 'data-state', minute.failed > 0 ? 'bad' : null);
  say($('c-failed-foot'), `in a minute${minute.failed ? `: ${failedText(minute).replace(/^.*\(|\)$/g, '')}` : ''}; ${number(minute.client_errors)} clients\u2019 own 4xx`);
  say($('c-cached'), percent(cache.cached_tokens, cache.prompt_tokens));
  say($('c-cached-foot'), cache.prompt_tokens > 0 ? `of ${number(cache.prompt_tokens)} prompt tokens in a minute` : 'no answer reported it in a minute');
  const ttft = (share) => seconds(quantile(cache.ttft_counts, snap.cluster.ttft_bounds_s, share));
  say($('c-ttft'), ttft(0.5));
  say($('c-ttft-foot'), `p50 of a minute; p95 ${ttft(0.95)}`);
  say($('c-flight'), number(now('in_flight')));
  say($('c-flight-foot'), `${number(now('queued'))} waiting`);
  shadow(nodes);
}
