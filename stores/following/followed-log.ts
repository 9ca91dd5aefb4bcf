import { decorate } from '../../domain/decorate.ts';
import {
  EventStoreError,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { LogEngine } from '../../domain/log-engine.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { LogFollower, type FollowerLimits } from './log-follower.ts';

/** Combines an engine with the process's one follower of the log. Closing the log closes the engine. */
export function followedLog(
  engine: LogEngine,
  telemetry: Telemetry,
  limits?: FollowerLimits,
): EventStore {
  const follower = new LogFollower(engine, telemetry, limits);
  const whole = decorate(engine, {});
  return Object.assign(whole, {
    readAll: (after: Position, limit: number) => readAll(engine, after, limit),
    subscribe: (options: Parameters<EventStore['subscribe']>[0]) => follower.subscribe(options),
    async close() {
      // Both are closed together: a follower may be waiting for the engine, and closing the engine ends that wait.
      await Promise.all([follower.close(), engine.close()]);
    },
  });
}

async function readAll(
  engine: LogEngine,
  after: Position,
  limit: number,
): Promise<readonly RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  if (limit <= 0) return events;
  for (let from = after; ;) {
    const page = await engine.readPage({ after: from, limit });
    for (const entry of page.entries) {
      try {
        events.push(entry.event());
      } catch (error) {
        // The events before an event of a newer release can still be read.
        if (events.length > 0 && error instanceof EventStoreError) return events;
        throw error;
      }
    }
    // An empty page is not necessarily the last.
    if (events.length > 0 || page.isLast) return events;
    from = page.upTo;
  }
}
