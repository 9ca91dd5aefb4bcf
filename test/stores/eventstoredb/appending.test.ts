import { expect } from 'chai';
import { EventStoreError, type EventStore, type NewEvent } from '../../../domain/event-store.ts';
import {
  hastyTimings,
  numbered,
  onWorkbench,
} from '../../support/eventstoredb-server/workbench.ts';
import { eventually } from '../../support/signals.ts';

/** The error that a promise rejects with. */
async function errorOf(promise: Promise<unknown>): Promise<EventStoreError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(EventStoreError);
  return error as EventStoreError;
}

/** Every append is tested on the shared stream and as a separate call, because both must behave the same. */
function describeAppending(way: string, lacksBatchAppend: boolean): void {
  describe(`appending to EventStoreDB ${way}`, () => {
    const bench = onWorkbench();
    let store: EventStore;
    beforeEach(async () => {
      bench().server.faults.lacksBatchAppend = lacksBatchAppend;
      store = await bench().open();
    });

    it('opens one stream at most', async () => {
      await store.append('task-1', [numbered(1)], 'none');
      await store.append('task-1', [numbered(2)], 0);
      await store.truncate('task-1', 1);
      const { appends, batchStreams } = bench().server;
      expect(batchStreams).to.equal(1);
      const batched = !lacksBatchAppend;
      expect(appends.map((append) => append.batched)).to.deep.equal([batched, batched, batched]);
    });

    it('reports that the user may not append', async () => {
      bench().server.faults.deniesAppends = true;
      const error = await errorOf(store.append('task-1', [numbered(1)], 'none'));
      expect(error).to.include({ code: 'UNAVAILABLE', stream: 'task-1' });
      expect(error.message).to.include('rejected');
      expect(bench().server.appends).to.have.lengthOf(1);
    });

    it("stores exactly the codec's JSON", async () => {
      const event = { ...numbered(1), data: { text: 'ü "€" \u2028', deep: [1, { a: null }] } };
      await store.append('task-1', [event as unknown as NewEvent], 'none');
      const [stored] = bench().server.log.all;
      expect(stored?.type).to.equal('EventPublished');
      expect(stored?.contentType).to.equal('application/json');
      expect(Buffer.from(stored?.data ?? []).toString()).to.equal(JSON.stringify(event.data));
      expect(Buffer.from(stored?.metadata ?? []).toString()).to.equal(
        JSON.stringify(event.metadata),
      );
    });

    it('rejects values that JSON cannot represent before sending anything', async () => {
      const cycle: Record<string, unknown> = {};
      cycle.itself = cycle;
      for (const data of [{ big: 1n }, { missing: undefined }, cycle]) {
        const event = { ...numbered(1), data } as unknown as NewEvent;
        expect((await errorOf(store.append('task-1', [event], 'none'))).code).to.equal(
          'INVALID_EVENT',
        );
      }
      expect(bench().server.appends).to.be.empty;
    });

    it('rejects an append without events', async () => {
      expect((await errorOf(store.append('task-1', [], 'any'))).code).to.equal('INVALID_EVENT');
    });

    it('names both revisions of a conflict', async () => {
      await store.append('task-1', [numbered(1), numbered(2)], 'none');
      const behind = await errorOf(store.append('task-1', [numbered(3)], 0));
      expect(behind).to.include({ code: 'CONFLICT', stream: 'task-1', expected: 0, actual: 1 });
      const ahead = await errorOf(store.append('task-2', [numbered(3)], 4));
      expect(ahead).to.include({ code: 'CONFLICT', expected: 4, actual: 'none' });
    });

    it('reports that a stream was deleted', async () => {
      await store.append('task-1', [numbered(1)], 'none');
      bench().server.log.tombstone('task-1');
      const append = await errorOf(store.append('task-1', [numbered(2)], 0));
      expect(append).to.include({ code: 'STREAM_DELETED', stream: 'task-1' });
      expect((await errorOf(store.readStream('task-1'))).code).to.equal('STREAM_DELETED');
    });

    it('reports that an append is too large for the server', async () => {
      const large = numbered(1);
      const half = { ...large, data: { filling: 'x'.repeat(400_000) } } as unknown as NewEvent;
      for (const count of [3, 20]) {
        const events = Array.from({ length: count }, () => ({ ...half, id: crypto.randomUUID() }));
        const error = await errorOf(store.append('task-1', events, 'none'));
        expect(error, `${count} events`).to.include({ code: 'TOO_LARGE', stream: 'task-1' });
      }
      expect(bench().server.appends).to.have.lengthOf(2);
    });

    it('reports that one event is too large for a server with such a limit', async () => {
      bench().server.faults.largestEvent = 1_000;
      const large = { ...numbered(1), data: { filling: 'x'.repeat(1_000) } } as unknown as NewEvent;
      const error = await errorOf(store.append('task-1', [numbered(0), large], 'none'));
      expect(error).to.include({ code: 'TOO_LARGE', stream: 'task-1' });
    });

    it('restarts a softly deleted stream wherever it ended', async () => {
      for (const [stream, expected] of [
        ['task-1', 'any'],
        ['task-2', 0],
      ] as const) {
        await store.append(stream, [numbered(1)], 'none');
        bench().server.log.softDelete(stream);
        const behind = await errorOf(store.append(stream, [numbered(2)], 7));
        expect(behind).to.include({ code: 'CONFLICT', actual: 0 });
        await store.append(stream, [numbered(2)], expected);
        expect(await store.readStream(stream)).to.have.lengthOf(1);
      }
    });

    it('restarts a softly deleted stream', async () => {
      await store.append('task-1', [numbered(1)], 'none');
      bench().server.log.softDelete('task-1');
      expect(await store.readStream('task-1')).to.be.empty;
      const { revision } = await store.append('task-1', [numbered(2)], 'none');
      expect(revision).to.equal(1);
      expect(await store.readStream('task-1')).to.have.lengthOf(1);
    });

    describe('with a lost response', () => {
      /** Soon repeats an attempt without a response. */
      const { appendAttemptMs } = hastyTimings;
      const openHasty = () => bench().open({ timings: { appendAttemptMs } });

      const afterWriting = [
        'unavailable-after-writing',
        'cancelled-after-writing',
        'timed-out-after-writing',
        'silent-after-writing',
        'empty-answer',
      ] as const;
      for (const fault of afterWriting) {
        for (const expected of ['none', 'any'] as const) {
          it(`finds its own append, expecting ${expected}, after: ${fault}`, async () => {
            const hasty = await openHasty();
            bench().server.faults.onNextAppends(fault);
            const result = await hasty.append('task-1', [numbered(1), numbered(2)], expected);
            expect(result).to.include({ revision: 1, duplicate: false });
            expect(result.position).to.equal(await hasty.head());
            expect(bench().server.log.all).to.have.lengthOf(2);
          });
        }
      }

      it('repeats with the same ids and the same expectation', async () => {
        await store.append('task-1', [numbered(1)], 'none');
        const hasty = await openHasty();
        const { server } = bench();
        server.faults.onNextAppends('lost-before-writing', 'silent-before-writing');
        const event = numbered(2);
        expect((await hasty.append('task-1', [event], 0)).revision).to.equal(1);
        const attempts = server.appends.slice(1);
        // On a busy machine, a later attempt may miss its deadline too.
        expect(attempts).to.have.lengthOf.at.least(3);
        expect(new Set(attempts.map(({ expected }) => expected))).to.deep.equal(new Set([0]));
        expect(new Set(attempts.map(({ events }) => events[0]?.id))).to.deep.equal(
          new Set([event.id]),
        );
      });

      it('reports an unknown outcome if the user loses the right to append in the meantime', async () => {
        const { faults, log } = bench().server;
        faults.onNextAppends('unavailable-after-writing');
        const stopListening = log.onWrite(() => {
          stopListening();
          faults.deniesAppends = true;
        });
        const error = await errorOf(store.append('task-1', [numbered(1)], 'none'));
        expect(error.code).to.equal('OUTCOME_UNKNOWN');
        expect(error.message).to.include('rejected');
      });

      it('searches the stream when the server has forgotten the ids', async () => {
        bench().server.faults.onNextAppends('unavailable-after-writing', 'forgets-ids');
        const result = await store.append('task-1', [numbered(1)], 'none');
        expect(result).to.include({ revision: 0, duplicate: false });
        expect(bench().server.appends).to.have.lengthOf(2);
      });

      for (const others of [100, 250, 700]) {
        it(`finds its own append after ${others} others if the server has forgotten the ids`, async () => {
          const { server } = bench();
          const event = numbered(1);
          await store.append('task-1', [numbered(0)], 'none');
          server.faults.onNextAppends('unavailable-after-writing', 'forgets-ids');
          const stopListening = server.log.onWrite(() => {
            const written = server.log.all.at(-1);
            if (written?.id !== event.id) return;
            stopListening();
            const more = Array.from({ length: others }, () => ({
              ...written,
              id: crypto.randomUUID(),
            }));
            server.log.append('task-1', more, 1);
          });
          const result = await store.append('task-1', [event], 'any');
          expect(result).to.include({ revision: 1, duplicate: false });
          expect(server.log.all.filter(({ id }) => id === event.id)).to.have.lengthOf(1);
        });
      }

      it('reports an unknown outcome if its own append may have caused the conflict', async () => {
        const [first, second] = [numbered(1), numbered(2)];
        await store.append('task-1', [first], 'none');
        bench().server.faults.onNextAppends('lost-before-writing');
        const error = await errorOf(store.append('task-1', [first, second], 'any'));
        expect(error.code).to.equal('OUTCOME_UNKNOWN');
      });

      it('reports an unknown outcome when no attempt gets a response', async () => {
        const hasty = await bench().open({ timings: { appendOverallMs: 50 } });
        await hasty.head();
        bench().server.faults.onNextAppends(
          ...Array.from({ length: 100 }, () => 'unavailable-after-writing' as const),
        );
        const event = numbered(1);
        const error = await errorOf(hasty.append('task-1', [event], 'none'));
        expect(error).to.include({ code: 'OUTCOME_UNKNOWN', stream: 'task-1', repeated: true });
        expect(bench().server.log.all).to.have.lengthOf(1);
      });

      it('limits its last attempt to the remaining time', async () => {
        const hasty = await bench().open({
          timings: { appendAttemptMs: 30_000, appendOverallMs: 50 },
        });
        await hasty.head();
        bench().server.faults.onNextAppends('silent-before-writing');
        const begun = performance.now();
        const error = await errorOf(hasty.append('task-1', [numbered(1)], 'none'));
        expect(error).to.include({ code: 'OUTCOME_UNKNOWN', repeated: true });
        expect(performance.now() - begun).to.be.lessThan(15_000);
      });

      it('reports an unknown outcome if it cannot inspect a conflict that its own append may have caused', async () => {
        const hasty = await bench().open({ timings: { readMs: hastyTimings.readMs } });
        await hasty.append('task-1', [numbered(0)], 'none');
        const { faults } = bench().server;
        faults.onNextAppends('unavailable-after-writing', 'forgets-ids');
        faults.onNextReads(...Array.from({ length: 1_000 }, () => 'unavailable' as const));
        const error = await errorOf(hasty.append('task-1', [numbered(1)], 0));
        expect(error.code).to.equal('OUTCOME_UNKNOWN');
      });
    });

    describe('of the same events', () => {
      it('is a duplicate with the first position, even after other events', async () => {
        const events = [numbered(1), numbered(2)];
        const first = await store.append('task-1', events, 'none');
        await store.append('task-1', [numbered(3)], 1);
        const second = await store.append('task-1', events, 'none');
        expect(second).to.deep.equal({ ...first, duplicate: true });
      });

      it('is a duplicate for a process started later', async () => {
        const event = numbered(1);
        const first = await store.append('task-1', [event], 'none');
        const another = await bench().open();
        const second = await another.append('task-1', [event], 'none');
        expect(second).to.deep.equal({ ...first, duplicate: true });
      });

      it('is a duplicate if the server responds with a conflict', async () => {
        const event = numbered(1);
        const first = await store.append('task-1', [event], 'none');
        bench().server.faults.onNextAppends('forgets-ids');
        const second = await store.append('task-1', [event], 'none');
        expect(second).to.deep.equal({ ...first, duplicate: true });
      });

      it('is a conflict when only some of them exist', async () => {
        const event = numbered(1);
        await store.append('task-1', [event], 'none');
        const more = store.append('task-1', [event, numbered(2)], 'none');
        expect((await errorOf(more)).code).to.equal('CONFLICT');
      });

      it('is a conflict when only some of them exist, even with any expected revision', async () => {
        const event = numbered(1);
        await store.append('task-1', [event], 'none');
        const more = store.append('task-1', [event, numbered(2)], 'any');
        expect((await errorOf(more)).code).to.equal('CONFLICT');
      });

      it('is a conflict when other events are in their place', async () => {
        await store.append('task-1', [numbered(1)], 'none');
        const { server } = bench();
        server.faults.onNextAppends('forgets-ids');
        const other = await errorOf(store.append('task-1', [numbered(2)], 'none'));
        expect(other).to.include({ code: 'CONFLICT', actual: 0 });
      });
    });

    describe('with a wrong response', () => {
      it('reads the position from the stream if the response has none', async () => {
        bench().server.faults.onNextAppends('no-position');
        const { position, duplicate } = await store.append('task-1', [numbered(1)], 'none');
        expect(position).to.equal((await store.readStream('task-1'))[0]?.position);
        expect(duplicate).to.equal(false);
      });

      it('uses the end of the log if the stream has no position either', async () => {
        const { faults } = bench().server;
        faults.noPositionsInStreams = true;
        faults.onNextAppends('no-position');
        const { position } = await store.append('task-1', [numbered(1)], 'none');
        expect(position).to.equal(await store.head());
      });

      it('trusts the stream over an impossible revision', async () => {
        bench().server.faults.onNextAppends('wrong-revision');
        const { revision } = await store.append('task-1', [numbered(1)], 'none');
        expect(revision).to.equal(0);
      });
    });

    describe('without a server', () => {
      it('is certainly not written if the server was down from the start', async () => {
        bench().server.stop();
        const hasty = await bench().open({ timings: hastyTimings });
        const error = await errorOf(hasty.append('task-1', [numbered(1)], 'none'));
        expect(error.code).to.equal('UNAVAILABLE');
      });

      it('is certainly not written if the server went down before', async () => {
        const hasty = await bench().open({ timings: hastyTimings });
        await eventually(() => hasty.ping());
        await hasty.append('task-1', [numbered(1)], 'none');
        bench().server.stop();
        await eventually(async () => (await errorOf(hasty.ping())).code === 'UNAVAILABLE');
        const error = await errorOf(hasty.append('task-1', [numbered(2)], 0));
        expect(error.code).to.equal('UNAVAILABLE');
      });

      it('succeeds when the server comes back in time', async () => {
        const patient = await bench().open({ timings: { connectMs: 15_000 } });
        await patient.append('task-1', [numbered(1)], 'none');
        bench().server.stop();
        const appended = patient.append('task-1', [numbered(2)], 0);
        await bench().restart();
        expect((await appended).revision).to.equal(1);
      });

      it('goes to the leader that a follower names', async () => {
        const { port, faults, appends } = bench().server;
        for (const url of [
          `esdb+discover://127.0.0.1:${port}?tls=false`,
          `esdb://127.0.0.1:${port},127.0.0.1:${port}?tls=false`,
        ]) {
          appends.length = 0;
          const cluster = await bench().open({ url });
          faults.onNextAppends('not-leader');
          expect((await cluster.append('task-1', [numbered(1)], 'any')).revision).to.be.a('number');
          expect(appends.map(({ requiresLeader }) => requiresLeader)).to.deep.equal([true, true]);
        }
      });

      it('lets a node forward appends if the URL names only this node, or prefers one that is not the leader', async () => {
        const { port, faults, appends } = bench().server;
        const follower = await bench().open({
          url: `esdb+discover://127.0.0.1:${port}?tls=false&nodePreference=follower`,
        });
        for (const asked of [store, follower]) {
          appends.length = 0;
          faults.onNextAppends('not-leader');
          await asked.append('task-1', [numbered(1)], 'any');
          expect(appends.map(({ requiresLeader }) => requiresLeader)).to.deep.equal([false]);
        }
      });
    });

    it('stops a sequence at the first append that fails', async () => {
      await store.append('b', [numbered(0)], 'none');
      const sequence = store.appendInOrder([
        { stream: 'a', events: [numbered(1)], expected: 'none' },
        { stream: 'b', events: [numbered(2)], expected: 'none' },
        { stream: 'c', events: [numbered(3)], expected: 'none' },
      ]);
      expect((await errorOf(sequence)).code).to.equal('CONFLICT');
      expect(bench().server.log.all.map(({ stream }) => stream)).to.deep.equal(['b', 'a']);
    });
  });
}

describeAppending('on a shared stream', false);
describeAppending('by single calls, where the server has no shared stream', true);
