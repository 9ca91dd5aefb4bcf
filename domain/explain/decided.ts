import { fromIso, type Instant } from '../clock.ts';
import { graceOf } from '../tasks/grace.ts';
import type { TaskDefinition } from '../tasks/task-definition.ts';
import type { MisfirePolicy } from '../vocabulary.ts';
import type { Asked } from './asked.ts';
import { isDecision } from './decisions.ts';
import type { RecordOf, Verdict } from './explanation.ts';
import { eventsOfHold, holdWithin, holdWords, type Hold } from './holds.ts';
import { described, eventsOf, readRun, skipOf, standing, type RunAccount } from './run-account.ts';
import type { Pause, TaskHistory } from './task-history.ts';
import { counted, duration, type Words } from './words.ts';

/** Later than this is worth a sentence. Milliseconds. */
const NOTABLE_DELAY = 1000;

/** A fire that was decided to run: what became of its run, and why it came late where it did. */
export async function explainFired(asked: Asked, fired: RecordOf<'Fired'>): Promise<Verdict> {
  const { store, words } = asked;
  const run = await readRun(store, fired.data.run_id);
  const skip = skipOf(run);
  if (skip !== null) return explainSkippedRun(asked, fired, run, skip.event);
  const besides = [lateness(asked, fired), heldBack(asked, run)];
  const sentences = [
    `The fire of ${words.at(fired.data.nominal)} fired: run ${run.id} ${standing(run, words)}.`,
    ...besides.flatMap((each) => each.sentences),
  ];
  const evidence = [fired, ...eventsOf(run), ...besides.flatMap((each) => each.evidence)];
  return { fired: true, reason: 'fired', sentences, runId: run.id, evidence };
}

type Besides = Pick<Verdict, 'sentences' | 'evidence'>;

/** That a run which has not begun, as its jitter is not over, say, will not while its task is paused. */
function heldBack({ history, now, words }: Asked, { last }: RunAccount): Besides {
  const pause = last?.type === 'RunRequested' ? history.pauseAt(now) : null;
  if (pause === null || pause.ended !== null) return { sentences: [], evidence: [] };
  const { paused } = pause;
  const since = `${words.at(paused.metadata.occurredAt)} ${words.by(paused)}`;
  const sentence =
    `The task is paused since ${since}: when its run may start, ` +
    `it is recorded as not running, unless the task is resumed before.`;
  return { sentences: [sentence], evidence: [paused] };
}

/** Why a fire was decided later than its nominal time. */
function lateness({ history, orders, words }: Asked, fired: RecordOf<'Fired'>): Besides {
  const nominal = fromIso(fired.data.nominal);
  const decided = fromIso(fired.metadata.occurredAt);
  if (decided - nominal < NOTABLE_DELAY) return { sentences: [], evidence: [] };
  const by = duration(decided - nominal);
  const snooze = history.snoozeOver(nominal, fired.data.task_revision);
  const pause = history.pauseAt(snooze === null ? nominal : history.endOf(snooze));
  if (pause !== null && pause.upTo <= decided && pause.ended?.type === 'TaskResumed') {
    const { ended } = pause;
    const sentence =
      `It came ${by} late: ${pauseWords(pause, words)}, ` +
      `and was resumed with missed=${ended.data.missed} ${words.by(ended)}.`;
    return { sentences: [sentence], evidence: eventsOfPause(pause) };
  }
  if (snooze !== null) {
    const { sentence, evidence } = snoozeWords(history, snooze, nominal, words);
    return { sentences: [`${sentence}.`], evidence };
  }
  const { definition } = history.atRevision(fired.data.task_revision);
  const hold = holdWithin(orders, nominal, decided);
  const inGrace = decided - nominal <= graceOf(definition);
  const pausedAfter = hold === null ? history.pauseWithin(nominal, decided) : null;
  const why =
    hold !== null
      ? `as the service was ${holdWords(hold, words)}`
      : pausedAfter !== null
        ? `as no scheduler had come to it before ${pauseWords(pausedAfter, words)}`
        : 'as no scheduler had come to it before';
  const then = inGrace
    ? `within its grace of ${duration(definition.misfire_grace_seconds * 1000)}`
    : `and ran still, by ${policyOf(definition, hold)}`;
  const sentence = `It was decided ${by} late, ${why}, ${then}.`;
  return {
    sentences: [sentence],
    evidence: [...eventsOfHold(hold), ...eventsOfPause(pausedAfter)],
  };
}

