// Decisions: a line each, which opens into the decision's table of candidates.
import { $, clock, count, h, keep, mark, number, say, seconds, whole, width } from './dom.js';
import { TERMS, because, ended, explained, failed, filterQuery, parts } from './words.js';

const LINES = 14, FOUND = 32, AGAIN_MS = 2000;
const FILTERS = { end: 'd-end', model: 'd-model', replica: 'd-replica', reason: 'd-reason' };
let lines = [];
let query = '', call = null; // query: of the filters, which the router applies to all that it keeps
let paused = false, waiting = 0;
const byId = new Map();

function stack(row, d, most) {
  const bar = h('span', { class: 'stack', 'aria-hidden': 'true' });
  (parts(row, d) || []).forEach((value, i) => {
    const part = h('span', { class: TERMS[i].key });
    width(part, most > 0 ? value / most : 0);
    bar.append(part);
  });
  return bar;
}

// Explains the terms in this table.
export function legend(d) {
  const used = TERMS.filter((t, i) => d.replicas.some((r) => (parts(r, d) || [])[i] > 0));
  return h('ul', { class: 'legend', 'aria-label': 'Terms of the cost' }, ...used.map((t) => h('li', {}, h('span', { class: 'key ' + t.key, 'aria-hidden': 'true' }), `${t.name}: ${t.about}`)));
}

// `d`: a decision, or an answer of /explain, with the same rows.
export function table(d, caption) {
  const costs = d.replicas.some((r) => r.cost_s !== null && r.cost_s !== undefined);
  const terms = TERMS.map((t, i) => i).filter((i) => d.replicas.some((r) => (parts(r, d) || [])[i] > 0));
  const most = Math.max(0, ...d.replicas.map((r) => r.cost_s || 0));
  const head = [['Replica'], ['Holds', 'n'], ...(costs ? [['Cost', 'n'], ...terms.map((i) => [TERMS[i].name, 'n', TERMS[i].key])] : []), ['In flight', 'n']];
  const rows = d.replicas.map((r) => {
    const x = parts(r, d);
    const cells = [h('td', { class: 'n' }, number(r.cached_tokens))];
    if (costs) cells.push(h('td', { class: 'n' }, seconds(r.cost_s)), ...terms.map((i) => h('td', { class: 'n' }, x && x[i] > 0 ? seconds(x[i]) : '0')));
    cells.push(h('td', { class: 'n' }, String(r.requests)));
    const chosen = r.replica === d.choice;
    return h('tr', { class: chosen ? 'chosen' : null }, h('th', { scope: 'row' }, r.replica, chosen ? h('span', { class: 'sr' }, ' (chosen)') : null, costs ? stack(r, d, most) : null), ...cells);
  });
  const cell = ([text, kind, key]) => h('th', { scope: 'col', class: kind }, key ? h('span', { class: 'key ' + key, 'aria-hidden': 'true' }) : null, text);
  return h('div', { class: 'scroll', role: 'region', 'aria-label': caption, tabindex: '0' },
    h('table', { class: 'costs' }, h('caption', { class: 'sr' }, caption), h('thead', {}, h('tr', {}, ...head.map(cell))), h('tbody', {}, ...rows)));
}

function open(node, d) {
  const left = d.candidates - d.replicas.length;
  const id = d.request || '–';
  const ask = h('button', { type: 'button' }, 'Ask them about a request of your own');
  ask.addEventListener('click', () => {
    $('ask').focus();
    $('ask').scrollIntoView({ block: 'center' });
  });
  node.replaceChildren(
    ...[explained(d)].filter(Boolean).map((text) => h('p', { class: 'sentence' }, text)), table(d, `What each replica would have cost decision ${d.id}`), legend(d),
    h('p', { class: 'hint' }, `${left > 0 ? `${whole(left)} more were weighed and cost more. ` : ''}Policy ${d.policy}; about ${whole(d.prompt_tokens)} prompt tokens, ${whole(d.output_tokens)} of output expected. Request ${id}.`),
    h('p', { class: 'sentence end' }, ended(d)),
    h('p', { class: 'hint' }, 'This is a decision of this router alone. What other routers would have chosen is unknown, because no prompt is kept.'), ask);
}

