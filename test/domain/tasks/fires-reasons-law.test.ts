import { expect } from 'chai';
import fc from 'fast-check';
import { fromIso, type Instant } from '../../../domain/clock.ts';
import type { DataOf } from '../../../domain/events/catalogue.ts';
import { act, perform, settings } from './schedule-acts.ts';
import { Story } from './schedule-story.ts';

describe('the laws of why a fire does not run', () => {
  it('a pause holds back only what is due during it', () => {
    forEachStory((story) => {
      const pauses = pausesOf(story);
      const snoozes = snoozesOf(story);
      for (const { reason, from, to } of skippedBy(story)) {
        for (const end of [from, to]) {
          // A snoozed fire is held back at its later time.
          const due = snoozes.findLast(({ fire }) => fire === fromIso(end))?.end ?? fromIso(end);
          const within = pauses.some(([begin, over]) => begin <= due && due <= over);
          const inside = pauses.some(([begin, over]) => begin < due && due < over);
          if (reason === 'paused') expect(within, `${from} ${to}`).to.equal(true);
          if (reason === 'missed') expect(inside, `${from} ${to}`).to.equal(false);
        }
      }
    });
  });

  it('what came due while an earlier fire was snoozed does not run, for that reason', () => {
    forEachStory((story) => {
      const snoozes = snoozesOf(story);
      const isBehind = (time: string): boolean =>
        snoozes.some(({ fire, end }) => fire < fromIso(time) && fromIso(time) <= end);
      for (const { event } of story.firesEvents) {
        if (event.type === 'Fired') {
          expect(isBehind(event.data.nominal), event.data.nominal).to.equal(false);
        }
      }
      for (const { reason, from, to } of skippedBy(story)) {
        if (reason === 'bounds') continue;
        const both = [isBehind(from), isBehind(to)];
        const said = reason === 'snoozed';
        expect(both, `${reason} ${from} ${to}`).to.deep.equal([said, said]);
      }
    });
  });
});

/** Checks a law on many stories in which everything due is decided. */
function forEachStory(law: (story: Story) => void): void {
  const acts = fc.array(act, { maxLength: 40 });
  fc.assert(
    fc.property(settings, acts, (fields, all) => {
      const story = new Story(fields);
      for (const each of all) perform(story, each);
      if (story.state.status === 'paused') story.resume('skip');
      law(story.lookAll());
    }),
    { numRuns: 400 },
  );
}

function skippedBy({ firesEvents }: Story): readonly DataOf<'FiresSkipped'>[] {
  return firesEvents.flatMap(({ event }) => (event.type === 'FiresSkipped' ? [event.data] : []));
}

/** The spans in which the task was paused. */
function pausesOf({ taskEvents }: Story): readonly (readonly [begin: Instant, over: Instant])[] {
  return taskEvents.flatMap(({ event, at }, index) => {
    if (event.type !== 'TaskPaused') return [];
    const end = taskEvents.slice(index).find((later) => later.event.type === 'TaskResumed');
    return [[at, end?.at ?? Infinity] as const];
  });
}

/**
 * The snoozed fires, and when each snooze ended: at the later time, or at an earlier change of the task. Snoozes of
 * fires that had been decided do not count.
 */
function snoozesOf({ log }: Story): readonly { readonly fire: Instant; readonly end: Instant }[] {
  return log.flatMap(({ event }, index) => {
    if (event.type !== 'TaskSnoozed') return [];
    const { next_fire_at, next_run_at } = event.data;
    const isDecided = log.slice(0, index).some(({ event: before }) => {
      if (before.type === 'Fired') return before.data.nominal >= next_fire_at;
      return before.type === 'FiresSkipped' && before.data.to >= next_fire_at;
    });
    if (isDecided) return [];
    const changed = log.slice(index).find((later) => later.event.type === 'TaskUpdated');
    const end = Math.min(fromIso(next_run_at), changed?.at ?? Infinity);
    return [{ fire: fromIso(next_fire_at), end }];
  });
}
