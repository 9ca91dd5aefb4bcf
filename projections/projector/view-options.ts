import type { Clock } from '../../domain/clock.ts';
import type { EventStore, Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Parking } from './parking.ts';
import type { FillElsewhere } from '../generations/filling-beside.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import type { SharedFeed } from './shared-feed.ts';

/** What a view is made with. */
export interface ViewOptions {
  readonly projection: Projection;
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly feed: SharedFeed;
  readonly parking: Parking;
  readonly fence: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly batchSize: number;
  /** Milliseconds that events are gathered at most while many come. */
  readonly gatherMs: number;
  readonly fillBatchSize: number;
  /** What fills large generations, where it can; undefined: they are filled here. */
  readonly fillElsewhere: FillElsewhere | undefined;
  /** Told whenever the generation that is read has everything up to a position. */
  readonly onPassed: (position: Position) => void;
}
