import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { compileSchedule, ScheduleError } from '../../../domain/schedule/schedule.ts';
import { zoneOf } from '../../../domain/schedule/zone.ts';
import { longVersions } from '../../support/left-out.ts';
import { requiredProgram } from '../../support/required-program.ts';
import { drawCases, SPAN, zones, type ScheduleCase } from './schedule-cases.ts';

const HOUR = 3_600_000;
/** Rules of one run: the long one has 150 of each zone. */
const RULES = { short: 176, long: 3300 };
const SEED = 31;
/** Changes of an offset are found at this resolution, in seconds. */
const STEP = 6 * 3600;

/** Fires in seconds since 1970; null if the library supports none, with the reason beside it. */
interface Answer {
  readonly model: readonly number[] | null;
  readonly model_error?: string;
  readonly library: readonly number[] | null;
  readonly library_error?: string;
}

interface Answers {
  readonly cases: readonly Answer[];
  readonly offsets: readonly (readonly number[])[];
}

describe('the schedules, compared with python-dateutil and croniter', () => {
  let python: string;
  /** Zones that are equal in both tz databases. */
  let alike: ReadonlySet<string>;

  before(function () {
    requiredProgram(this, 'python3-dateutil');
    python = requiredProgram(this, 'python3-croniter');
    const [from, to] = [SPAN.from / 1000, SPAN.to / 1000];
    const asked = zones.map((zone) => ({ zone, from, to, step: STEP }));
    const { offsets } = ask({ cases: [], offsets: asked });
    const same = zones.filter((zone, index) =>
      (offsets[index] ?? []).every(
        (offset, n) => zoneOf(zone)?.offsetAt((from + n * STEP) * 1000) === offset * 1000,
      ),
    );
    alike = new Set(same);
  });

  function ask(asked: {
    readonly cases: readonly ScheduleCase[];
    readonly offsets: unknown;
  }): Answers {
    const script = join(import.meta.dirname, 'other-schedulers.py');
    const options = { input: JSON.stringify(asked), encoding: 'utf8', maxBuffer: 2 ** 28 } as const;
    const { status, stdout, stderr } = spawnSync(python, [script], options);
    expect(status, stderr).to.equal(0);
    return JSON.parse(stdout) as Answers;
  }

  it('have at least twenty zones with the same clock changes in both databases', () => {
    expect(alike.size).to.be.at.least(20);
  });

  it('fire at the same times, by the rules for clock changes', () => {
    const count = longVersions() ? RULES.long : RULES.short;
    const cases = drawCases(SEED, count).filter(({ zone }) => alike.has(zone));
    const { cases: answers } = ask({ cases, offsets: [] });
    const differing: string[] = [];
    const unjudged: string[] = [];
    let compared = 0;
    for (const [index, given] of cases.entries()) {
      const { model, model_error, library } = answers[index] as Answer;
      const ours = firesOf(given);
      // dateutil rejects a rule that never fires.
      const isEmpty = model_error?.includes('generates an empty set') === true;
      const theirs = isEmpty ? [] : model;
      if (theirs !== null) {
        compared += 1;
        if (String(theirs) !== String(ours) && !isOwnReading(given)) {
          differing.push(`${described(given)}: ${firstDifference(ours, theirs)}`);
        }
      }
      const differs = library !== null && String(library) !== String(ours);
      if (differs && !isOwnReading(given) && !meetsClockChange(given, ours)) {
        unjudged.push(`${described(given)}: ${firstDifference(ours, library)}`);
      }
    }
    expect(differing, 'other fires than by the rules for clock changes').to.deep.equal([]);
    expect(unjudged, 'other fires than the library alone, without a clock change').to.deep.equal(
      [],
    );
    expect(compared / cases.length, 'rules that could be compared').to.be.above(0.95);
  }).timeout(600_000);
});

function firesOf({ kind, expr, zone, after, count }: ScheduleCase): readonly number[] {
  const bounds = { startsAt: null, endsAt: null };
  try {
    const spec = { kind, expr, timezone: zone, anchor: after * 1000, ...bounds };
    return compileSchedule(spec)
      .upcoming(after * 1000, count)
      .map(({ at }) => at / 1000);
  } catch (error) {
    if (error instanceof ScheduleError) throw new Error(`${expr} in ${zone}: ${error.issue}`);
    throw error;
  }
}

/**
 * Croniter differs from crontab(5) in three ways. It treats a weekday field that names every day as
 * `*`. It does not join a numbered weekday with days of the month. It joins a stepped `*` with the
 * other field.
 */
function isOwnReading({ kind, expr, day_or }: ScheduleCase): boolean {
  if (kind === 'rrule') return false;
  const [, , dayOfMonth = '', , weekday = ''] = expr.split(' ');
  if (dayOfMonth === '*' || weekday === '*') return false;
  return weekday === '0-7' || weekday.includes('#') || day_or === false;
}

/** Whether the zone's clock changes between a rule's start, or a day before, and its last fire. */
function meetsClockChange({ zone, after }: ScheduleCase, fires: readonly number[]): boolean {
  const found = zoneOf(zone);
  if (found === null) throw new Error(`no zone ${zone}`);
  const end = ((fires.at(-1) ?? after) + 86_400) * 1000;
  const begun = after * 1000 - 24 * HOUR;
  for (let segment = found.segmentAt(begun); segment.end < end;) {
    const next = found.segmentAt(segment.end);
    if (next.offset !== segment.offset) return true;
    segment = next;
  }
  return false;
}

function firstDifference(ours: readonly number[], theirs: readonly number[]): string {
  const length = Math.max(ours.length, theirs.length);
  const index = Array.from({ length }, (_, n) => n).find((n) => ours[n] !== theirs[n]) ?? 0;
  const text = (at: number | undefined): string =>
    at === undefined ? 'none' : new Date(at * 1000).toISOString();
  return `fire ${index} at ${text(ours[index])}, theirs at ${text(theirs[index])}`;
}

const described = ({ kind, expr, zone }: ScheduleCase): string =>
  `${kind} ${JSON.stringify(expr)} in ${zone}`;
