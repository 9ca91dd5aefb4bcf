import { Type } from '@sinclair/typebox';
import { Id, Nullable, OneOf, Timestamp, closed } from './schema-parts.ts';

const holder = closed({ run_id: Id, task_id: Id, since: Timestamp });
const waiter = closed({
  run_id: Id,
  task_id: Id,
  priority: Type.Integer(),
  since: Timestamp,
  limit: Type.Integer({ minimum: 1 }),
});

/**
 * The state that results, so that only the last event of the stream is read and older ones can be
 * truncated.
 */
const resulting = {
  kind: OneOf(['concurrency', 'overlap', 'dedupe'] as const),
  key: Type.String(),
  owner: Id,
  holders: Type.Array(holder),
  waiters: Type.Array(waiter),
  /** For a dedupe key: the last use. */
  used: Nullable(closed({ run_id: Id, task_id: Id, at: Timestamp })),
};

/** Events of `key-<hash>`. `run_id` is the run that the event is about. */
export const keyEvents = {
  KeyHeld: { version: 1, schema: closed({ run_id: Id, ...resulting }) },
  KeyWaited: { version: 1, schema: closed({ run_id: Id, ...resulting }) },
  KeyReleased: { version: 1, schema: closed({ run_id: Id, ...resulting }) },
  KeyUsed: { version: 1, schema: closed({ run_id: Id, ...resulting }) },
} as const;
