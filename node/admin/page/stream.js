// Follows /live: reconnects if the stream ends, or if no byte comes for a long time.

export const STALL_MS = 10000; // without a byte since the attempt began, or since the last byte

// `call` is fetch with the token. `on` has callbacks:
//   event(name, data)   an event came
//   token()             401: no more attempts until begin()
//   lost(refused)       the stream ended or did not begin, and is tried again; `refused`: the reason, in words
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
    // Starts again: ends the present attempt first, so there is never more than one.
    begin() {
      if (control) control.abort();
      turn++;
      attempt(turn);
    },
    // Called now and then: ends a stalled attempt. The age of the last message does not count: else no
    // new attempt would have time to begin.
    look() {
      if (control && performance.now() - moved > STALL_MS) control.abort();
    },
  };
}
