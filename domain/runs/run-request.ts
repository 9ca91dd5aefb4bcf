import { fromIso, type Instant } from '../clock.ts';
import { earlierUse, useDedupeKey, type EarlierRun, type KeyUse } from '../keys/dedupe.ts';
import { RefusalError } from '../errors.ts';
import type { AppendResult, EventStore } from '../event-store.ts';
import type { DataOf, KeyEvent, RunEvent } from '../events/catalogue.ts';
import { load, toNewEvents, type CommandContext } from '../handle.ts';
import { nameBasedId } from '../ids.ts';
import { DEFAULT_NAMESPACE } from '../namespaces/namespace.ts';
import { StaleHolderCheck, type KeyPlace } from '../keys/stale-holders.ts';
import { changeKey, readKey, type KeyChange } from '../keys/key-stream.ts';
import { isLateUse, recordedUses, usesInWindow } from '../keys/dedupe-history.ts';
import { releaseAll, releaseKey, type KeyClaim, type KeyName, type KeyState } from '../keys/key.ts';
import { openUses } from '../keys/open-uses.ts';
import { runsAheadOf, claimOverlap, joinOverlap, overlapKey } from '../keys/overlap.ts';
import { ownersOf } from '../keys/task-owners.ts';
import { cancelRunIn } from './run-cancellation.ts';
import { hasEnded, runFold } from './run.ts';
import { streams } from '../streams.ts';
import { tryAppend } from '../try-append.ts';
import type { TaskDefinition } from '../tasks/task-definition.ts';
import type { RunSkipReason } from '../vocabulary.ts';

type RunRequest = DataOf<'RunRequested'>;

/** The parts of a task that decide whether its runs may be requested. */
export type RequestRules = Pick<
  TaskDefinition,
  'created_by' | 'dedupe_key' | 'dedupe_window_seconds' | 'overlap_policy'
>;

/** The task that a run executes, at the revision that the run is pinned to. */
export interface PinnedTask {
  readonly namespace: string;
  readonly id: string;
  readonly revision: number;
  readonly definition: Pick<TaskDefinition, 'created_by' | 'priority' | 'overlap_policy'>;
}

/**
 * The fields of a run that its trigger determines. Fields left out are null or empty; `priority` defaults to the
 * task's.
 */
export type RunCause = Pick<RunRequest, 'trigger' | 'run_at'> &
  Partial<
    Pick<
      RunRequest,
      | 'scheduled_for'
      | 'priority'
      | 'event'
      | 'retry_of'
      | 'prior_steps'
      | 'prior_results'
      | 'params'
      | 'parent'
    >
  >;

/** The data of `RunRequested`, for every trigger. Lists each field: spreading is slower on this hot path. */
export function runRequestOf(task: PinnedTask, cause: RunCause): RunRequest {
  const { created_by, priority, overlap_policy } = task.definition;
  const request: RunRequest = {
    task_id: task.id,
    task_revision: task.revision,
    created_by,
    trigger: cause.trigger,
    scheduled_for: cause.scheduled_for ?? null,
    priority: cause.priority ?? priority,
    run_at: cause.run_at,
    event: cause.event ?? null,
    retry_of: cause.retry_of ?? null,
    prior_steps: cause.prior_steps ?? [],
    overlap_policy,
  };
  const { prior_results, params, parent } = cause;
  if (task.namespace !== DEFAULT_NAMESPACE) request.namespace = task.namespace;
  if (prior_results !== undefined) request.prior_results = prior_results;
  if (params !== undefined) request.params = params;
  if (parent !== undefined) request.parent = parent;
  return request;
}

export interface RunToRequest {
  readonly runId: string;
  readonly request: RunRequest;
  readonly rules: RequestRules;
  /** The context of the request. It is the same in every process, so concurrent requests append the same event. */
  readonly context: CommandContext;
}

export type Requested =
  | { readonly kind: 'requested'; readonly result: AppendResult }
  /** The run was recorded as skipped, with the run that caused this. */
  | {
      readonly kind: 'skipped';
      readonly reason: RunSkipReason;
      readonly because_of: string;
      readonly result: AppendResult;
    }
  /** The run's stream had already begun with this event. Nothing was appended. */
  | { readonly kind: 'known'; readonly event: RunEvent };

