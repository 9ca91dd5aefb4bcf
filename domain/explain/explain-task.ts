import { toIso, type Instant } from '../clock.ts';
import { notFound } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import type { Fire } from '../schedule/schedule.ts';
import { streams } from '../streams.ts';
import type { Asked } from './asked.ts';
import { backfilled, type BackfillFinder } from './backfilled.ts';
import { explainFired, explainSkippedSpan } from './decided.ts';
import { endOf, findDecisions, startOf } from './decisions.ts';
import { evidenceOf, type Explanation, type Verdict } from './explanation.ts';
import { readOrders } from './holds.ts';
import { besideSchedule, explainEventTask, type RunFinder } from './nearby-runs.ts';
import { explainNothingDue } from './nothing-due.ts';
import { compileEra, TaskHistory } from './task-history.ts';
import { afterCancel, explainUndecided } from './undecided.ts';
import { noteOf, Words } from './words.ts';

const SECOND = 1000;
/** Most agents whose names are asked for, and later rules that are searched for the fire after. */
const MOST_NAMES = 50;
const MOST_ERAS = 4;

export interface ExplainRequest {
  readonly store: EventStore;
  readonly taskId: string;
  readonly at: Instant;
  readonly now: Instant;
  /** An agent's name; null where it is not known. */
  readonly nameOf: (agentId: string) => Promise<string | null>;
  readonly findRuns: RunFinder;
  readonly findBackfills: BackfillFinder;
}

/**
 * Says from the log why a task did or did not fire at an instant, or about it: a fire whose nominal time lies in
 * the same second is the one that is meant. The schedule that counts is the one that was in force at the instant.
 * @throws Refusal `NOT_FOUND`
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
  const words = new Words(era.definition.timezone, await namesOf(history, orders, request));
  const asked: Asked = { store, taskId, at, now, history, era, decisions, orders, words };
  const due = dueWithin(asked, start, end);
  const verdict = await judge(asked, due, findRuns);
  const since =
    due === null ? { sentences: [], evidence: [] } : await backfilled(asked, due.at, findBackfills);
  const nominal = due?.at ?? at;
  return {
    task_id: taskId,
    at: toIso(at),
    fired: verdict.fired,
    reason: verdict.reason,
    message: [...verdict.sentences, ...noteOf(due), ...since.sentences].join(' '),
    run_id: verdict.runId,
    previous_fire: isoOrNull(previousFire(asked, nominal)),
    next_fire: isoOrNull(nextFire(asked, nominal)),
    evidence: evidenceOf([...verdict.evidence, ...since.evidence]),
  };
}

/** Finds the one answer: what is decided counts first, then what the schedule says. */
async function judge(asked: Asked, due: Fire | null, findRuns: RunFinder): Promise<Verdict> {
  const { at, era, decisions } = asked;
  const fired = decisions.within.find(({ type }) => type === 'Fired');
  if (fired?.type === 'Fired' && (due === null || due.at === startOf(fired))) {
    return explainFired(asked, fired);
  }
  if (due !== null) {
    const span = decisions.within.find((each) => startOf(each) <= due.at && due.at <= endOf(each));
    if (span?.type === 'FiresSkipped') return explainSkippedSpan(asked, span, due.at);
    if (span?.type === 'Fired') return explainFired(asked, span);
  }
  const verdict = await undecided(asked, due, findRuns);
  if (era.definition.schedule_kind === 'event' && at > asked.history.created) return verdict;
  const beside = await besideSchedule(asked, findRuns);
  return {
    ...verdict,
    sentences: [...verdict.sentences, ...beside.sentences],
    evidence: [...verdict.evidence, ...beside.evidence],
  };
}

function undecided(
  asked: Asked,
  due: Fire | null,
  findRuns: RunFinder,
): Verdict | Promise<Verdict> {
  const { at, era, history } = asked;
  if (due !== null) return explainUndecided(asked, due);
  if (at <= history.created || era.definition.schedule_kind !== 'event') {
    return explainNothingDue(asked);
  }
  return afterCancel(asked, at) ?? explainEventTask(asked, findRuns);
}

