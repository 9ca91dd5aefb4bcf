import { expect } from 'chai';
import { fromIso, toIso } from '../../../domain/clock.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import {
  cancelRunCommand,
  cancelTaskCommand,
  pauseTaskCommand,
  requestManualRun,
} from '../../../domain/tasks/task-commands.ts';
import { settle } from '../../support/virtual-clock.ts';
import { ToolError } from '../../../scheduler/tools/tool.ts';
import { minute, START } from '../scheduler-world.ts';
import { WorkerWorld } from './worker-world.ts';

const second = 1000;

describe('a worker', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  it('executes a run: requested, started, finished', async () => {
    await world.task('t', ['a', 'b']);
    await world.start('one');
    const runId = await world.request('t');
    expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
    expect(world.stepsOf(runId)).to.deep.equal(['a', 'b']);
    const types = await world.typesOf(runId);
    expect(types.at(0)).to.equal('Requested');
    expect(types.at(1)).to.equal('Started');
    expect(types.at(-1)).to.equal('Succeeded');
  });

  it('executes runs requested before its start, by priority, then by age', async () => {
    await world.task('low', ['a'], { priority: 9 });
    await world.task('high', ['a'], { priority: 1 });
    const first = await world.request('low');
    await world.clock.advance(second);
    const second_ = await world.request('low');
    const third = await world.request('high');
    await world.start('one', { slots: 1 });
    expect(world.effects.map(({ run }) => run)).to.deep.equal([third, first, second_]);
  });

  it('executes no more runs at once than it has slots', async () => {
    await world.task('t', ['hold:a']);
    const one = await world.start('one', { slots: 2 });
    const runs = [await world.request('t'), await world.request('t'), await world.request('t')];
    expect(world.effects).to.have.lengthOf(2);
    expect(one.worker.active).to.equal(2);
    await world.let('one', world.effects[0]?.run ?? '', 'a');
    expect(new Set(world.effects.map(({ run }) => run))).to.deep.equal(new Set(runs));
  });

  it('reports since when its slots have been full, and which tasks hold them', async () => {
    await world.task('t', ['hold:a']);
    await world.task('u', ['hold:a']);
    const { worker } = await world.start('one', { slots: 2 });
    const first = await world.request('t');
    await world.clock.advance(minute);
    await world.request('t');
    // All slots are taken, but no run waits.
    expect(worker.slotUse).to.deep.equal({ slots: 2, taken: 2, full_since: null, holders: [] });
    await world.clock.advance(minute);
    await world.request('u');
    await world.clock.advance(minute);
    expect(worker.fullSince).to.equal(START + 2 * minute);
    const holder = { task_id: 't', runs: 2, since: toIso(START), run_id: first };
    expect(worker.slotUse.holders).to.have.lengthOf(1);
    expect(worker.slotUse.holders[0]).to.deep.include(holder);
    // The next run takes its slot at once, and no run waits.
    await world.let('one', first, 'a');
    expect(worker.slotUse).to.include({ taken: 2, full_since: null });
  });

  it('needs no slot for instant runs, and keeps the order of others', async () => {
    await world.task('long', ['hold:a']);
    await world.task('quick', ['b']);
    const quick = 'quick';
    const isInstant = (run: { readonly taskId: string }): boolean => run.taskId === quick;
    const one = await world.start('one', { slots: 1, isInstant });
    await world.request('long');
    const runs = [await world.request('quick'), await world.request('quick')];
    for (const run of runs) expect(await world.run(run)).to.include({ state: 'succeeded' });
    expect(one.worker.active).to.equal(1);
    const next = await world.request('long');
    await world.request('quick');
    expect(await world.run(next)).to.include({ state: 'queued' });
    await world.let('one', world.effects[0]?.run ?? '', 'a');
    expect(await world.run(next)).to.include({ state: 'running' });
  });

  it('does not start a run before its time', async () => {
    await world.task('t', ['a'], {
      schedule_kind: 'cron',
      schedule_expr: '* * * * *',
      jitter_seconds: 50,
    });
    await world.start('one');
    await world.world.start('scheduler');
    await world.clock.advance(minute);
    const [requested] = await world.world.events('run-');
    const runId = requested?.stream.slice(4) ?? '';
    const runAt = fromIso((await world.run(runId)).run_at);
    expect(runAt).to.be.above(START + minute);
    await world.clock.advanceTo(runAt - 1);
    expect(world.effects).to.have.lengthOf(0);
    await world.clock.advanceTo(runAt);
    expect(world.stepsOf(runId)).to.deep.equal(['a']);
  });

  describe('whose run fails', () => {
    it('retries it after its back-off, without its finished steps', async () => {
      await world.task('t', ['a', 'b', 'c']);
      world.fails('b', 2);
      await world.start('one');
      const runId = await world.request('t');
      const failed = await world.run(runId);
      expect(failed).to.include({
        state: 'retrying',
        attempt: 1,
        run_at: toIso(START + 10 * second),
      });
      await world.clock.advance(10 * second - 1);
      expect(world.stepsOf(runId)).to.deep.equal(['a', 'b']);
      await world.clock.advance(1);
      expect(await world.run(runId)).to.include({ state: 'retrying', attempt: 2 });
      await world.clock.advance(10 * second);
      expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 3 });
      expect(world.stepsOf(runId)).to.deep.equal(['a', 'b', 'b', 'b', 'c']);
      const keys = world.effects.filter(({ step }) => step === 'b').map(({ key }) => key);
      expect(new Set(keys).size).to.equal(1);
    });

    it('retries it at once without a delay', async () => {
      await world.task('t', ['a'], { retry_delay_seconds: 0 });
      world.fails('a', 3);
      await world.start('one');
      const runId = await world.request('t');
      await world.clock.advance(second);
      expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 4 });
    });

    it('fails it when its retries are used up', async () => {
      await world.task('t', ['a'], { max_retries: 2 });
      world.fails('a', 99);
      await world.start('one');
      const runId = await world.request('t');
      await world.clock.advance(minute);
      expect(await world.run(runId)).to.include({ state: 'failed', attempt: 3 });
      expect(world.stepsOf(runId)).to.have.lengthOf(3);
      const end = (await world.eventsOf(runId)).at(-1);
      expect(end?.data).to.include({ step: 'a', attempt: 3, started_at: toIso(START) });
    });

    it('does not retry a permanent failure', async () => {
      await world.task('t', ['a']);
      world.fails('a', 99, new ToolError('no such paper', { retryable: false }));
      await world.start('one');
      const runId = await world.request('t');
      expect(await world.run(runId)).to.include({ state: 'failed', attempt: 1 });
    });

    it('waits as long as a tool requests', async () => {
      await world.task('t', ['a']);
      world.fails('a', 1, new ToolError('busy', { retryable: true, retryAfterMs: 5 * minute }));
      await world.start('one');
      const runId = await world.request('t');
      expect(await world.run(runId)).to.include({ run_at: toIso(START + 5 * minute) });
      await world.clock.advance(5 * minute);
      expect(await world.run(runId)).to.include({ state: 'succeeded' });
    });

    it('retries it when the log brings the failure before the response', async () => {
      await world.task('t', ['a']);
      await world.task('other', ['b']);
      world.fails('a', 1);
      const one = await world.start('one');
      one.store.afterAppend = async (_stream, events) => {
        if (events.at(-1)?.type !== 'RunAttemptFailed') return;
        // Meanwhile the event arrives, and another run wakes the worker.
        await settle(30);
        const task = await world.world.task('other');
        await requestManualRun(world.world.store, 'other', task, world.world.context());
        await settle(30);
      };
      const runId = await world.request('t');
      await world.clock.advance(minute);
      expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 2 });
    });

    it('fails it when the execution itself throws', async () => {
      await world.task('t', ['a']);
      await world.start('one', {
        runPipeline: () => {
          throw new TypeError('a fault in the code');
        },
      });
      const runId = await world.request('t');
      const end = (await world.eventsOf(runId)).at(-1);
      expect(end?.type).to.equal('RunFailed');
      expect(end?.data).to.include({ error: 'could not be executed: a fault in the code' });
    });

    it('fails it when the log rejects its end', async () => {
      await world.task('t', ['a']);
      await world.start('one', {
        runPipeline: () =>
          Promise.resolve({ kind: 'succeeded', steps: [], output: { text: 'x'.repeat(600_000) } }),
      });
      const runId = await world.request('t');
      const end = (await world.eventsOf(runId)).at(-1);
      if (end?.type !== 'RunFailed') throw new Error('the run has not failed');
      expect(end.data.error).to.match(/its end could not be recorded/);
    });
  });

  describe('whose task was paused or canceled', () => {
    it('records a scheduled run of a paused task as skipped', async () => {
      await world.task('t', ['a'], { schedule_kind: 'cron', schedule_expr: '* * * * *' });
      await world.world.start('scheduler');
      await world.clock.advance(minute);
      await pauseTaskCommand(world.world.command('t'));
      await world.start('one');
      const [requested] = await world.world.events('run-');
      const runId = requested?.stream.slice(4) ?? '';
      expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Skipped']);
      expect((await world.eventsOf(runId)).at(-1)?.data).to.include({
        reason: 'paused',
        scheduled_for: toIso(START + minute),
      });
      expect(world.effects).to.deep.equal([]);
    });

    it('executes a manual run of a paused task', async () => {
      await world.task('t', ['a']);
      await pauseTaskCommand(world.world.command('t'));
      await world.start('one');
      const runId = await world.request('t');
      expect(await world.run(runId)).to.include({ state: 'succeeded' });
    });

    it('cancels waiting runs when the task is canceled', async () => {
      await world.task('t', ['a']);
      const runId = await world.request('t');
      await cancelTaskCommand(world.world.command('t'));
      await world.start('one');
      expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Canceled']);
    });
  });

  describe('whose log is unavailable', () => {
    it('writes the end of a run once, as soon as possible', async () => {
      await world.task('t', ['hold:a']);
      const one = await world.start('one');
      const runId = await world.request('t');
      let failures = 4;
      one.store.onAppend = (stream) => {
        if (!stream.startsWith('run-') || failures === 0) return;
        failures -= 1;
        throw new EventStoreError('UNAVAILABLE', 'away');
      };
      await world.let('one', runId, 'a');
      expect(await world.run(runId)).to.include({ state: 'running' });
      await world.clock.advance(2 * second);
      expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Started', 'Succeeded']);
    });

    it('writes each event once when responses are lost', async () => {
      await world.task('t', ['a', 'b']);
      const one = await world.start('one');
      const lost = new Set<string>();
      one.store.afterAppend = (_stream, events) => {
        const id = events[0]?.id ?? '';
        if (lost.has(id)) return;
        lost.add(id);
        throw new EventStoreError('OUTCOME_UNKNOWN', 'the response was lost');
      };
      const runId = await world.request('t');
      await world.clock.advance(10 * second);
      const types = await world.typesOf(runId);
      expect(types.filter((type) => type === 'Started')).to.have.lengthOf(1);
      expect(types.filter((type) => type === 'Succeeded')).to.have.lengthOf(1);
      expect(world.stepsOf(runId)).to.deep.equal(['a', 'b']);
    });

    it('keeps a run whose start could not be written', async () => {
      await world.task('t', ['a']);
      const one = await world.start('one');
      let failures = 1;
      one.store.onAppend = (_stream, events) => {
        if (events[0]?.type !== 'RunStarted' || failures === 0) return;
        failures -= 1;
        throw new EventStoreError('STREAM_DELETED', 'a permanent error');
      };
      const runId = await world.request('t');
      await world.clock.advance(2 * second);
      expect(await world.run(runId)).to.include({ state: 'succeeded' });
    });

    it('continues after the subscription broke off, with the changes since', async () => {
      await world.task('t', ['hold:a']);
      const one = await world.start('one');
      const running = await world.request('t');
      let broken = 0;
      one.store.onMessage = (message, prefixes) => {
        if (!prefixes.includes('run-') || message.kind !== 'events' || broken > 0) return;
        broken += 1;
        throw new EventStoreError('UNAVAILABLE', 'the subscription ended');
      };
      const other = await world.request('t');
      expect(broken).to.equal(1);
      await world.clock.advance(second);
      await world.let('one', running, 'a');
      await world.let('one', other, 'a');
      expect(await world.run(running)).to.include({
        state: 'succeeded',
        attempt: 1,
        interruptions: 0,
      });
      expect(await world.run(other)).to.include({ state: 'succeeded' });
      expect(one.queue.size).to.equal(0);
    });
  });

  it('takes no runs while its heartbeat fails, and continues afterwards', async () => {
    await world.task('t', ['a']);
    const one = await world.start('one');
    one.reachable.away = true;
    await world.clock.advance(minute);
    const runId = await world.request('t');
    await world.clock.advance(second);
    expect(await world.run(runId)).to.include({ state: 'queued' });
    one.reachable.away = false;
    await world.clock.advance(10 * second);
    expect(await world.run(runId)).to.include({ state: 'succeeded' });
  });

  it('keeps waiting runs when the clock is set back', async () => {
    await world.task('t', ['hold:a']);
    await world.start('one', { slots: 1 });
    const first = await world.request('t');
    const waiting = await world.request('t');
    world.clock.jumpTo(START - minute);
    await world.let('one', first, 'a');
    await world.clock.advance(2 * minute);
    await world.let('one', waiting, 'a');
    expect(await world.run(waiting)).to.include({ state: 'succeeded' });
  });

  describe('beside another worker', () => {
    it('never executes a run of the other', async () => {
      await world.task('t', ['a', 'b']);
      await world.start('one', { slots: 3 });
      await world.start('two', { slots: 3 });
      const task = await world.world.task('t');
      const requested = await Promise.all(
        Array.from({ length: 60 }, () =>
          requestManualRun(world.world.store, 't', task, world.world.context()),
        ),
      );
      await world.world.idle();
      await world.clock.advance(5 * second);
      for (const { runId } of requested) {
        expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
        expect(world.stepsOf(runId)).to.deep.equal(['a', 'b']);
        expect((await world.typesOf(runId)).filter((type) => type === 'Started')).to.have.lengthOf(
          1,
        );
      }
      expect(new Set(world.effects.map(({ worker }) => worker))).to.deep.equal(
        new Set(['one', 'two']),
      );
    });

    it('loses a race against the cancellation of a run that is about to start', async () => {
      await world.task('t', ['a']);
      const one = await world.start('one');
      let canceled = false;
      one.store.onAppend = async (stream, events) => {
        if (events[0]?.type !== 'RunStarted' || canceled) return;
        canceled = true;
        await cancelRunCommand(world.world.store, stream.slice(4), world.world.context());
      };
      const runId = await world.request('t');
      await world.clock.advance(5 * second);
      expect(await world.typesOf(runId)).to.deep.equal(['Requested', 'Canceled']);
      expect(world.effects).to.deep.equal([]);
      expect(one.queue.size).to.equal(0);
    });
  });
});
