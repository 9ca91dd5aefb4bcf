import { fromIso, type Instant } from '../clock.ts';
import type { Fire } from '../schedule/schedule.ts';
import { graceOf } from '../tasks/grace.ts';
import { maxJitter } from '../tasks/jitter.ts';
import type { ExplainContext } from './explain-context.ts';
import { joined, note, notRun, NO_NOTE, type Note, type Verdict } from './explanation.ts';
import { stopWithin } from './holds.ts';
import { snoozeNote } from './decided-fires.ts';
import { compileEra, type Pause } from './task-history.ts';
import { counted, duration } from './words.ts';

/** An undecided fire of the schedule: held back, impossible, in the future, or overdue. */
export function explainUndecided(context: ExplainContext, fire: Fire): Verdict {
  return (
    afterCancel(context, fire.at) ??
    passedOver(context, fire) ??
    beyondMaxRuns(context, fire.at) ??
    snoozed(context, fire.at) ??
    heldByPause(context, fire.at, context.history.pauseAt(fire.at)) ??
    waiting(context, fire.at)
  );
}

/** The task was canceled before, whether or not a fire was due. */
export function afterCancel({ history, words }: ExplainContext, at: Instant): Verdict | null {
  const { canceled } = history;
  if (canceled === null || fromIso(canceled.metadata.occurredAt) >= at) return null;
  const sentences = [words.act(canceled, 'canceled the task'), 'It will not fire again.'];
  return notRun('not_in_schedule', { sentences, evidence: [canceled] });
}

/** Earlier fires had used up `max_runs`, even if their runs were skipped. */
function beyondMaxRuns(context: ExplainContext, at: Instant): Verdict | null {
  const { history, decisions, era, words } = context;
  const { max_runs } = era.definition;
  const { before } = decisions;
  if (max_runs === null || before === null || before.data.fire_count < max_runs) return null;
  const fires = counted(before.data.fire_count, 'fire');
  const sentence = `The fire at ${words.when(at)} is out of bounds: max_runs is ${max_runs}, and ${fires} had used that up by ${words.time(before)}.`;
  return notRun('bounds', note(sentence, history.eraAt(at).set, before));
}

function heldByPause(context: ExplainContext, at: Instant, pause: Pause | null): Verdict | null {
  if (pause === null) return null;
  const { words, now } = context;
  const { paused, ended } = pause;
  const fire = `the fire at ${words.when(at)}`;
  const by = words.act(paused, 'paused the task');
  let sentences: readonly string[];
  if (ended?.type === 'TaskResumed') {
    const resumed = words.act(ended, `resumed it with missed=${ended.data.missed}`);
    sentences = [by, `That held back ${fire}.`, resumed, 'The scheduler has not applied that yet.'];
  } else if (ended !== null) {
    const canceled = words.act(ended, 'canceled it without resuming it');
    sentences = [by, `That held back ${fire}.`, canceled];
  } else if (at > now) {
    const ahead = `The fire at ${words.when(at)} is still to come, and the task is paused.`;
    sentences = [ahead, by, 'The fire will be held back unless the task is resumed before.'];
  } else {
    const choice = 'missed=skip (the default), latest or all';
    sentences = [
      `The task is paused, which holds back ${fire}.`,
      by,
      `The resume decides what becomes of it: ${choice}.`,
    ];
  }
  return notRun('paused', { sentences, evidence: [paused, ended] });
}

/**
 * The next fire is snoozed, and fires due before then do not run. For a canceled task, this describes its state at the
 * cancellation.
 */
