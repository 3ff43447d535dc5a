// The strip under the headline: a line for each problem.
import { $, ago, clock, h, keep, mark, say } from './dom.js';
import { upper } from './words.js';

const MARKS = { red: '\u25B2', amber: '\u25C6', grey: '\u25CB' }; // shapes, for people who do not see the colours

function make(x) {
  return h('li', { 'data-severity': x.severity }, h('span', { class: 'mark', 'aria-hidden': 'true' }, MARKS[x.severity]), h('span', { class: 'sr' }, x.severity + ': '),
    h('span', { class: 'what' }), h('span', { class: 'since' }), h('span', { class: 'hurts' }), h('code', {}));
}

const FOLDED = 6; // lines, before the figures leave the screen
let unfolded = false, last = null;

export function begin() {
  $('attention-fold').addEventListener('click', () => {
    unfolded = !unfolded;
    attention(last);
  });
}

export function attention(snap) {
  const all = snap.attention.items, list = unfolded ? all : all.slice(0, FOLDED);
  last = snap;
  mark($('attention-fold'), 'hidden', all.length > FOLDED ? null : '');
  mark($('attention-fold'), 'aria-expanded', String(unfolded));
  say($('attention-fold'), unfolded ? 'Show the worst' : `Show all ${all.length} problems`);
  keep($('attention'), list, (x) => `${x.severity} ${x.kind} ${x.about}`, make, (node, x) => {
    const [, , what, since, hurts, command] = node.children;
    say(what, upper(x.what));
    say(since, x.since_ms ? `since ${clock(x.since_ms)} (${ago(snap.now_ms - x.since_ms)})` : '');
    say(hurts, `hurts ${x.hurts}`);
    say(command, x.command);
  });
  mark($('attention'), 'hidden', list.length ? null : '');
  mark($('attention-more'), 'hidden', snap.attention.more ? null : '');
  say($('attention-more'), `${snap.attention.more} more: gvctl replicas`);
}
