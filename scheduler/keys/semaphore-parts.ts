import type { KeyContext } from '../../domain/keys/key-stream.ts';
import type { ProcessParts } from '../process-parts.ts';
import type { Membership } from '../processes/membership.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import type { RunQueue } from '../runs/run-queue.ts';

/** The parts of the worker's process that the classes of the semaphore need. */
export interface SemaphoreParts extends Pick<
  ProcessParts,
  'store' | 'tasks' | 'clock' | 'telemetry'
> {
  readonly queue: RunQueue;
  readonly membership: Membership;
  /** Whether the worker takes a run at once when it is put back into the queue. */
  readonly hasRoom: (run: QueuedRun) => boolean;
}

/** The context of a change of a key by this process. */
export function contextOf(
  { membership, clock }: Pick<SemaphoreParts, 'membership' | 'clock'>,
  correlationId: string,
  now = clock.now(),
): KeyContext {
  return { actor: 'service', source: membership.id, correlationId, now };
}