/**
 * The fire that is meant by the instant: at it, or else the first in its second; of a decision in the log, or by the
 * rules in force in that second.
 */
function dueWithin(asked: Asked, start: Instant, end: Instant): Fire | null {
  const { at, history, decisions, words } = asked;
  const found: Fire[] = decisions.within
    .flatMap((each) => [startOf(each), endOf(each)])
    .map((nominal) => ({ at: nominal, local: words.when(nominal), note: null }));
  for (const era of history.erasWithin(start, end)) {
    const fire = compileEra(era).schedule?.next(Math.max(start - 1, era.after)) ?? null;
    if (fire !== null && fire.at <= era.upTo) found.unshift(fire);
  }
  // The rule in force, after a cancel too: what would have been due is what is asked about.
  const { schedule } = compileEra(asked.era);
  const later = at > asked.era.upTo ? (schedule?.next(start - 1) ?? null) : null;
  if (later !== null) found.push(later);
  const inSecond = found.filter((fire) => fire.at >= start && fire.at <= end);
  return inSecond.find((fire) => fire.at === at) ?? inSecond[0] ?? null;
}

/** The last nominal time before another: by the log or by the rule in force, whichever is later. */
function previousFire({ era, decisions }: Asked, nominal: Instant): Instant | null {
  const ofRule = compileEra(era).schedule?.previous(Math.min(nominal, era.upTo + 1))?.at ?? null;
  const ofEra = ofRule !== null && ofRule > era.after ? ofRule : null;
  const ends = [...decisions.within, ...(decisions.before === null ? [] : [decisions.before])]
    .flatMap((each) => [startOf(each), endOf(each)])
    .filter((each) => each < nominal);
  const known = [...ends, ...(ofEra === null ? [] : [ofEra])];
  return known.length === 0 ? null : Math.max(...known);
}

/** The first nominal time after another: by the log or by the rules, whichever is earlier. */
function nextFire({ history, decisions }: Asked, nominal: Instant): Instant | null {
  const known = [...decisions.within, ...(decisions.after === null ? [] : [decisions.after])]
    .flatMap((each) => [startOf(each), endOf(each)])
    .filter((each) => each > nominal);
  const eras = history.eras.filter(({ upTo }) => upTo > nominal).slice(0, MOST_ERAS);
  for (const era of eras) {
    const fire = compileEra(era).schedule?.next(Math.max(nominal, era.after)) ?? null;
    if (fire === null || fire.at > era.upTo) continue;
    // Beyond all that is decided: none may come any more.
    if (decisions.after === null && isSpent(decisions.last, era.definition.max_runs)) break;
    known.push(fire.at);
    break;
  }
  return known.length === 0 ? null : Math.min(...known);
}

/** Whether no more fires may be requested. */
function isSpent(last: Asked['decisions']['last'], maxRuns: number | null): boolean {
  const data = last?.data;
  return (
    maxRuns !== null && data !== undefined && 'fire_count' in data && data.fire_count >= maxRuns
  );
}

async function namesOf(
  history: TaskHistory,
  orders: Asked['orders'],
  { nameOf }: ExplainRequest,
): Promise<ReadonlyMap<string, string>> {
  const operators = orders.slice(0, MOST_NAMES).map(({ metadata }) => metadata.actor);
  const ids = [...new Set([...history.actors].slice(-MOST_NAMES).concat(operators))];
  const names = await Promise.all(ids.map(async (id) => [id, await nameOf(id)] as const));
  return new Map(names.flatMap(([id, name]) => (name === null ? [] : [[id, name] as const])));
}

const isoOrNull = (instant: Instant | null): string | null =>
  instant === null ? null : toIso(instant);
