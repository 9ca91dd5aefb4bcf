import type { Clock } from '../../domain/clock.ts';
import type { EventStore, Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { FillElsewhere } from '../parallel-fill/parallel-fill.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import type { Parking } from './parking.ts';
import type { SharedFeed } from './shared-feed.ts';

/** What all views of a projector share. */
export interface SharedViewOptions {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly feed: SharedFeed;
  readonly parking: Parking;
  /** Of the projector's lease: writers with a smaller one are refused. */
  readonly fence: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Events per batch while following. */
  readonly batchSize: number;
  /** Milliseconds that events are gathered at most under load. */
  readonly gatherMs: number;
  /** Events per batch while filling. */
  readonly fillBatchSize: number;
  /** Called when an unlimited fill begins here; the returned function is called when it ends. */
  readonly onFill: (() => () => void) | undefined;
  /** Fills large generations in other threads; undefined: they are filled here. */
  readonly fillElsewhere: FillElsewhere | undefined;
}

export interface ViewOptions extends SharedViewOptions {
  readonly projection: Projection;
  /** Called when the live generation has everything up to a position. */
  readonly onPassed: (position: Position) => void;
}
