import { Type } from '@sinclair/typebox';
import { runTriggers } from '../vocabulary.ts';
import { closed, event, Id, Nullable, OneOf, Timestamp } from './schema-parts.ts';

/**
 * The run to which it belongs. The trigger shows whether the run is requested from the log (a fire, an event) or only
 * by a caller.
 */
const beneficiary = { run_id: Id, task_id: Id, trigger: OneOf(runTriggers) };
const limit = Type.Integer({ minimum: 1 });

const holder = closed({
  ...beneficiary,
  since: Timestamp,
  limit,
  /** The attempt that holds it. The end of an earlier attempt does not release it. */
  attempt: Type.Integer({ minimum: 0 }),
});
const waiter = closed({
  ...beneficiary,
  priority: Type.Integer(),
  /** The start of its age: the nominal time, or the time of the request. */
  since: Timestamp,
  /** When it joined the line. */
  waiting_since: Timestamp,
  limit,
});

/** The resulting state. Only the last event of the stream is read, so older ones can be truncated. */
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
      /** The start of windows: the nominal time, or the time of the request. */
      at: Timestamp,
      /** When it was used. */
      since: Timestamp,
    }),
  ),
};

/** Events of `key-<hash>`. `run_id` is the run that the event is about. */
export const keyEvents = {
  KeyHeld: event({ run_id: Id, ...resulting }),
  KeyWaited: event({ run_id: Id, ...resulting }),
  KeyReleased: event({ run_id: Id, ...resulting }),
  KeyUsed: event({ run_id: Id, ...resulting }),
} as const;
