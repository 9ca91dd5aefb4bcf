import { fromIso, type Instant } from './clock.ts';
import { Refusal } from './errors.ts';
import type { DataOf, IdempotencyEvent } from './events/catalogue.ts';
import type { Fold } from './handle.ts';

/** How long a key is remembered. Milliseconds. */
export const IDEMPOTENCY_LIFE = 24 * 3_600_000;

/**
 * The memory of one key of one agent.
 *
 *   none ──CommandReceived──► under way ──CommandAnswered──► answered ──(24 h)──► as none
 *
 * A key that is under way and whose process died may be taken up again soon after: what the command
 * creates has its id from the key, so it is completed, not doubled.
 */
export type IdempotencyState =
  | { readonly status: 'none' }
  | {
      readonly status: 'under-way' | 'answered';
      readonly request: DataOf<'CommandReceived'>;
      readonly received_at: string;
      readonly answer: DataOf<'CommandAnswered'> | null;
      /** Revision of the event that began the key's present life: the command's id comes from it. */
      readonly began: number;
    };

/**
 * A command of which nothing was said for longer has lost its process: whoever carries it out says at each
 * {@link UNDER_WAY_RENEWAL} again that it was received. Taking it up while it is alive after all doubles nothing in
 * the log (the ids are the same), but what a tool does outside. Milliseconds.
 */
const UNDER_WAY_LIFE = 10_000;

/** After this time it is said again that a command is carried out. Milliseconds. */
export const UNDER_WAY_RENEWAL = UNDER_WAY_LIFE / 2;

export const idempotencyFold: Fold<IdempotencyState, IdempotencyEvent> = {
  initial: { status: 'none' },
  evolve(state, event, at) {
    if (event.type === 'CommandReceived') {
      const received_at = at.metadata.occurredAt;
      const goesOn = state.status !== 'none' && state.request.expires_at > received_at;
      return {
        status: 'under-way',
        request: event.data,
        received_at,
        answer: null,
        began: goesOn ? state.began : at.revision,
      };
    }
    return state.status === 'none' ? state : { ...state, status: 'answered', answer: event.data };
  },
};

export type IdempotencyDecision =
  /** Carry the command out; first append this, expecting the revision that was read. */
  | {
      readonly kind: 'proceed';
      readonly events: readonly IdempotencyEvent[];
      /** Where the key's life began that this goes on with; null: a new one begins with these events. */
      readonly began: number | null;
    }
  | { readonly kind: 'replay'; readonly answer: DataOf<'CommandAnswered'> };

/**
 * What to do with a command that carries a key.
 *
 * @param first what this process knows of the first: that it still carries it out, or that it failed without an answer
 * @throws Refusal `STATE_CONFLICT` when the key was used for something else, or is still under way
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
    throw new Refusal('STATE_CONFLICT', 'this Idempotency-Key was used for another command', {
      field: 'Idempotency-Key',
    });
  }
  if (state.answer !== null) return { kind: 'replay', answer: state.answer };
  // In both directions: of a time that lies ahead, as after the clock was set back, nobody could tell when it is over.
  const lives = Math.abs(now - fromIso(state.received_at)) < UNDER_WAY_LIFE;
  if (first === 'carried-out' || (first === 'unknown' && lives)) {
    throw new Refusal(
      'STATE_CONFLICT',
      'the first command with this Idempotency-Key is under way',
      {
        field: 'Idempotency-Key',
      },
    );
  }
  return { kind: 'proceed', events, began: state.began };
}
