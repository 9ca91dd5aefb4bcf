import { fromIso } from '../clock.ts';
import { whileOvertaken } from './agent-changes.ts';
import {
  agentFold,
  agentNameFold,
  registerAgent,
  releaseName,
  requireAgent,
  reserveName,
  updateAgent,
  type AgentFields,
  type AgentState,
  type RegisteredAgent,
} from './agent.ts';
import { RefusalError } from '../errors.ts';
import { isConflict, type EventStore } from '../event-store.ts';
import {
  handle,
  load,
  isSeen,
  revisionMismatch,
  type SeenRevision,
  toNewEvents,
  type CommandContext,
  type Handled,
} from '../handle.ts';
import type { AgentEvent } from '../events/catalogue.ts';
import { nameBasedId } from '../ids.ts';
import { DEFAULT_NAMESPACE } from '../namespaces/namespace.ts';
import { streams } from '../streams.ts';
import { tryAppend } from '../try-append.ts';

/** A name, and the namespace in which it is unique. */
type AgentName = Pick<RegisteredAgent, 'namespace' | 'name'>;

const nameStream = ({ namespace, name }: AgentName): string => streams.agentName(namespace, name);

/**
 * A reserved name that its agent does not use after this time was left behind by a crash. Then any command may void it.
 * Milliseconds.
 */
const RESERVATION_LIFE = 60_000;

/**
 * Registers an agent in two appends: reserves the name for the agent's stream, then begins that stream. After a crash in
 * between, repeating the command completes it; another command voids the name after a minute.
 * @throws RefusalError `STATE_CONFLICT` when the name is taken
 */
export async function registerAgentCommand(
  store: EventStore,
  agentId: string,
  fields: AgentFields,
  secretHash: string | null,
  context: CommandContext,
  namespace = DEFAULT_NAMESPACE,
): Promise<Handled<AgentState>> {
  await reserve(store, { namespace, name: fields.name }, agentId, context, false);
  return handle({
    store,
    stream: streams.agent(agentId),
    fold: agentFold,
    decide: (state) => registerAgent(state, fields, secretHash, namespace),
    context: { ...context, namespace },
  });
}

/**
 * Changes an agent. Reserves a new name before the change, and releases the old name after it. The change expects the
 * revisions that the agent and the old name's stream had before the reservation. So no concurrent rename releases a
 * name that another one has taken again.
 *
 * @throws RefusalError `STATE_CONFLICT` when the name is taken, and when other changes keep overtaking this one;
 *   `REVISION_MISMATCH` for `expectedRevision`
 */
export function updateAgentCommand(
  store: EventStore,
  agentId: string,
  changes: Partial<AgentFields>,
  context: CommandContext,
  expectedRevision?: SeenRevision,
): Promise<Handled<AgentState>> {
  return whileOvertaken(agentId, expectedRevision, () =>
    updateOnce(store, agentId, changes, context, expectedRevision),
  );
}

async function updateOnce(
  store: EventStore,
  agentId: string,
  changes: Partial<AgentFields>,
  context: CommandContext,
  expectedRevision: SeenRevision | undefined,
): Promise<Handled<AgentState>> {
  const stream = streams.agent(agentId);
  const loaded = await load(store, stream, agentFold);
  const before = requireAgent(loaded.state);
  // Checked before a name is reserved in vain.
  if (expectedRevision !== undefined && !isSeen(expectedRevision, loaded.revision)) {
    throw revisionMismatch(stream, expectedRevision, loaded.revision);
  }
  const change = {
    store,
    stream,
    fold: agentFold,
    admit: (state: AgentState) => void requireAgent(state),
    decide: (state: AgentState) => updateAgent(state, changes),
    context,
  };
  const { name } = changes;
  if (name === undefined) return handle({ ...change, expectedRevision });
  // Appended at this revision, because the name would no longer be reserved after another rename.
  const asSeen = { ...change, expectedRevision: Number(loaded.revision) };
  if (name === before.name) return handle(asSeen);
  const old = await load(store, nameStream(before), agentNameFold);
  await reserve(store, { namespace: before.namespace, name }, agentId, context, true);
  const handled = await handle(asSeen);
  await releaseAgentName(store, before, agentId, context, old.revision);
  return handled;
}

/**
 * Releases a name that its agent no longer uses.
 * @param seen releases only at this revision of the name's stream; default: at any revision
 */
export async function releaseAgentName(
  store: EventStore,
  named: AgentName,
  agentId: string,
  context: CommandContext,
  seen?: number | 'none',
): Promise<void> {
  if (seen === 'none') return;
  try {
    await handle({
      store,
      stream: nameStream(named),
      fold: agentNameFold,
      decide: (state) => releaseName(state, named.name, agentId),
      context,
      expectedRevision: seen,
    });
  } catch (error) {
    const isOvertaken = error instanceof RefusalError && error.code === 'REVISION_MISMATCH';
    if (seen === undefined || !(isOvertaken || isConflict(error))) throw error;
  }
}

/**
 * @param anew reserves again even if the agent already has the name, because a concurrent change may be releasing it
 */
async function reserve(
  store: EventStore,
  named: AgentName,
  agentId: string,
  context: CommandContext,
  anew: boolean,
): Promise<void> {
  const stream = nameStream(named);
  let found = await load(store, stream, agentNameFold);
  if (found.state !== null && found.state.agent_id !== agentId) {
    const { agent_id: holder, since } = found.state;
    const seen = found.revision;
    await voidIfLeftBehind({ store, named, holder, since: fromIso(since), seen, context });
    found = await load(store, stream, agentNameFold);
  }
  // A repetition reads the name again, so it is another command.
  const commandId = nameBasedId('reserve', context.commandId, String(found.revision));
  await handle({
    store,
    stream,
    fold: agentNameFold,
    decide: (current) => reserveName(current, named.name, agentId, anew),
    context: { ...context, commandId },
  });
}

/**
 * Releases a name whose holder was never registered, does not use it, or is removed. First appends a fence to the
 * holder's stream: a slow command that is about to use the name loses the race for that stream, and starts again.
 */
async function voidIfLeftBehind(reservation: {
  readonly store: EventStore;
  readonly named: AgentName;
  readonly holder: string;
  readonly since: number;
  readonly seen: number | 'none';
  readonly context: CommandContext;
}): Promise<void> {
  const { store, named, holder, since, seen, context } = reservation;
  const stream = streams.agent(holder);
  const { state, revision } = await load(store, stream, agentFold);
  // A removed agent never uses the name, because its rename and its removal ran at the same time.
  const mayUse = state.status === 'none' || state.status === 'registered';
  if (mayUse && context.now - since < RESERVATION_LIFE) return;
  if (state.status === 'registered' && state.name === named.name) return;
  // Another command each time, because appending the events of a known command again would have no
  // effect.
  const commandId = nameBasedId('void', context.commandId, stream, `${seen} ${revision}`);
  const voiding = { ...context, commandId };
  const fence = fenceOf(state, named);
  if (fence !== null) {
    const events = toNewEvents(stream, [fence], voiding);
    // After a lost race, the holder was faster and uses the name.
    if ((await tryAppend(store, stream, events, revision)) === null) return;
  }
  await releaseAgentName(store, named, holder, voiding, seen);
}

/** The event that prevents the holder of a name from using it; null if none is needed. */
function fenceOf(holder: AgentState, named: AgentName): AgentEvent | null {
  if (holder.status === 'none') {
    return { type: 'Abandoned', data: { reservation: nameStream(named) } };
  }
  if (holder.status !== 'registered') return null;
  return { type: 'AgentUpdated', data: { changes: { name: holder.name } } };
}
