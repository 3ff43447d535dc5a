// The replicas: how loaded each is, what its cache holds, how it answers.
import { $, count, h, keep, mark, number, percent, say, seconds, width } from './dom.js';
import { eventsText, knownBy, takes } from './words.js';

function meter(name, bars) {
  const track = h('div', { class: 'track', 'aria-hidden': 'true' }, ...bars.map((c) => h('span', { class: c })));
  return [h('dt', {}, name), h('dd', {}, track), h('dd', { class: 'words' })];
}

function make(r) {
  return h('li', { class: 'replica' }, h('h3', {}, r.name), h('p', { class: 'state' }),
    h('dl', { class: 'meter' }, ...meter('Load', ['', 'others']), ...meter('Cache', ['']), ...meter('Hits', [''])),
    h('p', { class: 'hint' }), h('details', { class: 'hint' }, h('summary', {}, 'KV-cache events'), h('p', {})));
}

function fill(node, r, most) {
  const [, state, dl, foot, events] = node.children;
  const well = takes(r);
  mark(node, 'data-state', well ? 'well' : r.avoided ? 'avoided' : 'out');
  const models = r.models.length ? ` · ${r.models[0]}${r.models.length > 1 ? ` and ${r.models.length - 1} more` : ''}` : '';
  say(state, (r.text || (r.health === 'unknown' ? 'not probed yet' : r.health === 'up' ? 'well' : r.health)) + models);
  const [, load, loadWords, , cache, cacheWords, , hits, hitsWords] = dl.children;
  width(load.firstChild.children[0], r.requests / most);
  width(load.firstChild.children[1], r.requests_of_others / most);
  say(loadWords, `${r.requests} from here, ${r.requests_of_others} of others${r.queue_s > 0.0005 ? `, ${seconds(r.queue_s)} of prompts wait` : ''}`);
  width(cache.firstChild.children[0], r.held_tokens / r.cache_tokens);
  say(cacheWords, `${number(r.held_tokens)} of ${number(r.cache_tokens)} tokens believed held${knownBy(r)}${r.cache_size_told ? '' : ' (size is a guess)'}${r.usage !== null && r.usage >= 0 ? `, ${Math.round(100 * r.usage)}\u00a0% in use` : ''}`);
  width(hits.firstChild.children[0], r.prompt_tokens > 0 ? r.cached_tokens / r.prompt_tokens : 0);
  say(hitsWords, r.prompt_tokens > 0 ? `${percent(r.cached_tokens, r.prompt_tokens)} of ${number(r.prompt_tokens)} prompt tokens came from its cache` : 'no answer has told yet');
  say(foot, `${r.engine === 'auto' ? 'engine unknown' : r.engine} · computes ${number(r.prefill_tokens_per_s)} tokens/s · a step takes ${seconds((r.decode_step_ms || 0) / 1000)} · chosen ${number(r.chosen)} times`);
  mark(events, 'hidden', r.events ? null : '');
  say(events.children[1], eventsText(r.events));
}

export function replicas(snap) {
  const all = [...snap.replicas].sort((a, b) => (a.name < b.name ? -1 : 1));
  const most = Math.max(8, ...all.map((r) => r.requests + r.requests_of_others));
  keep($('replicas'), all, (r) => r.name, make, (node, r) => fill(node, r, most));
  const { cached_tokens: held, prompt_tokens: of } = snap.answered;
  const more = snap.replica_count > all.length ? ` ${all.length} are shown, those that take no requests among them first.` : '';
  say($('replicas-lead'), `${count(snap.replica_count, 'replica')}${of > 0 ? `; ${percent(held, of)} of all prompt tokens that this router saw answered came from caches` : ''}.${more}`);
}
