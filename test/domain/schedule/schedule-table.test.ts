import { expect } from 'chai';
import { compileSchedule, type Schedule } from '../../../domain/schedule/schedule.ts';
import { clockChangeCases } from './clock-change-cases.ts';
import { crontabCases } from './crontab-cases.ts';
import { elapsedCases } from './elapsed-cases.ts';
import { recurrenceCases } from './recurrence-cases.ts';
import { rfc5545Cases } from './rfc-5545-cases.ts';
import type { ScheduleCase } from './schedule-case.ts';

function compile(given: ScheduleCase): Schedule {
  const { kind, expr, timezone } = given;
  const anchor = Date.parse(given.after);
  return compileSchedule({ kind, expr, timezone, anchor, startsAt: null, endsAt: null });
}

function table(title: string, cases: readonly ScheduleCase[]): void {
  describe(title, () => {
    for (const given of cases) {
      it(given.name, () => {
        const schedule = compile(given);
        const after = Date.parse(given.after);
        const wanted = given.fires.length + (given.ends ? 5 : 0);
        const fires = schedule.upcoming(after, wanted);
        expect(fires.map((fire) => fire.local)).to.deep.equal(given.fires);

        // The same fires, counted and backwards.
        const last = fires.at(-1)?.at ?? after;
        expect(schedule.countBetween(after, last).count).to.equal(fires.length);
        const backwards: string[] = [];
        let fire = schedule.previous(last + 1);
        while (fire !== null && fire.at > after) {
          backwards.unshift(fire.local);
          fire = schedule.previous(fire.at);
        }
        expect(backwards).to.deep.equal(given.fires);
      });
    }
  });
}

describe('the fires of a schedule', () => {
  table('are those of RFC 5545, by its examples', rfc5545Cases);
  table('are those of RFC 5545, in addition to its examples', recurrenceCases);
  table('are those of crontab(5)', crontabCases);
  table('follow the clock changes', clockChangeCases);
  table('are counted in real time where no hour is named', elapsedCases);
});
