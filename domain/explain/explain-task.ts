import { toIso, type Instant } from '../clock.ts';
import { notFound } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import type { Fire } from '../schedule/schedule.ts';
import { streams } from '../streams.ts';
import { explainFired, explainSkippedSpan } from './decided-fires.ts';
import { endOf, findDecisions, startOf, type Decision } from './decisions.ts';
import type { ExplainContext } from './explain-context.ts';
import { evidenceOf, joined, NO_NOTE, type Explanation, type Verdict } from './explanation.ts';
import { readDisablings, readOrders } from './holds.ts';
import {
  backfillNote,
  explainEventTask,
  nearbyRunsNote,
  type BackfillFinder,
  type RunFinder,
} from './nearby-runs.ts';
import { explainNothingDue } from './nothing-due.ts';
import { expiringSecretsNote, type ExpiryFinder } from './secret-note.ts';
import { compileEra, TaskHistory } from './task-history.ts';
import { afterCancel, explainUndecided } from './undecided-fires.ts';
import { noteOf, Words } from './words.ts';

const SECOND = 1000;
/** How many agents' names are looked up. */
const MAX_NAMES = 50;
/** How many later rules are searched for the next fire. */
const MAX_ERAS = 4;

export interface ExplainRequest {
  readonly store: EventStore;
  readonly taskId: string;
  readonly at: Instant;
  readonly now: Instant;
  /** An agent's name; null if unknown. */
  readonly nameOf: (agentId: string) => Promise<string | null>;
  /**
   * The condition for which an agent's runs wait when they are ready to start, such as a slot; null for none in
   * particular.
   */
  readonly readyRunsWaitFor?: (agentId: string) => Promise<string | null>;
  readonly findRuns: RunFinder;
  readonly findBackfills: BackfillFinder;
  readonly findExpiries?: ExpiryFinder;
}

/**
 * Explains from the log why a task did or did not fire at an instant. The answer is about a fire in the same second, by
 * the schedule in force at the instant.
 * @throws RefusalError `NOT_FOUND`
 */
export async function explainTask(request: ExplainRequest): Promise<Explanation> {
  const { store, taskId, at, now, findRuns, findBackfills } = request;
  const start = Math.floor(at / SECOND) * SECOND;
  const end = start + SECOND - 1;
  const [history, decisions, orders] = await Promise.all([
    TaskHistory.read(store, taskId),
    findDecisions(store, streams.fires(taskId), start, end),
    readOrders(store),
  ]);
  if (history === null) throw notFound('task', taskId);
  const era = history.eraAt(at);
  const { timezone, created_by } = era.definition;
  const waitFor = (await request.readyRunsWaitFor?.(created_by)) ?? null;
  const disablings = await readDisablings(store, history.task.definition.created_by);
  const stops = [...orders, ...disablings];
  const words = new Words(timezone, await namesOf(history, stops, request), waitFor);
  const about = { history, era, decisions, orders, disablings, words };
  const context = { store, taskId, at, now, ...about };
  const due = dueWithin(context, start, end);
  const verdict = await judge(context, due, findRuns);
  const backfills = due === null ? NO_NOTE : await backfillNote(context, due.at, findBackfills);
  const secrets =
    due === null ? NO_NOTE : await expiringSecretsNote(context, due.at, request.findExpiries);
  const nominal = due?.at ?? at;
  return {
    task_id: taskId,
    at: toIso(at),
    fired: verdict.fired,
    reason: verdict.reason,
    message: [
      ...verdict.sentences,
      ...secrets.sentences,
      ...noteOf(due),
      ...backfills.sentences,
    ].join(' '),
    run_id: verdict.runId,
    previous_fire: isoOrNull(previousFire(context, nominal)),
    next_fire: isoOrNull(nextFire(context, nominal)),
    evidence: evidenceOf([...verdict.evidence, ...backfills.evidence]),
  };
}

