import type { Clock } from '../../domain/clock.ts';
import { decorated } from '../../domain/decorated.ts';
import type { EventStore } from '../../domain/event-store.ts';

/** Whether somebody is left the machine first. */
export interface Priority {
  giveWay(): void;
  takeBack(): void;
}

/** What is over sooner than this is not worth it. Milliseconds. */
const LONG = 1000;

/**
 * A log that tells when somebody goes through it as fast as it can be read (`ahead`: the making of a view), and for
 * longer than a moment: then whoever waits for an answer is to go first, until the last of those is done.
 */
export function givingWay(store: EventStore, priority: Priority, clock: Clock): EventStore {
  let long = 0;
  const change = (by: 1 | -1): void => {
    long += by;
    if (by === 1 && long === 1) priority.giveWay();
    if (long === 0) priority.takeBack();
  };
  return decorated(store, {
    async *subscribe(options) {
      if (options.ahead !== true) {
        yield* store.subscribe(options);
        return;
      }
      const over = new AbortController();
      const isLong = clock.sleep(LONG, over.signal).then(
        () => true,
        () => false,
      );
      const begun = isLong.then((yes) => yes && change(1));
      try {
        yield* store.subscribe(options);
      } finally {
        over.abort();
        await begun;
        if (await isLong) change(-1);
      }
    },
  });
}
