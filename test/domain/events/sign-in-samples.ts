import type { DataOf } from '../../../domain/events/catalogue.ts';

/** Samples of the events of people and sessions. */
export const signInSamples = (
  at: string,
  text: string,
): {
  readonly SessionStarted: readonly DataOf<'SessionStarted'>[];
  readonly PersonIdentified: readonly DataOf<'PersonIdentified'>[];
} => ({
  SessionStarted: [
    { agent_id: 'a', refresh_id: 'r', expires_at: at, credentials_revision: null },
    { agent_id: 'a', refresh_id: 'r', expires_at: at, credentials_revision: 1 },
  ],
  PersonIdentified: [
    { issuer: text, subject: text, agent_id: 'a', scopes: [text], issued_at: at },
    { issuer: text, subject: text, agent_id: 'a', namespace: 'n', scopes: [], issued_at: at },
  ],
});
