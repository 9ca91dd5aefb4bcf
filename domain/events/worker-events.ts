import { Type } from '@sinclair/typebox';
import { workerEnds } from '../vocabulary.ts';
import { AnyObject, closed, event, Id, Namespace, OneOf } from './schema-parts.ts';

/** Events of `worker-<hash>`: one stream for each name of an agent's workers. */
export const workerEvents = {
  /** Replaces the worker that had the name before. */
  WorkerRegistered: event(
    {
      worker_id: Id,
      agent_id: Id,
      name: Type.String(),
      tools: Type.Array(
        closed({
          name: Type.String(),
          description: Type.String(),
          /** JSON schema of the arguments. */
          schema: AnyObject,
        }),
        { minItems: 1 },
      ),
      /** How many jobs it does at a time. */
      slots: Type.Integer({ minimum: 1 }),
      labels: Type.Record(Type.String(), Type.String()),
      /** The agent's. */
      namespace: Namespace,
    },
    2,
  ),
  /** The worker gets no more jobs. Jobs that it has may still be completed. */
  WorkerRemoved: event({ worker_id: Id, reason: OneOf(workerEnds) }),
} as const;
