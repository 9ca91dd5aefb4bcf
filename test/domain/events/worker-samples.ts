import type { DataOf } from '../../../domain/events/catalogue.ts';

/** Samples of the events of workers. */
export const workerSamples = (
  id: string,
): {
  readonly WorkerRegistered: readonly DataOf<'WorkerRegistered'>[];
  readonly WorkerRemoved: readonly DataOf<'WorkerRemoved'>[];
} => ({
  WorkerRegistered: [
    {
      worker_id: id,
      agent_id: id,
      name: 'mailer-1',
      tools: [{ name: 'emails.send', description: 'Sends an email', schema: { type: 'object' } }],
      slots: 4,
      labels: { region: 'eu' },
    },
  ],
  WorkerRemoved: [
    { worker_id: id, reason: 'drained' },
    { worker_id: id, reason: 'silent' },
  ],
});
