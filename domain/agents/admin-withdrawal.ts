import { agentFold, keepsChanging, type RegisteredAgent } from './agent.ts';
import { fromIso, toIso, type Instant } from '../clock.ts';
import { Refusal } from '../errors.ts';
import type { AdminsEvent, DataOf } from '../events/catalogue.ts';
import { isConflict, type EventStore } from '../event-store.ts';
import {
  load,
  loadLast,
  isSeen,
  revisionMismatch,
  type SeenRevision,
  toNewEvents,
  type CommandContext,
  type Fold,
  type Loaded,
} from '../handle.ts';
import { nameBasedId } from '../ids.ts';
import { streams } from '../streams.ts';

/** So often a withdrawal starts afresh that was overtaken between its appends. */
const ATTEMPTS = 6;

/** What has not taken the scope by then was left behind by a crash: anyone may void it. Milliseconds. */
const WITHDRAWAL_LIFE = 60_000;

/** The scope without which nobody could register agents. */
const ADMIN = 'admin';

/** An agent that is about to lose the scope `admin`, by a change of exactly this revision. */
type Withdrawal = DataOf<'AdminWithdrawn'>['withdrawals'][number];

/** Each event carries all that may still be under way, so only the last is read. */
const adminsFold: Fold<readonly Withdrawal[], AdminsEvent> = {
  initial: [],
  evolve: (_state, event) => event.data.withdrawals,
};

/** What takes the scope from an agent. */
interface Taking<T> {
  readonly store: EventStore;
  readonly agentId: string;
  /** Ids of agents that may have the scope, each once. The log says whether they do. */
  readonly others: () => AsyncIterable<string>;
  readonly context: CommandContext;
  /** What the caller saw of the agent (`If-Match`). */
  readonly expectedRevision?: SeenRevision | undefined;
  /** Changes or removes the agent, if it is at this revision. @throws Refusal `REVISION_MISMATCH` */
  readonly act: (revision: number) => Promise<T>;
}

/**
 * Takes the scope `admin` from an agent, where it has it, if another one keeps it.
 *
 * Two admins that take it from each other at once would both find the other, so whoever does it says so first in the
 * one stream `admins`, expecting it as it was when the others were looked at: of two, one has to look again, and the
 * agent that is about to lose the scope counts no more. What was said holds for one revision of the agent: once that
 * has changed, by this or by anything else, it can't be done any more. A crash between leaves an agent that has the
 * scope and does not count; after a minute anyone may void that, by a change that changes nothing.
 *
 * @throws Refusal `STATE_CONFLICT` for the last admin, and where others change the agent each time;
 *   `REVISION_MISMATCH` for what the caller saw; what `act` throws
 */
export async function withdrawAdmin<T>(taking: Taking<T>): Promise<T> {
  const { store, agentId, context, expectedRevision, act } = taking;
  const stream = streams.agent(agentId);
  for (let attempt = 1; ; attempt += 1) {
    // Before any agent: what is said after this makes the append below fail.
    const admins = await loadLast(store, streams.admins(), adminsFold);
    const { state, revision } = await load(store, stream, agentFold);
    if (revision === 'none' || state.status !== 'registered') {
      throw new Refusal('NOT_FOUND', 'there is no such agent');
    }
    if (expectedRevision !== undefined && !isSeen(expectedRevision, revision)) {
      throw revisionMismatch(stream, expectedRevision, revision);
    }
    try {
      if (!state.scopes.includes(ADMIN)) return await act(revision);
      await refuseLast(taking, admins.state);
      const said = await announce(store, admins, { agent_id: agentId, revision }, context);
      if (said === null) continue; // somebody else was faster
      return await givenBackWhereRefused(store, said, agentId, context, () => act(revision));
    } catch (error) {
      const elsewhere = error instanceof Refusal && error.code === 'REVISION_MISMATCH';
      if (!elsewhere || expectedRevision !== undefined) throw error;
      if (attempt >= ATTEMPTS) throw keepsChanging(agentId);
    }
  }
}