/** Whether a run of the task can be requested without looking at other runs: with one append. */
export function isUnconditional(rules: RequestRules): boolean {
  return rules.dedupe_key === null && rules.overlap_policy === 'allow';
}

/**
 * Requests a run. If the task's dedupe key or overlap policy forbids the run, records `RunSkipped` in the same stream.
 *
 * The remains of a crash, by its time:
 * - before the dedupe key is used: nothing;
 * - between `KeyUsed` and `KeyHeld` or `KeyWaited`, or between these and the run's first event: reservations for a run
 *   with an empty stream. The process that follows the log requests scheduled and triggered runs again: the same run,
 *   which finds its own use and place. After a minute the next run that needs the key may void a caller's reservation,
 *   which makes this request fail here;
 * - before the runs ahead are canceled (`cancel_running`): the run waits in line, and its worker cancels them.
 *
 * @throws EventStoreError all errors of the log; repeating the request completes it
 */
export async function requestRun(store: EventStore, run: RunToRequest): Promise<Requested> {
  const { runId, request, rules, context } = run;
  const stream = streams.run(runId);
  const begin = (event: RunEvent): Promise<AppendResult | null> =>
    tryAppend(store, stream, toNewEvents(stream, [event], context), 'none');
  if (!isUnconditional(rules)) {
    // A run that has started must not take the key again, because it may have ended, and another
    // run may hold the key.
    const [first] = await store.readStream(stream, { limit: 1 });
    if (first !== undefined) return { kind: 'known', event: first as unknown as RunEvent };
    const obstacle = (await dedupe(store, run)) ?? (await takePlace(store, run));
    if (obstacle !== null) {
      const result = await begin(skippedOf(request, obstacle));
      return result ? { kind: 'skipped', ...obstacle, result } : known(store, stream);
    }
  }
  const result = await begin({ type: 'RunRequested', data: request });
  if (result === null) {
    await releaseIfEnded(store, run);
    return known(store, stream);
  }
  if (rules.overlap_policy === 'cancel_running') await cancelAhead(store, run);
  return { kind: 'requested', result };
}

/** The result of a caller's command that requested a run. */
export interface CommandedRun {
  /** null if the same command had appended it before. */
  readonly result: AppendResult | null;
  /** Why the run is skipped, and the run that caused this; null if it is not skipped. */
  readonly skip: { readonly reason: RunSkipReason; readonly because_of: string | null } | null;
}

/**
 * Requests the run that a caller's command names. A run that already exists comes from the same command.
 * @throws RefusalError `STATE_CONFLICT` if the request took so long that another command voided it
 */
export async function requestCommandedRun(
  store: EventStore,
  run: RunToRequest,
): Promise<CommandedRun> {
  const requested = await requestRun(store, run);
  if (requested.kind === 'requested') return { result: requested.result, skip: null };
  if (requested.kind === 'skipped') return { result: requested.result, skip: requested };
  const { event } = requested;
  if (event.type === 'Abandoned') {
    throw new RefusalError('STATE_CONFLICT', 'the run was not requested in time; try again');
  }
  return { result: null, skip: event.type === 'RunSkipped' ? event.data : null };
}

interface Obstacle {
  readonly reason: Extract<RunSkipReason, 'duplicate' | 'overlap'>;
  readonly because_of: string;
}

