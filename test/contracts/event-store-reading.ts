import { expect } from 'chai';
import { BEGINNING, type StreamPart } from '../../domain/event-store.ts';
import {
  Follower,
  brokenEvent,
  event,
  events,
  idsOf,
  newerEvent,
  newPrefix,
  newStream,
  readAllOf,
  rejected,
  type Subject,
} from './event-store-subject.ts';

/** The contract of `readStream`, `readAll`, `head` and `truncate`. */
export function describeReading(subject: Subject): void {
  describeStreams(subject);
  describeTruncating(subject);
  describeTheLog(subject);
}

function describeStreams(subject: Subject): void {
  describe('reading a stream', () => {
    it('that does not exist returns nothing', async () => {
      const { store } = subject();
      expect(await store.readStream(newStream())).to.deep.equal([]);
      expect(await store.readStream(newStream(), { direction: 'backwards' })).to.deep.equal([]);
    });

    it('returns its events from the first, by revision', async () => {
      const { store } = subject();
      const stream = newStream();
      const appended = events(5);
      await store.append(stream, appended, 'none');
      const read = await store.readStream(stream);
      expect(idsOf(read)).to.deep.equal(idsOf(appended));
      expect(read.map(({ revision }) => revision)).to.deep.equal([0, 1, 2, 3, 4]);
    });

    it('from a revision begins there', async () => {
      const { store } = subject();
      const stream = newStream();
      const appended = events(5);
      await store.append(stream, appended, 'none');
      const revisions = async (from: number, limit?: number): Promise<number[]> =>
        (await store.readStream(stream, { from, ...(limit === undefined ? {} : { limit }) })).map(
          ({ revision }) => revision,
        );
      expect(await revisions(3)).to.deep.equal([3, 4]);
      expect(await revisions(1, 2)).to.deep.equal([1, 2]);
      expect(await revisions(5)).to.deep.equal([]);
    });

    it('backwards begins with the last or the given revision', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, events(5), 'none');
      const revisions = async (options: { from?: number; limit?: number }): Promise<number[]> =>
        (await store.readStream(stream, { direction: 'backwards', ...options })).map(
          ({ revision }) => revision,
        );
      expect(await revisions({})).to.deep.equal([4, 3, 2, 1, 0]);
      expect(await revisions({ limit: 1 })).to.deep.equal([4]);
      expect(await revisions({ from: 2 })).to.deep.equal([2, 1, 0]);
      expect(await revisions({ from: 2, limit: 2 })).to.deep.equal([2, 1]);
      expect(await revisions({ from: 99, limit: 1 })).to.deep.equal([4]);
    });

    it('returns at most 1,000 events without a limit', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, events(600), 'none');
      await store.append(stream, events(600, 600), 599);
      const page = await store.readStream(stream);
      expect(page).to.have.lengthOf(1000);
      const rest = await store.readStream(stream, { from: 1000 });
      expect(rest.map(({ revision }) => revision)).to.deep.equal(
        Array.from({ length: 200 }, (_, i) => 1000 + i),
      );
    });

    it('throws CORRUPT_EVENT when an event does not fit its schema', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, [event(0), brokenEvent(), event(2)], 'none');
      const error = await rejected('CORRUPT_EVENT', store.readStream(stream));
      expect(error.stream).to.equal(stream);
      expect(await store.readStream(stream, { limit: 1 })).to.have.lengthOf(1);
    });

    it('returns such an event with its fault and time on request', async () => {
      const { store } = subject();
      const stream = newStream();
      const broken = brokenEvent();
      await store.append(stream, [event(0), broken, event(2)], 'none');
      const faults = async (part: StreamPart): Promise<readonly string[]> =>
        (await store.readStream(stream, part)).map(({ fault }) => typeof fault);
      const forwards = ['undefined', 'string', 'undefined'];
      expect(await faults({ faulty: true })).to.deep.equal(forwards);
      const part = { faulty: true, direction: 'backwards', limit: 2 } as const;
      expect(await faults(part)).to.deep.equal(['undefined', 'string']);
      const [read] = await store.readStream(stream, { faulty: true, from: 1, limit: 1 });
      expect(read?.data).to.deep.equal(broken.data);
      expect(read?.metadata).to.deep.equal(broken.metadata);
    });

    it('throws NEWER_SCHEMA for an event of a newer release', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, [newerEvent()], 'none');
      await rejected('NEWER_SCHEMA', store.readStream(stream));
    });

    it('sees earlier appends, even through another store over the same log', async () => {
      const { store, reopen } = subject();
      const stream = newStream();
      const appended = events(3);
      const written = await store.append(stream, appended, 'none');
      const reopened = await reopen();
      expect(idsOf(await reopened.readStream(stream))).to.deep.equal(idsOf(appended));
      expect(await reopened.append(stream, appended, 'none')).to.deep.equal({
        ...written,
        duplicate: true,
      });
      expect((await reopened.append(stream, [event(3)], 2)).revision).to.equal(3);
    });
  });
}

