import { expect } from 'chai';
import { compileSchedule } from '../../../domain/schedule/schedule.ts';
import type { ScheduleKind } from '../../../domain/vocabulary.ts';

/** The local times and notes of the first fires after an instant. */
function notes(
  kind: ScheduleKind,
  expr: string,
  timezone: string,
  after: string,
  count: number,
): [string, string | null][] {
  const anchor = Date.parse(after);
  const schedule = compileSchedule({ kind, expr, timezone, anchor, startsAt: null, endsAt: null });
  return schedule.upcoming(anchor, count).map(({ local, note }) => [local, note]);
}

const newYork = 'America/New_York';
const havana = 'America/Havana';

describe('the note of a fire', () => {
  it('says that a time of a fixed rule moved', () => {
    expect(notes('cron', '30 2 * * *', newYork, '2026-03-08T05:00:00Z', 2)).to.deep.equal([
      [
        '2026-03-08T03:30:00-04:00',
        '2026-03-08T02:30:00 does not exist in America/New_York, where the clock goes forward: ' +
          'fires by the offset before the change, at 2026-03-08T03:30:00',
      ],
      ['2026-03-09T02:30:00-04:00', null],
    ]);
  });

  it('says that a time of a fixed rule occurs twice', () => {
    expect(notes('cron', '30 1 * * *', newYork, '2026-11-01T05:00:00Z', 2)).to.deep.equal([
      [
        '2026-11-01T01:30:00-04:00',
        '2026-11-01T01:30:00 occurs twice in America/New_York, where the clock goes back: ' +
          'fires the first time',
      ],
      ['2026-11-02T01:30:00-05:00', null],
    ]);
  });

  it('says on the next fire that a midnight of a stepped schedule was left out', () => {
    expect(notes('cron', '0 */12 * * *', havana, '2026-03-07T16:00:00Z', 3)).to.deep.equal([
      ['2026-03-07T12:00:00-05:00', null],
      [
        '2026-03-08T12:00:00-04:00',
        '2026-03-08T00:00:00 does not exist in America/Havana, where the clock goes forward: left out',
      ],
      ['2026-03-09T00:00:00-04:00', null],
    ]);
  });

  it('says on both fires that a midnight of a stepped schedule fires twice', () => {
    const twice = '2026-11-01T00:00:00 occurs twice in America/Havana, where the clock goes back';
    expect(notes('cron', '0 */12 * * *', havana, '2026-11-01T03:00:00Z', 3)).to.deep.equal([
      ['2026-11-01T00:00:00-04:00', `${twice}: fires both times`],
      ['2026-11-01T00:00:00-05:00', `${twice}: fires both times, this is the second`],
      ['2026-11-01T12:00:00-05:00', null],
    ]);
  });

  it('counts several times that were left out', () => {
    const [, second] = notes('cron', '*/20 * * * *', newYork, '2026-03-08T06:30:00Z', 2);
    expect(second).to.deep.equal([
      '2026-03-08T03:00:00-04:00',
      '2026-03-08T02:00:00 to 2026-03-08T02:40:00 (3 times) do not exist in America/New_York, ' +
        'where the clock goes forward: left out',
    ]);
  });

  it('says that an hourly rule left out an hour that does not exist', () => {
    const expr = 'DTSTART:20260301T003000\nRRULE:FREQ=HOURLY';
    expect(notes('rrule', expr, newYork, '2026-03-08T06:00:00Z', 3)).to.deep.equal([
      ['2026-03-08T01:30:00-05:00', null],
      [
        '2026-03-08T03:30:00-04:00',
        '2026-03-08T02:30:00 does not exist in America/New_York, where the clock goes forward: left out',
      ],
      ['2026-03-08T04:30:00-04:00', null],
    ]);
  });

  it('says once that the local times of a rule in real time shift', () => {
    const forward = 'DTSTART:20260307T023000\nRRULE:FREQ=HOURLY;INTERVAL=24';
    expect(notes('rrule', forward, newYork, '2026-03-07T00:00:00Z', 3)).to.deep.equal([
      ['2026-03-07T02:30:00-05:00', null],
      [
        '2026-03-08T03:30:00-04:00',
        'the clock of America/New_York goes forward by 1 h before this fire: the rule counts ' +
          'elapsed time, and its local times are 1 h later from here on',
      ],
      ['2026-03-09T03:30:00-04:00', null],
    ]);
    const back = 'DTSTART:20261031T013000\nRRULE:FREQ=HOURLY;INTERVAL=12';
    expect(notes('rrule', back, newYork, '2026-11-01T05:00:00Z', 3)).to.deep.equal([
      ['2026-11-01T01:30:00-04:00', null],
      [
        '2026-11-01T12:30:00-05:00',
        'the clock of America/New_York goes back by 1 h before this fire: the rule counts ' +
          'elapsed time, and its local times are 1 h earlier from here on',
      ],
      ['2026-11-02T00:30:00-05:00', null],
    ]);
  });

  it('says so for a rule that also selects weekdays', () => {
    const expr = 'DTSTART:20261003T120000\nRRULE:FREQ=HOURLY;INTERVAL=12;BYDAY=SA,SU';
    const [, , moved] = notes('rrule', expr, 'Australia/Lord_Howe', '2026-10-03T01:00:00Z', 3);
    expect(moved?.[0]).to.equal('2026-10-04T12:30:00+11:00');
    expect(moved?.[1]).to.contain('goes forward by 30 min').and.to.contain('30 min later');
  });

  it('says that a DTSTART and an RDATE do not exist', () => {
    const expr = 'DTSTART:20260308T023000\nRRULE:FREQ=HOURLY;INTERVAL=10\nRDATE:20270314T021500';
    const [first] = notes('rrule', expr, newYork, '2026-03-08T00:00:00Z', 1);
    expect(first?.[0]).to.equal('2026-03-08T03:30:00-04:00');
    expect(first?.[1]).to.match(/^2026-03-08T02:30:00 does not exist/);
    const [added] = notes('rrule', expr, newYork, '2027-03-14T07:14:59Z', 1);
    expect(added?.[0]).to.equal('2027-03-14T03:15:00-04:00');
    expect(added?.[1]).to.match(/^2027-03-14T02:15:00 does not exist/);
  });

  it('says that a single time does not exist or occurs twice', () => {
    const [gap] = notes('once', '2026-03-08T02:30:00', newYork, '2026-01-01T00:00:00Z', 1);
    expect(gap?.[1]).to.match(/^2026-03-08T02:30:00 does not exist .*, at 2026-03-08T03:30:00$/);
    const [overlap] = notes('once', '2026-11-01T01:30:00', newYork, '2026-01-01T00:00:00Z', 1);
    expect(overlap?.[1]).to.match(/^2026-11-01T01:30:00 occurs twice .*: fires the first time$/);
  });

  it('is null in a zone without clock changes', () => {
    for (const [kind, expr] of [
      ['cron', '*/30 * * * *'],
      ['rrule', 'DTSTART:20260301T003000\nRRULE:FREQ=HOURLY;INTERVAL=7;BYDAY=MO'],
    ] as const) {
      const found = notes(kind, expr, 'Asia/Kathmandu', '2026-03-07T00:00:00Z', 60);
      expect(found.filter(([, note]) => note !== null)).to.deep.equal([]);
    }
  });
});
