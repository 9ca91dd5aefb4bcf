import { expect } from 'chai';
import fc from 'fast-check';
import { toIso } from '../../../domain/clock.ts';
import {
  hoursOf,
  lastDays,
  lastHours,
  zoneNamed,
  type Bucket,
} from '../../../projections/reading/statistics-periods.ts';
import { sumsOf } from '../../../projections/reading/statistics-sums.ts';
import type { DayDocument } from '../../../projections/views/statistics-days.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import { LogOfTest, folded, success } from '../recorded.ts';

function zone(name: string) {
  const found = zoneNamed(name);
  if (found === null) throw new Error(`${name} is unknown`);
  return found;
}

const spans = (buckets: readonly Bucket[]): readonly string[] =>
  buckets.map(({ start, date }) => `${date} ${toIso(start).slice(0, 16)}`);

describe('the days and hours of statistics', () => {
  it('start at midnight of the zone, whatever its offset', () => {
    const now = Date.parse('2026-03-02T19:00:00.000Z');
    expect(spans(lastDays(zone('Asia/Kolkata'), 2, now).days)).to.deep.equal([
      '2026-03-02 2026-03-01T18:30',
      '2026-03-03 2026-03-02T18:30',
    ]);
    expect(spans(lastDays(zone('Asia/Kathmandu'), 1, now).days)).to.deep.equal([
      '2026-03-03 2026-03-02T18:15',
    ]);
    expect(spans(lastDays(zone('America/New_York'), 1, now).days)).to.deep.equal([
      '2026-03-02 2026-03-02T05:00',
    ]);
  });

  it('have 23 or 25 hours when the clock changes, and hours of half the length', () => {
    const spring = lastDays(zone('Europe/Berlin'), 1, Date.parse('2026-03-29T12:00:00.000Z'));
    expect(hoursOf(spring)).to.have.length(23);
    const autumn = lastDays(zone('Europe/Berlin'), 1, Date.parse('2026-10-25T12:00:00.000Z'));
    expect(hoursOf(autumn)).to.have.length(25);
    // Lord Howe's clock changes by half an hour.
    const island = lastDays(zone('Australia/Lord_Howe'), 1, Date.parse('2026-04-05T01:00:00.000Z'));
    const lengths = hoursOf(island).map(({ start, end }) => (end - start) / 60_000);
    expect(lengths.filter((each) => each !== 60)).to.deep.equal([30]);
    expect(lengths.reduce((sum, each) => sum + each, 0)).to.equal(24.5 * 60);
  });

  it('start at the first instant of a day whose midnight does not exist', () => {
    const period = lastDays(zone('Africa/Cairo'), 1, Date.parse('2026-04-24T12:00:00.000Z'));
    expect(spans(period.days)).to.deep.equal(['2026-04-24 2026-04-23T22:00']);
  });

  it('cover the last hours up to the present quarter of an hour', () => {
    const period = lastHours(zone('Asia/Kolkata'), 2, Date.parse('2026-03-02T19:07:00.000Z'));
    expect(spans(hoursOf(period))).to.deep.equal([
      '2026-03-02 2026-03-02T17:00',
      '2026-03-02 2026-03-02T17:30',
      '2026-03-03 2026-03-02T18:30',
    ]);
    expect(toIso(period.end)).to.equal('2026-03-02T19:15:00.000Z');
  });
});

describe('statistics in a time zone', () => {
  const zones = fc.constantFrom(
    ...['UTC', 'Asia/Kolkata', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'America/St_Johns'],
    ...['Europe/Berlin', 'Pacific/Chatham', 'Pacific/Kiritimati', 'Pacific/Pago_Pago'],
  );
  const begin = Date.parse('2026-03-27T00:00:00.000Z');
  const ends = fc.array(fc.integer({ min: 0, max: 4 * 86_400_000 }), { maxLength: 30 });

  it('count each run in the hour and the day in which it ended', () => {
    fc.assert(
      fc.property(zones, ends, (name, times) => {
        const log = new LogOfTest();
        const instants = times.map((time) => begin + time).sort((one, other) => one - other);
        for (const [n, at] of instants.entries()) {
          const { metadata } = log.add(`run-${String(n)}`, 'RunSucceeded', success());
          Object.assign(metadata, { occurredAt: toIso(at) });
        }
        const days = [...folded(statisticsProjection, log.events)]
          .filter(([key]) => key.startsWith('all/'))
          .map(([, document]) => document as DayDocument);
        const period = lastDays(zone(name), 6, begin + 5 * 86_400_000);
        for (const buckets of [period.days, hoursOf(period)]) {
          const counted = sumsOf(buckets, days).map(({ total }) => total);
          const expected = buckets.map(
            ({ start, end }) => instants.filter((at) => at >= start && at < end).length,
          );
          expect(counted).to.deep.equal(expected);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('count runs of an older release at noon, UTC', () => {
    const log = new LogOfTest();
    log.add('run-1', 'RunSucceeded', success());
    log.add('run-2', 'RunSucceeded', success());
    const known = folded(statisticsProjection, log.events).get('all/2026-03-01') as DayDocument;
    const { quarters: _quarters, ...older } = known;
    const now = Date.parse('2026-03-01T23:00:00.000Z');
    const hours = hoursOf(lastDays(zone('UTC'), 1, now));
    const counted = sumsOf(hours, [older as DayDocument]).map(({ total }) => total);
    expect(counted.indexOf(2)).to.equal(12);
    const both = sumsOf(hours, [{ ...known, total: 3 }]).map(({ total }) => total);
    expect([both[8], both[12]]).to.deep.equal([2, 1]);
  });
});
