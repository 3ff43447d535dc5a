// Elements without markup in strings: text from a server or a client is never parsed as HTML.

export const $ = (id) => document.getElementById(id);

export function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') node.className = value;
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

export function s(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

// Changes a node only if the text differs, so that nothing moves under a reader's eyes.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function mark(node, name, value) {
  if (value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

// Keeps one child of `parent` for each item, by key, in the order of the items.
export function keep(parent, items, key, make, update) {
  const before = new Map();
  for (const child of parent.children) before.set(child.dataset.key, child);
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let node = before.get(name);
    if (node) {
      before.delete(name);
    } else {
      node = make(item);
      node.dataset.key = name;
    }
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
    update(node, item);
  }
  for (const child of before.values()) child.remove();
}

const digits = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export function number(x) {
  if (x === null || x === undefined) return '–';
  if (x >= 1e7) return (x / 1e6).toFixed(0) + '\u00a0M';
  if (x >= 1e6) return (x / 1e6).toFixed(1) + '\u00a0M';
  if (x >= 1e4) return (x / 1e3).toFixed(0) + '\u00a0k';
  return x >= 10 || Number.isInteger(x) ? digits.format(x) : x.toFixed(1);
}

export const whole = (x) => digits.format(x);

export function seconds(x) {
  if (x === null || x === undefined) return '–';
  if (x >= 100) return digits.format(x) + '\u00a0s';
  if (x >= 1) return x.toFixed(x >= 10 ? 0 : 1) + '\u00a0s';
  const ms = x * 1000;
  return (ms >= 10 || ms === 0 ? ms.toFixed(0) : ms.toFixed(1)) + '\u00a0ms';
}

export function ago(ms) {
  const x = Math.max(0, ms / 1000);
  if (x < 90) return Math.round(x) + '\u00a0s';
  if (x < 5400) return Math.round(x / 60) + '\u00a0min';
  return x < 172800 ? Math.round(x / 3600) + ' h' : Math.round(x / 86400) + ' days';
}

export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });

export const percent = (part, of) => (of > 0 ? Math.round((100 * part) / of) + '\u00a0%' : '–');

export function width(node, share) {
  const text = (100 * Math.min(1, Math.max(0, share || 0))).toFixed(1) + '%';
  if (node.style.width !== text) node.style.width = text;
}

export const count = (n, one, many) => whole(n) + ' ' + (n === 1 ? one : many || one + 's');

export function list(names) {
  if (names.length < 2) return names.join('');
  return names.slice(0, -1).join(', ') + ' and ' + names[names.length - 1];
}
