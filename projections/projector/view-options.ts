import type { Clock } from '../../domain/clock.ts';
import type { EventStore, Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { FillElsewhere } from '../parallel-fill/parallel-fill.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import type { Parking } from './parking.ts';

/** What everything that writes views works with. */
export interface ProjectorParts {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Of the projector's lease: writers with a smaller one are refused. */
  readonly fence: number;
}

export interface ProjectorTuning {
  /** Events per batch while following; default 2,000. */
  readonly batchSize: number;
  /** Milliseconds that events are gathered at most under load, to save writes; default 0. */
  readonly gatherMs: number;
  /** Events per batch while filling; default 4,000: more live objects cost more than they save. */
  readonly fillBatchSize: number;
  /** Called when an unlimited fill begins here; the returned function is called when it ends. */
  readonly onFill: (() => () => void) | undefined;
  /** Fills large generations in other threads; default: they are filled here. */
  readonly fillElsewhere: FillElsewhere | undefined;
}

export interface ViewOptions extends ProjectorParts, ProjectorTuning {
  readonly projection: Projection;
  /**
   * Prefixes of the streams that it follows: those of all views. Events of other views cost nothing, as they are decoded
   * once. They show which log this is, and how late the view is.
   */
  readonly followed: readonly string[];
  readonly parking: Parking;
  /** Called when the live generation has everything up to a position. */
  readonly onPassed: (position: Position) => void;
}