function describeTruncating(subject: Subject): void {
  describe('truncating a stream', () => {
    it('removes the events before a revision, and keeps the numbering', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, events(5), 'none');
      await store.truncate(stream, 3);
      const revisions = (await store.readStream(stream)).map(({ revision }) => revision);
      expect(revisions).to.deep.equal([3, 4]);
      const backwards = await store.readStream(stream, { direction: 'backwards' });
      expect(backwards.map(({ revision }) => revision)).to.deep.equal([4, 3]);
      expect((await store.append(stream, [event(5)], 4)).revision).to.equal(5);
    });

    it('completely leaves it empty, and the next append continues the numbering', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, events(3), 'none');
      await store.truncate(stream, 3);
      expect(await store.readStream(stream)).to.deep.equal([]);
      expect(await store.readStream(stream, { direction: 'backwards' })).to.deep.equal([]);
      const error = await rejected('CONFLICT', store.append(stream, [event(3)], 'none'));
      expect(error.actual).to.equal(2);
      expect((await store.append(stream, [event(3)], 2)).revision).to.equal(3);
      expect(await store.readStream(stream)).to.have.lengthOf(1);
    });

    it('brings nothing back with a lower revision later', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, events(5), 'none');
      await store.truncate(stream, 4);
      await store.truncate(stream, 2);
      expect((await store.readStream(stream)).at(-1)?.revision).to.equal(4);
      expect((await store.append(stream, [event(5)], 4)).revision).to.equal(5);
    });

    it('leaves other streams alone', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const [one, two] = [newStream(prefix), newStream(prefix)];
      const start = await store.head();
      await store.append(one, events(2), 'none');
      await store.append(two, events(2), 'none');
      await store.truncate(one, 2);
      expect(await store.readStream(two)).to.have.lengthOf(2);
      const all = await readAllOf(store, start, prefix);
      expect(all.filter(({ stream }) => stream === two)).to.have.lengthOf(2);
    });

    it('removes its events from the log at once, or leaves that to the engine', async () => {
      const { store, capabilities } = subject();
      const stream = newStream();
      const start = await store.head();
      await store.append(stream, events(3), 'none');
      await store.truncate(stream, 2);
      const left = await readAllOf(store, start, stream, 1);
      expect(left.map(({ revision }) => revision)).to.deep.equal(
        capabilities.truncatesTheWholeLog ? [2] : [0, 1, 2],
      );
    });

    it('does not move the head back', async () => {
      const { store } = subject();
      const stream = newStream();
      const { position } = await store.append(stream, events(3), 'none');
      await store.truncate(stream, 3);
      expect((await store.head()) >= position).to.equal(true);
    });
  });
}

