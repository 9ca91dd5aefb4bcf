import { expect } from 'chai';
import { MAX_EVENT_BYTES, isConflict } from '../../domain/event-store.ts';
import {
  event,
  events,
  eventWithData,
  idsOf,
  newPrefix,
  newStream,
  readAllOf,
  rejected,
  type Subject,
} from './event-store-subject.ts';

/** The contract of `append` and `appendInOrder`. */
export function describeAppending(subject: Subject): void {
  describe('appending', () => {
    it('returns the revision of the last event, counting from 0', async () => {
      const { store } = subject();
      const stream = newStream();
      expect(await store.append(stream, [event(0)], 'none')).to.include({
        revision: 0,
        duplicate: false,
      });
      expect(await store.append(stream, events(3, 1), 0)).to.include({
        revision: 3,
        duplicate: false,
      });
    });

    it('returns the position that the last event has in the log', async () => {
      const { store } = subject();
      const stream = newStream();
      const first = await store.append(stream, events(2), 'none');
      const second = await store.append(stream, events(2, 2), 1);
      const read = await store.readStream(stream);
      expect(read[1]?.position).to.equal(first.position);
      expect(read[3]?.position).to.equal(second.position);
      expect(second.position > first.position).to.equal(true);
    });

    it('with any expected revision succeeds at every revision of the stream', async () => {
      const { store } = subject();
      const stream = newStream();
      expect((await store.append(stream, [event(0)], 'any')).revision).to.equal(0);
      expect((await store.append(stream, [event(1)], 'any')).revision).to.equal(1);
    });

    it('keeps events exactly as appended', async () => {
      const { store } = subject();
      const stream = newStream();
      const appended = event(1, {
        text: 'äöü 漢字 🎉 \u0000 \u2028 "\\',
        numbers: [0, -1, 1.5, 1e300, Number.MAX_SAFE_INTEGER],
        nested: { nothing: null, yes: true, empty: {}, list: [[]] },
      });
      const before = Date.now() - 60_000;
      await store.append(stream, [appended], 'none');
      const [read] = await store.readStream(stream);
      expect(read).to.deep.include({ ...appended, stream, revision: 0 });
      expect(read).not.to.have.property('fault');
      expect(read?.createdAt).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
      expect(Date.parse(read?.createdAt ?? '')).to.be.within(before, Date.now() + 60_000);
    });

    it('accepts stream names in any script', async () => {
      const { store } = subject();
      const stream = `${newStream()}-Ünïcödé 漢字 🎉 %_*?'"`;
      await store.append(stream, [event(0)], 'none');
      const [read] = await store.readStream(stream);
      expect(read?.stream).to.equal(stream);
    });

    it('does not mix up streams whose names differ only in case or length', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, [event(0)], 'none');
      await store.append(stream.toUpperCase(), [event(1)], 'none');
      await store.append(`${stream} `, [event(2)], 'none');
      expect(await store.readStream(stream)).to.have.lengthOf(1);
    });

    describe('to a stream at another revision', () => {
      it('conflicts when the stream should be empty, and names both revisions', async () => {
        const { store } = subject();
        const stream = newStream();
        await store.append(stream, events(2), 'none');
        const error = await rejected('CONFLICT', store.append(stream, [event(9)], 'none'));
        expect(error).to.include({ stream, expected: 'none', actual: 1 });
        expect(isConflict(error)).to.equal(true);
      });

      it('conflicts when the stream has more events, and names both revisions', async () => {
        const { store } = subject();
        const stream = newStream();
        await store.append(stream, events(3), 'none');
        const error = await rejected('CONFLICT', store.append(stream, [event(9)], 1));
        expect(error).to.include({ stream, expected: 1, actual: 2 });
      });

      it('conflicts when the stream does not exist yet, and names both revisions', async () => {
        const { store } = subject();
        const stream = newStream();
        const missing = await rejected('CONFLICT', store.append(stream, [event(0)], 0));
        expect(missing).to.include({ stream, expected: 0, actual: 'none' });
        await store.append(stream, [event(0)], 'none');
        const behind = await rejected('CONFLICT', store.append(stream, [event(9)], 7));
        expect(behind).to.include({ stream, expected: 7, actual: 0 });
      });

      it('writes nothing', async () => {
        const { store } = subject();
        const stream = newStream();
        await store.append(stream, [event(0)], 'none');
        await rejected('CONFLICT', store.append(stream, events(2), 'none'));
        expect(await store.readStream(stream)).to.have.lengthOf(1);
      });
    });

    it('lets exactly one of many concurrent appends win', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, [event(0)], 'none');
      const outcomes = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) => store.append(stream, [event(i)], 0)),
      );
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.lengthOf(1);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(isConflict(outcome.reason)).to.equal(true);
      }
      expect(await store.readStream(stream)).to.have.lengthOf(2);
    });

    it('shows the winning events to the loser at once', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, [event(0)], 'none');
      const seen = Array.from({ length: 20 }, async (_, i) => {
        const failure = await rejectionOf(store.append(stream, [event(i)], 0));
        const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
        return failure === undefined || last?.revision === 1;
      });
      expect(await Promise.all(seen)).to.deep.equal(Array(20).fill(true));
    });

    it('keeps concurrent appends apart, with revisions per stream', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const streams = Array.from({ length: 100 }, () => newStream(prefix));
      const start = await store.head();
      const results = await Promise.all(
        streams.map((stream, i) => store.append(stream, events(1 + (i % 3)), 'none')),
      );
      expect(results.map(({ revision }) => revision)).to.deep.equal(streams.map((_, i) => i % 3));
      const read = await readAllOf(store, start, prefix);
      expect(read).to.have.lengthOf(results.reduce((sum, { revision }) => sum + revision + 1, 0));
      expect(new Set(results.map(({ position }) => position)).size).to.equal(100);
    });

    describeRepeating(subject);
    describeRefusing(subject);
    describeSequences(subject);
  });
}

