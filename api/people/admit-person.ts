import { withdrawAdmin } from '../../domain/agents/admin-withdrawal.ts';
import { agentFold, type AgentState, type RegisteredAgent } from '../../domain/agents/agent.ts';
import {
  registerAgentCommand,
  updateAgentCommand,
} from '../../domain/agents/agent-registration.ts';
import type { Grant } from '../../domain/agents/claim-rules.ts';
import {
  personFold,
  personIdentified,
  type Person,
  type PersonState,
} from '../../domain/agents/person.ts';
import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import { RefusalError } from '../../domain/errors.ts';
import {
  load,
  toNewEvents,
  type CommandContext,
  type Handled,
  type Loaded,
} from '../../domain/handle.ts';
import { nameBasedId, newId } from '../../domain/ids.ts';
import { requireOpenNamespace } from '../../domain/namespaces/namespace-commands.ts';
import { streams } from '../../domain/streams.ts';
import { tryAppend } from '../../domain/try-append.ts';
import { createWithinQuota } from '../access/count-quotas.ts';
import { exists } from '../access/present-counts.ts';
import { removeUnlessOpen } from '../endpoints/agent-endpoints.ts';
import { adminsIn } from '../endpoints/agent-removal.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { SignInRefusedError } from './sign-in-refused-error.ts';

/** The most attempts while other requests change the same agents. */
const MAX_ATTEMPTS = 6;

/** A person, with the provider's claims about them. */
export interface IdentifiedPerson extends Person {
  /** The name for a new agent. It need not be unique. */
  readonly name: string;
  readonly grant: Grant;
  /** When the provider made these claims. */
  readonly issuedAt: Instant;
  /** Records the claims even if they are known. */
  readonly isSignIn: boolean;
}

/** The agent of a person. */
export interface AdmittedPerson {
  readonly agentId: string;
  readonly agent: RegisteredAgent;
}

interface Admission {
  readonly dependencies: ApiDependencies;
  readonly person: IdentifiedPerson;
  readonly context: CommandContext;
}

/**
 * Brings the agent of a person in line with the claims: registers it in its namespace, or sets its scopes. A person who
 * moves to another namespace gets another agent there, and the former agent loses its scopes.
 *
 * The agents' revisions are read first, then the claims are recorded, and then the agents are changed at those
 * revisions. So if two sign-ins run at once, the one with the older claims has no effect. After a crash in between, the
 * next sign-in finds the recorded agent and completes it.
 *
 * @throws SignInRefusedError for claims that grant nothing or are older than the removal of the agent, and for a
 *   disabled agent
 * @throws RefusalError `STATE_CONFLICT` for the last agent with the scope `admin`, and if others keep changing it
 */
export async function admitPerson(admission: Admission): Promise<AdmittedPerson> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    // Each attempt is a new command, because it is based on another state.
    const { commandId } = admission.context;
    const context = {
      ...admission.context,
      commandId: nameBasedId('admit', commandId, String(attempt)),
    };
    try {
      const admitted = await admitOnce({ ...admission, context });
      if (admitted !== null) return enabled(admitted);
    } catch (error) {
      if (!(error instanceof RefusalError) || error.code !== 'REVISION_MISMATCH') throw error;
    }
  }
  const message = 'other requests keep changing the agent of this person; try again';
  throw new RefusalError('STATE_CONFLICT', message);
}

/** @throws SignInRefusedError for an agent that is disabled */
function enabled(admitted: AdmittedPerson): AdmittedPerson {
  const { agentId, agent } = admitted;
  if (agent.disabled === null) return admitted;
  const message = 'your account is disabled; ask an administrator of this service';
  throw new SignInRefusedError('disabled', message, { agentId });
}

/** @returns null if another request was faster */
async function admitOnce(admission: Admission): Promise<AdmittedPerson | null> {
  const { dependencies, person, context } = admission;
  const { store } = dependencies;
  const { issuer, subject, grant } = person;
  const issuedAt = toIso(person.issuedAt);
  const stream = streams.person(issuer, subject);
  const known = await load(store, stream, personFold);
  if (known.state !== null && known.state.issued_at > issuedAt) {
    return presentAgent(dependencies, known.state, grant.namespace);
  }
  await inNamespace(grant, () => requireOpenNamespace(store, grant.namespace));
  const present = known.state?.agents[grant.namespace];
  const found = present === undefined ? null : await loadAgent(dependencies, present);
  const isUsable = found?.state.status === 'registered' || found?.state.status === 'none';
  if (present !== undefined && found?.state.status === 'removed') {
    await refuseOlderThanRemoval(dependencies, present, person);
  }
  const agentId = isUsable && present !== undefined ? present : newId(context.now);
  const before = isUsable && found !== null ? found : await loadAgent(dependencies, agentId);
  const others = await formerAgents(dependencies, known.state, agentId);
  const asAgent = { ...context, actor: agentId, namespace: grant.namespace };
  if (person.isSignIn || !isKnown(known.state, agentId, grant)) {
    const event = personIdentified(person, agentId, grant, issuedAt);
    const events = toNewEvents(stream, [event], asAgent);
    if ((await tryAppend(store, stream, events, known.revision)) === null) return null;
  }
  for (const [id, former] of others) await giveScopes(dependencies, id, former, [], asAgent);
  const handled =
    before.state.status === 'registered'
      ? await giveScopes(dependencies, agentId, before, grant.scopes, asAgent)
      : await register(dependencies, agentId, person, asAgent);
  const { state: agent } = handled;
  if (agent.status !== 'registered') return null;
  // Checked again, because the namespace may have been deleted in the meantime.
  await inNamespace(grant, () => removeUnlessOpen({ dependencies, context }, agentId, agent));
  return { agentId, agent };
}

