import { Refusal } from '../errors.ts';
import type { SessionEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';

/**
 * A session: a chain of refresh tokens of which only the last counts.
 *
 *   none ──SessionStarted──► open ──SessionRefreshed──► open ──SessionEnded──► ended
 */
export type SessionState =
  | { readonly status: 'none' }
  | {
      readonly status: 'open' | 'ended';
      readonly agent_id: string;
      readonly refresh_id: string;
      readonly expires_at: string;
      /** The agent's credentials that it began with; other ones end it. */
      readonly credentials_revision: number | null;
    };

export const sessionFold: Fold<SessionState, SessionEvent> = {
  initial: { status: 'none' },
  evolve(state, event) {
    if (event.type === 'SessionStarted') return { status: 'open', ...event.data };
    if (state.status === 'none') return state;
    return event.type === 'SessionRefreshed'
      ? { ...state, ...event.data }
      : { ...state, status: 'ended' };
  },
};

/**
 * Spends a refresh token for a new one. A token that was spent before is a stolen one, or its thief's
 * victim: the session ends, and `reused` tells the caller to refuse.
 */
export function refreshSession(
  state: SessionState,
  spent: string,
  next: { readonly refresh_id: string; readonly expires_at: string },
): { readonly events: readonly SessionEvent[]; readonly reused: boolean } {
  if (state.status !== 'open') throw new Refusal('STATE_CONFLICT', 'the session has ended');
  if (state.refresh_id === spent) {
    return { events: [{ type: 'SessionRefreshed', data: next }], reused: false };
  }
  return { events: [{ type: 'SessionEnded', data: { reason: 'reuse' } }], reused: true };
}

/** Ends a session; nothing when it has ended or never was. */
export function endSession(state: SessionState): readonly SessionEvent[] {
  return state.status === 'open' ? [{ type: 'SessionEnded', data: { reason: 'revoked' } }] : [];
}
