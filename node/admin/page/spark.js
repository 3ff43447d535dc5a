// Small pictures of the last three minutes, or of the last hour. A pointer reads their values; the last ones stand beside
// them in words.
import { clock, h, mark, s, say } from './dom.js';

const HEIGHT = 40;
const shown = new WeakMap(); // a picture -> its values, for a pointer

function point(node, event) {
  const { values, times, text, slots } = shown.get(node), box = node.getBoundingClientRect();
  const i = Math.round(((event.clientX - box.left) / box.width) * slots) - (slots - values.length);
  const tip = node.lastElementChild;
  mark(tip, 'hidden', values[i] === undefined ? '' : null);
  if (values[i] !== undefined) say(tip, `${clock(times[i])}: ${text(values[i])}`);
}

function begin(node, slots) {
  const svg = s('svg', { viewBox: `0 0 ${slots} ${HEIGHT}`, preserveAspectRatio: 'none', focusable: 'false' });
  svg.append(s('path', { class: 'fill' }), s('path', { class: 'stroke' }));
  node.append(svg, h('span', { class: 'tip', hidden: true }));
  node.addEventListener('pointermove', (event) => point(node, event));
  node.addEventListener('pointerleave', () => mark(node.lastElementChild, 'hidden', ''));
}

// `values`: the last ones of at most `slots`, null where there is none, with their `times`; `most`: the least height.
export function spark(node, values, { most, times, text, slots }) {
  const top = Math.max(most || 0, ...values.filter((v) => v !== null), 1e-9);
  const from = slots - values.length;
  const at = (i, v) => `${from + i},${(HEIGHT - 2 - (v / top) * (HEIGHT - 6)).toFixed(1)}`;
  const runs = [];
  let run = [];
  values.forEach((v, i) => {
    if (v === null) {
      if (run.length) runs.push(run);
      run = [];
    } else run.push([i, v]);
  });
  if (run.length) runs.push(run);
  if (!node.firstElementChild) begin(node, slots);
  shown.set(node, { values, times, text, slots });
  const svg = node.firstElementChild;
  svg.setAttribute('viewBox', `0 0 ${slots} ${HEIGHT}`);
  const line = runs.map((r) => 'M' + r.map(([i, v]) => at(i, v)).join('L')).join('');
  const fill = runs.map((r) => `M${from + r[0][0]},${HEIGHT}L` + r.map(([i, v]) => at(i, v)).join('L') + `L${from + r[r.length - 1][0]},${HEIGHT}Z`).join('');
  svg.children[0].setAttribute('d', fill);
  svg.children[1].setAttribute('d', line);
}