/**
 * What a snooze did to a fire, in words: `It had been put off by 30 s, to …, at … by ada (…)`, and what ended it, where
 * that was a change of the schedule.
 */
function snoozeWords(
  history: TaskHistory,
  snooze: RecordOf<'TaskSnoozed'>,
  nominal: Instant,
  words: Words,
): { readonly sentence: string; readonly evidence: Verdict['evidence'] } {
  const { next_fire_at, next_run_at } = snooze.data;
  const by = duration(fromIso(next_run_at) - fromIso(next_fire_at));
  const which = fromIso(next_fire_at) === nominal ? 'It' : `The fire of ${words.at(next_fire_at)}`;
  const put =
    `${which} had been put off by ${by}, to ${words.at(next_run_at)}, ` +
    `at ${words.at(snooze.metadata.occurredAt)} ${words.by(snooze)}`;
  const set = history.changeIn(snooze)?.set ?? null;
  if (set === null) return { sentence: put, evidence: [snooze] };
  const change = `${words.at(set.metadata.occurredAt)} ${words.by(set)}`;
  return {
    sentence: `${put}; a change of the schedule at ${change} ended that`,
    evidence: [snooze, set],
  };
}

/** A pause in words: `the task was paused by ada (…) from … to …`. */
function pauseWords({ paused, ended }: Pause, words: Words): string {
  const upTo = ended === null ? '' : ` to ${words.at(ended.metadata.occurredAt)}`;
  return `the task was paused ${words.by(paused)} from ${words.at(paused.metadata.occurredAt)}${upTo}`;
}

function eventsOfPause(pause: Pause | null): Verdict['evidence'] {
  return pause === null ? [] : [pause.paused, pause.ended];
}

/** Which policy decides fires that are too late: the release of a hold may have put another in place of the task's. */
function policyOf({ misfire_policy }: TaskDefinition, hold: Hold | null): string {
  const missed = hold?.released?.data.missed ?? null;
  return missed === null
    ? `misfire_policy ${misfire_policy}`
    : `the order missed=${missed} that ended the hold`;
}

/** A fire whose run is recorded as not running: another run stood in its way, or its task was paused by then. */
async function explainSkippedRun(
  asked: Asked,
  fired: RecordOf<'Fired'>,
  run: RunAccount,
  skipped: RecordOf<'RunSkipped'>,
): Promise<Verdict> {
  const { words } = asked;
  const because = await explainSkip(asked, skipped);
  const sentences = [
    `The fire of ${words.at(fired.data.nominal)} did not run: ${because.sentence}`,
    `That is recorded as run ${run.id}.`,
  ];
  const evidence = [fired, ...eventsOf(run), ...because.evidence];
  return { fired: false, reason: skipped.data.reason, sentences, runId: run.id, evidence };
}

