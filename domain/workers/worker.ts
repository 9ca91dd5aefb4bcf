import { RefusalError } from '../errors.ts';
import type { DataOf, WorkerEvent } from '../events/catalogue.ts';
import type { EventPlace, Fold } from '../handle.ts';
import { namespaceOf } from '../namespaces/namespace.ts';
import type { WorkerEnd, WorkerState } from '../vocabulary.ts';

/**
 * The worker that has a name: a program outside the service that asks for jobs. Each registration creates a worker with
 * its own id, which replaces the previous worker of that name.
 *
 * none ──WorkerRegistered──► active ──WorkerRegistered──► active      (another worker, of the same name) active
 * ──WorkerRemoved──► drained or silent ──WorkerRegistered──► active
 */
export type NamedWorker = RegisteredWorker | null;

type Registered = DataOf<'WorkerRegistered'>;

/** A tool that a worker offers. */
export type OfferedTool = Registered['tools'][number];

export interface RegisteredWorker extends Omit<Registered, 'worker_id' | 'namespace'> {
  readonly namespace: string;
  readonly id: string;
  readonly state: WorkerState;
  readonly registered_at: string;
  /** When it was drained, or removed for being silent. */
  readonly ended_at: string | null;
  /** Ids of some earlier workers of that name, the latest last. */
  readonly replaced: readonly string[];
  readonly revision: number;
}

/** How many replaced workers are remembered, so that they can be told that they were replaced. */
const KEPT_IDS = 20;

export const workerFold: Fold<NamedWorker, WorkerEvent> = {
  initial: null,
  evolve: evolveWorker,
  namespaceOf: (worker) => worker?.namespace,
};

export function evolveWorker(state: NamedWorker, event: WorkerEvent, at: EventPlace): NamedWorker {
  const { revision, metadata } = at;
  if (event.type === 'WorkerRegistered') {
    const { worker_id: id, ...data } = event.data;
    const earlier = state === null ? [] : [...state.replaced, state.id];
    return {
      id,
      ...data,
      namespace: namespaceOf(event.data),
      state: 'active',
      registered_at: metadata.occurredAt,
      ended_at: null,
      replaced: earlier.slice(-KEPT_IDS),
      revision,
    };
  }
  if (state === null || state.id !== event.data.worker_id) return state;
  return { ...state, state: event.data.reason, ended_at: metadata.occurredAt, revision };
}

/**
 * Ends a worker. No event if it has already ended.
 * @throws RefusalError `STATE_CONFLICT` if another worker has its name
 */
export function removeWorker(
  state: NamedWorker,
  workerId: string,
  reason: WorkerEnd,
): readonly WorkerEvent[] {
  if (state?.id !== workerId) throw replacedWorker(workerId);
  if (state.state !== 'active') return [];
  return [{ type: 'WorkerRemoved', data: { worker_id: workerId, reason } }];
}

/** The error for a worker whose name another worker has taken. */
export function replacedWorker(workerId: string): RefusalError {
  const message = `worker ${workerId} was replaced: another one registered with its name`;
  return new RefusalError('STATE_CONFLICT', message, { worker_id: workerId, reason: 'replaced' });
}

/** Whether a worker with these labels may do a job that needs certain labels. */
export function hasLabels(
  labels: Readonly<Record<string, string>>,
  needed: Readonly<Record<string, string>> | undefined,
): boolean {
  if (needed === undefined) return true;
  return Object.entries(needed).every(([label, value]) => labels[label] === value);
}
