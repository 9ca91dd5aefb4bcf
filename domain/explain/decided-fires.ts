import { fromIso, type Instant } from '../clock.ts';
import { graceOf } from '../tasks/grace.ts';
import type { TaskDefinition } from '../tasks/task-definition.ts';
import type { MisfirePolicy } from '../vocabulary.ts';
import type { ExplainContext } from './explain-context.ts';
import {
  joined,
  note,
  notRun,
  NO_NOTE,
  type Note,
  type RecordOf,
  type Verdict,
} from './explanation.ts';
import { stopWithin, type Stop } from './holds.ts';
import { readRun, runNote, skipOf, standing, type RunAccount } from './run-account.ts';
import type { Pause } from './task-history.ts';
import { counted, duration } from './words.ts';

/** Only a longer delay is mentioned. Milliseconds. */
const NOTABLE_DELAY = 1000;

/** A fire that was decided to run: the result of its run, and why it was late. */
export async function explainFired(
  context: ExplainContext,
  fired: RecordOf<'Fired'>,
): Promise<Verdict> {
  const { store, words } = context;
  const run = await readRun(store, fired.data.run_id);
  const { id, first, last } = run;
  const fire = `The fire at ${words.at(fired.data.nominal)}`;
  const skip = skipOf(run);
  if (skip !== null) {
    const { because, about } = await explainSkip(context, skip);
    const sentence = `${fire} was skipped because ${because}.`;
    const skipped = note(`The skipped run is ${id}.`, fired, first, last);
    const outcome = joined(note(sentence), about, skipped, tzNote(fired));
    return { fired: false, reason: skip.data.reason, runId: id, ...outcome };
  }
  const ran = note(`${fire} ran. Run ${id} ${standing(run, words)}.`, fired, first, last);
  const late = latenessNote(context, fired);
  const outcome = joined(ran, late, heldBackNote(context, run), tzNote(fired));
  return { fired: true, reason: 'fired', runId: id, ...outcome };
}

/**
 * Names the version of the time zone rules by which the fire was decided. Events of earlier releases and of rules in
 * UTC do not record the version.
 */
function tzNote({ metadata }: RecordOf<'Fired' | 'FiresSkipped'>): Note {
  const { tzVersion } = metadata;
  if (tzVersion === undefined) return NO_NOTE;
  return note(`It was decided with version ${tzVersion} of the time zone database.`);
}

/** A pause prevents the start of a run that has not started yet, for example because of its jitter. */
function heldBackNote({ history, now, words }: ExplainContext, { last }: RunAccount): Note {
  const pause = last?.type === 'RunRequested' ? history.pauseAt(now) : null;
  if (pause === null || pause.ended !== null) return NO_NOTE;
  const outcome = 'Its run will be skipped unless the task is resumed before the run may start.';
  return joined(note(words.act(pause.paused, 'paused the task'), pause.paused), note(outcome));
}

/** Why a fire was decided later than its nominal time. */
function latenessNote(context: ExplainContext, fired: RecordOf<'Fired'>): Note {
  const { history } = context;
  const nominal = fromIso(fired.data.nominal);
  const decided = fromIso(fired.metadata.occurredAt);
  const lateness = decided - nominal;
  if (lateness < NOTABLE_DELAY) return NO_NOTE;
  const snooze = history.snoozeOver(nominal, fired.data.task_revision);
  const pause = history.pauseAt(snooze === null ? nominal : history.endOf(snooze));
  if (pause !== null && pause.upTo <= decided && pause.ended?.type === 'TaskResumed') {
    return joined(
      note(`It came ${duration(lateness)} late because of a pause.`),
      pauseNote(context, pause),
    );
  }
  if (snooze !== null) return snoozeNote(context, snooze);
  const { definition } = history.atRevision(fired.data.task_revision);
  const stop = stopWithin(context, nominal, decided);
  const paused = stop === null ? history.pauseWithin(nominal, decided) : null;
  const why =
    stop !== null
      ? stop.why
      : `no scheduler had handled it ${paused === null ? 'earlier' : 'before the task was paused'}`;
  const permitted =
    lateness <= graceOf(definition)
      ? `It was within its grace of ${duration(definition.misfire_grace_seconds * 1000)}.`
      : `${capitalised(policyOf(definition, stop))} still let it run.`;
  return joined(
    note(`It was decided ${duration(lateness)} late because ${why}.`),
    stop?.note ?? NO_NOTE,
    paused === null ? NO_NOTE : pauseNote(context, paused),
    note(permitted),
  );
}