function describeTheLog(subject: Subject): void {
  describe('reading the log', () => {
    it('returns everything strictly after a position, in order, page by page', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const start = await store.head();
      const appended: string[] = [];
      for (let i = 0; i < 10; i += 1) {
        const batch = events(3, 3 * i);
        await store.append(newStream(prefix), batch, 'none');
        appended.push(...idsOf(batch));
      }
      for (const page of [1, 4, 1000]) {
        const read = await readAllOf(store, start, prefix, page);
        expect(idsOf(read), `pages of ${page}`).to.deep.equal(appended);
      }
      const read = await readAllOf(store, start, prefix);
      const middle = read[13]?.position ?? '';
      expect(idsOf(await readAllOf(store, middle, prefix))).to.deep.equal(appended.slice(14));
    });

    it('includes the first event from the beginning', async () => {
      const { store } = subject();
      const { position } = await store.append(newStream(), [event(0)], 'none');
      const [first] = await store.readAll(BEGINNING, 1);
      expect(first).not.to.equal(undefined);
      expect(BEGINNING < (first?.position ?? '')).to.equal(true);
      expect((first?.position ?? '') <= position).to.equal(true);
    });

    it('has positions of one width that sort as strings', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const start = await store.head();
      for (let i = 0; i < 12; i += 1) await store.append(newStream(prefix), events(2), 'none');
      const positions = (await readAllOf(store, start, prefix)).map(({ position }) => position);
      expect(positions).to.have.lengthOf(24);
      expect(new Set(positions).size).to.equal(24);
      expect(positions).to.deep.equal([...positions].sort());
      expect(new Set(positions.map(({ length }) => length)).size).to.equal(1);
    });

    it('returns nothing after the last event', async () => {
      const { store } = subject();
      const stream = newStream();
      const { position } = await store.append(stream, events(2), 'none');
      expect(await readAllOf(store, position, stream)).to.deep.equal([]);
    });

    it('returns nothing after a position beyond the end', async () => {
      const { store } = subject();
      const { position } = await store.append(newStream(), events(2), 'none');
      expect(await store.readAll(position.replaceAll(/./g, '9'), 10)).to.deep.equal([]);
    });

    it('recognises the format of a position', async () => {
      const { store } = subject();
      const { position } = await store.append(newStream(), events(1), 'none');
      const beyond = '9'.repeat(position.length);
      expect([position, beyond].map((text) => store.isPosition(text))).to.deep.equal([true, true]);
      const others = [BEGINNING, position.slice(1), `0${position}`, `${position.slice(1)}x`, ' '];
      expect(others.filter((text) => store.isPosition(text))).to.deep.equal([]);
    });

    it('rejects a position of another engine as INVALID_EVENT', async () => {
      await rejected('INVALID_EVENT', subject().store.readAll('not a position', 1));
    });

    it('reaches its head and earlier positions, and nothing beyond', async () => {
      const { store } = subject();
      const { position } = await store.append(newStream(), events(2), 'none');
      for (const each of [BEGINNING, position, await store.head()]) {
        expect(await store.reaches(each), each).to.equal(true);
      }
      const beyond = position.replaceAll(/./g, '9');
      expect(store.isPosition(beyond), beyond).to.equal(true);
      expect(await store.reaches(beyond), beyond).to.equal(false);
    });

    it('recognises each event that it has had, however it was read, and no other', async () => {
      const { store } = subject();
      const stream = newStream();
      const start = await store.head();
      await store.append(stream, events(3), 'none');
      const follower = new Follower(store, start, [stream]);
      const delivered = await follower.count(3);
      await follower.end();
      for (const read of [
        delivered,
        await store.readStream(stream),
        await readAllOf(store, start, stream),
      ]) {
        expect(read).to.have.lengthOf(3);
        for (const each of read) expect(await store.hasHad(each)).to.equal(true);
      }
      const [, second] = delivered;
      if (second === undefined) throw new Error('there is no second event');
      const others = [
        { ...second, id: newStream('') },
        { ...second, createdAt: '2020-01-01T00:00:00.000Z' },
        { ...second, revision: 0 },
        { ...second, revision: 3 },
        { ...second, stream: newStream() },
      ];
      for (const each of others) expect(await store.hasHad(each), each.stream).to.equal(false);
    });

    it('recognises truncated events, and none that never existed', async () => {
      const { store } = subject();
      const [one, whole] = [newStream(), newStream()];
      const start = await store.head();
      for (const stream of [one, whole]) await store.append(stream, events(3), 'none');
      const read = [...(await readAllOf(store, start, one)), ...(await store.readStream(whole))];
      await store.truncate(one, 2);
      await store.truncate(whole, 3);
      expect(read).to.have.lengthOf(6);
      for (const each of read) {
        expect(await store.hasHad(each), `${each.stream} ${each.revision}`).to.equal(true);
        expect(await store.hasHad({ ...each, revision: 3 })).to.equal(false);
      }
    });

    it('has its head at the last event', async () => {
      const { store } = subject();
      const before = await store.head();
      const { position } = await store.append(newStream(), events(2), 'none');
      expect((await store.head()) >= position).to.equal(true);
      expect(before < position).to.equal(true);
    });

    it('returns events that do not fit their schema with a fault and their data', async () => {
      const { store } = subject();
      const stream = newStream();
      const start = await store.head();
      const broken = brokenEvent();
      await store.append(stream, [event(0), broken, event(2)], 'none');
      const read = await readAllOf(store, start, stream);
      expect(read.map(({ fault }) => typeof fault)).to.deep.equal([
        'undefined',
        'string',
        'undefined',
      ]);
      expect(read[1]?.data).to.deep.equal(broken.data);
    });
  });
}