/** Uses the dedupe key, except for retries and backfills, which repeat on purpose. */
async function dedupe(store: EventStore, run: RunToRequest): Promise<Obstacle | null> {
  const { runId, request, rules, context } = run;
  const { dedupe_key: key, dedupe_window_seconds: window, created_by: owner } = rules;
  if (key === null || request.retry_of !== null || request.trigger === 'backfill') return null;
  const { task_id, trigger } = request;
  const use = { run_id: runId, task_id, trigger, at: wantedAt(request, context.now) };
  const name: KeyName = { kind: 'dedupe', owner, key };
  const staleHolders = new StaleHolderCheck(store, context);
  const duplicateOf = ({ run_id: because_of }: KeyUse): KeyChange<Obstacle> => ({
    events: [],
    answer: { reason: 'duplicate', because_of },
  });
  const { answer } = await changeKey<Obstacle | null>(
    store,
    name,
    context,
    async (state, pending) => {
      const before = earlierUse(state, use, window);
      const earlier =
        before === null ? 'finished' : await earlierRun(store, name, before, staleHolders);
      const decision = useDedupeKey(state, use, window, earlier, context.now);
      if (decision.outcome === 'duplicate') return duplicateOf(decision.earlier);
      if (decision.events.length === 0) return { events: [], answer: null };
      const became = (other: KeyUse): Promise<EarlierRun> =>
        other.run_id === before?.run_id
          ? Promise.resolve(earlier)
          : earlierRun(store, name, other, staleHolders);
      // The state holds only the latest use. Earlier uses may count even if the latest does not.
      const checksEarlier = before !== null || (window !== null && isLateUse(state, use));
      const uses = !checksEarlier
        ? []
        : window === null
          ? await openUses(store, name, pending, became)
          : await recordedUses(store, name, pending);
      // The run used the key before a crash, or before the response was lost.
      if (uses.some(({ run_id }) => run_id === runId)) return { events: [], answer: null };
      const other =
        window === null ? uses[0] : await firstRun(usesInWindow(uses, use, window), became);
      if (other !== undefined) return duplicateOf(other);
      return { events: decision.events, answer: null };
    },
  );
  return answer;
}

/** The first use whose run counts. */
async function firstRun(
  uses: readonly KeyUse[],
  became: (use: KeyUse) => Promise<EarlierRun>,
): Promise<KeyUse | undefined> {
  for (const use of uses) if ((await became(use)) !== 'void') return use;
  return undefined;
}

async function earlierRun(
  store: EventStore,
  name: KeyName,
  use: KeyUse,
  staleHolders: StaleHolderCheck,
): Promise<EarlierRun> {
  const { state } = await load(store, streams.run(use.run_id), runFold);
  if (state.state === 'abandoned' || state.state === 'skipped') return 'void';
  if (state.state !== 'none') return hasEnded(state) ? 'finished' : 'unfinished';
  return (await staleHolders.findStale(name, [use])).length > 0 ? 'void' : 'unfinished';
}

/** Takes the task's own slot, or a place in its line, according to its overlap policy. */
async function takePlace(store: EventStore, run: RunToRequest): Promise<Obstacle | null> {
  const { request, rules, context } = run;
  const policy = rules.overlap_policy;
  if (policy === 'allow') return null;
  const name = overlapKey(request.task_id, rules.created_by);
  const others = await otherKeysOf(store, name);
  const claim = overlapClaim(run);
  const staleHolders = new StaleHolderCheck(store, context);
  const { answer } = await changeKey<Obstacle | null>(store, name, context, async (state) => {
    const joined = await joinOthers(store, state, others, claim.run_id, staleHolders);
    const ahead = placesOf(joined.state).filter(({ run_id }) => run_id !== claim.run_id);
    // Before this run gives way, runs that have ended or lost their worker are removed.
    const dead = await staleHolders.findStale(name, ahead);
    const after = releaseAll(joined.state, dead);
    const decision = claimOverlap(after.state, claim, policy, context.now);
    const events = [...joined.events, ...after.events];
    if (decision.outcome !== 'skip') {
      return { events: [...events, ...decision.events], answer: null };
    }
    // A run that gives way leaves the key unchanged.
    const answer: Obstacle = { reason: 'overlap', because_of: decision.because_of };
    return { events: dead.length === 0 ? [] : events, answer };
  });
  return answer;
}

/** The overlap keys of the same task under its other owners, past and present. */
async function otherKeysOf(
  store: EventStore,
  { owner, key }: KeyName,
): Promise<readonly KeyName[]> {
  const owners = await ownersOf(store, key);
  return [...owners].filter((other) => other !== owner).map((other) => overlapKey(key, other));
}

/** The key, with the live holders and waiters of the other keys added. @param except the run that claims it */
async function joinOthers(
  store: EventStore,
  state: KeyState,
  others: readonly KeyName[],
  except: string,
  staleHolders: StaleHolderCheck,
): Promise<{ readonly state: KeyState; readonly events: readonly KeyEvent[] }> {
  const here = new Set([except, ...placesOf(state).map(({ run_id }) => run_id)]);
  const events: KeyEvent[] = [];
  let after = state;
  for (const name of others) {
    const other = await readKey(store, name);
    if (other === null) continue;
    const places = placesOf(other).filter(({ run_id }) => !here.has(run_id));
    const dead = await staleHolders.findStale(name, places);
    const joined = joinOverlap(after, other, new Set([except, ...dead]));
    events.push(...joined.events);
    after = joined.state;
  }
  return { state: after, events };
}

