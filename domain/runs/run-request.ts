import { fromIso, type Instant } from '../clock.ts';
import { earlierUse, useDedupeKey, type EarlierRun, type KeyUse } from '../keys/dedupe.ts';
import { Refusal } from '../errors.ts';
import { isConflict, type AppendResult, type EventStore } from '../event-store.ts';
import type { DataOf, KeyEvent, RunEvent } from '../events/catalogue.ts';
import { handle, load, toNewEvents, type CommandContext } from '../handle.ts';
import { nameBasedId } from '../ids.ts';
import { Judgement, type KeyPlace } from '../keys/key-judgement.ts';
import { changeKey, readKey, type KeyChange } from '../keys/key-stream.ts';
import { comesLate, usesTold, usesWithin } from '../keys/late-use.ts';
import { releaseAll, releaseKey, type KeyClaim, type KeyName, type KeyState } from '../keys/key.ts';
import { openUses } from '../keys/open-uses.ts';
import { aheadOf, claimOverlap, joinOverlap, overlapKey } from '../keys/overlap.ts';
import { ownersOf } from '../keys/task-owners.ts';
import { cancelRun, hasEnded, runFold } from './run.ts';
import { payloadOfBegun } from './run-payload.ts';
import { streams } from '../streams.ts';
import type { TaskDefinition } from '../tasks/task-definition.ts';
import type { RunSkipReason } from '../vocabulary.ts';

type RunRequest = DataOf<'RunRequested'>;

/** What decides whether a run of a task may be requested. */
export type RequestRules = Pick<
  TaskDefinition,
  'created_by' | 'dedupe_key' | 'dedupe_window_seconds' | 'overlap_policy'
>;

/** The task that a run executes, at the revision that the run is pinned to. */
export interface PinnedTask {
  readonly id: string;
  readonly revision: number;
  readonly definition: Pick<TaskDefinition, 'created_by' | 'priority' | 'overlap_policy'>;
}

/** What a run's trigger says of it. Fields left out are null or empty; `priority` defaults to the task's. */
export type RunCause = Pick<RunRequest, 'trigger' | 'run_at'> &
  Partial<
    Pick<
      RunRequest,
      'scheduled_for' | 'priority' | 'event' | 'retry_of' | 'prior_steps' | 'prior_results'
    >
  >;

