import type { Clock } from '../domain/clock.ts';
import type { EventStore } from '../domain/event-store.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { ReadModel } from '../projections/read-model.ts';
import type { Coordination } from './coordination.ts';
import type { PinnedTasks } from './pinned-tasks.ts';
import type { Leadership } from './processes/leadership.ts';

/** The dependencies of the long-running parts of a scheduler and a worker. */
export interface ProcessParts {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly leadership: Leadership;
  readonly tasks: PinnedTasks;
  /** The process, as the source of its events. */
  readonly name: string;
}
