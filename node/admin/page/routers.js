// The routers: a ring with a line between routers that hear each other, and a table of the same.
import { $, ago, h, keep, mark, s, say, seconds } from './dom.js';
import { agreement, digestCode, disagreement, hears, lives } from './words.js';

const CENTER = 150, RADIUS = 100, LABELS_MAX = 16, LINKS_MAX = 32;
let drawn = '';

function place(i, n) {
  const angle = (2 * Math.PI * i) / n - Math.PI / 2;
  return [CENTER + RADIUS * Math.cos(angle), CENTER + RADIUS * Math.sin(angle)];
}

function link(snap, a, b) {
  const one = hears(snap, a.name, b.name), other = hears(snap, b.name, a.name);
  if (!lives(a) || !lives(b)) return 'none';
  if (one === false || other === false) return one === true || other === true ? 'half' : 'none';
  return 'both';
}

function ring(snap) {
  const members = snap.members;
  const n = members.length, links = [];
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j < n; j++) {
      if (n <= LINKS_MAX || members[i].self || members[j].self) links.push([i, j, link(snap, members[i], members[j])]);
    }
  }
  const state = JSON.stringify([members.map((m) => [m.name, m.state, m.self]), links]);
  if (state === drawn) return; // redrawn only after a change
  drawn = state;
  const ys = members.map((m, i) => place(i, n)[1]);
  const top = Math.min(...ys) - 48, bottom = Math.max(...ys) + 52;
  const svg = s('svg', { viewBox: `0 ${top} 300 ${bottom - top}`, focusable: 'false' });
  for (const [i, j, kind] of links) {
    const [x1, y1] = place(i, n), [x2, y2] = place(j, n);
    svg.append(s('line', { x1, y1, x2, y2, class: 'link ' + kind }));
  }
  members.forEach((m, i) => {
    const [x, y] = place(i, n);
    svg.append(s('circle', { cx: x, cy: y, r: n > 32 ? 4 : m.self ? 13 : 11, class: `node ${m.state}${m.self ? ' self' : ''}` }));
    if (n > LABELS_MAX && !m.self) return;
    const below = y > CENTER + 1;
    const name = m.name.length > 22 ? m.name.slice(0, 20) + '…' : m.name;
    const label = s('text', { x, y: y + (below ? 30 : -20) });
    label.textContent = name;
    svg.append(label);
    if (m.self || m.state !== 'alive') {
      const sub = s('text', { x, y: y + (below ? 44 : -34), class: 'sub' });
      sub.textContent = m.state !== 'alive' ? m.state : 'this one';
      svg.append(sub);
    }
  });
  $('ring').replaceChildren(svg);
}

function makeRow() {
  return h('tr', {}, h('th', { scope: 'row' }), h('td'), h('td', { class: 'n' }), h('td', { class: 'n' }), h('td', { class: 'mono' }));
}

function nameCell(cell, m) {
  const known = cell.dataset.admin || '';
  if (m.self || !m.admin || !lives(m)) {
    if (known || !cell.firstChild || cell.textContent !== m.name) cell.replaceChildren(m.name);
    cell.dataset.admin = '';
  } else if (known !== m.admin) {
    cell.replaceChildren(h('a', { href: `${location.protocol}//${m.admin}/` }, m.name));
    cell.dataset.admin = m.admin;
  }
}

const STATES = { alive: 'well', suspect: 'silent', dead: 'dead or cut off', left: 'has left' };

function fillRow(row, m, snap) {
  const [name, state, heard, behind, digest] = row.children;
  const node = snap.agreement.nodes[m.name];
  nameCell(name, m);
  say(state, m.self ? 'this one' : lives(m) && m.draining ? 'drains' : lives(m) && !m.ready ? 'joins' : STATES[m.state] || m.state);
  mark(state, 'class', m.state === 'dead' ? 'bad' : m.state === 'suspect' || (lives(m) && m.draining) ? 'warn' : null);
  say(heard, m.self ? '' : m.heard_ms === null ? 'never' : m.heard_ms < 1000 ? 'now' : ago(m.heard_ms));
  say(behind, m.self || !lives(m) ? '' : m.lag_deltas > 0 ? `${m.lag_deltas} (${seconds(m.lag_ms / 1000)})` : '0');
  say(digest, node && node.error ? node.error : digestCode(node) || (lives(m) ? '…' : ''));
}

const agree = (snap) => ['alone', 'equal', 'moving'].includes(snap.agreement.state);

// True if nothing is wrong between routers: the ring is small then.
function calm(snap) {
  const heard = snap.attention.items.every((x) => x.kind !== 'routers_cut' && x.kind !== 'router_deaf');
  return heard && agree(snap) && (snap.members || []).every((m) => m.state === 'alive');
}

export function routers(snap) {
  mark($('routers-card'), 'data-agree', agree(snap) ? '' : null); // digests would say the same
  mark($('routers-card'), 'data-calm', calm(snap) ? '' : null);
  mark($('ring'), 'hidden', snap.members ? null : '');
  if (snap.members) ring(snap);
  say($('agree'), agreement(snap));
  const members = snap.members || [];
  keep($('routers').tBodies[0], members, (m) => m.name, makeRow, (row, m) => fillRow(row, m, snap));
  mark($('routers'), 'hidden', members.length ? null : '');
  const why = disagreement(snap);
  mark($('why-differ'), 'hidden', why.length ? null : '');
  keep($('why-differ'), why.map((text, i) => ({ text, i })), (x) => x.i, () => h('li'), (node, x) => say(node, x.text));
}
