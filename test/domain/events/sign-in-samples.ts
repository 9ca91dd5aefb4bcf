import type { DataOf } from '../../../domain/events/catalogue.ts';

/** Samples of the events of people. */
export const signInSamples = (
  at: string,
  text: string,
): {
  readonly PersonIdentified: readonly DataOf<'PersonIdentified'>[];
} => ({
  PersonIdentified: [
    { issuer: text, subject: text, agent_id: 'a', scopes: [text], issued_at: at },
    { issuer: text, subject: text, agent_id: 'a', namespace: 'n', scopes: [], issued_at: at },
  ],
});
