import { fromIso, type Instant } from '../../../domain/clock.ts';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import { awaited } from '../../../domain/explain/run-account.ts';
import { load } from '../../../domain/handle.ts';
import { concurrencyOf } from '../../../domain/keys/key-stream.ts';
import { startDenial } from '../../../domain/agents/permissions.ts';
import { namespaceOf } from '../../../domain/namespaces/namespace.ts';
import { operationsFold } from '../../../domain/operators/operations.ts';
import { isOpen, noWaits, type Wait } from '../../../domain/runs/run-waits.ts';
import { streams } from '../../../domain/streams.ts';
import type { ObstacleKind } from '../../../domain/vocabulary.ts';
import type { RunDocument } from '../../../projections/views/runs.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { pinnedTask } from '../../params/shown-params.ts';
import { rateWait } from '../../access/quota-gate.ts';
import { slotWait } from '../tasks/slot-wait.ts';

/** An obstacle for which an unfinished run waits. */
export interface Obstacle {
  readonly kind: ObstacleKind;
  /** A sentence for people. */
  readonly text: string;
  /** The time since which it has blocked the run; null if unknown. ISO 8601. */
  readonly since: string | null;
  /** When the obstacle ends by itself; null if it does not. */
  readonly until: string | null;
  /** The agent that ordered it; null if no agent did. */
  readonly by: string | null;
  readonly by_name: string | null;
  /** Why it was ordered. */
  readonly reason: string | null;
  /** Runs that block this one. */
  readonly run_ids: readonly string[];
}

/** How many of a task's events are searched for its last pause. */
const RECENT_EVENTS = 50;

const nothing = { since: null, until: null, by: null, by_name: null, reason: null, run_ids: [] };

/**
 * The obstacles for which a run waits while it is not being executed, the first one first. Empty for a run that is
 * being executed, has ended, or can start at once.
 * @throws EventStoreError
 */
export async function obstaclesOf(
  dependencies: ApiDependencies,
  run: RunDocument,
  now: Instant,
): Promise<readonly Obstacle[]> {
  const { state } = run;
  if (state === 'waiting') {
    return [...(await hold(dependencies)), ...(await openWaits(dependencies, run))];
  }
  if (state !== 'queued' && state !== 'retrying') return [];
  const orders = [
    ...(await hold(dependencies)),
    ...(await ofAgent(dependencies, run)),
    ...(await pause(dependencies, run)),
    ...laterStart(run, now),
  ];
  return orders.length > 0 ? orders : await ofCapacity(dependencies, run);
}

/** The name of an agent; null if unknown. */
export async function nameOf(
  { agents }: Pick<ApiDependencies, 'agents'>,
  agentId: string,
): Promise<string | null> {
  const { state } = await agents.get(agentId);
  return 'name' in state ? state.name : null;
}

async function hold(dependencies: ApiDependencies): Promise<readonly Obstacle[]> {
  const { state } = await load(dependencies.store, streams.operations(), operationsFold);
  if (state.hold === null) return [];
  const { by, since, reason } = state.hold;
  const by_name = await nameOf(dependencies, by);
  const text = 'The service is on hold: nothing fires, and no run starts.';
  return [{ ...nothing, kind: 'hold', text, since, by, by_name, reason }];
}

async function ofAgent(
  dependencies: ApiDependencies,
  { attempt, created_by }: RunDocument,
): Promise<readonly Obstacle[]> {
  const { state } = await dependencies.agents.get(created_by);
  const denial = attempt > 0 ? null : startDenial(created_by, state);
  if (denial?.code !== 'agent_disabled') return [];
  const disabled = state.status === 'registered' ? state.disabled : null;
  const name = 'name' in state ? state.name : created_by;
  const text = `The agent of its task, ${name}, is disabled.`;
  if (disabled === null) return [{ ...nothing, kind: 'agent', text }];
  const { by, since } = disabled;
  const by_name = await nameOf(dependencies, by);
  return [{ ...nothing, kind: 'agent', text, since, by, by_name }];
}

async function pause(
  dependencies: ApiDependencies,
  { attempt, task_id, trigger }: RunDocument,
): Promise<readonly Obstacle[]> {
  const { store, tasks } = dependencies;
  // A pause does not hold back manual runs, runs of events, or runs that have started.
  if (attempt > 0 || (trigger !== 'schedule' && trigger !== 'backfill')) return [];
  const { state } = await tasks.get(task_id);
  if (state.status !== 'paused') return [];
  const recent = { direction: 'backwards', limit: RECENT_EVENTS } as const;
  const events = await store.readStream(streams.task(task_id), recent);
  const paused = events.find(({ type }) => type === 'TaskPaused');
  const then = trigger === 'schedule' ? 'this run will be skipped' : 'this run waits';
  const text = `Its task is paused (${state.pause_reason ?? 'request'}): ${then} unless it is resumed.`;
  return [{ ...nothing, kind: 'pause', text, ...(await orderedBy(dependencies, paused)) }];
}

