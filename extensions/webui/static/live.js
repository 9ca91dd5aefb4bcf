// Server-sent events by fetch: EventSource can't send a token.

import { open, pause, Refusal } from './client.js';
import { h } from './dom.js';

/** Between attempts to take a lost connection up again: the first pause, and the longest. Milliseconds. */
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8000;

/** A mark that says whether what is seen is live. */
export function liveMark() {
  const mark = h('span.live', { role: 'status' }, 'connecting …');
  return {
    mark,
    /** @param {'live' | 'lost' | 'refused'} how */
    say: (how) => {
      const words = { live: 'live', lost: 'reconnecting …', refused: 'not live' };
      mark.dataset.how = how;
      if (mark.textContent !== words[how]) mark.textContent = words[how];
    },
  };
}

/**
 * Follows a stream of events until the signal is aborted; goes on after the last event when the connection is lost.
 * @param {(name: string, data: object) => void} told
 * @param {(how: 'live' | 'lost' | 'refused') => void} stateChanged
 */
export async function follow(path, { signal, query, told, stateChanged }) {
  let last;
  let wait = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      const headers = last === undefined ? {} : { 'Last-Event-ID': last };
      const response = await open('GET', path, { headers, query, signal });
      if (response.ok) {
        stateChanged('live');
        wait = FIRST_PAUSE;
        await read(response.body, (id, name, data) => {
          if (id !== undefined) last = id;
          if (data !== '') told(name, JSON.parse(data));
        });
      } else if (response.status < 500 && response.status !== 429) {
        stateChanged('refused');
        return;
      }
    } catch (error) {
      // A lost connection is taken up again; anything else is a fault of this page.
      if (signal.aborted) return;
      if (!(error instanceof TypeError || error instanceof Refusal)) throw error;
    }
    if (signal.aborted) return;
    stateChanged('lost');
    await pause(wait, signal);
    wait = Math.min(LONGEST_PAUSE, wait * 2);
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
