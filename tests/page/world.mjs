// The page without a browser: as much of a DOM as it touches, a clock that a test moves, and a router whose answers a
// test gives. browser_test.py tests how the page looks; this is for its texts, and their times.
import { mkdtempSync, cpSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const PAGE = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'node', 'admin', 'page');

// The page's modules, from a copy that Node accepts as modules.
export async function modules(...names) {
  const folder = mkdtempSync(join(tmpdir(), 'page-'));
  try {
    cpSync(PAGE, folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
    return await Promise.all(names.map((name) => import(pathToFileURL(join(folder, name)))));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

class Element {
  constructor(tag = 'div') {
    Object.assign(this, { tag, parts: [], attributes: new Map(), dataset: {}, style: {}, listeners: {}, value: '', parent: null });
  }
  get children() { return this.parts.filter((p) => p instanceof Element); }
  get firstChild() { return this.parts[0] || null; }
  get firstElementChild() { return this.children[0] || null; }
  get lastElementChild() { return this.children[this.children.length - 1] || null; }
  get nextElementSibling() { return this.parent.children[this.parent.children.indexOf(this) + 1] || null; }
  get tBodies() { return [(this.body = this.body || this.adopt(new Element('tbody')))]; }
  get textContent() { return this.parts.map((p) => (p instanceof Element ? p.textContent : p)).join(''); }
  set textContent(text) { this.parts = [String(text)]; }
  get hidden() { return this.attributes.has('hidden'); }
  set hidden(on) { if (on) this.attributes.set('hidden', ''); else this.attributes.delete('hidden'); }
  set className(text) { this.attributes.set('class', text); }
  adopt(part, at = this.parts.length) {
    if (!(part instanceof Element)) part = String(part);
    else {
      if (part.parent) part.remove();
      part.parent = this;
    }
    this.parts.splice(at, 0, part);
    return part;
  }
  append(...parts) { for (const p of parts) this.adopt(p); }
  replaceChildren(...parts) { this.parts = []; this.append(...parts); }
  insertBefore(part, before) { this.adopt(part, before ? this.parts.indexOf(before) : this.parts.length); }
  remove() { this.parent.parts.splice(this.parent.parts.indexOf(this), 1); this.parent = null; }
  setAttribute(name, value) { this.attributes.set(name, String(value)); }
  getAttribute(name) { return this.attributes.has(name) ? this.attributes.get(name) : null; }
  removeAttribute(name) { this.attributes.delete(name); }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  querySelector() { return null; }
  focus() {}
  scrollIntoView() {}
}

// Lets pending promises run.
const settled = () => new Promise((resolve) => setImmediate(resolve));

export class World {
  constructor() {
    Object.assign(this, { now: 1000, timers: [], elements: new Map(), calls: [] });
    const get = (id) => this.elements.get(id) || this.elements.set(id, new Element()).get(id);
    globalThis.document = { title: '', getElementById: get, createElement: (t) => new Element(t), createElementNS: (_, t) => new Element(t) };
    globalThis.location = { protocol: 'http:' };
    Object.defineProperty(globalThis, 'performance', { value: { now: () => this.now }, configurable: true });
    globalThis.setTimeout = (f, ms) => this.timers.push({ f, at: this.now + ms });
    globalThis.setInterval = (f, ms) => this.timers.push({ f, at: this.now + ms, every: ms });
    globalThis.fetch = (path, how) => this.fetch(path, how);
  }
  text(id) { return document.getElementById(id).textContent; }

  // A router: `answer` decides about each call. It may answer later, by respond().
  fetch(path, how) {
    return new Promise((resolve, reject) => {
      const aborted = () => reject(Object.assign(new Error('aborted'), { name: 'AbortError' }));
      const call = { path, how, at: this.now, aborted: false };
      how.signal?.addEventListener('abort', () => {
        call.aborted = true;
        aborted();
        call.fail?.();
      });
      call.respond = (status = 200) => {
        const waiting = [];
        let wake = null;
        call.send = (event, data) => {
          waiting.push(new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
          wake?.();
        };
        call.fail = () => wake?.();
        const read = async () => {
          while (waiting.length === 0) {
            if (call.aborted) throw Object.assign(new Error('aborted'), { name: 'AbortError' });
            await new Promise((r) => (wake = r));
          }
          return { value: waiting.shift(), done: false };
        };
        resolve({ status, ok: status === 200, json: async () => ({ error: { message: 'refused' } }), body: { getReader: () => ({ read }) } });
      };
      this.calls.push(call);
      this.answer?.(call);
    });
  }
  live() { return this.calls.filter((c) => c.path === 'live'); }

  // This number of milliseconds passes.
  async pass(ms) {
    const end = this.now + ms;
    await settled();
    for (;;) {
      this.timers.sort((a, b) => a.at - b.at);
      const next = this.timers[0];
      if (!next || next.at > end) break;
      this.now = Math.max(this.now, next.at);
      this.timers.shift();
      if (next.every) this.timers.push({ ...next, at: next.at + next.every });
      next.f();
      await settled();
    }
    this.now = end;
    await settled();
  }
  // Runs `respond` after this number of milliseconds, if the call is still open.
  later(ms, call, f) { setTimeout(() => call.aborted || f(), ms); }
}

export const member = (name, more) => ({ name, self: false, state: 'alive', ready: true, admin: name + ':9090', session: true, heard_ms: 50, lag_deltas: 0, lag_ms: 0, ...more });

let slots = 0;
export const replica = (name, more) => ({
  slot: slots++, name, health: 'up', why: 'none', text: '', avoided: false, engine: 'vllm', models: [], chosen: 0, requests: 0, requests_of_others: 0, queue_s: 0, cache_tokens: 1, cache_size_told: true,
  held_tokens: 0, prompt_tokens: 0, cached_tokens: 0, usage: null, ...more,
});

// A problem that a router reports.
export const problem = (severity, kind, about, more) => ({ severity, kind, about, what: `${kind} of ${about}`, since_ms: 40000, hurts: 'nobody yet', command: 'gvctl replicas', ...more });
export const attention = (...items) => ({ worst: items[0]?.severity ?? 'well', more: 0, items });

// One second of `figures`.
export const second = (more) => ({
  time_ms: 100000, ms: 1000, requests: 0, answers: 0, failed: { status_5xx: 0, queue_full: 0, cut: 0 }, client_errors: 0, client_gone: 0, retries: 0, hidden: 0, in_flight: 0, queued: 0,
  prompt_tokens: 0, cached_tokens: 0, first_tokens: 0, ttft_p50_s: null, ttft_p95_s: null, ...more,
});

// `hears`: [a, b] -> milliseconds, or undefined if it is not reported.
export function snapshot(names, hears = () => 50, more = {}) {
  const digests = { registry: 'a', poison: 'c', reports: 'd', whole_index: 'e' };
  const nodes = Object.fromEntries(names.map((a) => [a, {
    ...digests, hears: Object.fromEntries(names.filter((b) => a !== b && hears(a, b) !== undefined).map((b) => [b, hears(a, b)])),
  }]));
  const members = names.map((n, i) => member(n, i === 0 ? { self: true } : { heard_ms: hears(names[0], n) ?? 50 }));
  return {
    frame: 1, now_ms: 100000, router: { name: names[0], version: '1', policy: 'cache_aware', since_ms: 1, ready: true, why: '', alone: '', admin_host: '127.0.0.1', loopback_only: true, reading_token: false, viewers: 1 },
    members, agreement: { state: 'equal', since_ms: 1, differ: [], nodes }, figures: null, cluster: { ttft_bounds_s: [0.1, 1], nodes: {} }, made: 0, attention: { worst: 'well', more: 0, items: [] }, replicas: [replica('e1')], replicas_span: [0, slots], replicas_gone: [], replica_count: 1, replicas_well: 1,
    answered: { prompt_tokens: 0, cached_tokens: 0 }, history: [], minute: null, minutes: [], decisions: [], events: [], ...more,
  };
}
