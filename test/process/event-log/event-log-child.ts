import { randomUUID } from 'node:crypto';
import type { EventStore, NewEvent } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { event } from '../../contracts/event-store-subject.ts';
import { plainCodec } from '../../support/plain-codec.ts';

/** The requests of a test to one of its processes, and the replies. */
export type Order =
  | { readonly kind: 'open'; readonly directory: string }
  /** Append one after the other without end; each acknowledged id is reported. */
  | { readonly kind: 'append-for-ever'; readonly stream: string }
  /**
   * Append a number of events, some concurrently, alternating between the shared stream and its
   * own.
   */
  | { readonly kind: 'hammer'; readonly shared: string; readonly count: number }
  /** Follow the log; each event is reported with its time of arrival. */
  | { readonly kind: 'follow' }
  | { readonly kind: 'close' };

export type Message =
  | { readonly kind: 'started' | 'opened' | 'following' | 'closed' }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'acknowledged'; readonly id: string }
  /** Duration of the slowest append, in milliseconds. */
  | { readonly kind: 'hammered'; readonly slowest: number }
  /** Nanoseconds of the machine's monotonic clock, as a string. */
  | { readonly kind: 'came'; readonly id: string; readonly at: string };

/** Concurrent appends in each process under load. */
const CONCURRENT_APPENDS = 4;

let store: EventStore | undefined;
const following = new AbortController();

function report(message: Message): void {
  process.send?.(message);
}

function opened(): EventStore {
  if (store === undefined) throw new Error('the log has not been opened');
  return store;
}

async function obey(order: Order): Promise<void> {
  switch (order.kind) {
    case 'open':
      store = await openSqliteEventStore({
        directory: order.directory,
        codec: plainCodec,
        telemetry: silent,
      });
      return report({ kind: 'opened' });
    case 'append-for-ever':
      for (let revision = -1; ; revision += 1) {
        const one: NewEvent = event(revision + 1);
        await opened().append(order.stream, [one], revision < 0 ? 'none' : revision);
        report({ kind: 'acknowledged', id: one.id });
      }
    case 'hammer':
      return report({ kind: 'hammered', slowest: await hammer(order.shared, order.count) });
    case 'follow':
      return follow();
    case 'close':
      following.abort();
      await store?.close();
      report({ kind: 'closed' });
      return process.disconnect();
  }
}

async function hammer(shared: string, count: number): Promise<number> {
  const own = `own-${randomUUID()}`;
  let left = count;
  let slowest = 0;
  await Promise.all(
    Array.from({ length: CONCURRENT_APPENDS }, async () => {
      while (left > 0) {
        left -= 1;
        const since = performance.now();
        await opened().append(left % 2 === 0 ? shared : own, [event(left)], 'any');
        slowest = Math.max(slowest, performance.now() - since);
      }
    }),
  );
  return slowest;
}

async function follow(): Promise<void> {
  const { signal } = following;
  for await (const message of opened().subscribe({ after: await opened().head(), signal })) {
    if (message.kind === 'caught-up') {
      report({ kind: 'following' });
    } else {
      const at = String(process.hrtime.bigint());
      for (const { id } of message.events) report({ kind: 'came', id, at });
    }
  }
}

process.on('message', (order: Order) => {
  obey(order).catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    report({ kind: 'refused', code, message: error instanceof Error ? error.message : '' });
  });
});
report({ kind: 'started' });