function make(d) {
  const button = h('button', { type: 'button', 'aria-expanded': 'false', 'aria-controls': 'd' + d.id },
    h('span', { class: 'to' }), h('span', { class: 'when' }), h('span', { class: 'because' }));
  const body = h('div', { class: 'open', id: 'd' + d.id, hidden: true });
  button.addEventListener('click', () => {
    const opens = button.getAttribute('aria-expanded') !== 'true';
    mark(button, 'aria-expanded', opens);
    body.hidden = !opens;
    if (opens) {
      open(body, byId.get(d.id) || d);
      pause(true); // the line must not move while somebody reads
    }
  });
  return h('li', { class: 'decision' }, h('h3', {}, button), body);
}

function update(node, d) {
  const [to, when, why] = node.firstChild.firstChild.children;
  const o = d.outcome;
  say(to, `${d.choice}${d.model ? ' · ' + d.model : ''}`);
  say(when, clock(d.time_ms) + (o ? ` · ${o.status && o.status !== 200 ? o.status + ' · ' : ''}${o.result === 'cut' ? 'cut · ' : o.result === 'retried' ? 'retried · ' : ''}${seconds((o.ttft_ms !== null ? o.ttft_ms : o.ms) / 1000)}` : ' · …'));
  mark(when, 'class', o && (failed(o) || o.result === 'retried') ? 'when bad' : 'when');
  say(why, because(d));
  const end = node.querySelector('.end');
  if (end) say(end, ended(d));
}

function draw() {
  keep($('decisions'), lines, (d) => d.id, make, update);
}

const newest = () => [...byId.values()].sort((a, b) => b.id - a.id).slice(0, LINES);

function pause(on) {
  paused = on;
  mark($('pause'), 'aria-pressed', on);
  if (!on) {
    waiting = 0;
    if (query) find();
    else lines = newest();
    draw();
  }
  label();
}

// Asks the router for the decisions that pass the filters.
async function find() {
  const asked = query;
  try {
    const got = await call('GET', `decisions?n=${FOUND}&${asked}`);
    const json = await got.json();
    if (asked !== query || paused) return;
    lines = got.ok ? json.decisions.reverse() : [];
    for (const d of lines) byId.set(d.id, d);
    say($('d-found'), !got.ok ? json.error.message : lines.length === FOUND ? `The last ${FOUND} that match.` : `${count(lines.length, 'decision')} of the last 512 ${lines.length === 1 ? 'matches' : 'match'}.`);
    draw();
  } catch (e) {
    say($('d-found'), 'This router does not answer.');
  }
}

function filter() {
  query = filterQuery(Object.fromEntries(Object.entries(FILTERS).map(([name, id]) => [name, $(id).value.trim()])));
  mark($('d-clear'), 'hidden', query ? null : '');
  say($('d-found'), '');
  pause(false);
}

// Names that the fields for a model and a replica offer.
export function names(replicas) {
  const offer = (id, list) => keep($(id), [...new Set(list)].sort(), (x) => x, (x) => h('option', { value: x }), () => {});
  offer('d-models', replicas.flatMap((r) => r.models));
  offer('d-replicas', replicas.map((r) => r.name));
}

function label() {
  say($('pause'), paused ? (waiting > 0 ? `Go on (${waiting} new)` : 'Go on') : 'Pause');
}

export function decisions(list) {
  for (const d of list) {
    if (!byId.has(d.id)) waiting += paused;
    byId.set(d.id, d);
  }
  const open_ids = new Set(lines.map((d) => d.id));
  for (const id of [...byId.keys()].sort((a, b) => a - b).slice(0, Math.max(0, byId.size - 128))) if (!open_ids.has(id)) byId.delete(id);
  lines = paused || query ? lines.map((d) => byId.get(d.id) || d) : newest();
  draw();
  label();
}

export function ends(list) {
  for (const e of list) {
    const d = byId.get(e.id);
    if (d && e.outcome) d.outcome = e.outcome;
  }
  if (list.length) draw();
}

export function forget() {
  byId.clear();
  lines = [];
}

export function begin(caller) {
  call = caller;
  $('pause').addEventListener('click', () => pause(!paused));
  for (const id of Object.values(FILTERS)) $(id).addEventListener('change', filter);
  $('d-filters').addEventListener('submit', (event) => event.preventDefault());
  $('d-clear').addEventListener('click', () => {
    for (const id of Object.values(FILTERS)) $(id).value = '';
    filter();
  });
  setInterval(() => query && !paused && find(), AGAIN_MS);
}
