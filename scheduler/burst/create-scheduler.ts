import type { EventStore } from '../../domain/event-store.ts';
import { FireWriter, type FireWriterOptions } from '../fires/fire-writer.ts';
import { neverHeld } from '../hold.ts';
import { Scheduler, type SchedulerOptions } from '../scheduler.ts';
import { Burst, type BurstOptions } from './burst.ts';
import type { EarlyStarts } from './early-starts.ts';

export interface SchedulerParts
  extends
    Omit<SchedulerOptions, 'writer' | 'burst'>,
    Pick<FireWriterOptions, 'name' | 'requests'>,
    Pick<BurstOptions, 'tasks' | 'onPrepare'> {
  readonly store: EventStore;
  /** The parts of this process's worker, if it has one. */
  readonly early?: EarlyStarts | undefined;
}

/** A scheduler that prepares for bursts. */
export function createScheduler(parts: SchedulerParts): Scheduler {
  const { index, store, clock, leadership, telemetry, name, requests, tasks, early } = parts;
  const { hold = neverHeld, onPrepare, owners } = parts;
  const timer = parts.timer ?? ((at, callback) => clock.at(at, callback));
  const writer = new FireWriter({ store, telemetry, name, requests, appender: early });
  const shared = { index, writer, clock, timer, telemetry, hold };
  const burst = new Burst({ ...shared, tasks, early, onPrepare });
  return new Scheduler({ ...shared, store, leadership, burst, owners });
}