/** What stood in the way of a run. */
export async function explainSkip(
  { store, history, words }: Pick<Asked, 'store' | 'history' | 'words'>,
  skipped: RecordOf<'RunSkipped'>,
): Promise<{ readonly sentence: string; readonly evidence: Verdict['evidence'] }> {
  const { reason, because_of, task_id, task_revision } = skipped.data;
  const { definition } = history.atRevision(task_revision);
  if (because_of === null) {
    const pause = history.pauseAt(fromIso(skipped.metadata.occurredAt));
    const since =
      pause === null
        ? ''
        : ` at ${words.at(pause.paused.metadata.occurredAt)} ${words.by(pause.paused)}`;
    const sentence =
      reason === 'paused'
        ? `the task was paused${since}, before the run had begun.`
        : `its run was skipped (${reason}) before it had begun.`;
    return { sentence, evidence: [pause?.paused] };
  }
  const other = await readRun(store, because_of);
  const name = described(other, words);
  const evidence = eventsOf(other);
  if (reason === 'duplicate') {
    const foreign =
      other.first !== null && other.first.data.task_id !== task_id
        ? ` of task ${other.first.data.task_id}`
        : '';
    const sentence = `its dedupe key ${keyOf(definition)}${foreign}: ${name}.`;
    return { sentence, evidence };
  }
  const policy = definition.overlap_policy;
  const sentence = `overlap_policy ${policy} lets it not run beside ${name}; that was not over at ${words.at(skipped.metadata.occurredAt)}.`;
  return { sentence, evidence };
}

function keyOf({ dedupe_key, dedupe_window_seconds: window }: TaskDefinition): string {
  const key = dedupe_key === null ? '' : `"${dedupe_key}" `;
  return window === null
    ? `${key}was in use by an unfinished run`
    : `${key}had been used within ${duration(window * 1000)} by a run`;
}

/** A fire that belongs to a span of fires which did not run. */
export function explainSkippedSpan(
  asked: Asked,
  span: RecordOf<'FiresSkipped'>,
  nominal: Instant,
): Verdict {
  const { words } = asked;
  const { reason, from, to, count } = span.data;
  const cause = causeOf(asked, span, nominal);
  const among =
    count === 1
      ? []
      : [
          `It is one of ${counted(count, 'fire')} from ${words.at(from)} to ${words.at(to)} that are recorded together.`,
        ];
  const instead = ranInstead(asked, span);
  const sentences = [...cause.sentences, ...among, ...instead.sentences];
  const evidence = [span, ...cause.evidence, ...instead.evidence];
  return { fired: false, reason, sentences, runId: null, evidence };
}

function causeOf(
  asked: Asked,
  span: RecordOf<'FiresSkipped'>,
  nominal: Instant,
): Pick<Verdict, 'sentences' | 'evidence'> {
  const { history, words } = asked;
  const fire = `The fire of ${words.when(nominal)}`;
  const decided = words.at(span.metadata.occurredAt);
  switch (span.data.reason) {
    case 'paused': {
      const snooze = history.snoozeOver(nominal, span.data.task_revision);
      const pause = history.pauseAt(snooze === null ? nominal : history.endOf(snooze));
      if (pause === null) {
        return { sentences: [`${fire} did not run: it was held back by a pause.`], evidence: [] };
      }
      const { paused, ended } = pause;
      const upTo =
        ended?.type === 'TaskResumed'
          ? `; it was resumed with missed=${ended.data.missed} at ${words.at(ended.metadata.occurredAt)} ${words.by(ended)}`
          : '';
      const sentence = `${fire} did not run: the task was paused since ${words.at(paused.metadata.occurredAt)} ${words.by(paused)}${upTo}.`;
      if (snooze === null) return { sentences: [sentence], evidence: [paused, ended] };
      const put = snoozeWords(history, snooze, nominal, words);
      const sentences = [sentence, `${put.sentence}.`];
      return { sentences, evidence: [paused, ended, ...put.evidence] };
    }
    case 'snoozed': {
      const snooze = history.snoozeOver(nominal, span.data.task_revision);
      if (snooze === null) {
        return {
          sentences: [`${fire} did not run: the fire before it had been put off beyond it.`],
          evidence: [],
        };
      }
      const { next_fire_at, next_run_at } = snooze.data;
      const put = duration(fromIso(next_run_at) - fromIso(next_fire_at));
      const sentence =
        `${fire} did not run: the fire of ${words.at(next_fire_at)} had been put off by ${put}, to ` +
        `${words.at(next_run_at)}, at ${words.at(snooze.metadata.occurredAt)} ${words.by(snooze)}; what is due up to then does not run.`;
      return { sentences: [sentence], evidence: [snooze] };
    }
    case 'bounds': {
      const { max_runs } = history.atRevision(span.data.task_revision).definition;
      const most = max_runs === null ? 'max_runs was spent' : `max_runs is ${max_runs}`;
      const sentence = `${fire} is out of bounds: ${most}, and ${counted(span.data.fire_count, 'fire')} had used that up (decided at ${decided}).`;
      return { sentences: [sentence], evidence: [history.eraAt(nominal).set] };
    }
    case 'missed':
      return missed(asked, span, nominal);
  }
}

