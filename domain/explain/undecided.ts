import { fromIso, type Instant } from '../clock.ts';
import type { Fire } from '../schedule/schedule.ts';
import { graceOf } from '../tasks/grace.ts';
import { longestJitter } from '../tasks/jitter.ts';
import type { Asked } from './asked.ts';
import type { Verdict } from './explanation.ts';
import { eventsOfHold, holdWithin, holdWords } from './holds.ts';
import { compileEra, type Pause } from './task-history.ts';
import { counted, duration } from './words.ts';

const notRun = { fired: false, runId: null } as const;

/** A fire of the schedule that nothing in the log has decided: held back, not possible, ahead, or overdue. */
export function explainUndecided(asked: Asked, fire: Fire): Verdict {
  return (
    afterCancel(asked, fire.at) ??
    passedOver(asked, fire) ??
    spent(asked, fire.at) ??
    putOff(asked, fire.at) ??
    heldByPause(asked, fire.at, asked.history.pauseAt(fire.at)) ??
    waiting(asked, fire.at)
  );
}

/** The task was canceled: nothing of its schedule counts from then on. Also for instants at which nothing was due. */
export function afterCancel({ history, words }: Asked, at: Instant): Verdict | null {
  const { canceled } = history;
  if (canceled === null || fromIso(canceled.metadata.occurredAt) >= at) return null;
  const since = words.at(canceled.metadata.occurredAt);
  const sentences = [`The task was canceled at ${since} ${words.by(canceled)}: it fires no more.`];
  return { ...notRun, reason: 'not_in_schedule', sentences, evidence: [canceled] };
}

/** `max_runs` was spent before, also by fires whose runs were skipped. */
function spent({ history, decisions, era, words }: Asked, at: Instant): Verdict | null {
  const { max_runs } = era.definition;
  const { before } = decisions;
  if (max_runs === null || before === null || before.data.fire_count < max_runs) return null;
  const sentences = [
    `The fire of ${words.when(at)} is out of bounds: max_runs is ${max_runs}, and ` +
      `${counted(before.data.fire_count, 'fire')} had used that up ` +
      `by ${words.at(before.metadata.occurredAt)}.`,
  ];
  const evidence = [history.eraAt(at).set, before];
  return { ...notRun, reason: 'bounds', sentences, evidence };
}

function heldByPause({ words, now }: Asked, at: Instant, pause: Pause | null): Verdict | null {
  if (pause === null) return null;
  const { paused, ended } = pause;
  const since = `paused since ${words.at(paused.metadata.occurredAt)} ${words.by(paused)}`;
  const sentences: string[] = [];
  if (ended?.type === 'TaskResumed') {
    sentences.push(
      `The task was ${since}, and held back the fire of ${words.when(at)}. It was resumed with ` +
        `missed=${ended.data.missed} at ${words.at(ended.metadata.occurredAt)} ${words.by(ended)}; ` +
        `the scheduler has not carried that out yet.`,
    );
  } else if (ended !== null) {
    sentences.push(
      `The task was ${since}, and held back the fire of ${words.when(at)}. It was canceled at ` +
        `${words.at(ended.metadata.occurredAt)} ${words.by(ended)} without being resumed.`,
    );
  } else if (at > now) {
    sentences.push(
      `The fire of ${words.when(at)} is still to come, and the task is ${since}: ` +
        `it will be held back unless the task is resumed before.`,
    );
  } else {
    sentences.push(
      `The task is ${since}, and holds back the fire of ${words.when(at)}. What becomes of it is ` +
        `said by the resume: missed=skip (the default), latest or all.`,
    );
  }
  return { ...notRun, reason: 'paused', sentences, evidence: [paused, ended] };
}

/**
 * The next fire is put off, and what is due until it runs does not run; of a canceled task, as that was when it was
 * canceled.
 */