function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
}

function describeRepeating(subject: Subject): void {
  describe('the same append again', () => {
    it('is a duplicate with the revision and position of the first', async () => {
      const { store } = subject();
      const stream = newStream();
      const created = [event(0)];
      const changed = [event(1)];
      const first = await store.append(stream, created, 'none');
      const second = await store.append(stream, changed, 0);
      expect(await store.append(stream, created, 'none')).to.deep.equal({
        ...first,
        duplicate: true,
      });
      expect(await store.append(stream, changed, 0)).to.deep.equal({ ...second, duplicate: true });
      expect(await store.readStream(stream)).to.have.lengthOf(2);
    });

    it('is a duplicate as a batch, even after further appends', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, [event(0)], 'none');
      const batch = events(3, 1);
      const first = await store.append(stream, batch, 0);
      await store.append(stream, events(2, 4), 3);
      expect(await store.append(stream, batch, 0)).to.deep.equal({ ...first, duplicate: true });
      expect(await store.readStream(stream)).to.have.lengthOf(6);
    });

    it('is written once when both run at the same time', async () => {
      const { store } = subject();
      const stream = newStream();
      const batch = events(2);
      const results = await Promise.all([
        store.append(stream, batch, 'none'),
        store.append(stream, batch, 'none'),
      ]);
      expect(results.map(({ duplicate }) => duplicate).sort()).to.deep.equal([false, true]);
      expect(await store.readStream(stream)).to.have.lengthOf(2);
    });

    it('conflicts when its ids differ', async () => {
      const { store } = subject();
      const stream = newStream();
      const [first, second] = [event(0), event(1)];
      await store.append(stream, [first, second], 'none');
      await rejected('CONFLICT', store.append(stream, [first, event(1)], 'none'));
      await rejected('CONFLICT', store.append(stream, [second, first], 'none'));
    });

    it('with any expected revision is a duplicate too if the engine knows all ids', async () => {
      const { store, capabilities } = subject();
      const stream = newStream();
      await store.append(stream, [event(0)], 'any');
      const batch = events(2, 1);
      const first = await store.append(stream, batch, 'any');
      await store.append(stream, [event(3)], 'any');
      const again = await store.append(stream, batch, 'any');
      // An engine may know only the ids in its memory, and append others again.
      const known = capabilities.recognisesDuplicatesAnywhere || again.duplicate === true;
      if (known) expect(again).to.deep.equal({ ...first, duplicate: true });
      expect(await store.readStream(stream)).to.have.lengthOf(known ? 4 : 6);
    });
  });
}

