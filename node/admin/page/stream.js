// Follows /live: it is asked for again when it ends, or when no byte of it comes for long.

export const STALL_MS = 10000; // without a byte, since an attempt began or since the last one

// `call` is fetch with the token. `on` is told of
//   event(name, data)   one came
//   token()             401: nothing more is tried until begin()
//   lost(refused)       it ended or does not begin, and is tried again; `refused`: in words, why it was
export function follow(call, on) {
  let turn = 0, control = null, moved = 0, lost = 0;

  async function read(got, mine) {
    const reader = got.body.getReader(), decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done || mine !== turn) return;
      moved = performance.now();
      text += decoder.decode(value, { stream: true });
      for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
        const found = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end));
        if (!found) continue;
        lost = 0;
        on.event(found[1], JSON.parse(found[2]));
      }
    }
  }

  async function attempt(mine) {
    let refused = '';
    moved = performance.now();
    control = new AbortController();
    try {
      const got = await call('GET', 'live', undefined, control.signal);
      if (mine !== turn) return;
      moved = performance.now();
      if (got.status === 401) {
        control = null;
        on.token();
        return;
      }
      if (got.ok) await read(got, mine);
      else refused = (await got.json()).error.message;
    } catch (e) {
      if (!(e instanceof TypeError) && e.name !== 'AbortError') console.error(e);
    }
    if (mine !== turn) return;
    control = null;
    lost = lost || performance.now();
    on.lost(refused);
    setTimeout(() => mine === turn && attempt(mine), Math.min(5000, 500 + (performance.now() - lost) / 4));
  }

  return {
    // Anew: an attempt that is under way ends, and there is never more than one.
    begin() {
      if (control) control.abort();
      turn++;
      attempt(turn);
    },
    // Now and then: ends an attempt that has stalled. It is not the age of the last message that
    // counts, or no new attempt would have time to begin.
    look() {
      if (control && performance.now() - moved > STALL_MS) control.abort();
    },
  };
}