function putOff(asked: Asked, at: Instant): Verdict | null {
  const { history, words, now } = asked;
  const { canceled } = history;
  const task = canceled === null ? history.task : history.atRevision(canceled.revision - 1);
  const end = canceled === null ? now : fromIso(canceled.metadata.occurredAt);
  const { next_fire_at, next_run_at } = task;
  if (next_fire_at === null || next_run_at === null) return null;
  const runAt = fromIso(next_run_at);
  const snooze = history.snoozeOver(at);
  if (snooze?.data.next_fire_at !== next_fire_at) return null;
  const isOwn = at === fromIso(next_fire_at);
  const pause = history.pauseAt(Math.min(runAt, end));
  if (isOwn && runAt <= end) {
    if (pause !== null) return heldByPause(asked, at, pause);
    if (canceled !== null) return null;
  }
  const by = duration(runAt - fromIso(next_fire_at));
  const who = `at ${words.at(snooze.metadata.occurredAt)} ${words.by(snooze)}`;
  const first = `The fire of ${words.at(next_fire_at)} was put off by ${by}, to ${words.at(next_run_at)}, ${who}.`;
  const sentences = [first];
  if (!isOwn)
    sentences.push(`The fire of ${words.when(at)} falls into that time and does not run.`);
  else if (canceled !== null) {
    const since = `${words.at(canceled.metadata.occurredAt)} ${words.by(canceled)}`;
    sentences.push(`The task was canceled before that, at ${since}.`);
  } else if (pause !== null && pause.ended === null) {
    const since = `${words.at(pause.paused.metadata.occurredAt)} ${words.by(pause.paused)}`;
    sentences.push(
      `The task is paused since ${since}: unless it is resumed before, that holds it back.`,
    );
  } else if (runAt <= now) sentences.push('It is due now and not decided yet.');
  const evidence = [snooze, isOwn ? canceled : null, isOwn ? (pause?.paused ?? null) : null];
  return { ...notRun, reason: 'snoozed', sentences, evidence };
}

/** It fires when its time comes, or is due and waits to be decided. */
function waiting(asked: Asked, at: Instant): Verdict {
  const { history, now, orders, words } = asked;
  const verdict = at > now ? ahead(asked, at) : overdue(asked, at);
  const hold = history.canceled === null ? holdWithin(orders, now, now) : null;
  if (hold === null) return verdict;
  const sentence = `The service is ${holdWords(hold, words)}: nothing fires until it is released.`;
  const sentences = [...verdict.sentences, sentence];
  return { ...verdict, sentences, evidence: [...verdict.evidence, ...eventsOfHold(hold)] };
}

function ahead({ history, era, words, now }: Asked, at: Instant): Verdict {
  const sentences = [
    `The fire of ${words.when(at)} is still to come, in ${duration(at - now)}: ` +
      `as the task is now, it will run.`,
  ];
  const next = compileEra(era).schedule?.next(at)?.at ?? null;
  const longest = longestJitter(history.task.definition.jitter_seconds, at, next);
  if (longest > 0) sentences.push(`Its run may start up to ${duration(longest)} later (jitter).`);
  return { ...notRun, reason: null, sentences, evidence: [era.set] };
}

/** Due, and not decided: mostly a matter of milliseconds, else there is no scheduler at work. */
function overdue({ history, era, decisions, words, now }: Asked, at: Instant): Verdict {
  const { canceled } = history;
  const { before } = decisions;
  const evidence = [era.set, before, canceled];
  if (canceled !== null) {
    const sentences = [
      `The fire of ${words.when(at)} was due, and nothing had decided it when the task was canceled ` +
        `at ${words.at(canceled.metadata.occurredAt)} ${words.by(canceled)}.`,
    ];
    return { ...notRun, reason: 'missed', sentences, evidence };
  }
  const { misfire_grace_seconds, misfire_policy } = history.task.definition;
  const grace = duration(misfire_grace_seconds * 1000);
  const sentences = [
    `The fire of ${words.when(at)} is due since ${duration(now - at)} and not decided yet: ` +
      `no scheduler has come to it.`,
    now - at > graceOf(history.task.definition)
      ? `It is later than its grace of ${grace}, so that misfire_policy ${misfire_policy} says what becomes of it.`
      : `It runs if it is decided within its grace of ${grace}.`,
  ];
  const pause = history.pauseWithin(at, now);
  if (pause === null || pause.ended !== null) {
    return { ...notRun, reason: null, sentences, evidence };
  }
  const { paused } = pause;
  const since = `${words.at(paused.metadata.occurredAt)} ${words.by(paused)}`;
  sentences.push(`The task is paused since ${since}: that is decided once it is resumed.`);
  return { ...notRun, reason: null, sentences, evidence: [...evidence, paused] };
}

/** All up to later than this fire is decided, but it is not among that. */
function passedOver({ decisions, words, era }: Asked, { at }: Fire): Verdict | null {
  const { after, before } = decisions;
  if (
    after === null ||
    (before !== null && before.data.fire_count >= (era.definition.max_runs ?? Infinity))
  ) {
    return null;
  }
  const sentences = [
    `The rule has a fire at ${words.when(at)} as it is computed now, but the decisions in the log go past it` +
      ` without one: it was not due when they were taken, by the tz database of that time or by the rule then set.`,
  ];
  return { ...notRun, reason: 'not_in_schedule', sentences, evidence: [before, after, era.set] };
}