/** The data of `RunRequested`, for every trigger. Lists each field: spreading is slower on this hot path. */
export function runRequestOf(task: PinnedTask, cause: RunCause): RunRequest {
  const { created_by, priority, overlap_policy } = task.definition;
  const request = {
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
  const { prior_results } = cause;
  return prior_results === undefined ? request : { ...request, prior_results };
}

export interface RunToRequest {
  readonly runId: string;
  readonly request: RunRequest;
  readonly rules: RequestRules;
  /** The same for every process that requests this run: concurrent requests append the same event. */
  readonly context: CommandContext;
}

export type Requested =
  | { readonly kind: 'requested'; readonly result: AppendResult }
  /** It was recorded that it does not run, and because of which other run. */
  | {
      readonly kind: 'skipped';
      readonly reason: RunSkipReason;
      readonly because_of: string;
      readonly result: AppendResult;
    }
  /** It has a stream already: this is its first event. Nothing was appended. */
  | { readonly kind: 'known'; readonly event: RunEvent };

/** Whether requesting a run of the task asks nothing of other runs: one append, and no more. */
export function isUnconditional(rules: RequestRules): boolean {
  return rules.dedupe_key === null && rules.overlap_policy === 'allow';
}

/**
 * Requests a run, unless its task's dedupe key or overlap policy says that it does not run: then that is recorded as
 * `RunSkipped`, in the same stream.
 *
 * Where this process may die, and what is left then:
 * - before the dedupe key is used: nothing;
 * - between `KeyUsed` and `KeyHeld` or `KeyWaited`, or between these and the run's first event: reservations for a run
 *   with an empty stream. Scheduled and triggered runs are requested again by whoever follows the log (the
 *   same run: it finds its own use and its own place and goes on); a caller's may be voided by
 *   the next who wants the key, after a minute, which makes this request fail here;
 * - before what it cancels is told so: the run waits in line, and its worker tells it again.
 *
 * @throws EventStoreError all that the log throws; a repetition goes on where this stopped
 */
export async function requestRun(store: EventStore, run: RunToRequest): Promise<Requested> {
  const { runId, request, rules, context } = run;
  const stream = streams.run(runId);
  if (isUnconditional(rules)) {
    const result = await appendFirst(
      store,
      stream,
      { type: 'RunRequested', data: request },
      context,
    );
    return result ? { kind: 'requested', result } : known(store, stream);
  }
  // What has begun must not take the key again: it may be over, and another may have it.
  const [first] = await store.readStream(stream, { limit: 1 });
  if (first !== undefined) return { kind: 'known', event: first as unknown as RunEvent };
  const obstacle = (await dedupe(store, run)) ?? (await takePlace(store, run));
  if (obstacle !== null) {
    const { reason, because_of } = obstacle;
    const skipped = await appendFirst(store, stream, skippedOf(request, obstacle), context);
    return skipped
      ? { kind: 'skipped', reason, because_of, result: skipped }
      : known(store, stream);
  }
  const result = await appendFirst(store, stream, { type: 'RunRequested', data: request }, context);
  if (result === null) {
    await leaveIfOver(store, run);
    return known(store, stream);
  }
  if (rules.overlap_policy === 'cancel_running') await cancelAhead(store, run);
  return { kind: 'requested', result };
}

interface Obstacle {
  readonly reason: Extract<RunSkipReason, 'duplicate' | 'overlap'>;
  readonly because_of: string;
}

/** Uses the dedupe key. Retries and backfills repeat on purpose. */
async function dedupe(store: EventStore, run: RunToRequest): Promise<Obstacle | null> {
  const { runId, request, rules, context } = run;
  const { dedupe_key: key, dedupe_window_seconds: window, created_by: owner } = rules;
  if (key === null || request.retry_of !== null || request.trigger === 'backfill') return null;
  const { task_id, trigger } = request;
  const use = { run_id: runId, task_id, trigger, at: wantedAt(request, context.now) };
  const name: KeyName = { kind: 'dedupe', owner, key };
  const judgement = new Judgement(store, context);
  const duplicateOf = ({ run_id: because_of }: KeyUse): KeyChange<Obstacle> => {
    return { events: [], answer: { reason: 'duplicate', because_of } };
  };
  const { answer } = await changeKey<Obstacle | null>(
    store,
    name,
    context,
    async (state, pending) => {
      const before = earlierUse(state, use, window);
      const earlier =
        before === null ? 'finished' : await earlierRun(store, name, before, judgement);
      const decision = useDedupeKey(state, use, window, earlier, context.now);
      if (decision.outcome === 'duplicate') return duplicateOf(decision.earlier);
      if (decision.events.length === 0) return { events: [], answer: null };
      const became = (other: KeyUse): Promise<EarlierRun> =>
        other.run_id === before?.run_id
          ? Promise.resolve(earlier)
          : earlierRun(store, name, other, judgement);
      // The latest use alone stands in the state; those before it may count though that one does not.
      const looks = before !== null || (window !== null && comesLate(state, use));
      const uses = !looks
        ? []
        : window === null
          ? await openUses(store, name, pending, became)
          : await usesTold(store, name, pending);
      // It has used the key before, and died or lost the answer then.
      if (uses.some(({ run_id }) => run_id === runId)) return { events: [], answer: null };
      const other =
        window === null ? uses[0] : await firstRun(usesWithin(uses, use, window), became);
      if (other !== undefined) return duplicateOf(other);
      return { events: decision.events, answer: null };
    },
  );
  return answer;
}

/** The first of some uses whose run counts. */
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
  judgement: Judgement,
): Promise<EarlierRun> {
  const { state } = await load(store, streams.run(use.run_id), runFold);
  if (state.state === 'abandoned' || state.state === 'skipped') return 'void';
  if (state.state !== 'none') return hasEnded(state) ? 'finished' : 'unfinished';
  return (await judgement.dead(name, [use])).length > 0 ? 'void' : 'unfinished';
}

/** Takes the task's own slot, or a place in its line, as its overlap policy says. */
async function takePlace(store: EventStore, run: RunToRequest): Promise<Obstacle | null> {
  const { request, rules, context } = run;
  const policy = rules.overlap_policy;
  if (policy === 'allow') return null;
  const name = overlapKey(request.task_id, rules.created_by);
  const others = await otherKeysOf(store, name);
  const claim = overlapClaim(run);
  const judgement = new Judgement(store, context);
  const { answer } = await changeKey<Obstacle | null>(store, name, context, async (state) => {
    const decide = (from: KeyState): KeyChange<Obstacle | null> => {
      const decision = claimOverlap(from, claim, policy, context.now);
      if (decision.outcome !== 'skip') return { events: decision.events, answer: null };
      return { events: [], answer: { reason: 'overlap', because_of: decision.because_of } };
    };
    const joined = await joinOthers(store, state, others, claim.run_id, judgement);
    const ahead = placesOf(joined.state).filter(({ run_id }) => run_id !== claim.run_id);
    // Before it gives way to another: is that one still there?
    const dead = await judgement.dead(name, ahead);
    const after = releaseAll(joined.state, dead);
    const { events, answer: obstacle } = decide(after.state);
    // Who gives way leaves the key as it is.
    if (obstacle !== null && dead.length === 0) return { events: [], answer: obstacle };
    return { events: [...joined.events, ...after.events, ...events], answer: obstacle };
  });
  return answer;
}