function describeRefusing(subject: Subject): void {
  describe('an append that cannot be stored', () => {
    it('is rejected as TOO_LARGE above the limit, and accepted just below', async () => {
      const { store } = subject();
      const stream = newStream();
      const large = event(0, { text: 'x'.repeat(MAX_EVENT_BYTES - 2000) });
      await store.append(stream, [large], 'none');
      const larger = event(1, { text: 'x'.repeat(MAX_EVENT_BYTES) });
      await rejected('TOO_LARGE', store.append(stream, [larger], 0));
      const inBytes = event(1, { text: '漢'.repeat(MAX_EVENT_BYTES / 2) });
      await rejected('TOO_LARGE', store.append(stream, [inBytes], 0));
      expect(idsOf(await store.readStream(stream))).to.deep.equal([large.id]);
    });

    it('is rejected as INVALID_EVENT if it contains a BigInt, undefined or a cycle', async () => {
      const { store } = subject();
      const stream = newStream();
      const cycle: Record<string, unknown> = {};
      cycle.itself = cycle;
      for (const data of [{ big: 1n }, { missing: undefined }, undefined, cycle]) {
        await rejected('INVALID_EVENT', store.append(stream, [eventWithData(data)], 'none'));
      }
      expect(await store.readStream(stream)).to.deep.equal([]);
    });

    it('is rejected together with the valid events of the same append', async () => {
      const { store } = subject();
      const stream = newStream();
      const batch = [event(0), eventWithData({ big: 1n }), event(2)];
      await rejected('INVALID_EVENT', store.append(stream, batch, 'none'));
      expect(await store.readStream(stream)).to.deep.equal([]);
    });

    it('is rejected as INVALID_EVENT without events', async () => {
      await rejected('INVALID_EVENT', subject().store.append(newStream(), [], 'any'));
    });
  });
}

function describeSequences(subject: Subject): void {
  describe('several appends in order', () => {
    it('write each to its own stream, in order', async () => {
      const { store } = subject();
      const [one, two] = [newStream(), newStream()];
      const results = await store.appendInOrder([
        { stream: one, events: events(2), expected: 'none' },
        { stream: two, events: events(1), expected: 'none' },
        { stream: one, events: events(1), expected: 1 },
      ]);
      expect(results.map(({ revision }) => revision)).to.deep.equal([1, 0, 2]);
      const positions = results.map(({ position }) => position);
      expect(positions).to.deep.equal([...positions].sort());
    });

    it('end with the first error, and try none after it', async () => {
      const { store } = subject();
      const [one, two, three] = [newStream(), newStream(), newStream()];
      await store.append(two, [event(0)], 'none');
      const error = await rejected(
        'CONFLICT',
        store.appendInOrder([
          { stream: one, events: [event(1)], expected: 'none' },
          { stream: two, events: [event(2)], expected: 'none' },
          { stream: three, events: [event(3)], expected: 'none' },
        ]),
      );
      expect(error).to.include({ stream: two, expected: 'none', actual: 0 });
      expect(await store.readStream(three)).to.deep.equal([]);
      expect(await store.readStream(two)).to.have.lengthOf(1);
    });

    it('succeed again as duplicates if they were written before', async () => {
      const { store } = subject();
      const first = { stream: newStream(), events: events(2), expected: 'none' } as const;
      const second = { stream: newStream(), events: events(1), expected: 'none' } as const;
      const written = await store.append(first.stream, first.events, first.expected);
      const results = await store.appendInOrder([first, second]);
      expect(results[0]).to.deep.equal({ ...written, duplicate: true });
      expect(results[1]).to.include({ revision: 0, duplicate: false });
    });

    it('return no results for no appends', async () => {
      expect(await subject().store.appendInOrder([])).to.deep.equal([]);
    });
  });
}
