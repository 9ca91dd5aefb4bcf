import { expect } from 'chai';
import { parseInstant, TimestampError } from '../../../domain/schedule/timestamp.ts';

describe('a timestamp', () => {
  it('with an offset ignores the zone', () => {
    const noon = Date.UTC(2026, 2, 29, 12);
    for (const text of [
      '2026-03-29T12:00:00Z',
      '2026-03-29t12:00z',
      '2026-03-29 14:00:00+02:00',
      '2026-03-29T14:00:00+0200',
      '2026-03-29T14:00+02',
      ' 2026-03-29T17:45:00.000+05:45 ',
      '2026-03-29T02:30:00-09:30',
    ]) {
      expect(parseInstant(text, null), text).to.equal(noon);
      expect(parseInstant(text, 'Asia/Tokyo'), text).to.equal(noon);
    }
  });

  it('without an offset is a wall time of the zone', () => {
    expect(parseInstant('2026-07-01T09:00:00', 'America/New_York')).to.equal(
      Date.UTC(2026, 6, 1, 13),
    );
    expect(parseInstant('2026-07-01', 'America/New_York')).to.equal(Date.UTC(2026, 6, 1, 4));
  });

  it('without an offset and a zone is refused', () => {
    expect(() => parseInstant('2026-07-01T09:00:00', null)).to.throw(TimestampError, /no offset/);
  });

  it('in an unknown zone is refused', () => {
    expect(() => parseInstant('2026-07-01T09:00', 'Mars/Olympus')).to.throw(TimestampError, /Mars/);
  });

  it('keeps milliseconds and drops further digits', () => {
    expect(parseInstant('1970-01-01T00:00:00.5Z', null)).to.equal(500);
    expect(parseInstant('1970-01-01T00:00:00,123999Z', null)).to.equal(123);
  });

  it('follows the clock-change rules', () => {
    expect(parseInstant('2026-03-08T02:30', 'America/New_York')).to.equal(
      Date.UTC(2026, 2, 8, 7, 30),
    );
    expect(parseInstant('2026-11-01T01:30', 'America/New_York')).to.equal(
      Date.UTC(2026, 10, 1, 5, 30),
    );
  });

  it('is refused if there is no such time or the format is wrong', () => {
    for (const text of [
      '',
      'now',
      '1767225600000',
      '2026-1-1T00:00:00Z',
      '20260101T000000Z',
      '2026-W01-1',
      '2026-001',
      '2025-02-29T00:00:00Z',
      '0000-01-01T00:00:00Z',
      '2026-01-01T00:00:00 Z',
      '2026-01-01T00Z',
      '2026-01-01T00:00:00+2:00',
      '2026-01-01T00:00:00+02:60',
    ]) {
      expect(() => parseInstant(text, 'UTC'), text).to.throw(TimestampError);
    }
  });

  it('without a time is the first millisecond of the day, the last, or the one after', () => {
    const edges = (text: string, zone: string): string[] =>
      (['first', 'last', 'after'] as const).map((edge) =>
        new Date(parseInstant(text, zone, edge)).toISOString(),
      );
    expect(edges('2026-12-01', 'UTC')).to.deep.equal([
      '2026-12-01T00:00:00.000Z',
      '2026-12-01T23:59:59.999Z',
      '2026-12-02T00:00:00.000Z',
    ]);
    // A day of 25 hours, and one that begins at 01:00 and is followed by one of 24.
    expect(edges('2026-10-25', 'Europe/Berlin')).to.deep.equal([
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T22:59:59.999Z',
      '2026-10-25T23:00:00.000Z',
    ]);
    expect(edges('2026-03-07', 'America/Havana').slice(1)).to.deep.equal([
      '2026-03-08T04:59:59.999Z',
      '2026-03-08T05:00:00.000Z',
    ]);
    // The last day that a timestamp can name.
    expect(edges('9999-12-31', 'America/New_York')[1]).to.equal('9999-12-31T23:59:59.999Z');
  });

  it('with a time is the same instant for every edge', () => {
    const text = '2026-12-01T00:00';
    expect(parseInstant(text, 'UTC', 'last')).to.equal(Date.UTC(2026, 11, 1));
    expect(() => parseInstant('2026-12-01', null, 'last')).to.throw(
      TimestampError,
      'has no offset',
    );
  });
});