/** Names the agent that snoozed a fire, and a change of the schedule that ended the snooze early. */
export function snoozeNote(
  { history, words }: ExplainContext,
  snooze: RecordOf<'TaskSnoozed'>,
): Note {
  const { next_fire_at, next_run_at } = snooze.data;
  const by = duration(fromIso(next_run_at) - fromIso(next_fire_at));
  const did = `snoozed the fire at ${words.at(next_fire_at)} for ${by}, until ${words.at(next_run_at)},`;
  const put = note(words.act(snooze, did), snooze);
  const set = history.changeIn(snooze)?.set;
  if (set === undefined) return put;
  const sentences = [words.act(set, 'changed the schedule'), 'That ended the snooze.'];
  return joined(put, { sentences, evidence: [set] });
}

/** Names the agents that paused and resumed the task. */
function pauseNote({ words }: ExplainContext, { paused, ended }: Pause): Note {
  const sentences = [words.act(paused, 'paused the task')];
  if (ended?.type === 'TaskResumed') {
    sentences.push(words.act(ended, `resumed it with missed=${ended.data.missed}`));
  }
  return { sentences, evidence: [paused, ended] };
}

/** The policy for late fires. The end of a hold or disabling may have overridden the task's. */
function policyOf({ misfire_policy }: TaskDefinition, stop: Stop | null): string {
  if (stop === null || stop.missed === null) return `misfire_policy ${misfire_policy}`;
  return `${stop.end} with missed=${stop.missed}`;
}

/** Why a run was skipped: a clause, and the events behind it. */
export async function explainSkip(
  { store, history, words }: ExplainContext,
  skipped: RecordOf<'RunSkipped'>,
): Promise<{ readonly because: string; readonly about: Note }> {
  const { reason, because_of, task_id, task_revision } = skipped.data;
  const { definition } = history.atRevision(task_revision);
  if (because_of === null) {
    if (reason !== 'paused')
      return { because: `it was ${reason} before it started`, about: NO_NOTE };
    const paused = history.pauseAt(fromIso(skipped.metadata.occurredAt))?.paused;
    const about =
      paused === undefined ? NO_NOTE : note(words.act(paused, 'paused the task'), paused);
    return { because: 'the task was paused before the run started', about };
  }
  const other = await readRun(store, because_of);
  const about = runNote(other, words);
  if (reason === 'duplicate') {
    const isForeign = other.first !== null && other.first.data.task_id !== task_id;
    const of = isForeign ? ` of task ${other.first?.data.task_id}` : '';
    return { because: `its dedupe key ${useOf(definition)} run ${because_of}${of}`, about };
  }
  const policy = `overlap_policy: ${definition.overlap_policy}`;
  const because = `run ${because_of} had not ended at ${words.time(skipped)} (${policy})`;
  return { because, about };
}

function useOf({ dedupe_key, dedupe_window_seconds: window }: TaskDefinition): string {
  const key = dedupe_key === null ? '' : `"${dedupe_key}" `;
  return window === null
    ? `${key}was in use by the unfinished`
    : `${key}had been used within ${duration(window * 1000)} by`;
}

/** A fire of a span that was skipped. */
export function explainSkippedSpan(
  context: ExplainContext,
  span: RecordOf<'FiresSkipped'>,
  nominal: Instant,
): Verdict {
  const { words } = context;
  const { reason, from, to, count } = span.data;
  const among =
    count === 1
      ? NO_NOTE
      : note(
          `It is one of ${counted(count, 'fire')} from ${words.at(from)} to ${words.at(to)} that were recorded together.`,
        );
  const cause = causeOf(context, span, nominal);
  const outcome = joined(cause, among, ranInstead(context, span), tzNote(span));
  return notRun(reason, { ...outcome, evidence: [span, ...outcome.evidence] });
}

