import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import { jitterOf } from '../../../domain/tasks/jitter.ts';
import { load } from '../../../domain/handle.ts';
import { triggeredRunId } from '../../../domain/ids.ts';
import { publishEvent } from '../../../domain/topics/publishing.ts';
import { requireRun, runFold } from '../../../domain/runs/run.ts';
import { cancelTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { minute, START, World, type SchedulerProcess } from '../scheduler-world.ts';
import { deferred, type Deferred } from '../../support/signals.ts';
import { ShiftedClock } from '../../support/shifted-clock.ts';

const event = { topic: 'orders.new', payload: { n: 1 }, source_agent_id: 'agent-2' };
const on = { schedule_kind: 'event', schedule_expr: 'orders.#' } as const;
const hour = 60 * minute;
const failed = 'could not request a run; retrying';

describe('the requester of runs', () => {
  let world: World;

  beforeEach(async () => {
    world = await World.open();
  });

  afterEach(async () => {
    await world.close();
  });

  const publish = (tasks: readonly string[]): ReturnType<typeof publishEvent> =>
    publishEvent(world.store, event, tasks, world.context());

  const requestsOf = async (taskId: string): Promise<readonly string[]> =>
    (await world.outcome(taskId)).requested;

  describe('when the scheduler died between a fire and its run', () => {
    /** A process that dies before it requests a run. */
    const dieBeforeRun = async (): Promise<void> => {
      const one = await world.start('one', { lease: 3000, requester: true });
      one.store.onAppend = (stream) => {
        if (stream.startsWith('run-')) one.store.dead = true;
      };
      await world.clock.advance(minute);
      one.kill();
      expect(await world.outcome('t')).to.deep.include({
        fired: [toIso(START + minute)],
        requested: [],
      });
    };

    it('requests the run in another process', async () => {
      await world.createTask('t');
      await dieBeforeRun();
      await world.start('two', { lease: 3000, requester: true });
      await world.clock.advance(5000);
      expect(await requestsOf('t')).to.deep.equal([toIso(START + minute)]);
      await world.clock.advance(minute);
      const { fired, requested } = await world.outcome('t');
      expect(requested).to.deep.equal(fired);
    });

    it('requests it when the remembered position is beyond the end of a restored log', async () => {
      await world.createTask('t');
      await dieBeforeRun();
      const head = await world.store.head();
      await world.coordination.remember('runs-requested', `9${head.slice(1)}`, 99);
      await world.start('two', { lease: 3000, requester: true });
      await world.clock.advance(5000);
      expect(await requestsOf('t')).to.deep.equal([toIso(START + minute)]);
    });

    it('requests it when the remembered position belongs to another log', async () => {
      await world.createTask('t');
      await dieBeforeRun();
      const position = await world.store.head();
      const at = { stream: 'fires-lost', revision: 0, id: 'event-1', createdAt: toIso(START) };
      const event = JSON.stringify({ ...at, position });
      await world.coordination.remember('runs-requested event', event, 99);
      await world.coordination.remember('runs-requested', position, 99);
      await world.start('two', { lease: 3000, requester: true });
      await world.clock.advance(5000);
      expect(await requestsOf('t')).to.deep.equal([toIso(START + minute)]);
    });

    it('pins the run to the task revision of the decision, and keeps its jitter', async () => {
      await world.createTask('t', { jitter_seconds: 500, priority: 2 });
      await dieBeforeRun();
      await cancelTaskCommand(world.command('t'));
      await world.start('two', { lease: 3000, requester: true });
      await world.clock.advance(5000);
      const [requested] = await world.events('run-');
      expect(requested?.type).to.equal('RunRequested');
      expect(requested?.data).to.include({
        task_revision: 0,
        priority: 2,
        scheduled_for: toIso(START + minute),
        run_at: toIso(START + minute + jitterOf('t', minute)),
      });
    });

    it('requests it when its clock is an hour behind', async () => {
      await world.createTask('t');
      await dieBeforeRun();
      const clock = new ShiftedClock(world.clock, { shift: -hour });
      await world.start('two', { lease: 3000, requester: true, clock });
      await world.clock.advance(10_000);
      expect(await requestsOf('t')).to.deep.equal([toIso(START + minute)]);
    });
  });

  describe('while the scheduler of its process is requesting a run', () => {
    let looks: number;
    let key: Deferred<void>;
    let one: SchedulerProcess;

    beforeEach(async () => {
      looks = 0;
      key = deferred();
      const store = world.connect();
      const append = store.append.bind(store);
      store.append = async (stream, events, expected) => {
        if (stream.startsWith('key-')) await key.promise;
        return append(stream, events, expected);
      };
      store.onRead = (stream) => {
        if (stream.startsWith('run-')) looks += 1;
      };
      await world.createTask('t', { overlap_policy: 'queue' });
      one = await world.start('one', { requester: true, store });
      await world.clock.advance(minute);
      await world.clock.advance(5000);
    });

    afterEach(() => key.resolve());

    it('leaves it to the scheduler, however long it takes', async () => {
      expect(looks).to.equal(1);
      key.resolve();
      await world.idle();
      expect(await requestsOf('t')).to.deep.equal([toIso(START + minute)]);
    });

    it('requests it once the scheduler has failed', async () => {
      key.reject(new EventStoreError('CORRUPT_EVENT', 'broken'));
      key = deferred();
      key.resolve();
      await world.clock.advance(5000);
      expect(await requestsOf('t')).to.deep.equal([toIso(START + minute)]);
      const reported = one.lines.filter((line) => line.includes(failed));
      expect(reported).to.deep.equal([failed, `succeeded again after: ${failed}`]);
    });
  });

  it('does nothing for fires with runs', async () => {
    await world.createTask('t');
    const one = await world.start('one', { requester: true });
    await world.start('two', { requester: true });
    await world.clock.advance(5 * minute + 5000);
    const { fired, requested } = await world.outcome('t');
    expect(fired).to.have.lengthOf(5);
    expect(requested).to.deep.equal(fired);
    expect(one.failures).to.deep.equal([]);
  });

  describe('of published events', () => {
    it('requests a run for each triggered task, once, with the event', async () => {
      for (const task of ['a', 'b', 'c']) await world.createTask(task, on);
      await world.start('one', { requester: true });
      await world.start('two', { requester: true });
      const published = await publish(['a', 'b']);
      await world.clock.advance(5000);
      const runs = await world.events('run-');
      expect(runs.map(({ stream }) => stream).toSorted()).to.deep.equal(
        ['a', 'b'].map((task) => `run-${triggeredRunId(task, published.event_id)}`).toSorted(),
      );
      const id = triggeredRunId('a', published.event_id);
      const { request } = requireRun((await load(world.store, `run-${id}`, runFold)).state);
      expect(request).to.deep.include({ trigger: 'event', scheduled_for: null, task_id: 'a' });
      expect(request.event).to.deep.equal({
        id: published.event_id,
        topic: 'orders.new',
        payload: { n: 1 },
        source_agent_id: 'agent-2',
        published_at: published.published_at,
      });
    });

    it('gives the runs the depth of the event, even those of a canceled task', async () => {
      for (const task of ['a', 'b']) await world.createTask(task, on);
      await world.createTask('c', { ...on, overlap_policy: 'skip' });
      await cancelTaskCommand(world.command('b'));
      await publishEvent(world.store, event, ['a', 'b', 'c'], { ...world.context(), depth: 7 });
      await publish(['a']);
      await world.start('one', { requester: true });
      await world.clock.advance(3000);
      const requests = (await world.events('run-')).flatMap((each) =>
        each.type === 'RunRequested' ? [[each.data.task_id, each.metadata.depth]] : [],
      );
      expect(requests).to.have.deep.members([
        ['a', '7'],
        ['b', '7'],
        ['c', '7'],
        ['a', undefined],
      ]);
    });

    it('requests hundreds at once', async () => {
      const tasks = Array.from({ length: 150 }, (_, n) => `t${n}`);
      for (const task of tasks) await world.createTask(task, on);
      await world.start('one', { requester: true });
      await publish(tasks);
      await world.idle();
      expect(await world.events('run-')).to.have.lengthOf(150);
    });

    it('continues at its position after a restart', async () => {
      await world.createTask('t', on);
      await publish(['t']);
      const one = await world.start('one', { requester: true });
      await world.clock.advance(3000);
      await one.stop();
      await publish(['t']);
      const two = await world.start('two', { requester: true });
      let read = 0;
      two.store.onRead = () => (read += 1);
      await world.clock.advance(5000);
      expect(await requestsOf('t')).to.have.lengthOf(2);
      expect(read).to.be.at.most(3);
    });

    it('repeats requests without effect when its position is lost', async () => {
      await world.createTask('t', on);
      const one = await world.start('one', { requester: true });
      await publish(['t']);
      await world.clock.advance(3000);
      await one.stop();
      const recall = world.coordination.recall.bind(world.coordination);
      world.coordination.recall = () => Promise.resolve(null);
      await world.start('two', { requester: true });
      await world.clock.advance(5000);
      world.coordination.recall = recall;
      expect(await requestsOf('t')).to.have.lengthOf(1);
    });

    it('cancels triggered runs of a task that was canceled since', async () => {
      await world.createTask('t', on);
      await publish(['t']);
      await cancelTaskCommand(world.command('t'));
      await world.start('one', { requester: true });
      await world.clock.advance(3000);
      expect((await world.events('run-')).map(({ type }) => type)).to.deep.equal([
        'RunRequested',
        'RunCanceled',
      ]);
    });

    it('continues with other runs when one request fails, and retries it', async () => {
      for (const task of ['a', 'b', 'c']) await world.createTask(task, on);
      const one = await world.start('one', { requester: true });
      let broken = true;
      one.store.onRead = (stream) => {
        if (broken && stream === 'task-a') throw new EventStoreError('CORRUPT_EVENT', 'broken');
      };
      await publish(['a', 'b']);
      await publish(['c']);
      await world.clock.advance(1000);
      expect(await requestsOf('b')).to.have.lengthOf(1);
      expect(await requestsOf('c')).to.have.lengthOf(1);
      expect(await requestsOf('a')).to.have.lengthOf(0);
      // The other requests have succeeded, but this one still fails.
      expect(one.lines).to.deep.equal(['leadership won', failed]);
      broken = false;
      await world.clock.advance(minute);
      expect(await requestsOf('a')).to.have.lengthOf(1);
      expect(one.lines.slice(2)).to.deep.equal([`succeeded again after: ${failed}`]);
    });

    it('retries failed requests after a restart', async () => {
      for (const task of ['a', 'b']) await world.createTask(task, on);
      const one = await world.start('one', { requester: true });
      one.store.onRead = (stream) => {
        if (stream === 'task-a') throw new EventStoreError('CORRUPT_EVENT', 'broken');
      };
      await publish(['a']);
      await publish(['b']);
      await world.clock.advance(5000);
      await one.stop();
      await world.start('two', { requester: true });
      await world.clock.advance(5000);
      expect(await requestsOf('a')).to.have.lengthOf(1);
      expect(await requestsOf('b')).to.have.lengthOf(1);
    });
  });

  it('stops its work when the subscription breaks off, and starts again', async () => {
    await world.createTask('t', on);
    const one = await world.start('one', { requester: true });
    const before = world.clock.pending;
    for (let n = 0; n < 5; n += 1) {
      let broken = false;
      one.store.onMessage = (_message, prefixes) => {
        if (broken || !prefixes.includes('topic-')) return;
        broken = true;
        throw new EventStoreError('UNAVAILABLE', 'the subscription ended');
      };
      await publish(['t']);
      await world.idle();
      await world.clock.advance(2000);
    }
    expect(one.failures).to.have.lengthOf(5);
    expect(world.clock.pending).to.equal(before);
    expect(await requestsOf('t')).to.have.lengthOf(5);
  });
});
