import type { ApiDependencies } from '../dependencies.ts';

/** The longest wait of a caller until its order is carried out. Milliseconds. */
const MAX_WAIT = 5_000;

/**
 * Waits until the state of a stream meets a condition, for five seconds at most.
 * @param from the stream, and the position after which it is followed
 * @returns the state at the end of the wait
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
