// The replicas: a table by model, those in trouble first; a row opens into the replica's details.
import { $, count, h, keep, mark, number, percent, say, seconds, whole, width } from './dom.js';
import { eventsText, knownBy, takes } from './words.js';

const MODEL_UNKNOWN = 'Models not known yet';
const names = new Intl.Collator('en', { numeric: true }); // 10.0.0.2 stands ahead of 10.0.0.10
const byName = (r) => r.name;
const load = (r) => r.requests + r.requests_of_others;
const share = (part, of) => (of > 0 ? part / of : -1);
// Columns: name, sort key, `down` if the greatest comes first, and text.
const COLUMNS = [
  { name: 'Replica', by: byName, text: (r) => r.name },
  { name: 'State', by: (r) => (takes(r) ? 1 : 0), text: (r) => r.text || (r.health === 'unknown' ? 'not checked yet' : r.health) },
  { name: 'In flight', by: load, down: true, text: (r) => `${r.requests} + ${r.requests_of_others}` },
  { name: 'Prompts wait', by: (r) => r.queue_s, down: true, text: (r) => (r.queue_s > 0.0005 ? seconds(r.queue_s) : '0') },
  { name: 'Cache held', by: (r) => share(r.held_tokens, r.cache_tokens), down: true, text: (r) => percent(r.held_tokens, r.cache_tokens) },
  { name: 'From cache', by: (r) => share(r.cached_tokens, r.prompt_tokens), down: true, text: (r) => percent(r.cached_tokens, r.prompt_tokens) },
  { name: 'Chosen', by: (r) => r.chosen, down: true, text: (r) => number(r.chosen) },
];
const LEFT = 2; // columns of text; the others are numbers
let sorted = 0, turned = false, last = null;
const known = new Map(); // slot -> row: a snapshot of many replicas has some of them (node/route/brief.h)
const open = new Set();

function meter(name, bars) {
  const track = h('div', { class: 'track', 'aria-hidden': 'true' }, ...bars.map((c) => h('span', { class: c })));
  return [h('dt', {}, name), h('dd', {}, track), h('dd', { class: 'words' })];
}

function makeCard() {
  return h('div', { class: 'replica' }, h('p', { class: 'state' }),
    h('dl', { class: 'meter' }, ...meter('Load', ['', 'others']), ...meter('Cache', ['']), ...meter('Hits', [''])),
    h('p', { class: 'hint' }), h('p', { class: 'hint' }));
}

function fillCard(node, r, most) {
  const [state, dl, foot, events] = node.children;
  say(state, r.models.length ? `Serves ${r.models.join(', ')}` : MODEL_UNKNOWN);
  const [, bars, barsWords, , cache, cacheWords, , hits, hitsWords] = dl.children;
  width(bars.firstChild.children[0], r.requests / most);
  width(bars.firstChild.children[1], r.requests_of_others / most);
  say(barsWords, `${r.requests} from here, ${r.requests_of_others} from other routers${r.queue_s > 0.0005 ? `, ${seconds(r.queue_s)} of prompts wait` : ''}`);
  width(cache.firstChild.children[0], r.held_tokens / r.cache_tokens);
  say(cacheWords, `${number(r.held_tokens)} of ${number(r.cache_tokens)} tokens believed cached${knownBy(r)}${r.cache_size_told ? '' : ' (size is a guess)'}${r.usage !== null && r.usage >= 0 ? `, ${Math.round(100 * r.usage)}\u00a0% in use` : ''}`);
  width(hits.firstChild.children[0], r.prompt_tokens > 0 ? r.cached_tokens / r.prompt_tokens : 0);
  say(hitsWords, r.prompt_tokens > 0 ? `${percent(r.cached_tokens, r.prompt_tokens)} of ${number(r.prompt_tokens)} prompt tokens came from its cache` : 'no answer has reported it yet');
  say(foot, `${r.engine === 'auto' ? 'engine unknown' : r.engine} · computes ${number(r.prefill_tokens_per_s)} tokens/s · a step takes ${seconds((r.decode_step_ms || 0) / 1000)} · chosen ${number(r.chosen)} times`);
  say(events, eventsText(r.events));
}

