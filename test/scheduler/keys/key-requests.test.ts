import { expect } from 'chai';
import { decorate } from '../../../domain/decorate.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { overlapKey } from '../../../domain/keys/overlap.ts';
import { readKey } from '../../../domain/keys/key-stream.ts';
import { RESERVATION_LIFETIME } from '../../../domain/keys/stale-holders.ts';
import { load } from '../../../domain/handle.ts';
import { manualRunId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import {
  cancelRunCommand,
  requestManualRun,
  updateTaskCommand,
} from '../../../domain/tasks/task-commands.ts';
import { requireTask, taskFold } from '../../../domain/tasks/task.ts';
import type { OverlapPolicy } from '../../../domain/vocabulary.ts';
import { KeyWorld, OWNER, faultsOfKeys, soon, type WorkerProcess } from './key-harness.ts';

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();

describe('requesting a run', () => {
  let world: KeyWorld;
  beforeEach(async () => {
    world = await KeyWorld.open();
  });
  afterEach(() => world.close());

  const schedule = (task: string, run: string, second: number): ReturnType<KeyWorld['request']> =>
    world.request(task, run, { trigger: 'schedule', scheduledFor: at(second) });

  const overlap = async (): Promise<readonly (readonly string[])[]> => {
    const state = await readKey(world.store, overlapKey('a', OWNER));
    const ids = (all: readonly { run_id: string }[] = []): string[] => all.map((one) => one.run_id);
    return [ids(state?.holders), ids(state?.waiters)];
  };

  describe('of a task with a dedupe key', () => {
    it('skips runs within the window, over all tasks of the owner', async () => {
      await world.task('a', { dedupe_key: 'daily', dedupe_window_seconds: 60 });
      await world.task('b', { dedupe_key: 'daily', dedupe_window_seconds: 60 });
      expect((await schedule('a', 'r1', 0)).kind).to.equal('requested');
      const second = await schedule('b', 'r2', 59);
      expect(second).to.include({ kind: 'skipped', reason: 'duplicate', because_of: 'r1' });
      expect((await world.run('r2')).state).to.equal('skipped');
      expect((await schedule('b', 'r3', 60)).kind).to.equal('requested');
    });

    it('without a window, skips while the earlier run is unfinished', async () => {
      await world.task('a', { dedupe_key: 'daily' });
      await schedule('a', 'r1', 0);
      expect((await schedule('a', 'r2', 1000)).kind).to.equal('skipped');
      await world.process('w1', { hold: false });
      await world.reaches('r1', 'succeeded');
      expect((await schedule('a', 'r3', 2000)).kind).to.equal('requested');
    });

    it('does not count a skipped run', async () => {
      await world.task('a', {
        dedupe_key: 'daily',
        dedupe_window_seconds: 60,
        overlap_policy: 'skip',
      });
      await world.task('b', { dedupe_key: 'daily', dedupe_window_seconds: 60 });
      await schedule('a', 'r1', 0);
      const second = await schedule('a', 'r2', 100);
      expect(second).to.include({ kind: 'skipped', reason: 'overlap', because_of: 'r1' });
      expect((await schedule('b', 'r3', 101)).kind).to.equal('requested');
    });

    it('skips a late run within the window of an earlier late run', async () => {
      await world.task('a', { dedupe_key: 'daily', dedupe_window_seconds: 60 });
      // Requests that failed while the log was unavailable are made after later ones.
      expect((await schedule('a', 'r1', 300)).kind).to.equal('requested');
      expect((await schedule('a', 'r2', 100)).kind).to.equal('requested');
      const near = await schedule('a', 'r3', 110);
      expect(near).to.include({ kind: 'skipped', reason: 'duplicate', because_of: 'r2' });
      const together = await Promise.all(
        [200, 210, 220].map((second) => schedule('a', `at${second}`, second)),
      );
      expect(together.map(({ kind }) => kind)).to.deep.equal(['requested', 'skipped', 'skipped']);
      expect((await schedule('a', 'r4', 350)).kind).to.equal('skipped');
      expect((await schedule('a', 'r5', 360)).kind).to.equal('requested');
    });

    it('without a window, skips while any run that used it is unfinished, however many came later', async () => {
      await world.task('short', { dedupe_key: 'daily', dedupe_window_seconds: 1 });
      await world.task('a', { dedupe_key: 'daily' });
      const process = await world.process('w1');
      await schedule('short', 'long', 0);
      await soon(() => expect(process.running()).to.deep.equal(['long']));
      const ends = async (run: string): Promise<void> => {
        await soon(() => expect(process.running()).to.include(run));
        process.finish(run);
        await world.reaches(run, 'succeeded');
      };
      for (const [index, run] of ['s1', 's2', 's3'].entries()) {
        expect((await schedule('short', run, 10 + 10 * index)).kind).to.equal('requested');
        await ends(run);
        const skipped = await schedule('a', `${run} a`, 15 + 10 * index);
        expect(skipped).to.include({ reason: 'duplicate', because_of: 'long' });
      }
      await ends('long');
      expect((await schedule('a', 'r1', 100)).kind).to.equal('requested');
      expect(await schedule('a', 'r2', 101)).to.include({ because_of: 'r1' });
      await ends('r1');
      expect((await schedule('a', 'r3', 102)).kind).to.equal('requested');
    });

    it('without a window, reads ended runs once', async () => {
      await world.task('a', { dedupe_key: 'daily' });
      await world.process('w1', { hold: false });
      const runs = Array.from({ length: 5 }, (_, index) => `r${String(index)}`);
      const store = await world.connect();
      const read: string[] = [];
      const counted = decorate<EventStore>(store, {
        readStream: (stream, part) => {
          read.push(stream);
          return store.readStream(stream, part);
        },
      });
      for (const run of runs) {
        read.length = 0;
        await world.request('a', run, { store: counted });
        await world.reaches(run, 'succeeded');
      }
      expect(read.filter((stream) => stream.startsWith('run-'))).to.deep.equal([
        'run-r4',
        'run-r3',
      ]);
    });

    it('skips within the window of a run that used the key before a skipped run', async () => {
      await world.task('a', {
        dedupe_key: 'daily',
        dedupe_window_seconds: 1,
        overlap_policy: 'skip',
      });
      await world.task('b', { dedupe_key: 'daily', dedupe_window_seconds: 60 });
      await schedule('a', 'r1', 0);
      expect(await schedule('a', 'r2', 10)).to.include({ reason: 'overlap', because_of: 'r1' });
      const third = await schedule('b', 'r3', 20);
      expect(third).to.include({ reason: 'duplicate', because_of: 'r1' });
    });

    it('lets retries pass', async () => {
      await world.task('a', { dedupe_key: 'daily', dedupe_window_seconds: 60 });
      await world.request('a', 'r1');
      expect((await world.request('a', 'r2', { retryOf: 'r1' })).kind).to.equal('requested');
    });

    it('admits one of many runs that two processes request concurrently', async () => {
      await world.task('a', { dedupe_key: 'daily', dedupe_window_seconds: 60 });
      const stores = [await world.connect(), await world.connect()];
      const requested = await Promise.all(
        Array.from({ length: 20 }, (_, index) => {
          const store = stores[index % 2] ?? world.store;
          return world.request('a', `r${String(index)}`, { store });
        }),
      );
      expect(requested.filter(({ kind }) => kind === 'requested')).to.have.lengthOf(1);
    });

    it('answers a manual run with the earlier run, also when repeated', async () => {
      await world.task('a', { dedupe_key: 'daily', dedupe_window_seconds: 60 });
      const task = requireTask((await load(world.store, streams.task('a'), taskFold)).state);
      const ask = (command: string): ReturnType<typeof requestManualRun> =>
        requestManualRun(world.store, 'a', task, world.context(command));
      const first = await ask('one');
      expect(first).to.include({ runId: manualRunId('a', 'one'), deduplicated: false });
      const second = await ask('two');
      expect(second).to.include({ runId: first.runId, deduplicated: true });
      world.clock.shift(120_000);
      expect(await ask('two')).to.include({ runId: first.runId, deduplicated: true, result: null });
      expect(await ask('three')).to.include({ deduplicated: false });
    });

    for (const when of ['before', 'after'] as const) {
      it(`is void after a minute if its caller crashed ${when} the request`, async () => {
        await world.task('a', { dedupe_key: 'daily' });
        const store = await world.connect();
        store.dieAt(2, when);
        void world.request('a', 'r1', { store });
        await soon(() => expect(store.dead).to.equal(true));
        expect((await world.request('a', 'r2')).kind).to.equal('skipped');
        world.clock.shift(RESERVATION_LIFETIME + 1);
        const third = await world.request('a', 'r3');
        // After the request the run exists and is unfinished.
        expect(third.kind).to.equal(when === 'before' ? 'requested' : 'skipped');
        const state = when === 'before' ? 'abandoned' : 'queued';
        expect((await world.run('r1')).state).to.equal(state);
      });
    }

    it('fails for a request that was given up', async () => {
      await world.task('a', { dedupe_key: 'daily' });
      const store = await world.connect();
      store.dieAt(2, 'before');
      void world.request('a', 'r1', { store });
      await soon(() => expect(store.dead).to.equal(true));
      world.clock.shift(RESERVATION_LIFETIME + 1);
      await world.request('a', 'r2');
      const late = await world.request('a', 'r1');
      expect(late.kind === 'known' && late.event.type).to.equal('Abandoned');
    });

    it('waits for the run of a fire, however late it is requested', async () => {
      await world.task('a', { dedupe_key: 'daily' });
      const store = await world.connect();
      store.dieAt(2, 'before');
      void world.request('a', 'r1', { store, trigger: 'schedule', scheduledFor: at(0) });
      await soon(() => expect(store.dead).to.equal(true));
      world.clock.shift(10 * RESERVATION_LIFETIME);
      expect((await schedule('a', 'r2', 1)).kind).to.equal('skipped');
      expect((await schedule('a', 'r1', 0)).kind).to.equal('requested');
    });
  });

  describe('of a task whose runs must not overlap', () => {
    it('under skip, skips the second run until the first has ended', async () => {
      await world.task('a', { overlap_policy: 'skip' });
      const process = await world.process('w1');
      await schedule('a', 'r1', 0);
      await soon(() => expect(process.running()).to.deep.equal(['r1']));
      const second = await schedule('a', 'r2', 1);
      expect(second).to.include({ kind: 'skipped', reason: 'overlap', because_of: 'r1' });
      process.finish('r1');
      await soon(async () => expect(await overlap()).to.deep.equal([[], []]));
      expect((await schedule('a', 'r3', 2)).kind).to.equal('requested');
    });

    it('under queue, lets one run wait for the first to end, and skips the next', async () => {
      await world.task('a', { overlap_policy: 'queue' });
      const process = await world.process('w1');
      await schedule('a', 'r1', 0);
      await soon(() => expect(process.running()).to.deep.equal(['r1']));
      expect((await schedule('a', 'r2', 1)).kind).to.equal('requested');
      expect(await schedule('a', 'r3', 2)).to.include({ kind: 'skipped', because_of: 'r2' });
      expect(await overlap()).to.deep.equal([['r1'], ['r2']]);
      process.finish('r1');
      await soon(() => expect(process.running()).to.deep.equal(['r2']));
      process.finish('r2');
      await soon(async () => expect(await overlap()).to.deep.equal([[], []]));
      expect(faultsOfKeys(await world.log(), 'overlap', 1)).to.deep.equal([]);
    });

    it('under cancel_running, cancels the previous run and continues', async () => {
      await world.task('a', { overlap_policy: 'cancel_running' });
      const process = await world.process('w1');
      await schedule('a', 'r1', 0);
      await soon(() => expect(process.running()).to.deep.equal(['r1']));
      await schedule('a', 'r2', 1);
      await soon(() => expect(process.running()).to.include('r2'));
      await schedule('a', 'r3', 2);
      await soon(() => expect(process.running()).to.include('r3'));
      await world.reaches('r1', 'canceled');
      await world.reaches('r2', 'canceled');
      process.finish('r3');
      await soon(async () => expect(await overlap()).to.deep.equal([[], []]));
      expect(faultsOfKeys(await world.log(), 'overlap', 1)).to.deep.equal([]);
    });

    describe('and that changes its owner in the meantime', () => {
      const begun = async (overlap_policy: OverlapPolicy): Promise<WorkerProcess> => {
        await world.task('a', { overlap_policy });
        const process = await world.process('w1');
        await schedule('a', 'r1', 0);
        await soon(() => expect(process.running()).to.deep.equal(['r1']));
        return process;
      };
      const handOver = async (owner: string): Promise<void> => {
        const command = { store: world.store, taskId: 'a', context: world.context(owner) };
        const changes = { created_by: owner };
        await updateTaskCommand({ ...command, changes, mayChange: () => {} });
      };

      it('under skip, skips the second run until the first has ended, also after the owner changes back', async () => {
        const process = await begun('skip');
        await handOver('agent-2');
        expect(await schedule('a', 'r2', 1)).to.include({ kind: 'skipped', because_of: 'r1' });
        await handOver(OWNER);
        expect(await schedule('a', 'r3', 2)).to.include({ kind: 'skipped', because_of: 'r1' });
        await handOver('agent-3');
        expect(await schedule('a', 'r4', 3)).to.include({ kind: 'skipped', because_of: 'r1' });
        process.finish('r1');
        await world.reaches('r1', 'succeeded');
        expect((await schedule('a', 'r5', 4)).kind).to.equal('requested');
        await handOver('agent-2');
        expect(await schedule('a', 'r6', 5)).to.include({ kind: 'skipped', because_of: 'r5' });
      });

      it('under queue, lets one run wait for those before it, and skips the next', async () => {
        const process = await begun('queue');
        expect((await schedule('a', 'r2', 1)).kind).to.equal('requested');
        await handOver('agent-2');
        expect(await schedule('a', 'r3', 2)).to.include({ kind: 'skipped', because_of: 'r2' });
        process.finish('r1');
        await soon(() => expect(process.running()).to.deep.equal(['r2']));
        expect((await schedule('a', 'r4', 3)).kind).to.equal('requested');
        expect(await schedule('a', 'r5', 4)).to.include({ kind: 'skipped', because_of: 'r4' });
        expect(process.running()).to.deep.equal(['r2']);
        process.finish('r2');
        await soon(() => expect(process.running()).to.deep.equal(['r4']));
      });

      it('under cancel_running, cancels the previous run and continues', async () => {
        const process = await begun('cancel_running');
        await handOver('agent-2');
        await schedule('a', 'r2', 1);
        await world.reaches('r1', 'canceled');
        await soon(() => expect(process.running()).to.include('r2'));
        const key = await readKey(world.store, overlapKey('a', 'agent-2'));
        expect(key?.holders.map(({ run_id }) => run_id)).to.deep.equal(['r2']);
      });
    });

    it('does not wait for a run that was canceled before its start', async () => {
      await world.task('a', { overlap_policy: 'skip' });
      await schedule('a', 'r1', 0);
      await cancelRunCommand(world.store, 'r1', world.context('cancel'));
      expect((await schedule('a', 'r2', 1)).kind).to.equal('requested');
      expect(await overlap()).to.deep.equal([['r2'], []]);
    });

    it('admits one of many runs that two processes request concurrently', async () => {
      await world.task('a', { overlap_policy: 'skip' });
      const stores = [await world.connect(), await world.connect()];
      const requested = await Promise.all(
        Array.from({ length: 20 }, (_, index) => {
          const store = stores[index % 2] ?? world.store;
          return world.request('a', `r${String(index)}`, { store });
        }),
      );
      expect(requested.filter(({ kind }) => kind === 'requested')).to.have.lengthOf(1);
    });

    it('keeps the slot during the back-off of its holder', async () => {
      await world.task('a', { overlap_policy: 'skip', retry_delay_seconds: 3600 });
      const process = await world.process('w1');
      await schedule('a', 'r1', 0);
      await soon(() => expect(process.running()).to.deep.equal(['r1']));
      process.finish('r1', {
        kind: 'failed',
        error: 'no',
        step: null,
        retryable: true,
        steps: [],
        output: {},
      });
      await world.reaches('r1', 'retrying');
      await process.keeper.settled();
      expect((await schedule('a', 'r2', 1)).kind).to.equal('skipped');
    });

    // A request appends to the dedupe key, the task's own slot and the run, and then to the runs that it cancels.
    for (const append of [1, 2, 3, 4]) {
      for (const when of ['before', 'after'] as const) {
        it(`continues as the same run after its scheduler crashed ${when} append ${String(append)}`, async () => {
          await world.task('a', {
            overlap_policy: 'cancel_running',
            dedupe_key: 'daily',
            dedupe_window_seconds: 10,
          });
          await schedule('a', 'r1', 0);
          const store = await world.connect();
          store.dieAt(append, when);
          void world.request('a', 'r2', { store, trigger: 'schedule', scheduledFor: at(60) });
          await soon(() => expect(store.dead).to.equal(true));
          await schedule('a', 'r2', 60);
          await world.process('w1', { hold: false });
          await world.reaches('r2', 'succeeded');
          await soon(async () => expect(await overlap()).to.deep.equal([[], []]));
          const log = await world.log();
          expect(log.filter(({ stream }) => stream === 'run-r2')[0]?.type).to.equal('RunRequested');
          expect(faultsOfKeys(log, 'overlap', 1)).to.deep.equal([]);
        });
      }
    }
  });
});
