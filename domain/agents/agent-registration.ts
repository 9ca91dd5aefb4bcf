import { fromIso } from '../clock.ts';
import {
  agentFold,
  agentNameFold,
  keepsChanging,
  registerAgent,
  releaseName,
  requireAgent,
  reserveName,
  updateAgent,
  type AgentFields,
  type AgentNameState,
  type AgentState,
} from './agent.ts';
import { Refusal } from '../errors.ts';
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
import { streams } from '../streams.ts';

/** So often a change starts afresh that was overtaken between its appends. */
const ATTEMPTS = 6;

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
  await reserve(store, fields.name, agentId, context, false);
  return handle({
    store,
    stream: streams.agent(agentId),
    fold: agentFold,
    decide: (state) => registerAgent(state, fields, secretHash),
    context,
  });
}

/**
 * Changes an agent; a new name is reserved before, and the old one given back after. The change expects the agent as it
 * was before the name was reserved, and the old name goes only as it was then: so of several changes that cross, none
 * gives back a name that another has come back to.
 *
 * @throws Refusal `STATE_CONFLICT` when the name is taken, and where others change the agent each time;
 *   `REVISION_MISMATCH` for what the caller saw
 */
export async function updateWithName(
  store: EventStore,
  agentId: string,
  changes: Partial<AgentFields>,
  context: CommandContext,
  expectedRevision?: SeenRevision,
): Promise<Handled<AgentState>> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await updateOnce(store, agentId, changes, context, expectedRevision);
    } catch (error) {
      // Somebody has changed the agent since the name was reserved.
      const elsewhere = error instanceof Refusal && error.code === 'REVISION_MISMATCH';
      if (!elsewhere || expectedRevision !== undefined) throw error;
      if (attempt >= ATTEMPTS) throw keepsChanging(agentId);
    }
  }
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
  // Before a name is reserved that would then not be used.
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
  // Renamed in between, it would come back to a name that is not reserved any more.
  const asSeen = { ...change, expectedRevision: Number(loaded.revision) };
  if (name === before.name) return handle(asSeen);
  const old = await load(store, streams.agentName(before.name), agentNameFold);
  await reserve(store, name, agentId, context, true);
  const handled = await handle(asSeen);
  await release(store, before.name, agentId, context, old.revision);
  return handled;
}

/**
 * Gives a name back that its agent does not use any more.
 * @param seen the revision of the name's stream at which that was so; at another one nothing is done
 */
export async function release(
  store: EventStore,
  name: string,
  agentId: string,
  context: CommandContext,
  seen?: number | 'none',
): Promise<void> {
  if (seen === 'none') return;
  try {
    await handle({
      store,
      stream: streams.agentName(name),
      fold: agentNameFold,
      decide: (state) => releaseName(state, name, agentId),
      context,
      expectedRevision: seen,
    });
  } catch (error) {
    const isElsewhere = error instanceof Refusal && error.code === 'REVISION_MISMATCH';
    if (!(seen !== undefined && (isElsewhere || isConflict(error)))) throw error;
  }
}

/** @param anew also where the agent has the name already, as it may be given back by another change */
async function reserve(
  store: EventStore,
  name: string,
  agentId: string,
  context: CommandContext,
  anew: boolean,
): Promise<void> {
  const stream = streams.agentName(name);
  let found = await load(store, stream, agentNameFold);
  if (found.state !== null && found.state.agent_id !== agentId) {
    await voidIfLeftBehind(store, name, found.state, found.revision, context);
    found = await load(store, stream, agentNameFold);
  }
  // A repetition looks anew at what became of the name, so it is not the same command.
  const commandId = nameBasedId('reserve', context.commandId, String(found.revision));
  await handle({
    store,
    stream,
    fold: agentNameFold,
    decide: (current) => reserveName(current, name, agentId, anew),
    context: { ...context, commandId },
  });
}

/**
 * Frees a name whose holder never began, does not use it (any more), or is gone. An append to the holder's stream goes
 * first, so that whoever is about to use the name, slowly, loses the race for that and looks again: `Abandoned` in one
 * that is empty, else the name that the agent has, once more.
 */
async function voidIfLeftBehind(
  store: EventStore,
  name: string,
  held: NonNullable<AgentNameState>,
  seen: number | 'none',
  context: CommandContext,
): Promise<void> {
  const stream = streams.agent(held.agent_id);
  const { state, revision } = await load(store, stream, agentFold);
  // One that is gone never comes to use it: a change of its name and its removal have crossed.
  const mayCome = state.status === 'none' || state.status === 'registered';
  if (mayCome && context.now - fromIso(held.since) < RESERVATION_LIFE) return;
  if (state.status === 'registered' && state.name === name) return;
  // A command of its own, each time: by the events of one that is known nothing would be appended.
  const commandId = nameBasedId('void', context.commandId, stream, `${seen} ${revision}`);
  const voiding = { ...context, commandId };
  const fence = fenceOf(state, name);
  if (fence !== null) {
    try {
      await store.append(stream, toNewEvents(stream, [fence], voiding), revision);
    } catch (error) {
      if (isConflict(error)) return; // the slow one was faster: the name is its own
      throw error;
    }
  }
  await release(store, name, held.agent_id, voiding, seen);
}

/** What keeps the holder of a name from using it; null where it can't anyway. */
function fenceOf(holder: AgentState, name: string): AgentEvent | null {
  if (holder.status === 'none') {
    return { type: 'Abandoned', data: { reservation: streams.agentName(name) } };
  }
  if (holder.status !== 'registered') return null;
  return { type: 'AgentUpdated', data: { changes: { name: holder.name } } };
}