/** @throws Refusal `STATE_CONFLICT` where no other agent has the scope and is to keep it */
async function refuseLast<T>(taking: Taking<T>, withdrawals: readonly Withdrawal[]): Promise<void> {
  for await (const id of taking.others()) {
    if (id === taking.agentId) continue;
    if (await keepsAdmin(taking, id, withdrawals)) return;
  }
  const details = { agent_id: taking.agentId };
  throw new Refusal('STATE_CONFLICT', 'the last admin keeps the scope admin', details);
}

/** Whether an agent has the scope and nobody is about to take it. */
async function keepsAdmin(
  { store, context }: Pick<Taking<unknown>, 'store' | 'context'>,
  id: string,
  withdrawals: readonly Withdrawal[],
): Promise<boolean> {
  const stream = streams.agent(id);
  const { state, revision } = await load(store, stream, agentFold);
  if (state.status !== 'registered' || !state.scopes.includes(ADMIN)) return false;
  const found = withdrawals.find((each) => each.agent_id === id && each.revision === revision);
  if (found === undefined) return true;
  if (!isLeftBehind(found, context.now)) return false;
  // Whoever is about to take it after all, slowly, loses the race for the agent and looks again.
  const fence = { type: 'AgentUpdated', data: { changes: { name: nameOf(state) } } } as const;
  const commandId = nameBasedId('void', context.commandId, stream, String(revision));
  try {
    await store.append(stream, toNewEvents(stream, [fence], { ...context, commandId }), revision);
    return true;
  } catch (error) {
    if (isConflict(error)) return false; // the slow one was faster, or somebody has changed the agent
    throw error;
  }
}

const nameOf = ({ name }: RegisteredAgent): string => name;

/** Also where it lies ahead: the clock was put back. */
const isLeftBehind = ({ since }: Withdrawal, now: Instant): boolean =>
  Math.abs(now - fromIso(since)) >= WITHDRAWAL_LIFE;

/**
 * Says that an agent is about to lose the scope, beside those of which that may still be so.
 * @returns the stream as it then is; null where somebody else said something since it was read
 */
async function announce(
  store: EventStore,
  admins: Loaded<readonly Withdrawal[]>,
  { agent_id, revision }: Omit<Withdrawal, 'since'>,
  context: CommandContext,
): Promise<Loaded<readonly Withdrawal[]> | null> {
  const open: Withdrawal[] = [];
  for (const each of admins.state) {
    if (each.agent_id === agent_id) continue;
    const found = await load(store, streams.agent(each.agent_id), agentFold);
    if (found.revision === each.revision) open.push(each);
  }
  const withdrawals = [...open, { agent_id, revision, since: toIso(context.now) }];
  return say(store, admins, withdrawals, context);
}

async function say(
  store: EventStore,
  { revision }: Loaded<readonly Withdrawal[]>,
  withdrawals: readonly Withdrawal[],
  context: CommandContext,
): Promise<Loaded<readonly Withdrawal[]> | null> {
  const stream = streams.admins();
  // A repetition looks anew at who else has the scope, so it is not the same command.
  const commandId = nameBasedId('admins', context.commandId, String(revision));
  const event: AdminsEvent = { type: 'AdminWithdrawn', data: { withdrawals: [...withdrawals] } };
  try {
    const events = toNewEvents(stream, [event], { ...context, commandId });
    const said = await store.append(stream, events, revision);
    return { state: withdrawals, revision: said.revision, position: said.position };
  } catch (error) {
    if (isConflict(error)) return null;
    throw error;
  }
}

/** What was refused is not about to happen any more: the agent counts again at once. */
async function givenBackWhereRefused<T>(
  store: EventStore,
  said: Loaded<readonly Withdrawal[]>,
  agentId: string,
  context: CommandContext,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof Refusal) {
      const others = said.state.filter(({ agent_id }) => agent_id !== agentId);
      // In vain where somebody else has said something since: then it is void in a minute.
      await say(store, said, others, context);
    }
    throw error;
  }
}
