import type { Clock } from '../../domain/clock.ts';
import type { EventStore, Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { FillElsewhere } from '../parallel-fill/parallel-fill.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import type { Parking } from './parking.ts';

/** The parts and options that all writers of views share. */
export interface ProjectorParts {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** The fence of the projector's lease. Writers with a smaller fence are refused. */
  readonly fence: number;
}

export interface ProjectorTuning {
  /** Events per batch while following; default 2,000. */
  readonly batchSize: number;
  /** The most milliseconds for which events are gathered under load, to save writes; default 0. */
  readonly gatherMs: number;
  /** Events per batch while filling; default 4,000: more live objects cost more than they save. */
  readonly fillBatchSize: number;
  /** Called when an unlimited fill begins here; the returned function is called when it ends. */
  readonly onFill: (() => () => void) | undefined;
  /** Fills large generations in other threads. Default: they are filled in this thread. */
  readonly fillElsewhere: FillElsewhere | undefined;
}

export interface ViewOptions extends ProjectorParts, ProjectorTuning {
  readonly projection: Projection;
  /**
   * The prefixes of streams that each view follows: those of all views. Events of other views identify the log and show
   * how late the view is. They cost nothing, because each event is decoded once.
   */
  readonly followed: readonly string[];
  readonly parking: Parking;
  /** Called when the live generation is complete up to a position. */
  readonly onPassed: (position: Position) => void;
}
