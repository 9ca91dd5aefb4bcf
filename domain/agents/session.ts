import type { RegisteredAgent } from './agent.ts';
import { RefusalError } from '../errors.ts';
import type { SessionEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';

/**
 * A session: a chain of refresh tokens of which only the last is valid.
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
      /**
       * The agent's `sessions_revision` at the start of the session. New credentials or a disabling end the session.
       */
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

/** Whether a session is open, by its own events and those of its agent. Its expiry is not checked. */
export function isOpenFor(
  agent: RegisteredAgent,
  session: SessionState,
): session is Exclude<SessionState, { readonly status: 'none' }> {
  if (session.status !== 'open' || agent.disabled !== null) return false;
  return session.credentials_revision === agent.sessions_revision;
}

/** Exchanges a refresh token. A token that was used before may be stolen, so the session ends and `reused` is true. */
export function refreshSession(
  state: SessionState,
  refreshId: string,
  next: { readonly refresh_id: string; readonly expires_at: string },
): { readonly events: readonly SessionEvent[]; readonly reused: boolean } {
  if (state.status !== 'open') throw new RefusalError('STATE_CONFLICT', 'the session has ended');
  if (state.refresh_id === refreshId) {
    return { events: [{ type: 'SessionRefreshed', data: next }], reused: false };
  }
  return { events: [{ type: 'SessionEnded', data: { reason: 'reuse' } }], reused: true };
}

/** Ends a session. No event if it has ended or never began. */
export function endSession(state: SessionState): readonly SessionEvent[] {
  return state.status === 'open' ? [{ type: 'SessionEnded', data: { reason: 'revoked' } }] : [];
}