function snoozed(context: ExplainContext, at: Instant): Verdict | null {
  const { history, words, now } = context;
  const { canceled } = history;
  const task = canceled === null ? history.task : history.atRevision(canceled.revision - 1);
  const end = canceled === null ? now : fromIso(canceled.metadata.occurredAt);
  const { next_fire_at, next_run_at } = task;
  if (next_fire_at === null || next_run_at === null) return null;
  const runAt = fromIso(next_run_at);
  const snooze = history.snoozeOver(at);
  if (snooze?.data.next_fire_at !== next_fire_at) return null;
  const put = snoozeNote(context, snooze);
  if (at !== fromIso(next_fire_at)) {
    const sentence = `The fire at ${words.when(at)} is due before then and does not run.`;
    return notRun('snoozed', put, note(sentence));
  }
  const pause = history.pauseAt(Math.min(runAt, end));
  if (runAt <= end) {
    if (pause !== null) return heldByPause(context, at, pause);
    if (canceled !== null) return null;
  }
  let after: Note = NO_NOTE;
  if (canceled !== null) {
    after = note(words.act(canceled, 'canceled the task before that'), canceled);
  } else if (pause !== null && pause.ended === null) {
    const sentences = [
      words.act(pause.paused, 'paused the task'),
      'Unless it is resumed before then, the fire will be held back.',
    ];
    after = { sentences, evidence: [] };
  } else if (runAt <= now) after = note('It is due now and still undecided.');
  return notRun('snoozed', put, after, { sentences: [], evidence: [canceled, pause?.paused] });
}

/** The fire runs when its time comes, or is due and waits for a decision. */
function waiting(context: ExplainContext, at: Instant): Verdict {
  const { history, now } = context;
  const verdict = at > now ? ahead(context, at) : overdue(context, at);
  const stop = history.canceled === null ? stopWithin(context, now, now) : null;
  if (stop === null) return verdict;
  const held = note(`Nothing fires until ${stop.until}.`);
  return { ...verdict, ...joined(verdict, stop.note, held) };
}

function ahead({ history, era, words, now }: ExplainContext, at: Instant): Verdict {
  const sentences = [
    `The fire at ${words.when(at)} is still to come, in ${duration(at - now)}.`,
    'As the task is now, it will run.',
  ];
  const next = compileEra(era).schedule?.next(at)?.at ?? null;
  const longest = maxJitter(history.task.definition.jitter_seconds, at, next);
  if (longest > 0) sentences.push(`Its run may start up to ${duration(longest)} later (jitter).`);
  return notRun(null, { sentences, evidence: [era.set] });
}

/** A fire is usually due and undecided only for milliseconds. If it lasts longer, no scheduler is running. */
function overdue({ history, era, decisions, words, now }: ExplainContext, at: Instant): Verdict {
  const { canceled } = history;
  const evidence = [era.set, decisions.before, canceled];
  const fire = `The fire at ${words.when(at)}`;
  if (canceled !== null) {
    const sentences = [
      `${fire} was due but still undecided when the task was canceled.`,
      words.act(canceled, 'canceled it'),
    ];
    return notRun('missed', { sentences, evidence });
  }
  const { misfire_grace_seconds, misfire_policy } = history.task.definition;
  const grace = duration(misfire_grace_seconds * 1000);
  const sentences = [
    `${fire} has been due for ${duration(now - at)} and is still undecided.`,
    'No scheduler has handled it yet.',
    now - at > graceOf(history.task.definition)
      ? `It is beyond its grace of ${grace}: misfire_policy ${misfire_policy} applies.`
      : `It will run if it is decided within its grace of ${grace}.`,
  ];
  const paused = history.pauseWithin(at, now);
  if (paused === null || paused.ended !== null) return notRun(null, { sentences, evidence });
  sentences.push(words.act(paused.paused, 'paused the task'));
  sentences.push('The fire will be decided once the task is resumed.');
  return notRun(null, { sentences, evidence: [...evidence, paused.paused] });
}

/** The decisions passed this fire without deciding it. */
function passedOver({ decisions, words, era }: ExplainContext, { at }: Fire): Verdict | null {
  const { after, before } = decisions;
  const spent = before !== null && before.data.fire_count >= (era.definition.max_runs ?? Infinity);
  if (after === null || spent) return null;
  const sentences = [
    `The rule now has a fire at ${words.when(at)}, but the decisions in the log went past it.`,
    'It was not due by the rule or the tz database of that time.',
  ];
  return notRun('not_in_schedule', { sentences, evidence: [before, after, era.set] });
}