/** @throws SignInRefusedError for a namespace that does not exist, or is being deleted */
async function inNamespace({ namespace }: Grant, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    const message = `your account belongs to the namespace ${namespace}, which does not exist here; ask an administrator of this service`;
    throw new SignInRefusedError('no_namespace', message, { cause: error.message });
  }
}

const isKnown = (state: PersonState, agentId: string, { namespace, scopes }: Grant): boolean =>
  state !== null &&
  state.agent_id === agentId &&
  state.namespace === namespace &&
  state.scopes.join(' ') === scopes.join(' ');

/** The agent after newer claims. @throws SignInRefusedError if it is in another namespace now, or removed */
async function presentAgent(
  dependencies: ApiDependencies,
  { agent_id: agentId, namespace }: NonNullable<PersonState>,
  wanted: string,
): Promise<AdmittedPerson> {
  const { state } = await loadAgent(dependencies, agentId);
  if (namespace === wanted && state.status === 'registered') return { agentId, agent: state };
  throw stale(agentId);
}

async function refuseOlderThanRemoval(
  { store }: ApiDependencies,
  agentId: string,
  { issuedAt }: IdentifiedPerson,
): Promise<void> {
  const read = { direction: 'backwards', limit: 1 } as const;
  const [last] = await store.readStream(streams.agent(agentId), read);
  // Issuers give times in whole seconds.
  const removedAt = last === undefined ? 0 : fromIso(last.metadata.occurredAt);
  if (Math.floor(removedAt / 1000) * 1000 > issuedAt) throw stale(agentId);
}

function stale(agentId: string): SignInRefusedError {
  const message =
    'the agent was changed or removed after these claims were made; sign in again, or get a new token';
  return new SignInRefusedError('stale_claims', message, { agentId });
}

/** The agents of a person in other namespaces that still have scopes. */
async function formerAgents(
  dependencies: ApiDependencies,
  known: PersonState,
  agentId: string,
): Promise<readonly (readonly [string, Loaded<AgentState>])[]> {
  const former: (readonly [string, Loaded<AgentState>])[] = [];
  for (const id of Object.values(known?.agents ?? {})) {
    if (id === agentId) continue;
    const loaded = await loadAgent(dependencies, id);
    const { state } = loaded;
    if (state.status === 'registered' && state.scopes.length > 0) former.push([id, loaded]);
  }
  return former;
}

/**
 * Gives an agent scopes, if the agent has not changed since it was read.
 * @throws RefusalError `REVISION_MISMATCH`, `STATE_CONFLICT`
 */
async function giveScopes(
  dependencies: ApiDependencies,
  id: string,
  before: Loaded<AgentState>,
  scopes: readonly string[],
  context: CommandContext,
): Promise<Loaded<AgentState>> {
  const { store, agents } = dependencies;
  const { state, revision } = before;
  if (state.status !== 'registered' || revision === 'none') return before;
  if ([...state.scopes].sort().join(' ') === [...scopes].sort().join(' ')) return before;
  const act = (seen: number) => updateAgentCommand(store, id, { scopes }, context, seen);
  const losesAdmin = state.scopes.includes('admin') && !scopes.includes('admin');
  const others = () => adminsIn({ dependencies });
  const handled = losesAdmin
    ? await withdrawAdmin({ store, agentId: id, others, context, expectedRevision: revision, act })
    : await act(revision);
  agents.learn(id, handled);
  return handled;
}

/**
 * Registers the agent of a person under a name that is free.
 * @throws RefusalError `STATE_CONFLICT` if its namespace has reached its quota of agents
 */
async function register(
  dependencies: ApiDependencies,
  agentId: string,
  { issuer, subject, name, grant }: IdentifiedPerson,
  context: CommandContext,
): Promise<Handled<AgentState>> {
  const { store, agents } = dependencies;
  const { namespace } = grant;
  const isThere = () => exists(store, streams.agent(agentId));
  const creation = { namespace, quota: 'agents', isThere } as const;
  const mark = nameBasedId('person', issuer, subject).slice(0, 8);
  const names = [name, `${name} (${mark})`, `person ${agentId}`];
  for (const [index, each] of names.entries()) {
    const fields = { name: each, scopes: grant.scopes, webhook_url: null };
    const named = { ...context, commandId: nameBasedId('name', context.commandId, String(index)) };
    try {
      const handled = await createWithinQuota(dependencies, creation, () =>
        registerAgentCommand(store, agentId, fields, null, named, namespace),
      );
      agents.learn(agentId, handled);
      return handled;
    } catch (error) {
      const isTaken = error instanceof RefusalError && error.details['field'] === 'name';
      if (isTaken && index < names.length - 1) continue;
      // Another sign-in of the same person has registered it in the meantime.
      const isThere = error instanceof RefusalError && error.details['status'] !== undefined;
      if (isThere) throw new RefusalError('REVISION_MISMATCH', error.message);
      throw error;
    }
  }
  throw new Error('no name is free');
}

const loadAgent = ({ store }: ApiDependencies, id: string): Promise<Loaded<AgentState>> =>
  load(store, streams.agent(id), agentFold);
