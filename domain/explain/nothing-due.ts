import { fromIso, type Instant } from '../clock.ts';
import type { ScheduleKind } from '../vocabulary.ts';
import { endOf } from './decisions.ts';
import type { ExplainContext } from './explain-context.ts';
import { note, notRun, type Verdict } from './explanation.ts';
import { compileEra, compileUnbounded } from './task-history.ts';
import { afterCancel } from './undecided-fires.ts';
import { noteOf } from './words.ts';

const SECOND = 1000;

/** The instant refers to no fire: there was no task, or the instant is out of bounds or between two fires. */
export function explainNothingDue(context: ExplainContext): Verdict {
  return (
    beforeCreation(context) ??
    afterCancel(context, context.at) ??
    outOfBounds(context) ??
    between(context)
  );
}

function beforeCreation({ at, history, words }: ExplainContext): Verdict | null {
  const { created, eras } = history;
  if (at > created) return null;
  const { set } = eras[0];
  const absent = note(`The task did not exist at ${words.when(at)}.`);
  return notRun('not_in_schedule', absent, note(words.act(set, 'created it'), set));
}

/** Without `starts_at` or `ends_at` the rule would have a fire there. */
function outOfBounds({ at, era, words }: ExplainContext): Verdict | null {
  const { starts_at, ends_at } = era.definition;
  if (starts_at === null && ends_at === null) return null;
  const start = Math.floor(at / SECOND) * SECOND;
  const fire = compileUnbounded(era).schedule?.next(start - 1) ?? null;
  if (fire === null || fire.at >= start + SECOND) return null;
  const isEarly = starts_at !== null && fire.at < fromIso(starts_at);
  // There may be another cause; for example, the rule was not in force yet.
  if (!isEarly && (ends_at === null || fire.at <= fromIso(ends_at))) return null;
  const bound = isEarly
    ? `before starts_at, ${words.at(starts_at)}`
    : `after ends_at, ${words.at(ends_at ?? '')}`;
  const out = note(`The fire at ${words.when(fire.at)} is out of bounds because it is ${bound}.`);
  return notRun('bounds', out, note(words.act(era.set, 'set this schedule'), era.set));
}

/** Nothing was due. Names the nearest fires, and the outcome of the one before. */
function between(context: ExplainContext): Verdict {
  const { at, era, decisions, words, history } = context;
  const { schedule, fault } = compileEra(era);
  if (schedule === null) {
    const sentence = `The log has no fire at ${words.when(at)}, and this release can't evaluate the schedule in force then: ${fault}.`;
    return notRun('not_in_schedule', note(sentence, era.set));
  }
  const previous = schedule.previous(at)?.at ?? null;
  const following = schedule.next(at);
  const next = following?.at ?? null;
  const isInForce = (instant: Instant | null): instant is Instant =>
    instant !== null && instant > era.after && instant <= era.upTo;
  const before = isInForce(previous) ? words.when(previous) : null;
  const after = isInForce(next) ? words.when(next) : null;
  const sentences = [
    `Nothing was due at ${words.when(at)}.`,
    `The schedule in force then was ${ruleOf(context)}.`,
    nearestFires(before, after),
    // The instant may be a local time that a clock change left out.
    ...(after === null ? [] : noteOf(following)),
  ];
  if (isInForce(previous)) sentences.push(...fireBefore(context, previous));
  if (before === null && era.set.type === 'TaskUpdated') {
    sentences.push(words.act(era.set, 'set that schedule'));
  }
  const changed = history.eras.find((other) => other.after >= era.upTo);
  if (after === null && changed !== undefined) {
    sentences.push(words.act(changed.set, 'changed the schedule'));
  }
  const snooze = history.snoozes.findLast(
    ({ data }) => Math.floor(fromIso(data.next_run_at) / SECOND) === Math.floor(at / SECOND),
  );
  if (snooze !== undefined) {
    const fire = words.at(snooze.data.next_fire_at);
    sentences.push(words.act(snooze, `snoozed the fire at ${fire} until this instant`));
    sentences.push('Ask about the nominal time of that fire.');
  }
  return notRun('not_in_schedule', { sentences, evidence: [era.set, decisions.before, snooze] });
}

function nearestFires(before: string | null, after: string | null): string {
  if (before !== null && after !== null) return `Its nearest fires are ${before} and ${after}.`;
  if (before !== null) return `Its last fire is ${before}; there is none after it.`;
  if (after !== null) return `Its first fire is ${after}; there is none before it.`;
  return 'It has no fires.';
}

const kinds: Readonly<Record<ScheduleKind, string>> = {
  cron: 'cron',
  rrule: 'rrule',
  once: 'once at',
  event: 'events on',
};

function ruleOf({ era }: ExplainContext): string {
  const { schedule_kind, schedule_expr, timezone } = era.definition;
  return `${kinds[schedule_kind]} "${(schedule_expr ?? '').replaceAll('\n', ' ')}" (${timezone})`;
}

/** The outcome of the previous fire, if the last decision before the instant is about that fire. */
function fireBefore({ decisions }: ExplainContext, previous: Instant): readonly string[] {
  const { before } = decisions;
  if (before === null || endOf(before) !== previous) return [];
  return before.type === 'Fired'
    ? [`The fire before ran as run ${before.data.run_id}.`]
    : [`The fire before did not run (${before.data.reason}).`];
}
