import { expect } from 'chai';
import {
  formatOffset,
  tzVersion,
  useTzDatabase,
  zoneOf,
  type Zone,
} from '../../../domain/schedule/zone.ts';

function zone(name: string): Zone {
  const found = zoneOf(name);
  if (found === null) throw new Error(`no zone ${name}`);
  return found;
}

const hours = 3_600_000;

describe('a time zone', () => {
  it('has its IANA name, in any case', () => {
    for (const name of [
      'UTC',
      'Europe/Berlin',
      'europe/berlin',
      'America/Argentina/Ushuaia',
      'EST',
    ]) {
      expect(zoneOf(name), name).not.to.equal(null);
    }
  });

  it('is not an offset, a legacy Java abbreviation, or any other string', () => {
    for (const name of ['', '+02:00', 'BST', 'IST', 'PST', 'Mars/Olympus', 'Z', 'Local', 'a b']) {
      expect(zoneOf(name), name).to.equal(null);
    }
  });

  it('is created once for all spellings of its name, and keeps the requested spelling', () => {
    let made = 0;
    const offsets = () => {
      made += 1;
      return () => 0;
    };
    useTzDatabase({ version: 'counted', offsets });
    try {
      const names = ['EUROPE/berlin', 'Europe/Berlin', 'EUROPE/berlin'];
      expect(names.map((name) => zone(name).name)).to.deep.equal(names);
      expect(made).to.equal(1);
    } finally {
      useTzDatabase(null);
    }
  });

  it('knows the instant of a clock change to the millisecond', () => {
    const newYork = zone('America/New_York');
    const change = Date.UTC(2026, 2, 8, 7);
    expect(newYork.offsetAt(change - 1)).to.equal(-5 * hours);
    expect(newYork.offsetAt(change)).to.equal(-4 * hours);
    expect(newYork.segmentAt(change)).to.deep.include({ start: change, before: -5 * hours });
    expect(newYork.segmentAt(change - 1).end).to.equal(change);
  });

  it('finds two changes a week apart, the closest there are', () => {
    // Recife began summer time on 8 October 2000 and ended it a week later.
    const recife = zone('America/Recife');
    expect(recife.offsetAt(Date.UTC(2000, 9, 8, 2))).to.equal(-3 * hours);
    expect(recife.offsetAt(Date.UTC(2000, 9, 10))).to.equal(-2 * hours);
    expect(recife.offsetAt(Date.UTC(2000, 9, 15, 3))).to.equal(-3 * hours);
  });

  it('agrees with the runtime at every hour of two years, in any order', () => {
    for (const name of ['America/New_York', 'Australia/Lord_Howe', 'Africa/Casablanca']) {
      const format = new Intl.DateTimeFormat('en-US', {
        timeZone: name,
        timeZoneName: 'longOffset',
      });
      const asked = zone(name);
      const step = 97 * hours;
      for (let i = 0; i < 360; i++) {
        // This stride visits the instants out of order.
        const at = Date.UTC(2025, 0, 1) + ((i * 113) % 360) * step * 0.5;
        const text = format.format(at).split('GMT')[1] ?? '';
        const expected = text === '' ? '+00:00' : text;
        const offset = asked.localText(at).slice(-6);
        expect(offset, `${name} ${at}`).to.equal(expected);
      }
    }
  });

  it('resolves a wall time that does not exist by the offset before the change', () => {
    expect(zone('Europe/Berlin').resolve(Date.UTC(2026, 2, 29, 2, 30))).to.deep.equal({
      at: Date.UTC(2026, 2, 29, 1, 30),
      kind: 'gap',
      again: null,
    });
  });

  it('resolves a repeated wall time to the first instant, and gives both', () => {
    expect(zone('Europe/Berlin').resolve(Date.UTC(2026, 9, 25, 2, 30))).to.deep.equal({
      at: Date.UTC(2026, 9, 25, 0, 30),
      kind: 'overlap',
      again: Date.UTC(2026, 9, 25, 1, 30),
    });
  });

  it('resolves the ends of a gap and of an overlap correctly', () => {
    const berlin = zone('Europe/Berlin');
    const kind = (...wall: [number, number, number, number, number]): string =>
      berlin.resolve(Date.UTC(...wall)).kind;
    expect(kind(2026, 2, 29, 1, 59)).to.equal('normal');
    expect(kind(2026, 2, 29, 2, 0)).to.equal('gap');
    expect(kind(2026, 2, 29, 3, 0)).to.equal('normal');
    expect(kind(2026, 9, 25, 1, 59)).to.equal('normal');
    expect(kind(2026, 9, 25, 2, 0)).to.equal('overlap');
    expect(kind(2026, 9, 25, 3, 0)).to.equal('normal');
  });

  it('agrees with the runtime in future and past years', () => {
    // Years after 2100 reuse others of their kind; this checks every fourth month of some, hourly.
    for (const name of [
      'America/New_York',
      'Australia/Lord_Howe',
      'Africa/Casablanca',
      'Asia/Gaza',
    ]) {
      const format = new Intl.DateTimeFormat('en-US', {
        timeZone: name,
        timeZoneName: 'longOffset',
      });
      for (let year = 1790; year < 9999; year += 61) {
        for (let month = year % 4; month < 12; month += 4) {
          const at = Date.UTC(year, month, 1 + (year % 28), year % 24);
          const text = format.format(at).split('GMT')[1] ?? '';
          const found = formatOffset(zone(name).offsetAt(at));
          expect(found, `${name} ${year}-${month + 1}`).to.equal(text === '' ? '+00:00' : text);
        }
      }
    }
  });

  it('converts wall times to instants and back, even where a whole day is missing', () => {
    for (const name of ['UTC', 'Asia/Kathmandu', 'Pacific/Kiritimati', 'Pacific/Apia']) {
      const asked = zone(name);
      for (let day = 0; day < 60; day++) {
        const at = Date.UTC(2011, 11, 1, 12) + day * 24 * hours;
        expect(asked.resolve(at + asked.offsetAt(at)).at, `${name} ${day}`).to.equal(at);
      }
    }
  });

  it('writes local time with its offset, and with milliseconds unless they are 0', () => {
    expect(zone('Asia/Kathmandu').localText(0)).to.equal('1970-01-01T05:30:00+05:30');
    expect(zone('UTC').localText(1)).to.equal('1970-01-01T00:00:00.001+00:00');
    expect(zone('Pacific/Marquesas').localText(0)).to.equal('1969-12-31T14:30:00-09:30');
  });

  it('works at the ends of the calendar', () => {
    for (const at of [-8.64e15, Date.UTC(1, 0, 1), Date.UTC(9999, 11, 31), 8.64e15]) {
      expect(zone('Europe/Berlin').offsetAt(at)).to.be.within(0, 2 * hours);
    }
  });
});

describe('the version of the tz database', () => {
  it('is that of the runtime', () => {
    expect(tzVersion()).to.equal(process.versions['tz']);
    expect(tzVersion({ tz: '2099z' })).to.equal('2099z');
  });

  it('is unknown if the runtime has none', () => {
    expect(tzVersion({})).to.equal('unknown');
  });
});
