import { fromIso, type Instant } from '../clock.ts';
import type { ScheduleKind } from '../vocabulary.ts';
import type { Asked } from './asked.ts';
import { endOf } from './decisions.ts';
import { noteOf } from './words.ts';
import type { Verdict } from './explanation.ts';
import { compileEra, compileUnbounded, type Era } from './task-history.ts';
import { afterCancel } from './undecided.ts';

const SECOND = 1000;
const nothing = { fired: false, runId: null } as const;

/** No fire of the schedule is meant by the instant: there was no task, it lies out of bounds, or between two fires. */
export function explainNothingDue(asked: Asked): Verdict {
  return (
    beforeCreation(asked) ?? afterCancel(asked, asked.at) ?? outOfBounds(asked) ?? between(asked)
  );
}

function beforeCreation({ at, history, words }: Asked): Verdict | null {
  const { created, eras } = history;
  if (at > created) return null;
  const { set } = eras[0];
  const sentences = [
    `The task did not exist at ${words.when(at)}: it was created at ${words.at(set.metadata.occurredAt)} ${words.by(set)}.`,
  ];
  return { ...nothing, reason: 'not_in_schedule', sentences, evidence: [set] };
}

/** The rule has a fire there, but for `starts_at` or `ends_at`. */
function outOfBounds({ at, era, words }: Asked): Verdict | null {
  const { starts_at, ends_at } = era.definition;
  if (starts_at === null && ends_at === null) return null;
  const start = Math.floor(at / SECOND) * SECOND;
  const fire = compileUnbounded(era).schedule?.next(start - 1) ?? null;
  if (fire === null || fire.at >= start + SECOND) return null;
  const early = starts_at !== null && fire.at < fromIso(starts_at);
  // Else it is out for something else: the rule was not in force yet, say.
  if (!early && (ends_at === null || fire.at <= fromIso(ends_at))) return null;
  const bound = early ? `starts_at, ${words.at(starts_at)}` : `ends_at, ${words.at(ends_at ?? '')}`;
  const sentences = [
    `The fire of ${words.when(fire.at)} is out of bounds: it lies ${early ? 'before' : 'after'} ${bound}.`,
    setWords(
      era.set.type === 'TaskUpdated' ? 'last set' : 'set',
      words.at(era.set.metadata.occurredAt),
      words.by(era.set),
    ),
  ];
  return { ...nothing, reason: 'bounds', sentences, evidence: [era.set] };
}

const setWords = (how: string, at: string, by: string): string =>
  `The schedule was ${how} at ${at} ${by}.`;

/** Nothing was due; what the nearest fires are, and what became of the one before. */
function between(asked: Asked): Verdict {
  const { at, era, decisions, words, history } = asked;
  const { schedule, fault } = compileEra(era);
  if (schedule === null) {
    const sentences = [
      `The log has no fire at ${words.when(at)}, and the rule of that time can't be evaluated by this release: ${fault}.`,
    ];
    return { ...nothing, reason: 'not_in_schedule', sentences, evidence: [era.set] };
  }
  const previous = schedule.previous(at)?.at ?? null;
  const following = schedule.next(at);
  const next = following?.at ?? null;
  const held = (instant: Instant | null): instant is Instant =>
    instant !== null && instant > era.after && instant <= era.upTo;
  const before = held(previous) ? words.when(previous) : null;
  const after = held(next) ? words.when(next) : null;
  const nearest =
    before !== null && after !== null
      ? `Its nearest fires are ${before} and ${after}.`
      : before !== null
        ? `Its last fire before that is ${before}, and it has none after.`
        : after !== null
          ? `Its first fire is ${after}; before that it has none.`
          : 'It has no fire before or after that.';
  const sentences = [
    `Nothing was due at ${words.when(at)} by the schedule in force then, ${ruleOf(asked)}.`,
    nearest,
    // A time that the clock left out is asked for as if it were one.
    ...(held(next) ? noteOf(following) : []),
    ...(held(previous) ? becameOf(asked, previous) : []),
    ...changes(asked, held(previous), held(next)),
  ];
  const snooze = history.snoozes.findLast(
    ({ data }) => Math.floor(fromIso(data.next_run_at) / SECOND) === Math.floor(at / SECOND),
  );
  if (snooze !== undefined) {
    sentences.push(
      `The fire of ${words.at(snooze.data.next_fire_at)} had been put off to this moment at ` +
        `${words.at(snooze.metadata.occurredAt)} ${words.by(snooze)}: ask for its own time.`,
    );
  }
  const evidence = [era.set, decisions.before, snooze];
  return { ...nothing, reason: 'not_in_schedule', sentences, evidence };
}

/** Where a change of the schedule cut off the fires on either side, it is named. */
function changes(
  { era, history, words }: Asked,
  hasBefore: boolean,
  hasAfter: boolean,
): readonly string[] {
  const by = (set: Era['set']): string => `${words.at(set.metadata.occurredAt)} ${words.by(set)}`;
  const sentences: string[] = [];
  if (!hasBefore && era.set.type === 'TaskUpdated') {
    sentences.push(`That schedule was set at ${by(era.set)}.`);
  }
  const following = history.eras.find(({ after }) => after >= era.upTo);
  if (!hasAfter && following !== undefined) {
    sentences.push(`The schedule was changed at ${by(following.set)}.`);
  }
  return sentences;
}

const kinds: Readonly<Record<ScheduleKind, string>> = {
  cron: 'cron',
  rrule: 'rrule',
  once: 'once at',
  event: 'events on',
};

function ruleOf({ era }: Asked): string {
  const { schedule_kind, schedule_expr, timezone } = era.definition;
  return `${kinds[schedule_kind]} "${(schedule_expr ?? '').replaceAll('\n', ' ')}" (${timezone})`;
}

/** What the log says of the fire before, where the decision next to the instant is about it. */
function becameOf({ decisions }: Asked, previous: Instant): readonly string[] {
  const { before } = decisions;
  if (before === null || endOf(before) !== previous) return [];
  return before.type === 'Fired'
    ? [`The one before fired, as run ${before.data.run_id}.`]
    : [`The one before did not run (${before.data.reason}).`];
}
