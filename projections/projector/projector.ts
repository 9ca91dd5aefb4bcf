import type { Clock } from '../../domain/clock.ts';
import { EventStoreError, type EventStore, type Position } from '../../domain/event-store.ts';
import { idOf } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { FillElsewhere } from '../generations/filling-beside.ts';
import { BackOff } from './back-off.ts';
import { Parking } from './parking.ts';
import type { ProjectionStatus } from './projection-status.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import { SharedFeed } from './shared-feed.ts';
import { View } from './view.ts';

export interface ProjectorOptions {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly projections: readonly Projection[];
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  /** Of the projector's lease: writers with a smaller one are refused. */
  readonly fence: number;
  /** Events to a batch while following; default 2,000. */
  readonly batchSize?: number;
  /**
   * Milliseconds that events are gathered at most while many come: views are later by it under load, and written less
   * often. Default 0.
   */
  readonly gatherMs?: number;
  /** Events to a batch while filling a generation; default 4,000: more live objects at a time cost more than they save. */
  readonly fillBatchSize?: number;
  /** What fills large generations of views whose documents have streams of their own; default: they are filled here. */
  readonly fillElsewhere?: FillElsewhere | undefined;
}

/** Told that the view of a name has everything up to a position. */
export type CheckpointListener = (name: string, position: Position) => void;

/**
 * Keeps all views level with the log, and carries out what is ordered of them in the streams `projection-<name>`. One runs at a time, by a lease; two at once do no harm.
 */
export interface Projector {
  /**
   * Opens the views, makes those that are missing, and follows the log until the signal is aborted; then
   * resolves when everything at hand is done. Does not reject: what fails is tried again, and said in the
   * status.
   */
  run(signal: AbortSignal): Promise<void>;

  /** How each view is, in the order they were given. */
  status(): readonly ProjectionStatus[];

  /** Calls back for each step of each view, in this process at once. Returns what ends it. */
  onCheckpoint(listener: CheckpointListener): () => void;
}

/** Prefix of the streams of orders. */
const ORDERS = 'projection-';

/** Makes a projector; it does nothing before `run`. */
export function createProjector(options: ProjectorOptions): Projector {
  const { store, readModel, projections, telemetry, clock, fence, fillElsewhere } = options;
  const { batchSize = 2_000, gatherMs = 0, fillBatchSize = 4_000 } = options;
  const listeners = new Set<CheckpointListener>();
  const parking = new Parking(readModel, fence);
  const prefixes = [...new Set(projections.flatMap((projection) => projection.streams))];
  const feed = new SharedFeed(store, clock, prefixes, batchSize);
  const views = projections.map((projection) => {
    const onPassed = (position: Position): void => {
      for (const listener of listeners) listener(projection.name, position);
    };
    const shared = { store, readModel, feed, parking, fence, clock, telemetry, fillElsewhere };
    return new View({ projection, ...shared, batchSize, gatherMs, fillBatchSize, onPassed });
  });

  /** The shared subscription, begun again whenever it breaks. */
  const keepFeedFilled = async (signal: AbortSignal): Promise<void> => {
    const backOff = new BackOff(clock);
    while (!signal.aborted) {
      try {
        await feed.fill(signal);
        backOff.reset();
      } catch (error) {
        if (!signal.aborted) {
          telemetry.log.warn('the log can not be followed; it is tried again', {
            error: messageOf(error),
          });
        }
      }
      await backOff.wait(signal);
    }
  };

  /** Views look at their orders by themselves when they begin; from then on they are told. */
  const followOrders = async (signal: AbortSignal): Promise<void> => {
    const backOff = new BackOff(clock);
    while (!signal.aborted) {
      try {
        const after = await store.head();
        for (const view of views) view.notice();
        for await (const message of store.subscribe({ after, prefixes: [ORDERS], signal })) {
          if (message.kind !== 'events') continue;
          const named = new Set(message.events.map(({ stream }) => idOf(stream)));
          for (const view of views) if (named.has(view.projection.name)) view.notice();
        }
        backOff.reset();
      } catch (error) {
        if (!signal.aborted) {
          const why = { error: messageOf(error) };
          telemetry.log.warn('the orders for views can not be followed; it is tried again', why);
        }
      }
      await backOff.wait(signal);
    }
  };

  const runViews = async (signal: AbortSignal): Promise<void> => {
    const opened = await Promise.all(
      views.map(async (view) => ({ view, live: await view.findLive(signal) })),
    );
    // The foremost: those behind it come there by themselves, so that one that is far behind keeps nobody.
    const positions = opened.flatMap(({ live }) => (live === null ? [] : [live.position]));
    if (positions.length > 0) feed.begin(positions.reduce((a, b) => (a > b ? a : b)));
    await Promise.all(opened.map(({ view, live }) => view.run(live?.generation ?? null, signal)));
  };

  return {
    async run(signal) {
      await Promise.all([keepFeedFilled(signal), followOrders(signal), runViews(signal)]);
      try {
        await parking.close();
      } catch (error) {
        // All of it is written: what is held back is, before the view goes on.
        telemetry.log.info('what is held back could not be closed in order', {
          error: messageOf(error),
        });
      }
    },
    status() {
      const { fault } = feed;
      const newer = fault instanceof EventStoreError && fault.code === 'NEWER_SCHEMA';
      const feedFault = fault === null ? null : { newer, detail: messageOf(fault) };
      return views.map((view) => view.status(feedFault));
    },
    onCheckpoint(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
