import { expect } from 'chai';
import type { EncodedEvent } from '../../../domain/event-store.ts';
import { newId } from '../../../domain/ids.ts';
import type { LogPart, LogTransfer, WantedEvents } from '../../../domain/log-transfer.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteTransfer } from '../../../stores/sqlite/event-log/transfer.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';

const eventOf = (type: string, data = '{}'): EncodedEvent => ({
  id: newId(1),
  type,
  data,
  metadata: '{}',
});

/** More than one part covers. */
const EVENTS = 20_500;

describe('an embedded log that is transferred', function () {
  this.timeout(60_000);
  let directory: TemporaryDirectory;
  let log: LogTransfer;
  before(async () => {
    directory = await makeTemporaryDirectory();
    log = await openSqliteTransfer({ directory: directory.path, create: true, telemetry: silent });
    const append = (stream: string, events: readonly EncodedEvent[]): Promise<void> =>
      log.append([{ stream, expected: 'none', events }]);
    await append('run-a', [eventOf('RunRequested'), eventOf('RunStarted')]);
    await append('operations', [eventOf('HoldPlaced')]);
    const many = Array.from({ length: EVENTS }, () => eventOf('Fired'));
    await append('fires-a', many);
    await append('runner-a', [eventOf('RunStarted')]);
    // Each of them ends a part.
    const large = JSON.stringify('x'.repeat(5 * 1024 * 1024));
    await append('run-b', [eventOf('RunStarted', large), eventOf('RunStarted', large)]);
    await append('run-c', [eventOf('RunRequested')]);
  });
  after(async () => {
    await log.close();
    await directory.remove();
  });

  const partsFor = async (wanted?: WantedEvents): Promise<readonly LogPart[]> => {
    const parts: LogPart[] = [];
    for await (const part of log.contents(wanted)) parts.push(part);
    return parts;
  };
  const streamsFor = async (wanted: WantedEvents): Promise<readonly string[]> =>
    (await partsFor(wanted)).flatMap(({ events }) => events.map(({ stream }) => stream));

  it('returns everything once and in order', async () => {
    const parts = await partsFor();
    const positions = parts.flatMap(({ events }) => events.map(({ position }) => Number(position)));
    expect(positions).to.deep.equal(Array.from({ length: EVENTS + 7 }, (_, index) => index + 1));
    expect(parts.at(-1)?.share).to.equal(1);
  });

  it('returns events of given types, wherever they are', async () => {
    expect(await streamsFor({ types: ['RunStarted', 'HoldPlaced'] })).to.deep.equal([
      ...['run-a', 'operations', 'runner-a'],
      ...['run-b', 'run-b'],
    ]);
    expect(await streamsFor({ types: ['RunFailed'] })).to.deep.equal([]);
    expect(await streamsFor({ types: ['Fired'] })).to.have.lengthOf(EVENTS);
  });

  it('returns streams of given kinds, and of no kind with the same beginning', async () => {
    expect(await streamsFor({ kinds: ['run'] })).to.deep.equal([
      ...['run-a', 'run-a'],
      ...['run-b', 'run-b', 'run-c'],
    ]);
    expect(await streamsFor({ kinds: ['operations'] })).to.deep.equal(['operations']);
    const both = { kinds: ['run'], types: ['RunRequested'] };
    expect(await streamsFor(both)).to.deep.equal(['run-a', 'run-c']);
  });

  it('reports progress over each event, including skipped ones', async () => {
    for (const wanted of [undefined, { types: ['RunStarted'] }, { kinds: ['none'] }]) {
      const read = (await partsFor(wanted)).reduce((sum, part) => sum + part.read, 0);
      expect(read).to.equal(EVENTS + 7);
    }
  });
});
