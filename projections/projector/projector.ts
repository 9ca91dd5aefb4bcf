import type { Position } from '../../domain/event-store.ts';
import { idOf } from '../../domain/streams.ts';
import { errorMessage } from '../error-message.ts';
import type { Projection } from '../read-model.ts';
import { Parking } from './parking.ts';
import type { ProjectionStatus } from './projection-status.ts';
import { keepRunning } from './retry-loop.ts';
import { View } from './view.ts';
import type { ProjectorParts, ProjectorTuning } from './view-options.ts';

export interface ProjectorOptions extends ProjectorParts, Partial<ProjectorTuning> {
  readonly projections: readonly Projection[];
}

/** Receives a view's name and the position up to which the view is complete. */
export type CheckpointListener = (name: string, position: Position) => void;

/**
 * Keeps all views level with the log and carries out the orders in the streams `projection-<name>`. A lease ensures that
 * one runs at a time; two at once do no harm.
 */
export interface Projector {
  /**
   * Opens the views, builds missing ones, and follows the log until the signal is aborted. Then finishes its current
   * work. Does not reject: failures are retried and shown in the status.
   */
  run(signal: AbortSignal): Promise<void>;

  status(): readonly ProjectionStatus[];

  /** Calls the listener synchronously for each step of each view. Returns a function that removes the listener. */
  onCheckpoint(listener: CheckpointListener): () => void;
}

const ORDERS_PREFIX = 'projection-';

/** Creates a projector; it does nothing before `run`. */
export function createProjector(options: ProjectorOptions): Projector {
  const { store, readModel, projections, telemetry, clock, fence, fillElsewhere, onFill } = options;
  const { batchSize = 2_000, gatherMs = 0, fillBatchSize = 4_000 } = options;
  const listeners = new Set<CheckpointListener>();
  const parking = new Parking(readModel, fence);
  const followed = [...new Set(projections.flatMap((projection) => projection.streams))];
  const tuning = { batchSize, gatherMs, fillBatchSize, fillElsewhere, onFill };
  const shared = { ...options, ...tuning, followed, parking };
  const views = projections.map((projection) => {
    const onPassed = (position: Position): void => {
      for (const listener of listeners) listener(projection.name, position);
    };
    return new View({ ...shared, projection, onPassed });
  });

  /** Views read their orders when they start; from then on they are notified. */
  const followOrders = (signal: AbortSignal): Promise<void> => {
    const failure = 'could not follow the orders for views; retrying';
    return keepRunning({ clock, telemetry, failure }, signal, async () => {
      const after = await store.head();
      for (const view of views) view.notify();
      for await (const message of store.subscribe({ after, prefixes: [ORDERS_PREFIX], signal })) {
        if (message.kind !== 'events') continue;
        const named = new Set(message.events.map(({ stream }) => idOf(stream)));
        for (const view of views) if (named.has(view.projection.name)) view.notify();
      }
    });
  };

  const runViews = async (signal: AbortSignal): Promise<void> => {
    const opened = await Promise.all(
      views.map(async (view) => ({ view, live: await view.findLive(signal) })),
    );
    await Promise.all(opened.map(({ view, live }) => view.run(live?.generation ?? null, signal)));
  };

  return {
    async run(signal) {
      await Promise.all([followOrders(signal), runViews(signal)]);
      try {
        await parking.close();
      } catch (error) {
        // Nothing is lost: parked keys are written before their view continues.
        const fields = { error: errorMessage(error) };
        telemetry.log.info('could not close the parked keys in order', fields);
      }
    },
    status: () => views.map((view) => view.status()),
    onCheckpoint(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
