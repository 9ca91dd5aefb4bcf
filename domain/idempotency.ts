import { fromIso, type Instant } from './clock.ts';
import { RefusalError } from './errors.ts';
import type { DataOf, IdempotencyEvent } from './events/catalogue.ts';
import type { Fold } from './handle.ts';

/** How long a key is remembered, in milliseconds. */
export const IDEMPOTENCY_LIFE = 24 * 3_600_000;

/**
 * The memory of one key of one agent.
 *
 *   none ──CommandReceived──► under way ──CommandAnswered──► answered ──(24 h)──► as none
 *
 * After a crash, another process may carry out a command that is under way. The created objects have ids derived from the key, so the command is completed, not duplicated.
 */
export type IdempotencyState =
  | { readonly status: 'none' }
  | {
      readonly status: 'under-way' | 'answered';
      readonly request: DataOf<'CommandReceived'>;
      readonly received_at: string;
      readonly answer: DataOf<'CommandAnswered'> | null;
      /** Revision of the event that began the key's present use: the command's id comes from it. */
      readonly began: number;
    };

/**
 * A command that was not renewed for this long has lost its process. If that process is still alive, carrying the
 * command out again duplicates nothing in the log, because the ids are the same. It may duplicate external effects of a
 * tool. Milliseconds.
 */
const UNDER_WAY_LIFE = 10_000;

/** How often the process that carries out a command records it as received again. Milliseconds. */
export const RENEWAL_INTERVAL = UNDER_WAY_LIFE / 2;

export const idempotencyFold: Fold<IdempotencyState, IdempotencyEvent> = {
  initial: { status: 'none' },
  evolve(state, event, at) {
    if (event.type === 'CommandReceived') {
      const received_at = at.metadata.occurredAt;
      const isRenewal = state.status !== 'none' && state.request.expires_at > received_at;
      return {
        status: 'under-way',
        request: event.data,
        received_at,
        answer: null,
        began: isRenewal ? state.began : at.revision,
      };
    }
    return state.status === 'none' ? state : { ...state, status: 'answered', answer: event.data };
  },
};

export type IdempotencyDecision =
  /** Carry the command out; append these events first, at the revision that was read. */
  | {
      readonly kind: 'proceed';
      readonly events: readonly IdempotencyEvent[];
      /** `began` of the use that continues; null: these events begin a new use. */
      readonly began: number | null;
    }
  | { readonly kind: 'replay'; readonly answer: DataOf<'CommandAnswered'> };

/**
 * Decides about a command that carries a key.
 * @param first the state of the first command, as known to this process: still running, or failed without a response
 * @throws RefusalError `STATE_CONFLICT` when the key was used for another command, or the first is still under way
 */
export function receiveCommand(
  state: IdempotencyState,
  request: DataOf<'CommandReceived'>,
  now: Instant,
  first: 'carried-out' | 'lost' | 'unknown' = 'unknown',
): IdempotencyDecision {
  const events: readonly IdempotencyEvent[] = [{ type: 'CommandReceived', data: request }];
  if (state.status === 'none' || fromIso(state.request.expires_at) <= now) {
    return { kind: 'proceed', events, began: null };
  }
  const same =
    state.request.request_hash === request.request_hash &&
    state.request.method === request.method &&
    state.request.path === request.path;
  if (!same) {
    throw conflict('this Idempotency-Key was used for another command');
  }
  if (state.answer !== null) return { kind: 'replay', answer: state.answer };
  // Compared in both directions, because a future time would keep the key under way for too long
  // after the clock was set back.
  const lives = Math.abs(now - fromIso(state.received_at)) < UNDER_WAY_LIFE;
  if (first === 'carried-out' || (first === 'unknown' && lives)) {
    throw conflict('the first command with this Idempotency-Key is still under way');
  }
  return { kind: 'proceed', events, began: state.began };
}

const conflict = (message: string): RefusalError =>
  new RefusalError('STATE_CONFLICT', message, { field: 'Idempotency-Key' });
