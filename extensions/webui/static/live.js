// Server-sent events by fetch: EventSource can't send a token.

import { open, Refusal } from './client.js';

const PAUSE = 2000;

/**
 * Follows a stream of events until the signal is aborted; goes on after the last event when the connection is lost.
 * @param {(name: string, data: object) => void} told
 * @param {(going: boolean) => void} stateChanged
 */
export async function follow(path, { signal, told, stateChanged }) {
  let last;
  while (!signal.aborted) {
    try {
      const headers = last === undefined ? {} : { 'Last-Event-ID': last };
      const response = await open('GET', path, { headers, signal });
      if (response.ok) {
        stateChanged(true);
        await read(response.body, (id, name, data) => {
          if (id !== undefined) last = id;
          if (data !== '') told(name, JSON.parse(data));
        });
      } else if (response.status < 500 && response.status !== 429) {
        stateChanged(false);
        return;
      }
    } catch (error) {
      // A lost connection is taken up again; anything else is a fault of this page.
      if (signal.aborted) return;
      if (!(error instanceof TypeError || error instanceof Refusal)) throw error;
    }
    stateChanged(false);
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
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