function missed(
  { history, orders, words }: Asked,
  span: RecordOf<'FiresSkipped'>,
  nominal: Instant,
): Pick<Verdict, 'sentences' | 'evidence'> {
  const { definition } = history.atRevision(span.data.task_revision);
  const { misfire_grace_seconds, misfire_policy } = definition;
  const decided = fromIso(span.metadata.occurredAt);
  const snooze = history.snoozeOver(nominal, span.data.task_revision);
  const change = snooze === null ? null : history.changeIn(snooze);
  // What was put off is late from then on; where a change of the schedule ended that, from its own time.
  const due = snooze === null || change !== null ? nominal : fromIso(snooze.data.next_run_at);
  const isLateByThen = change !== null && change.after - nominal > graceOf(definition);
  const from = snooze === null ? fromIso(span.data.from) : history.endOf(snooze);
  const hold = holdWithin(orders, from, decided);
  const ordered = hold?.released?.data.missed ?? null;
  const pausedAfter = hold === null ? history.pauseWithin(Math.max(from, due), decided) : null;
  const why =
    hold !== null
      ? `the service was ${holdWords(hold, words)}`
      : isLateByThen
        ? 'it was late when the snooze ended'
        : pausedAfter !== null
          ? `no scheduler had come to it before ${pauseWords(pausedAfter, words)}`
          : `no scheduler was at work for this task from ${words.when(from)} to ${words.when(decided)}, ` +
            `for ${duration(decided - from)}`;
  const grace =
    ordered === null
      ? `it was beyond its grace of ${duration(misfire_grace_seconds * 1000)}, and`
      : 'it did not run, as';
  const put = snooze === null ? null : snoozeWords(history, snooze, nominal, words);
  const sentences = [
    `The fire of ${words.when(nominal)} was missed: ${why}.`,
    ...(put === null ? [] : [`${put.sentence}.`]),
    `Decided ${duration(decided - due)} late, ${grace} ${policyOf(definition, hold)} ` +
      `${whoRuns[ordered ?? misfire_policy]}.`,
  ];
  const evidence = [
    ...eventsOfHold(hold),
    ...eventsOfPause(pausedAfter),
    ...(put === null ? [] : put.evidence),
  ];
  return { sentences, evidence };
}

const whoRuns: Readonly<Record<MisfirePolicy, string>> = {
  skip: 'lets none of the missed fires run',
  latest: 'lets the newest alone run',
  all: 'lets the newest 100 run',
};

/** The fire that the same decision let run, of those that a span left. */
function ranInstead(
  { decisions, words }: Asked,
  span: RecordOf<'FiresSkipped'>,
): Pick<Verdict, 'sentences' | 'evidence'> {
  const { before, within, after } = decisions;
  const together = [before, ...within, after].filter(
    (each) =>
      each !== null && isDecision(each) && each.metadata.commandId === span.metadata.commandId,
  );
  const ran = together.findLast((each) => each?.type === 'Fired');
  if (ran?.type !== 'Fired') return { sentences: [], evidence: [] };
  const { nominal, run_id } = ran.data;
  const sentence = `With the same decision the fire of ${words.at(nominal)} ran, as run ${run_id}.`;
  return { sentences: [sentence], evidence: [ran] };
}
