import type { PersonEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import { namespaceField, namespaceOf } from '../namespaces/namespace.ts';
import type { Grant } from './claim-rules.ts';

/** A person at an identity provider. In each namespace that their claims have given, the person is one agent. */
export interface Person {
  readonly issuer: string;
  /** The claim `sub`. */
  readonly subject: string;
}

/** The state of a person; null before the first sign-in. */
export type PersonState = {
  /** The present agent. */
  readonly agent_id: string;
  readonly namespace: string;
  readonly scopes: readonly string[];
  readonly issued_at: string;
  /** The person's agents, by namespace. */
  readonly agents: Readonly<Record<string, string>>;
} | null;

export const personFold: Fold<PersonState, PersonEvent> = {
  initial: null,
  namespaceOf: (state) => state?.namespace,
  evolve(state, { data }) {
    const { agent_id, scopes, issued_at } = data;
    const namespace = namespaceOf(data);
    const agents = { ...state?.agents, [namespace]: agent_id };
    return { agent_id, namespace, scopes, issued_at, agents };
  },
};

/** Records the provider's claims about a person, and the person's agent. */
export function personIdentified(
  { issuer, subject }: Person,
  agentId: string,
  { namespace, scopes }: Grant,
  issuedAt: string,
): PersonEvent {
  return {
    type: 'PersonIdentified',
    data: {
      issuer,
      subject,
      agent_id: agentId,
      ...namespaceField(namespace),
      scopes: [...scopes],
      issued_at: issuedAt,
    },
  };
}
