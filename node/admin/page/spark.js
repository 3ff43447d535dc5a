// Small charts of the last three minutes. The text beside each says the same in words.
import { s } from './dom.js';

const SECONDS = 180;

export function spark(node, values, most) {
  const width = SECONDS, height = 40;
  const top = Math.max(most || 0, ...values.filter((v) => v !== null), 1e-9);
  const from = SECONDS - values.length;
  const at = (i, v) => `${from + i},${(height - 2 - (v / top) * (height - 6)).toFixed(1)}`;
  const runs = [];
  let run = [];
  values.forEach((v, i) => {
    if (v === null) {
      if (run.length) runs.push(run);
      run = [];
    } else run.push([i, v]);
  });
  if (run.length) runs.push(run);
  let svg = node.firstElementChild;
  if (!svg) {
    svg = s('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', focusable: 'false' });
    svg.append(s('path', { class: 'fill' }), s('path', { class: 'stroke' }));
    node.append(svg);
  }
  const line = runs.map((r) => 'M' + r.map(([i, v]) => at(i, v)).join('L')).join('');
  const fill = runs.map((r) => `M${from + r[0][0]},${height}L` + r.map(([i, v]) => at(i, v)).join('L') + `L${from + r[r.length - 1][0]},${height}Z`).join('');
  svg.children[0].setAttribute('d', fill);
  svg.children[1].setAttribute('d', line);
}