async function orderedBy(
  dependencies: ApiDependencies,
  event: RecordedEvent | undefined,
): Promise<Partial<Obstacle>> {
  if (event === undefined) return {};
  const { actor, occurredAt, reason } = event.metadata;
  const why = { since: occurredAt, reason: reason ?? null };
  if (actor === 'service') return why;
  return { ...why, by: actor, by_name: await nameOf(dependencies, actor) };
}

/** A retry's delay, or a planned start. */
function laterStart({ state, attempt, run_at }: RunDocument, now: Instant): readonly Obstacle[] {
  if (fromIso(run_at) <= now) return [];
  if (state === 'retrying') {
    const text = `Attempt ${attempt} failed; the next one starts after a delay.`;
    return [{ ...nothing, kind: 'retry', text, until: run_at }];
  }
  return [{ ...nothing, kind: 'time', text: 'It starts at a later time.', until: run_at }];
}

/**
 * Whether it waits for a quota, a concurrency key, a slot, or a worker. Based on heartbeats and counters, so the answer
 * is a few seconds old.
 */
async function ofCapacity(
  dependencies: ApiDependencies,
  run: RunDocument,
): Promise<readonly Obstacle[]> {
  const namespace = namespaceOf(run);
  const keys = await key(dependencies, run);
  try {
    const quota = await rateWait(dependencies, namespace);
    if (quota !== null) return [{ ...nothing, kind: 'quota', text: `It waits for ${quota}.` }];
    if (keys.length > 0) return keys;
    const { coordination } = dependencies;
    const slot = await slotWait(coordination, { agent: run.created_by, namespace });
    if (slot !== null) return [{ ...nothing, kind: 'slot', text: `It waits for ${slot}.` }];
    const alive = await coordination.alive();
    if (alive.some(({ about }) => isWorker(about['roles']))) return [];
    const text = 'No process with the role worker is alive.';
    return [{ ...nothing, kind: 'worker', text }];
  } catch (error) {
    dependencies.telemetry.failures.failed('explained a run without the slots of workers', error);
    return keys;
  }
}

const isWorker = (roles: unknown): boolean => Array.isArray(roles) && roles.includes('worker');

/** A concurrency key that other runs hold, or for which they wait before this one. */
async function key(dependencies: ApiDependencies, run: RunDocument): Promise<readonly Obstacle[]> {
  const task = await pinnedTask(dependencies, run);
  const name = task?.definition.concurrency_key ?? null;
  if (task === null || name === null) return [];
  const { concurrency_limit, created_by: owner } = task.definition;
  const { holders, waiters } = await concurrencyOf(dependencies.store, owner, name);
  if (holders.some(({ run_id }) => run_id === run.id)) return [];
  const place = waiters.findIndex(({ run_id }) => run_id === run.id);
  const waiting = waiters[place];
  const ahead = place === -1 ? waiters.length : place;
  if (holders.length + ahead < concurrency_limit) return [];
  const line =
    ahead === 0 ? '' : `; ${ahead} more ${ahead === 1 ? 'run is' : 'runs are'} before it`;
  const held = `${holders.length} of ${concurrency_limit} in use`;
  const text = `It waits for the concurrency key ${name}: ${held}${line}.`;
  const run_ids = holders.map(({ run_id }) => run_id);
  return [{ ...nothing, kind: 'key', text, since: waiting?.since ?? null, run_ids }];
}

async function openWaits(
  { jobs }: ApiDependencies,
  run: RunDocument,
): Promise<readonly Obstacle[]> {
  const waits: readonly Wait[] = run.waits ?? noWaits;
  const reasons = await jobs.reasons(namespaceOf(run), waits);
  return waits.filter(isOpen).map((wait) => {
    const { step, since, until, waits_for } = wait;
    const run_ids = waits_for.kind === 'run' ? [waits_for.run_id] : [];
    const reason = reasons.get(wait.wait_id) ?? null;
    const text = `Step ${step} waits for ${awaited(waits_for)}.`;
    return { ...nothing, kind: waits_for.kind, text, since, until, reason, run_ids };
  });
}
