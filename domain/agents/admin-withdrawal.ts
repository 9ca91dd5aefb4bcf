import { whileOvertaken } from './agent-changes.ts';
import { agentFold, requireAgent } from './agent.ts';
import { fromIso, toIso } from '../clock.ts';
import { RefusalError } from '../errors.ts';
import type { AdminsEvent, DataOf } from '../events/catalogue.ts';
import type { EventStore } from '../event-store.ts';
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
import { tryAppend } from '../try-append.ts';

/**
 * A withdrawal that is not complete after this time was left behind by a crash. Then any command may void it.
 * Milliseconds.
 */
const WITHDRAWAL_LIFE = 60_000;

/** The scope that registering agents requires. */
const ADMIN = 'admin';

/** An agent that is about to lose the scope `admin`, by a change of exactly this revision. */
type Withdrawal = DataOf<'AdminWithdrawn'>['withdrawals'][number];

type Admins = Loaded<readonly Withdrawal[]>;

/** Each event carries every withdrawal that may still be open, so only the last event is read. */
const adminsFold: Fold<readonly Withdrawal[], AdminsEvent> = {
  initial: [],
  evolve: (_state, event) => event.data.withdrawals,
};

/** A change that takes the scope, or its use, from an agent. */
interface WithdrawalCommand<T> {
  readonly store: EventStore;
  readonly agentId: string;
  /** Ids of agents that may have the scope, each once. The log says whether they do. */
  readonly others: () => AsyncIterable<string>;
  readonly context: CommandContext;
  /** The agent's revision that the caller saw (`If-Match`). */
  readonly expectedRevision?: SeenRevision | undefined;
  /** Changes or removes the agent at this revision. @throws RefusalError `REVISION_MISMATCH` */
  readonly act: (revision: number) => Promise<T>;
}

/**
 * Takes the scope `admin`, or its use, from an agent, if another enabled agent keeps the scope.
 *
 * Two admins that take the scope from each other at once would each find the other. So a withdrawal is first announced
 * in the single stream `admins`, at the revision read before the other admins were looked up. The loser of that race
 * looks them up again. An announced agent no longer counts as an admin. An announcement holds for one revision of the
 * agent: any change of the agent voids it. If the process crashes in between, any command may void the announcement
 * after a minute, by an empty change of the agent.
 *
 * @throws RefusalError `STATE_CONFLICT` for the last admin, and when other changes of the agent keep overtaking this
 *   one; `REVISION_MISMATCH` for `expectedRevision`; what `act` throws
 */
export function withdrawAdmin<T>(command: WithdrawalCommand<T>): Promise<T> {
  const { agentId, expectedRevision } = command;
  return whileOvertaken(agentId, expectedRevision, () => withdrawOnce(command));
}

async function withdrawOnce<T>(command: WithdrawalCommand<T>): Promise<T> {
  const { store, agentId, context, expectedRevision, act } = command;
  const stream = streams.agent(agentId);
  for (;;) {
    // Read before any agent, so that a later announcement makes the append below fail.
    const admins = await loadLast(store, streams.admins(), adminsFold);
    const { state, revision } = await load(store, stream, agentFold);
    const { scopes } = requireAgent(state);
    if (
      revision === 'none' ||
      (expectedRevision !== undefined && !isSeen(expectedRevision, revision))
    ) {
      throw revisionMismatch(stream, expectedRevision ?? [], revision);
    }
    if (!scopes.includes(ADMIN)) return act(revision);
    if (!(await hasOtherAdmin(command, admins.state))) {
      const details = { agent_id: agentId };
      throw new RefusalError('STATE_CONFLICT', 'the last admin keeps the scope admin', details);
    }
    const open = await openWithdrawals(store, admins.state, agentId);
    const withdrawals = [...open, { agent_id: agentId, revision, since: toIso(context.now) }];
    const announced = await announce(store, admins, withdrawals, context);
    if (announced === null) continue;
    try {
      return await act(revision);
    } catch (error) {
      // The agent then counts as an admin again at once. If this append loses a race, the
      // announcement is void after a minute.
      if (error instanceof RefusalError) await announce(store, announced, open, context);
      throw error;
    }
  }
}

async function hasOtherAdmin(
  command: WithdrawalCommand<unknown>,
  withdrawals: readonly Withdrawal[],
): Promise<boolean> {
  for await (const id of command.others()) {
    if (id !== command.agentId && (await keepsAdmin(command, id, withdrawals))) return true;
  }
  return false;
}

/** Whether an agent has the scope, is enabled, and is not about to lose the scope. Voids a withdrawal that a crash left behind. */
async function keepsAdmin(
  { store, context }: Pick<WithdrawalCommand<unknown>, 'store' | 'context'>,
  id: string,
  withdrawals: readonly Withdrawal[],
): Promise<boolean> {
  const stream = streams.agent(id);
  const { state, revision } = await load(store, stream, agentFold);
  if (state.status !== 'registered' || !state.scopes.includes(ADMIN)) return false;
  if (state.disabled !== null) return false;
  const found = withdrawals.find((each) => each.agent_id === id && each.revision === revision);
  if (found === undefined) return true;
  // Compared in both directions, because the clock may have been set back.
  if (Math.abs(context.now - fromIso(found.since)) < WITHDRAWAL_LIFE) return false;
  // A slow withdrawal that still continues loses the race for the agent, and starts again.
  const fence = { type: 'AgentUpdated', data: { changes: { name: state.name } } } as const;
  const commandId = nameBasedId('void', context.commandId, stream, String(revision));
  const events = toNewEvents(stream, [fence], { ...context, commandId });
  return (await tryAppend(store, stream, events, revision)) !== null;
}

/** Withdrawals of other agents that may still happen. */
async function openWithdrawals(
  store: EventStore,
  withdrawals: readonly Withdrawal[],
  agentId: string,
): Promise<readonly Withdrawal[]> {
  const open: Withdrawal[] = [];
  for (const each of withdrawals) {
    if (each.agent_id === agentId) continue;
    const { revision } = await load(store, streams.agent(each.agent_id), agentFold);
    if (revision === each.revision) open.push(each);
  }
  return open;
}

/** Announces withdrawals. @returns the stream afterwards; null if it has changed since it was read */
async function announce(
  store: EventStore,
  { revision }: Admins,
  withdrawals: readonly Withdrawal[],
  context: CommandContext,
): Promise<Admins | null> {
  const stream = streams.admins();
  // A repetition looks up the other admins again, so it is another command.
  const commandId = nameBasedId('admins', context.commandId, String(revision));
  const event: AdminsEvent = { type: 'AdminWithdrawn', data: { withdrawals: [...withdrawals] } };
  const events = toNewEvents(stream, [event], { ...context, commandId });
  const result = await tryAppend(store, stream, events, revision);
  return result === null ? null : { state: withdrawals, ...result };
}