function compare(a, b) {
  const c = COLUMNS[sorted], x = c.by(a), y = c.by(b);
  const order = c.by === byName ? names.compare(x, y) : x === y ? 0 : (x < y) !== (c.down === true) ? -1 : 1;
  return (turned ? -order : order) || names.compare(a.name, b.name);
}

// Returns the rows of the table: {model}, {replica}, and {card} under an open replica. Models and replicas in trouble
// come first, whatever the sort column.
export function rows(all) {
  const models = new Map();
  for (const r of all) {
    const name = r.models[0] || '';
    models.set(name, [...(models.get(name) || []), r]);
  }
  const out = (list) => list.filter((r) => !takes(r)).length;
  const groups = [...models].sort(([a, x], [b, y]) => (out(y) > 0) - (out(x) > 0) || (a < b ? -1 : 1));
  return groups.flatMap(([model, list]) => {
    const inOrder = list.sort((a, b) => takes(a) - takes(b) || compare(a, b));
    return [{ key: 'm ' + model, model, of: list.length, well: list.length - out(list) },
      ...inOrder.flatMap((r) => [{ key: 'r ' + r.name, replica: r }, ...(open.has(r.name) ? [{ key: 'c ' + r.name, card: r }] : [])])];
  });
}

function toggle(name) {
  if (!open.delete(name)) open.add(name);
  if (last) replicas(last);
}

function make(row) {
  if (row.replica) {
    const button = h('button', { type: 'button', class: 'plain' });
    button.addEventListener('click', () => toggle(row.replica.name));
    return h('tr', {}, h('th', { scope: 'row' }, button), ...COLUMNS.slice(1).map((c, i) => h('td', { class: i + 1 < LEFT ? null : 'n' })));
  }
  if (row.card) return h('tr', { class: 'card-row' }, h('td', { colspan: COLUMNS.length }, makeCard()));
  return h('tr', { class: 'group' }, h('th', { scope: 'rowgroup', colspan: COLUMNS.length }));
}

function fill(node, row, most) {
  if (row.card) fillCard(node.firstElementChild.firstElementChild, row.card, most);
  else if (row.replica) {
    const r = row.replica, button = node.firstElementChild.firstElementChild;
    mark(node, 'data-state', takes(r) ? 'well' : r.avoided ? 'avoided' : 'out');
    say(button, r.name);
    mark(button, 'aria-expanded', String(open.has(r.name)));
    COLUMNS.slice(1).forEach((c, i) => say(node.children[i + 1], c.text(r)));
  } else say(node.firstElementChild, `${row.model || MODEL_UNKNOWN}: ${row.well === row.of ? count(row.of, 'replica') : `${row.well} of ${count(row.of, 'replica')} take requests`}`);
}

function sortBy(i) {
  turned = i === sorted && !turned;
  sorted = i;
  head();
  if (last) replicas(last);
}

function head() {
  keep($('replicas-head'), COLUMNS.map((c, i) => ({ ...c, i })), (c) => c.name,
    (c) => {
      const button = h('button', { type: 'button', class: 'plain' }, c.name);
      button.addEventListener('click', () => sortBy(c.i));
      return h('th', { scope: 'col', class: c.i < LEFT ? null : 'n' }, button);
    },
    (node, c) => mark(node, 'aria-sort', c.i === sorted ? ((c.down === true) !== turned ? 'descending' : 'ascending') : null));
}

export function forget() {
  known.clear();
}

// What a snapshot says of replicas, once.
export function take(snap) {
  const [from, to] = snap.replicas_span;
  for (const slot of known.keys()) if (slot >= from && slot < to) known.delete(slot);
  for (const slot of snap.replicas_gone) known.delete(slot);
  for (const r of snap.replicas) known.set(r.slot, r);
}

// Shows them, and returns those known.
export function replicas(snap) {
  if (!last) head();
  last = snap;
  const all = [...known.values()];
  const most = Math.max(8, ...all.map(load));
  keep($('replicas'), rows(all), (row) => row.key, make, (node, row) => fill(node, row, most));
  const { cached_tokens: held, prompt_tokens: of } = snap.answered;
  const more = snap.replica_count > all.length ? ` ${whole(all.length)} are here so far; the others follow.` : '';
  say($('replicas-lead'), `${count(snap.replica_count, 'replica')}${of > 0 ? `; ${percent(held, of)} of all prompt tokens that this router saw answered came from caches` : ''}.${more}`);
  return all;
}
