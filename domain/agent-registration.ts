import { fromIso } from './clock.ts';
import {
  agentFold,
  agentNameFold,
  registerAgent,
  releaseName,
  requireAgent,
  reserveName,
  updateAgent,
  type AgentFields,
  type AgentNameState,
  type AgentState,
} from './agent.ts';
import { isConflict, type EventStore } from './event-store.ts';
import {
  handle,
  load,
  revisionMismatch,
  toNewEvents,
  type CommandContext,
  type Handled,
} from './handle.ts';
import { nameBasedId } from './ids.ts';
import { streams } from './streams.ts';

/** A name whose agent has not begun by then was left behind by a crash: anyone may void it. Milliseconds. */
const RESERVATION_LIFE = 60_000;

/**
 * Registers an agent in two appends: the name is reserved for the agent's stream, then the agent begins.
 * A crash between leaves a name without an agent: the same command, repeated, completes it; another one
 * voids it after a minute.
 *
 * @throws Refusal `STATE_CONFLICT` when the name is taken
 */
export async function registerWithName(
  store: EventStore,
  agentId: string,
  fields: AgentFields,
  secretHash: string | null,
  context: CommandContext,
): Promise<Handled<AgentState>> {
  await reserve(store, fields.name, agentId, context);
  return handle({
    store,
    stream: streams.agent(agentId),
    fold: agentFold,
    decide: (state) => registerAgent(state, fields, secretHash),
    context,
  });
}

/** Changes an agent; a new name is reserved before, and the old one given back after. */
export async function updateWithName(
  store: EventStore,
  agentId: string,
  changes: Partial<AgentFields>,
  context: CommandContext,
  expectedRevision?: number,
): Promise<Handled<AgentState>> {
  const stream = streams.agent(agentId);
  const loaded = await load(store, stream, agentFold);
  const before = requireAgent(loaded.state);
  // Before a name is reserved that would then not be used.
  if (expectedRevision !== undefined && loaded.revision !== expectedRevision) {
    throw revisionMismatch(stream, expectedRevision, loaded.revision);
  }
  const renamed = changes.name !== undefined && changes.name !== before.name;
  if (renamed) await reserve(store, changes.name ?? '', agentId, context);
  const handled = await handle({
    store,
    stream,
    fold: agentFold,
    admit: (state) => void requireAgent(state),
    decide: (state) => updateAgent(state, changes),
    context,
    expectedRevision,
  });
  if (renamed) await release(store, before.name, agentId, context);
  return handled;
}

/** Gives the name back after its agent was removed. */
export async function release(
  store: EventStore,
  name: string,
  agentId: string,
  context: CommandContext,
): Promise<void> {
  await handle({
    store,
    stream: streams.agentName(name),
    fold: agentNameFold,
    decide: (state) => releaseName(state, name, agentId),
    context,
  });
}

async function reserve(
  store: EventStore,
  name: string,
  agentId: string,
  context: CommandContext,
): Promise<void> {
  const stream = streams.agentName(name);
  const { state } = await load(store, stream, agentNameFold);
  if (state !== null && state.agent_id !== agentId) {
    await voidIfLeftBehind(store, name, state, context);
  }
  await handle({
    store,
    stream,
    fold: agentNameFold,
    decide: (current) => reserveName(current, name, agentId),
    context,
  });
}

/**
 * Frees a name whose holder never began, does not use it (any more), or is gone. `Abandoned` goes first
 * and expects an empty stream, so that a slow creator fails cleanly instead of having no name.
 */
async function voidIfLeftBehind(
  store: EventStore,
  name: string,
  held: NonNullable<AgentNameState>,
  context: CommandContext,
): Promise<void> {
  const holder = streams.agent(held.agent_id);
  const { state } = await load(store, holder, agentFold);
  if (context.now - fromIso(held.since) < RESERVATION_LIFE) return;
  if (state.status === 'registered' && state.name === name) return;
  if (state.status === 'none') {
    const reservation = streams.agentName(name);
    const abandoned = [{ type: 'Abandoned' as const, data: { reservation } }];
    try {
      await store.append(holder, toNewEvents(holder, abandoned, context), 'none');
    } catch (error) {
      if (isConflict(error)) return; // the slow creator was faster: the name is its own
      throw error;
    }
  }
  // A command of its own: by the events of this one, the name that is reserved next would count as reserved.
  const voiding = { ...context, commandId: nameBasedId('void', context.commandId, held.agent_id) };
  await release(store, name, held.agent_id, voiding);
}
