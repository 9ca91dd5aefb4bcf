import type { ApiDependencies } from '../dependencies.ts';

/** How long a caller waits until its order is carried out. Milliseconds. */
const MAX_WAIT = 5_000;

/**
 * Waits until what a stream tells is as it should be, for five seconds at most.
 * @param from the stream, and the position after which it is followed
 * @returns the state as it then is
 */
export async function awaitState<S>(
  { store, clock }: Pick<ApiDependencies, 'store' | 'clock'>,
  from: { readonly stream: string; readonly after: string },
  read: () => Promise<S>,
  isDone: (state: S) => boolean,
): Promise<S> {
  const stop = new AbortController();
  const cancel = clock.after(MAX_WAIT, () => stop.abort());
  const following = { after: from.after, prefixes: [from.stream], signal: stop.signal };
  try {
    for await (const message of store.subscribe(following)) {
      if (message.kind !== 'events') continue;
      const state = await read();
      if (isDone(state)) return state;
    }
    return await read();
  } finally {
    cancel();
    stop.abort();
  }
}
