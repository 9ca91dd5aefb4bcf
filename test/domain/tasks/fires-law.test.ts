import { expect } from 'chai';
import fc from 'fast-check';
import { fromIso, type Instant } from '../../../domain/clock.ts';
import { correctNextFire } from '../../../domain/tasks/fires.ts';
import type { FiresEvent } from '../../../domain/events/catalogue.ts';
import {
  evolveScheduleState,
  nextFireOf,
  type ScheduleState,
} from '../../../domain/tasks/schedule-state.ts';
import { misfirePolicies } from '../../../domain/vocabulary.ts';
import { place, START } from '../given.ts';
import { act, expressions, perform, settings } from './schedule-acts.ts';
import { minute, scheduleOf, Story } from './schedule-story.ts';

/** The decisions in a story's events: the nominal times that fired, and the spans that were skipped. */
function decided(events: readonly { readonly event: FiresEvent }[]): {
  readonly fired: readonly Instant[];
  readonly spans: readonly {
    readonly from: Instant;
    readonly to: Instant;
    readonly count: number;
  }[];
} {
  const fired: Instant[] = [];
  const spans: { from: Instant; to: Instant; count: number }[] = [];
  for (const { event } of events) {
    if (event.type === 'Fired') fired.push(fromIso(event.data.nominal));
    if (event.type === 'FiresSkipped') {
      const { from, to, count } = event.data;
      spans.push({ from: fromIso(from), to: fromIso(to), count });
    }
  }
  return { fired, spans };
}