/** Decisions take precedence over the schedule. */
async function judge(
  context: ExplainContext,
  due: Fire | null,
  findRuns: RunFinder,
): Promise<Verdict> {
  const { at, era, history, decisions } = context;
  const fired = decisions.within.find((each) => each.type === 'Fired');
  if (fired !== undefined && (due === null || due.at === startOf(fired))) {
    return explainFired(context, fired);
  }
  if (due !== null) {
    const span = decisions.within.find((each) => startOf(each) <= due.at && due.at <= endOf(each));
    if (span?.type === 'FiresSkipped') return explainSkippedSpan(context, span, due.at);
    if (span?.type === 'Fired') return explainFired(context, span);
  }
  const isEventTask = era.definition.schedule_kind === 'event' && at > history.created;
  if (due === null && isEventTask) {
    return afterCancel(context, at) ?? explainEventTask(context, findRuns);
  }
  const verdict = due === null ? explainNothingDue(context) : explainUndecided(context, due);
  if (isEventTask) return verdict;
  return { ...verdict, ...joined(verdict, await nearbyRunsNote(context, findRuns)) };
}

/**
 * The fire to which the instant refers, by a decision or by the rules in force: the fire at the instant, or otherwise
 * the first one in its second.
 */
function dueWithin(context: ExplainContext, start: Instant, end: Instant): Fire | null {
  const { at, era: asked, history, decisions, words } = context;
  const found: Fire[] = decisions.within
    .flatMap(endsOf)
    .map((nominal) => ({ at: nominal, local: words.when(nominal), note: null }));
  for (const era of history.erasWithin(start, end)) {
    const fire = compileEra(era).schedule?.next(Math.max(start - 1, era.after)) ?? null;
    if (fire !== null && fire.at <= era.upTo) found.unshift(fire);
  }
  // Even after a cancellation, because the question is about the fire that would have been due.
  const later = at > asked.upTo ? (compileEra(asked).schedule?.next(start - 1) ?? null) : null;
  if (later !== null) found.push(later);
  const inSecond = found.filter((fire) => fire.at >= start && fire.at <= end);
  return inSecond.find((fire) => fire.at === at) ?? inSecond[0] ?? null;
}

/** The last nominal time before another, by the log or by the rule in force. */
function previousFire({ era, decisions }: ExplainContext, nominal: Instant): Instant | null {
  const { before, within } = decisions;
  const known = [...within, ...(before === null ? [] : [before])]
    .flatMap(endsOf)
    .filter((each) => each < nominal);
  const ofRule = compileEra(era).schedule?.previous(Math.min(nominal, era.upTo + 1))?.at ?? null;
  if (ofRule !== null && ofRule > era.after) known.push(ofRule);
  return known.length === 0 ? null : Math.max(...known);
}

/** The first nominal time after another, by the log or by the rules. */
function nextFire({ history, decisions }: ExplainContext, nominal: Instant): Instant | null {
  const { within, after, last } = decisions;
  const known = [...within, ...(after === null ? [] : [after])]
    .flatMap(endsOf)
    .filter((each) => each > nominal);
  const eras = history.eras.filter(({ upTo }) => upTo > nominal).slice(0, MAX_ERAS);
  for (const era of eras) {
    const fire = compileEra(era).schedule?.next(Math.max(nominal, era.after)) ?? null;
    if (fire === null || fire.at > era.upTo) continue;
    // Beyond every decision, no fire follows once `max_runs` is used up.
    const { max_runs } = era.definition;
    const count = last !== null && 'fire_count' in last.data ? last.data.fire_count : 0;
    if (after !== null || max_runs === null || count < max_runs) known.push(fire.at);
    break;
  }
  return known.length === 0 ? null : Math.min(...known);
}

const endsOf = (decision: Decision): readonly Instant[] => [startOf(decision), endOf(decision)];

async function namesOf(
  history: TaskHistory,
  orders: ExplainContext['orders'],
  { nameOf }: ExplainRequest,
): Promise<ReadonlyMap<string, string>> {
  const operators = orders.slice(0, MAX_NAMES).map(({ metadata }) => metadata.actor);
  const ids = [...new Set([...history.actors].slice(-MAX_NAMES).concat(operators))];
  const names = await Promise.all(ids.map(async (id) => [id, await nameOf(id)] as const));
  return new Map(names.flatMap(([id, name]) => (name === null ? [] : [[id, name] as const])));
}

const isoOrNull = (instant: Instant | null): string | null =>
  instant === null ? null : toIso(instant);