/** All holders and waiters of a task's overlap keys, under every owner. @param owner the task's present owner */
export async function placesOfTask(
  store: EventStore,
  taskId: string,
  owner: string,
): Promise<readonly KeyPlace[]> {
  const own = overlapKey(taskId, owner);
  const keys = [own, ...(await otherKeysOf(store, own))];
  const states = await Promise.all(keys.map((name) => readKey(store, name)));
  return states.flatMap((state) => (state === null ? [] : placesOf(state)));
}

function overlapClaim({ runId, request, context }: RunToRequest): KeyClaim {
  const { task_id, trigger, priority } = request;
  const since = wantedAt(request, context.now);
  return { run_id: runId, task_id, trigger, priority, since, limit: 1, attempt: 0 };
}

/** All holders and waiters of a key, each with its time. */
export function placesOf(state: KeyState): readonly KeyPlace[] {
  const waiters = state.waiters.map(({ run_id, trigger, waiting_since }) => ({
    run_id,
    trigger,
    since: waiting_since,
  }));
  return [...state.holders, ...waiters];
}

/** Releases the key of a run that another process requested and that ended before this one took its place. */
async function releaseIfEnded(store: EventStore, run: RunToRequest): Promise<void> {
  const { runId, request, rules, context } = run;
  if (rules.overlap_policy === 'allow') return;
  const { state } = await load(store, streams.run(runId), runFold);
  if (!hasEnded(state)) return;
  await changeKey(store, overlapKey(request.task_id, rules.created_by), context, (key) => ({
    events: releaseKey(key, runId),
    answer: null,
  }));
}

async function cancelAhead(store: EventStore, run: RunToRequest): Promise<void> {
  const { runId, request, rules, context } = run;
  const name = overlapKey(request.task_id, rules.created_by);
  const { state } = await changeKey(store, name, context, () => ({ events: [], answer: null }));
  await cancelRunsAhead(store, state, runId, context);
}

/** Cancels the runs ahead of a run in the line of an overlap key. A repetition cancels no run twice. */
export async function cancelRunsAhead(
  store: EventStore,
  state: KeyState,
  runId: string,
  context: Omit<CommandContext, 'commandId'>,
): Promise<void> {
  for (const other of runsAheadOf(state, runId)) {
    const commandId = nameBasedId('overlap cancels', runId, other);
    try {
      const reason = 'overlap: cancel_running';
      await cancelRunIn(store, other, { ...context, commandId, causationId: runId, reason });
    } catch (error) {
      // The run ahead has ended, or is not requested yet. In the latter case, this run's worker
      // cancels it later.
      if (!(error instanceof RefusalError)) throw error;
    }
  }
}

/**
 * The nominal time, or the event's time of publication, because a late request does not change these. For other runs
 * and for retries, the present time.
 */
function wantedAt(request: RunRequest, now: Instant): Instant {
  const { scheduled_for, event, retry_of } = request;
  if (retry_of !== null) return now;
  const at = scheduled_for ?? event?.published_at;
  return at === undefined ? now : fromIso(at);
}

function skippedOf(request: RunRequest, obstacle: Obstacle): RunEvent {
  const { task_id, task_revision, created_by, trigger, scheduled_for, priority } = request;
  const pinned = { task_id, task_revision, created_by, trigger, scheduled_for, priority };
  const { retry_of, params, parent, namespace } = request;
  const retry = retry_of === null ? {} : { retry_of };
  const given = params === undefined ? {} : { params };
  const child = parent === undefined ? {} : { parent };
  const about = { ...retry, ...given, ...child, ...(namespace === undefined ? {} : { namespace }) };
  return { type: 'RunSkipped', data: { ...pinned, ...obstacle, ...about } };
}

async function known(store: EventStore, stream: string): Promise<Requested> {
  const [first] = await store.readStream(stream, { limit: 1 });
  if (first === undefined) throw new Error(`${stream} refused its first event and is empty`);
  return { kind: 'known', event: first as unknown as RunEvent };
}