describe('the laws of the schedule state', () => {
  it('no nominal time is decided twice, and the next fire is never before a decided one', () => {
    fc.assert(
      fc.property(settings, fc.array(act, { maxLength: 40 }), (fields, acts) => {
        const story = new Story(fields);
        for (const each of acts) {
          perform(story, each);
          const { fires } = story.state;
          const next = nextFireOf(story.state);
          if (next !== null && fires !== null && fires.decided !== null) {
            expect(next > fires.decided, `${next} after ${fires.decided}`).to.equal(true);
          }
        }
        let upTo = Number.NEGATIVE_INFINITY;
        for (const { event } of story.firesEvents) {
          if (event.type === 'NextFireCorrected') continue;
          const [from, to] =
            event.type === 'Fired'
              ? [event.data.nominal, event.data.nominal]
              : [event.data.from, event.data.to];
          expect(fromIso(from) > upTo, `${event.type} ${from}`).to.equal(true);
          expect(fromIso(to) >= fromIso(from)).to.equal(true);
          upTo = fromIso(to);
        }
      }),
      { numRuns: 400 },
    );
  });

  it('everything due is decided in the end, and then nothing is left to do', () => {
    fc.assert(
      fc.property(settings, fc.array(act, { maxLength: 30 }), (fields, acts) => {
        const story = new Story(fields);
        for (const each of acts) perform(story, each);
        if (story.state.status === 'paused') story.resume('latest');
        story.lookAll();
        expect(story.state.owed).to.deep.equal([]);
        const next = nextFireOf(story.state);
        const snoozed = story.state.set.next_run_at;
        if (next !== null && snoozed === null) expect(fromIso(next)).to.be.above(story.now);
      }),
      { numRuns: 200 },
    );
  });

  it('of fires missed under several rules, `latest` runs at most the newest', () => {
    const change = fc.record({
      ms: fc.integer({ min: 1, max: 90 * minute }),
      expr: fc.constantFrom(...expressions),
      isPaused: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 6 }), fc.boolean(), (changes, isReleased) => {
        const misfire_policy = isReleased ? 'all' : 'latest';
        const story = new Story({ misfire_policy, misfire_grace_seconds: 0 });
        for (const { ms, expr, isPaused } of changes) {
          story.pass(ms).update({ schedule_expr: expr });
          if (isPaused) story.pause().resume('skip');
        }
        // The decision is made at a time when no fire of these rules is due.
        story.pass(minute).pass(1000 - (story.now % 1000) + 100);
        if (isReleased) story.release('latest');
        const runs = story.lookAll().firesEvents.filter(({ event }) => event.type === 'Fired');
        const decided = story.firesEvents.filter(({ event }) => event.type !== 'NextFireCorrected');
        expect(runs).to.have.lengthOf(decided.length === 0 ? 0 : 1);
        expect(decided.at(-1)?.event.type ?? 'Fired').to.equal('Fired');
      }),
      { numRuns: 200 },
    );
  });

  it('each nominal time of a rule fires once or is in one skipped span, whatever the outages', () => {
    const outages = fc.array(
      fc.record({
        ms: fc.integer({ min: 1, max: 5 * 60 * minute }),
        looks: fc.integer({ min: 0, max: 3 }),
      }),
      { minLength: 1, maxLength: 12 },
    );
    const rule = fc.record({
      schedule_expr: fc.constantFrom(...expressions),
      misfire_policy: fc.constantFrom(...misfirePolicies),
      misfire_grace_seconds: fc.constantFrom(0, 60, 600, 7200),
    });
    fc.assert(
      fc.property(rule, outages, (fields, gaps) => {
        const story = new Story(fields);
        for (const { ms, looks } of gaps) {
          story.pass(ms);
          for (let n = 0; n < looks; n += 1) {
            const before = story.firesEvents.length;
            const { runs } = story.look();
            expect(runs.length).to.be.at.most(200);
            if (fields.misfire_policy !== 'all' && story.firesEvents.length > before) {
              checkPolicy(story, before, fields.misfire_grace_seconds);
            }
          }
        }
        story.lookAll();
        const { fired, spans } = decided(story.firesEvents);
        const expected = firesUpTo(story);
        const inSpan = (at: Instant): boolean =>
          spans.some(({ from, to }) => from <= at && at <= to);
        const firedOnce = new Set(fired);
        expect(firedOnce.size).to.equal(fired.length);
        for (const at of expected) {
          expect(firedOnce.has(at), new Date(at).toISOString()).to.equal(!inSpan(at));
        }
        const known = new Set(expected);
        expect(fired.every((at) => known.has(at))).to.equal(true);
        for (const { from, to, count } of spans) {
          expect(expected.filter((at) => from <= at && at <= to)).to.have.lengthOf(count);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('no next fire needs correction while the rules of its zone stay the same', () => {
    fc.assert(
      fc.property(settings, fc.array(act, { maxLength: 40 }), (fields, acts) => {
        const story = new Story(fields);
        for (const each of acts) {
          perform(story, each);
          const { state: schedule, now } = story;
          const { events } = correctNextFire(
            't',
            schedule,
            scheduleOf(schedule.definition, schedule.anchor),
            now,
          );
          expect(events, JSON.stringify(schedule)).to.deep.equal([]);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('the count and the revision in each event continue from the one before', () => {
    fc.assert(
      fc.property(settings, fc.array(act, { maxLength: 40 }), (fields, acts) => {
        const story = new Story(fields);
        for (const each of acts) perform(story, each);
        let count = 0;
        for (const { event } of story.firesEvents) {
          if (event.type === 'Fired') count += 1;
          expect(event.data.fire_count).to.equal(count);
          expect(event.data.task_revision).to.be.within(0, story.taskEvents.length - 1);
          expect(event.data.next_fire_at === null || event.data.next_fire_at > '2026').to.equal(
            true,
          );
        }
        if (fields.max_runs !== null) expect(count).to.be.at.most(fields.max_runs);
      }),
      { numRuns: 200 },
    );
  });

  it('the two streams make the same state in whatever order their events arrive', () => {
    fc.assert(
      fc.property(
        settings,
        fc.array(act, { maxLength: 30 }),
        fc.infiniteStream(fc.boolean()),
        (fields, acts, coin) => {
          const story = new Story(fields);
          for (const each of acts) perform(story, each);
          // An index may learn of its own decisions before it learns of events that were written just before them.
          const shuffled = [...story.log];
          for (let n = 1; n + 1 < shuffled.length; n += 1) {
            const [one, other] = [shuffled[n], shuffled[n + 1]];
            if (one === undefined || other === undefined) continue;
            const crosses = isFires(one.event.type) !== isFires(other.event.type);
            // A decision may come first only if it does not depend on the other event, because both were concurrent.
            const together = one.at === other.at && restsBefore(one, other);
            if (crosses && together && coin.next().value === true) {
              shuffled[n] = other;
              shuffled[n + 1] = one;
              n += 1;
            }
          }
          let schedule: ScheduleState | null = null;
          for (const { event, revision, at } of shuffled) {
            schedule = evolveScheduleState(schedule, event, place(revision, at));
          }
          if (schedule === null) throw new Error('the story has no schedule state');
          expect(nextFireOf(schedule)).to.equal(nextFireOf(story.state));
          expect(schedule.fires).to.deep.equal(story.state.fires);
          expect(schedule.set).to.deep.equal(story.state.set);
        },
      ),
      { numRuns: 200 },
    );
  });
});

/** The fires since the creation of the task by the rule alone. */
function firesUpTo({ definition, anchor, now }: Story): readonly Instant[] {
  const schedule = scheduleOf(definition, anchor);
  const fires: Instant[] = [];
  for (;;) {
    for (const { at } of schedule.upcoming(fires.at(-1) ?? START, 500)) {
      if (at > now) return fires;
      fires.push(at);
    }
  }
}

const isFires = (type: string): boolean =>
  ['Fired', 'FiresSkipped', 'NextFireCorrected'].includes(type);

/** Whether `other` is a decision that was made without knowledge of `one`. */
function restsBefore(one: Story['log'][number], other: Story['log'][number]): boolean {
  return (
    !isFires(one.event.type) &&
    'task_revision' in other.event.data &&
    other.event.data.task_revision < one.revision
  );
}

/** Expects that one decision runs no late fire under `skip`, and at most one under `latest`. */
function checkPolicy(story: Story, before: number, graceSeconds: number): void {
  const late = story.firesEvents.slice(before).filter(({ event }) => {
    if (event.type !== 'Fired') return false;
    return story.now - fromIso(event.data.nominal) > Math.max(graceSeconds * 1000, 999);
  });
  const inTime = story.firesEvents.length - before - late.length;
  const most = story.definition.misfire_policy === 'latest' ? 1 : 0;
  expect(late.length, `of ${inTime}`).to.be.at.most(most);
}
