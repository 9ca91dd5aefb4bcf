// Server-sent events by fetch: EventSource can't send a token.

import { html, useLayoutEffect, useRef, useState } from './preact.js';
import { open, pause, RefusalError } from './client.js';

/** Between attempts to reconnect: the first pause, and the longest. Milliseconds. */
const FIRST_PAUSE = 500;
const MAX_PAUSE = 8000;
const words = {
  connecting: 'connecting …',
  live: 'live',
  lost: 'reconnecting …',
  refused: 'not live',
  paused: 'paused',
};

const tones = { live: 'good', lost: 'wait' };

/** Says whether the shown data are live. */
export const LiveMark = ({ state }) =>
  html`<span class="live ${tones[state] ?? 'idle'}" role="status" data-how=${state}>${words[state]}</span>`;

/**
 * Follows a stream of events, for as long as the component is there and the path is not null. Starts again when `deps`
 * change.
 * @param {(name: string, data: object) => void} onEvent
 * @returns {'connecting' | 'live' | 'lost' | 'refused'} `connecting` until there is a path
 */
export function useLive(path, onEvent, { query, deps = [] } = {}) {
  const [state, setState] = useState('connecting');
  const latest = useRef();
  latest.current = onEvent;
  useLayoutEffect(() => {
    setState('connecting');
    if (path === null) return undefined;
    const leaving = new AbortController();
    const { signal } = leaving;
    const take = (name, data) => {
      if (!signal.aborted) latest.current(name, data);
    };
    void follow(path, { signal, query, take, changed: (how) => signal.aborted || setState(how) });
    return () => leaving.abort();
  }, [path, ...deps]);
  return state;
}

/** Goes on after the last event when the connection is lost. */
async function follow(path, { signal, query, take, changed }) {
  let last;
  let wait = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      const headers = last === undefined ? {} : { 'Last-Event-ID': last };
      const response = await open('GET', path, { headers, query, signal });
      if (response.ok) {
        changed('live');
        wait = FIRST_PAUSE;
        await read(response.body, (id, name, data) => {
          if (id !== undefined) last = id;
          if (data !== '') take(name, JSON.parse(data));
        });
      } else if (response.status < 500 && response.status !== 429) {
        changed('refused');
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      // A lost connection; anything else is a defect of this page.
      if (!(error instanceof TypeError || error instanceof RefusalError)) throw error;
    }
    if (signal.aborted) return;
    changed('lost');
    await pause(wait, signal);
    wait = Math.min(MAX_PAUSE, wait * 2);
  }
}

async function read(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = {};
      for (const line of block.split('\n')) {
        const at = line.indexOf(':');
        if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).trimStart();
      }
      take(fields.id, fields.event ?? 'message', fields.data ?? '');
    }
  }
}