function causeOf(context: ExplainContext, span: RecordOf<'FiresSkipped'>, nominal: Instant): Note {
  const { history, words } = context;
  const fire = `The fire at ${words.when(nominal)}`;
  const { task_revision, fire_count } = span.data;
  const snooze = history.snoozeOver(nominal, task_revision);
  switch (span.data.reason) {
    case 'paused': {
      const pause = history.pauseAt(snooze === null ? nominal : history.endOf(snooze));
      return joined(
        note(`${fire} did not run because the task was paused.`),
        pause === null ? NO_NOTE : pauseNote(context, pause),
        pause === null || snooze === null ? NO_NOTE : snoozeNote(context, snooze),
      );
    }
    case 'snoozed': {
      const sentence = `${fire} did not run because an earlier fire was snoozed beyond it.`;
      return joined(note(sentence), snooze === null ? NO_NOTE : snoozeNote(context, snooze));
    }
    case 'bounds': {
      const { max_runs } = history.atRevision(task_revision).definition;
      const limit = max_runs === null ? 'max_runs was set' : `max_runs is ${max_runs}`;
      const fires = counted(fire_count, 'fire');
      const sentence = `${fire} is out of bounds: ${limit}, and ${fires} had used that up by ${words.time(span)}.`;
      return note(sentence, history.eraAt(nominal).set);
    }
    case 'missed':
      return missedNote(context, span, nominal);
  }
}

function missedNote(
  context: ExplainContext,
  span: RecordOf<'FiresSkipped'>,
  nominal: Instant,
): Note {
  const { history, words } = context;
  const { definition } = history.atRevision(span.data.task_revision);
  const { misfire_grace_seconds, misfire_policy } = definition;
  const decided = fromIso(span.metadata.occurredAt);
  const snooze = history.snoozeOver(nominal, span.data.task_revision);
  const change = snooze === null ? null : history.changeIn(snooze);
  // The lateness of a snoozed fire counts from its later time. If a change of the schedule ended
  // the snooze, it counts from the nominal time.
  const due = snooze === null || change !== null ? nominal : fromIso(snooze.data.next_run_at);
  const wasLateByChange = change !== null && change.after - nominal > graceOf(definition);
  const from = snooze === null ? fromIso(span.data.from) : history.endOf(snooze);
  const stop = stopWithin(context, from, decided);
  const paused = stop === null ? history.pauseWithin(Math.max(from, due), decided) : null;
  let why = `no scheduler handled this task from ${words.when(from)} to ${words.when(decided)} (${duration(decided - from)})`;
  if (stop !== null) why = stop.why;
  else if (wasLateByChange) why = 'it was already late when the snooze ended';
  else if (paused !== null) why = 'no scheduler had handled it before the task was paused';
  const ordered = stop?.missed ?? null;
  const decision =
    ordered === null ? `, beyond its grace of ${duration(misfire_grace_seconds * 1000)}` : '';
  const effect = `${capitalised(policyOf(definition, stop))} ${effects[ordered ?? misfire_policy]}.`;
  return joined(
    note(`The fire at ${words.when(nominal)} was missed because ${why}.`),
    stop?.note ?? NO_NOTE,
    paused === null ? NO_NOTE : pauseNote(context, paused),
    snooze === null ? NO_NOTE : snoozeNote(context, snooze),
    note(`It was decided ${duration(decided - due)} late${decision}.`),
    note(effect),
  );
}

/** The names of settings keep their case. */
const capitalised = (subject: string): string => subject.replace(/^the /, 'The ');

const effects: Readonly<Record<MisfirePolicy, string>> = {
  skip: 'runs none of the missed fires',
  latest: 'runs only the newest missed fire',
  all: 'runs only the newest 100 missed fires',
};

/** The fire that the same decision ran. */
function ranInstead({ decisions, words }: ExplainContext, span: RecordOf<'FiresSkipped'>): Note {
  const { before, within, after } = decisions;
  const ran = [before, ...within, after].findLast(
    (each) => each?.type === 'Fired' && each.metadata.commandId === span.metadata.commandId,
  );
  if (ran?.type !== 'Fired') return NO_NOTE;
  const { nominal, run_id } = ran.data;
  return note(`The same decision ran the fire at ${words.at(nominal)}, as run ${run_id}.`, ran);
}
