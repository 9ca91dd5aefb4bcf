import { Type } from '@sinclair/typebox';
import { runTriggers } from '../vocabulary.ts';
import { Id, Nullable, OneOf, Timestamp, closed } from './schema-parts.ts';

/** Whose it is. By the trigger one knows whether the log itself owes the run (a fire, an event) or only a caller. */
const beneficiary = { run_id: Id, task_id: Id, trigger: OneOf(runTriggers) };
const limit = Type.Integer({ minimum: 1 });

const holder = closed({
  ...beneficiary,
  since: Timestamp,
  limit,
  /** The attempt that it is held for: the end of an earlier one does not give it back. */
  attempt: Type.Integer({ minimum: 0 }),
});
const waiter = closed({
  ...beneficiary,
  priority: Type.Integer(),
  /** By this its age counts: nominal time, or the time of the request. */
  since: Timestamp,
  /** When it came to stand in line. */
  waiting_since: Timestamp,
  limit,
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
  used: Nullable(
    closed({
      ...beneficiary,
      /** What windows count from: nominal time, or the time of the request. */
      at: Timestamp,
      /** When it was used. */
      since: Timestamp,
    }),
  ),
};

/** Events of `key-<hash>`. `run_id` is the run that the event is about. */
export const keyEvents = {
  KeyHeld: { version: 1, schema: closed({ run_id: Id, ...resulting }) },
  KeyWaited: { version: 1, schema: closed({ run_id: Id, ...resulting }) },
  KeyReleased: { version: 1, schema: closed({ run_id: Id, ...resulting }) },
  KeyUsed: { version: 1, schema: closed({ run_id: Id, ...resulting }) },
} as const;
