// The box for asking where a request would go: this router weighs it, or all routers do.
import { $, h, list, mark, seconds, whole } from './dom.js';
import { legend, table } from './decisions.js';
import { explained } from './words.js';

function whyOf(e) {
  const chosen = e.replicas.find((r) => r.replica === e.choice);
  const most = Math.max(0, ...e.replicas.map((r) => r.cached_tokens));
  const why = e.replicas.length === 1 ? 'only' : chosen && chosen.due ? 'due' : most === 0 ? 'cold' : chosen && chosen.cached_tokens === most ? 'cached' : 'cheaper';
  return { ...e, why, attempt: 1, prompt_tokens: Math.round(e.prompt_tokens), cached_tokens: chosen ? chosen.cached_tokens : 0, replicas: [...e.replicas].sort((a, b) => (a.cost_s || 0) - (b.cost_s || 0)) };
}

function one(e, caption) {
  const left = (e.left_out || []).map((x) => h('li', {}, `${x.replica}: ${x.why}`));
  const leftOut = left.length ? [h('p', { class: 'hint' }, 'Not considered:'), h('ul', { class: 'hint' }, ...left)] : [];
  if (e.error || !e.replicas) return [h('p', { class: 'sentence' }, `Nowhere: ${e.error || 'no answer'}.`), ...leftOut];
  const d = whyOf(e);
  const last = e.last_resort ? [h('p', { class: 'sentence bad' }, `All replicas are down, so this is the last resort: ${e.last_resort}.`)] : [];
  return [h('p', { class: 'sentence' }, `It would go to ${d.choice}. ${explained(d)}`), ...last, table(d, caption), legend(d), ...leftOut];
}

function all(nodes) {
  const names = Object.keys(nodes).sort();
  const choices = new Map();
  for (const name of names) {
    const where = nodes[name].choice ? `would choose ${nodes[name].choice}` : `named no replica (${nodes[name].error || 'no answer'})`;
    choices.set(where, [...(choices.get(where) || []), name]);
  }
  const each = [...choices].map(([where, who]) => `${list(who)} ${where}`).join('; ');
  const words = names.length === 1 ? `${each}.` : choices.size === 1 ? `All ${names.length} routers ${[...choices.keys()][0]}.`
    : each + '. Nearly equal costs are decided at random, so routers with the same beliefs may differ: compare the costs.';
  const rows = names.map((name) => {
    const e = nodes[name], r = (e.replicas || []).find((x) => x.replica === e.choice);
    return h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, e.choice || e.error || '–'), h('td', { class: 'n' }, r ? seconds(r.cost_s) : '–'), h('td', { class: 'n' }, r ? `${whole(r.cached_tokens)} of ${whole(Math.round(e.prompt_tokens))}` : '–'));
  });
  const head = ['Router', 'Would choose', 'Cost', 'Holds'].map((t, i) => h('th', { scope: 'col', class: i > 1 ? 'n' : null }, t));
  const details = names.filter((n) => nodes[n].replicas).map((name) => h('details', {}, h('summary', {}, `The view of ${name}`), ...one(nodes[name], `What each replica would cost, in the view of ${name}`)));
  return [h('p', { class: 'sentence' }, words),
    h('div', { class: 'scroll', role: 'region', 'aria-label': 'The choice of each router', tabindex: '0' }, h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows))), ...details];
}

// `use` takes a token for the calls that follow.
export function begin(call, use) {
  let lastEvery = false, shown = false; // of the last question; shown: a token was sent

  function wantToken(json) {
    mark($('ask-token-form'), 'hidden', null);
    $('ask-answer').replaceChildren(h('p', { class: 'sentence bad' }, shown ? 'This token is not accepted.' : (json.error && json.error.message) || 'Asking needs a token.'));
    $('ask-token').focus();
  }

  async function ask(every) {
    const answer = $('ask-answer');
    lastEvery = every;
    answer.replaceChildren(h('p', { class: 'hint' }, 'Asking …'));
    try {
      const got = await call('POST', every ? 'explain?all=1' : 'explain', $('ask').value);
      const json = await got.json();
      mark($('ask-token-form'), 'hidden', '');
      if (got.status === 401) wantToken(json);
      else if (!got.ok) answer.replaceChildren(h('p', { class: 'sentence bad' }, (json.error && json.error.message) || `It answered ${got.status}.`));
      else answer.replaceChildren(...(every ? all(json.nodes) : one(json, 'What each replica would cost')).filter(Boolean));
    } catch (e) {
      answer.replaceChildren(h('p', { class: 'sentence bad' }, 'This router does not answer.'));
    }
  }
  $('ask-form').addEventListener('submit', (event) => {
    event.preventDefault();
    ask(false);
  });
  $('ask-all').addEventListener('click', () => ask(true));
  $('ask-token-form').addEventListener('submit', (event) => {
    event.preventDefault();
    use($('ask-token').value.trim());
    shown = true;
    $('ask-token').value = '';
    ask(lastEvery);
  });
}
