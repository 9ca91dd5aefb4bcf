import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { EventStoreError, type StreamAppend } from '../../../domain/event-store.ts';
import type { DataOf, DomainEvent } from '../../../domain/events/catalogue.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { cancelRunCommand } from '../../../domain/tasks/task-commands.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { stepEnd } from '../../projections/recorded.ts';
import { deferred } from '../../support/signals.ts';
import { minute } from '../scheduler-world.ts';
import { WorkerWorld } from './worker-world.ts';

const second = 1000;

describe('a worker that stops something', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  describe('that cancels a run', () => {
    it('never starts a waiting run', async () => {
      await world.task('t', ['hold:a']);
      await world.start('one', { slots: 1 });
      const first = await world.request('t');
      const waiting = await world.request('t');
      await world.cancel(waiting);
      await world.let('one', first, 'a');
      expect(await world.typesOf(waiting)).to.deep.equal(['Requested', 'Canceled']);
      expect(world.stepsOf(waiting)).to.deep.equal([]);
    });

    it('stops a running run', async () => {
      await world.task('t', ['a', 'hold:b', 'c']);
      await world.start('one');
      const runId = await world.request('t');
      await world.cancel(runId);
      expect(await world.run(runId)).to.include({ state: 'canceled' });
      expect(world.stepsOf(runId)).to.deep.equal(['a', 'b']);
      expect(
        (await world.typesOf(runId)).filter((type) => type === 'CancelRequested'),
      ).to.have.lengthOf(1);
    });

    it('stops a run that was canceled while the queue did not follow the log', async () => {
      await world.task('t', ['hold:a']);
      const one = await world.start('one');
      const runId = await world.request('t');
      one.store.onMessage = async (message, prefixes) => {
        if (!prefixes.includes('run-') || message.kind !== 'events') return;
        one.store.onMessage = () => {};
        // It follows again from after the view's position.
        await world.world.project([runsProjection]);
        throw new EventStoreError('UNAVAILABLE', 'the subscription ended');
      };
      await world.cancel(runId);
      expect(await world.run(runId)).to.include({ state: 'canceled' });
    });

    it('abandons work that does not stop, and rejects its later events', async () => {
      await world.task('t', ['deaf:a', 'b']);
      const one = await world.start('one');
      const runId = await world.request('t');
      await world.cancel(runId);
      await world.clock.advance(10 * second - 1);
      expect(await world.run(runId)).to.include({ state: 'running' });
      await world.clock.advance(1);
      expect(await world.run(runId)).to.include({ state: 'canceled' });
      const events = await world.typesOf(runId);
      expect(one.worker.active).to.equal(0);
      await world.let('one', runId, 'a');
      await world.clock.advance(second);
      expect(await world.typesOf(runId)).to.deep.equal(events);
      expect(events.at(-1)).to.equal('Canceled');
    });

    it('rejects steps of an abandoned execution', async () => {
      await world.task('t', ['a']);
      const goOn = deferred();
      const said: unknown[] = [];
      await world.start('one', {
        runPipeline: async ({ record }) => {
          await goOn.promise;
          const late = { type: 'RunStepCompleted', data: stepEnd('late') } as const;
          await record([late]).catch((error: unknown) => said.push(error));
          return { kind: 'succeeded', steps: [], output: {} };
        },
      });
      const runId = await world.request('t');
      await world.cancel(runId);
      await world.clock.advance(10 * second);
      goOn.resolve();
      await world.world.idle();
      expect(said).to.have.lengthOf(1);
      expect(await world.typesOf(runId)).to.deep.equal([
        'Requested',
        'Started',
        'CancelRequested',
        'Canceled',
      ]);
    });

    it('does not retry a run that waits for its next attempt', async () => {
      await world.task('t', ['a']);
      world.fails('a', 99);
      await world.start('one');
      const runId = await world.request('t');
      await world.cancel(runId);
      await world.clock.advance(minute);
      expect(await world.run(runId)).to.include({ state: 'canceled' });
      expect(world.stepsOf(runId)).to.have.lengthOf(1);
    });

    it('keeps the result of a run that ends at the same time', async () => {
      await world.task('t', ['deaf:a']);
      await world.start('one');
      const runId = await world.request('t');
      await world.cancel(runId);
      await world.let('one', runId, 'a');
      const types = await world.typesOf(runId);
      expect(types.filter((type) => ['Succeeded', 'Canceled'].includes(type))).to.have.lengthOf(1);
    });

    it('ends a run whose attempt fails at the same time, without a retry', async () => {
      await world.task('t', ['a', 'b'], { retry_delay_seconds: 3600 });
      world.fails('b');
      const one = await world.start('one');
      one.store.onAppend = async (stream, events) => {
        if (!events.some(({ type }) => type === 'RunAttemptFailed')) return;
        one.store.onAppend = () => {};
        await cancelRunCommand(world.world.store, stream.slice(4), world.world.context());
      };
      const runId = await world.request('t');
      expect(await world.run(runId)).to.include({ state: 'canceled', attempt: 1 });
      const [canceled] = (await world.eventsOf(runId)).slice(-1);
      expect(canceled?.data).to.have.nested.property('output.summary.executed_steps', 2);
      expect(
        (await world.typesOf(runId)).filter((type) => type === 'StepCompleted'),
      ).to.have.lengthOf(2);
      expect(one.queue.size).to.equal(0);
    });

    it('cancels a run whose worker died before it saw the request', async () => {
      await world.task('t', ['deaf:a']);
      const one = await world.start('one');
      const runId = await world.request('t');
      one.kill();
      await world.cancel(runId);
      await world.start('two');
      await world.clock.advance(2 * minute);
      expect(await world.run(runId)).to.include({ state: 'canceled' });
      expect(world.effects.filter(({ worker }) => worker === 'two')).to.deep.equal([]);
    });
  });

  describe('whose run has a timeout', () => {
    it('fails it at its deadline, without a retry', async () => {
      await world.task('t', ['a', 'hold:b'], { timeout_seconds: 60 });
      await world.start('one');
      const runId = await world.request('t');
      await world.clock.advance(60 * second - 1);
      expect(await world.run(runId)).to.include({ state: 'running' });
      await world.clock.advance(1);
      expect(await world.run(runId)).to.include({ state: 'failed', attempt: 1 });
      expect((await world.eventsOf(runId)).at(-1)?.data).to.deep.include({
        error: 'the run timed out after 60 s',
        // Steps that had ended are part of the output, under their names.
        output: { summary: { total_steps: 2, executed_steps: 1, skipped_steps: 0 } },
      });
    });

    it('counts back-offs, and starts no attempt after the deadline', async () => {
      await world.task('t', ['a'], { timeout_seconds: 5 });
      world.fails('a', 1);
      await world.start('one');
      const runId = await world.request('t');
      await world.clock.advance(minute);
      expect(await world.run(runId)).to.include({ state: 'failed' });
      expect(world.stepsOf(runId)).to.have.lengthOf(1);
    });

    const late = ['Requested', 'Started', 'StepCompleted', 'AttemptFailed', 'Failed'];

    it('ends it at its deadline while it waits for its next attempt', async () => {
      await world.task('t', ['a'], { timeout_seconds: 30 });
      await world.task('long', ['hold:b']);
      world.fails('a', 1);
      await world.start('one', { slots: 1 });
      const runId = await world.request('t');
      await world.request('long');
      await world.clock.advance(30 * second - 1);
      expect(await world.run(runId)).to.include({ state: 'retrying' });
      await world.clock.advance(1);
      expect(await world.typesOf(runId)).to.deep.equal(late);
      expect((await world.eventsOf(runId)).at(-1)?.data).to.deep.include({
        attempt: 1,
        error: 'the run timed out after 30 s',
        output: { summary: { total_steps: 1, executed_steps: 1, skipped_steps: 0 } },
      });
    });

    for (const from of ['the log', 'a view'] as const) {
      it(`ends it once when its worker is dead, in a process that knows it from ${from}`, async () => {
        await world.task('t', ['a'], { timeout_seconds: 30 });
        world.fails('a', 1);
        const one = await world.start('one');
        const runId = await world.request('t');
        one.kill();
        if (from === 'a view') await world.world.project([runsProjection]);
        await world.start('two', { slots: 0 });
        await world.start('three', { slots: 0 });
        await world.clock.advance(30 * second - 1);
        expect(await world.run(runId)).to.include({ state: 'retrying' });
        await world.clock.advance(second);
        expect(await world.typesOf(runId)).to.deep.equal(late);
      });
    }

    it('ends it as soon as the log is available again', async () => {
      await world.task('t', ['a'], { timeout_seconds: 30 });
      world.fails('a', 1);
      const one = await world.start('one');
      const runId = await world.request('t');
      one.kill();
      const two = await world.start('two', { slots: 0 });
      let refused = 0;
      two.store.onAppend = (stream) => {
        if (!stream.startsWith('run-') || refused > 0) return;
        refused += 1;
        throw new EventStoreError('UNAVAILABLE', 'the log is unavailable');
      };
      await world.clock.advance(30 * second);
      expect(await world.run(runId)).to.include({ state: 'retrying' });
      await world.clock.advance(second);
      expect(refused).to.equal(1);
      expect(await world.typesOf(runId)).to.deep.equal(late);
    });

    it('starts no attempt after the deadline if no timer has ended it', async () => {
      await world.task('t', ['a'], { timeout_seconds: 30 });
      await world.task('long', ['hold:b']);
      world.fails('a', 1);
      const one = await world.start('one', { slots: 1 });
      await one.deadlines.stop();
      const runId = await world.request('t');
      const long = await world.request('long');
      await world.clock.advance(31 * second);
      await world.let('one', long, 'b');
      expect(await world.typesOf(runId)).to.deep.equal(late);
      expect(world.stepsOf(runId)).to.deep.equal(['a']);
    });

    it('ends it at once, with a reason, when the next attempt would be too late', async () => {
      await world.task('t', ['a'], { timeout_seconds: 10 });
      world.fails('a', 1);
      await world.start('one');
      const runId = await world.request('t');
      expect(await world.run(runId)).to.include({ state: 'failed', attempt: 1 });
      expect((await world.eventsOf(runId)).at(-1)?.data).to.include({
        step: 'a',
        error: "out of paper (the run's timeout of 10 s ends before its next attempt)",
      });
    });

    it('counts from the first start, across all attempts', async () => {
      await world.task('t', ['a', 'hold:b'], { timeout_seconds: 60 });
      world.fails('a', 2);
      await world.start('one');
      const runId = await world.request('t');
      await world.clock.advance(60 * second - 1);
      expect(await world.run(runId)).to.include({ state: 'running', attempt: 3 });
      await world.clock.advance(1);
      expect(await world.run(runId)).to.include({ state: 'failed', attempt: 3 });
    });
  });

  describe('that is told to stop', () => {
    it('takes no more runs, and lets running ones continue', async () => {
      await world.task('t', ['hold:a']);
      const one = await world.start('one', { slots: 1 });
      const runs = [await world.request('t'), await world.request('t')];
      const drained = one.worker.drain();
      const running = world.effects[0]?.run ?? '';
      await world.let('one', running, 'a');
      await drained;
      const other = runs.find((run) => run !== running) ?? '';
      expect(await world.run(running)).to.include({ state: 'succeeded' });
      expect(await world.typesOf(other)).to.deep.equal(['Requested']);
    });

    it('hands back unfinished runs at the limit, and another worker continues them', async () => {
      await world.task('t', ['a', 'hold:b']);
      const one = await world.start('one');
      const runId = await world.request('t');
      const drained = one.worker.drain(25 * second);
      await world.clock.advance(25 * second);
      await drained;
      expect(await world.run(runId)).to.include({ state: 'queued', interruptions: 0 });
      await world.start('two');
      await world.clock.advance(second);
      await world.let('two', runId, 'b');
      expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
      expect(world.stepsOf(runId)).to.deep.equal(['a', 'b', 'b']);
    });

    it('stops at once when it has no runs', async () => {
      const one = await world.start('one');
      await one.worker.drain();
    });

    it('executes started runs that wait for other starts', async () => {
      await world.task('t', ['a']);
      const one = await world.start('one', { isInstant: () => true });
      // This run loads the task.
      await world.request('t');
      const now = world.clock.now();
      const request: DataOf<'RunRequested'> = {
        task_id: 't',
        task_revision: 0,
        created_by: 'somebody',
        priority: 5,
        overlap_policy: 'allow',
        retry_of: null,
        prior_steps: [],
        event: null,
        trigger: 'schedule',
        scheduled_for: toIso(now),
        run_at: toIso(now),
      };
      const { early } = one;
      const append = (stream: string, event: DomainEvent): StreamAppend => {
        const events = toNewEvents(stream, [event], world.world.context());
        return { stream, events, expected: 'none' };
      };
      const corrected = { next_fire_at: null, tz_version: '', task_revision: 0, fire_count: 0 };
      early.holdEnds(now);
      await early.append(
        {
          fires: append('fires-t', { type: 'NextFireCorrected', data: corrected }),
          requests: [append('run-r', { type: 'RunRequested', data: request })],
        },
        [{ runId: 'r', request }],
        { now },
      );
      await world.world.idle();
      expect(world.effects.filter(({ run }) => run === 'r')).to.deep.equal([]);
      early.beginAll();
      const drained = one.worker.drain();
      early.releaseEnds();
      await drained;
      expect(await world.typesOf('r')).to.deep.equal(['Requested', 'Started', 'Succeeded']);
    });

    it('stops while the log is unavailable', async () => {
      await world.task('t', ['hold:a']);
      const one = await world.start('one');
      const runId = await world.request('t');
      one.store.onAppend = () => {
        throw new EventStoreError('UNAVAILABLE', 'away');
      };
      const drained = one.worker.drain(25 * second);
      await world.clock.advance(60 * second);
      await drained;
      one.store.onAppend = () => {};
      expect(await world.run(runId)).to.include({ state: 'running', lease_owner: 'one' });
    });
  });
});