/** The keys of the same task under those whom it has belonged to besides. */
async function otherKeysOf(
  store: EventStore,
  { owner, key }: KeyName,
): Promise<readonly KeyName[]> {
  const owners = await ownersOf(store, key);
  return [...owners].filter((other) => other !== owner).map((other) => overlapKey(key, other));
}

/** The key with those who stand in the others and whose runs go on. @param except the run that comes to it */
async function joinOthers(
  store: EventStore,
  state: KeyState,
  others: readonly KeyName[],
  except: string,
  judgement: Judgement,
): Promise<{ readonly state: KeyState; readonly events: readonly KeyEvent[] }> {
  const here = new Set([except, ...placesOf(state).map(({ run_id }) => run_id)]);
  const events: KeyEvent[] = [];
  let after = state;
  for (const name of others) {
    const other = await readKey(store, name);
    if (other === null) continue;
    const places = placesOf(other).filter(({ run_id }) => !here.has(run_id));
    const dead = await judgement.dead(name, places);
    const joined = joinOverlap(after, other, new Set([except, ...dead]));
    events.push(...joined.events);
    after = joined.state;
  }
  return { state: after, events };
}

/** All who stand in a task's own key, whomever the task belonged to as they came. @param owner whom it belongs to */
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

/** All who hold a key or stand in line for it, by the time since which they do. */
export function placesOf(state: KeyState): readonly KeyPlace[] {
  const waiters = state.waiters.map(({ run_id, trigger, waiting_since }) => ({
    run_id,
    trigger,
    since: waiting_since,
  }));
  return [...state.holders, ...waiters];
}

/** Somebody else has requested it, and it may have ended before this process took its place. */
async function leaveIfOver(store: EventStore, run: RunToRequest): Promise<void> {
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

/**
 * Tells the runs that stand before one of an overlap key to end. Each is told once by the same run, however often
 * this is repeated; one that is over by itself is as it should be.
 */
export async function cancelRunsAhead(
  store: EventStore,
  state: KeyState,
  runId: string,
  context: Omit<CommandContext, 'commandId'>,
): Promise<void> {
  for (const other of aheadOf(state, runId)) {
    const commandId = nameBasedId('overlap cancels', runId, other);
    try {
      const payload = await payloadOfBegun(store, other);
      await handle({
        store,
        stream: streams.run(other),
        fold: runFold,
        decide: (run) => cancelRun(run, payload),
        context: { ...context, commandId, causationId: runId, reason: 'overlap: cancel_running' },
      });
    } catch (error) {
      // It has ended otherwise, or is not requested yet: then it will be told by the worker of this run.
      if (!(error instanceof Refusal)) throw error;
    }
  }
}

/**
 * Nominal time; for an event the time of its publication, which a late request does not change; else now. A retry is
 * wanted now, whatever time it is about.
 */
function wantedAt(request: DataOf<'RunRequested'>, now: Instant): Instant {
  const { scheduled_for, event, retry_of } = request;
  if (retry_of !== null) return now;
  const at = scheduled_for ?? event?.published_at ?? null;
  return at === null ? now : fromIso(at);
}

function skippedOf(request: DataOf<'RunRequested'>, obstacle: Obstacle): RunEvent {
  const { task_id, task_revision, created_by, trigger, scheduled_for, priority, retry_of } =
    request;
  const pinned = { task_id, task_revision, created_by, trigger, scheduled_for, priority };
  const retry = retry_of === null ? {} : { retry_of };
  return { type: 'RunSkipped', data: { ...pinned, ...obstacle, ...retry } };
}

/** @returns null when the stream has begun already */
async function appendFirst(
  store: EventStore,
  stream: string,
  event: RunEvent,
  context: CommandContext,
): Promise<AppendResult | null> {
  try {
    return await store.append(stream, toNewEvents(stream, [event], context), 'none');
  } catch (error) {
    if (isConflict(error)) return null;
    throw error;
  }
}

async function known(store: EventStore, stream: string): Promise<Requested> {
  const [first] = await store.readStream(stream, { limit: 1 });
  if (first === undefined) throw new Error(`${stream} was begun by somebody and is empty`);
  return { kind: 'known', event: first as unknown as RunEvent };
}
