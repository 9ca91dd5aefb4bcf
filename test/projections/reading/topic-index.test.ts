import { expect } from 'chai';
import { EventStoreError } from '../../../domain/event-store.ts';
import {
  cancelTaskCommand,
  pauseTaskCommand,
  resumeTaskCommand,
  updateTaskCommand,
} from '../../../domain/tasks/task-commands.ts';
import { TopicIndex } from '../../../projections/reading/topic-index.ts';
import { topicsProjection } from '../../../projections/views/topics.ts';
import { World } from '../../scheduler/scheduler-world.ts';
import type { WatchedStore } from '../../scheduler/watched-store.ts';
import { Signal } from '../../support/signals.ts';
import { rejection } from '../../domain/given.ts';

describe('the topic index', () => {
  let world: World;
  let store: WatchedStore;
  let index: TopicIndex;
  let stop: AbortController;
  let following: Promise<void>;
  let ready: Signal;

  beforeEach(async () => {
    world = await World.open();
    store = world.connect();
    index = new TopicIndex(store, world.readModel);
    stop = new AbortController();
    ready = new Signal('ready');
    following = Promise.resolve();
  });

  afterEach(async () => {
    stop.abort();
    await following;
    await world.close();
  });

  /** Follows, and restarts after an interruption like the process. */
  const follow = async (): Promise<void> => {
    const { signal } = stop;
    following = (async () => {
      while (!signal.aborted) await index.follow(signal, () => ready.send()).catch(() => {});
    })();
    await ready.wait();
    await world.idle();
  };

  const listen = (taskId: string, schedule_expr: string | null): Promise<void> =>
    world.createTask(taskId, { schedule_kind: 'event', schedule_expr });

  it('finds the tasks that listen, sorted by id', async () => {
    await listen('b', 'orders.*');
    await listen('a', 'orders.#');
    await listen('c', null);
    await world.createTask('cron');
    await follow();
    expect(index.matching('default', 'orders.new')).to.deep.equal(['a', 'b', 'c']);
    expect(index.matching('default', 'orders.new.eu')).to.deep.equal(['a', 'c']);
    expect(index.matching('default', 'payments')).to.deep.equal(['c']);
  });

  it('follows their changes', async () => {
    await follow();
    await listen('t', 'orders.#');
    await world.idle();
    expect(index.matching('default', 'orders')).to.deep.equal(['t']);
    await pauseTaskCommand(world.command('t'));
    await world.idle();
    expect(index.matching('default', 'orders')).to.deep.equal([]);
    await resumeTaskCommand({ ...world.command('t'), missed: 'skip' });
    await updateTaskCommand({ ...world.command('t'), changes: { schedule_expr: 'payments' } });
    await world.idle();
    expect([
      index.matching('default', 'orders'),
      index.matching('default', 'payments'),
    ]).to.deep.equal([[], ['t']]);
    await updateTaskCommand({
      ...world.command('t'),
      changes: { schedule_kind: 'cron', schedule_expr: '* * * * *' },
    });
    await world.idle();
    expect(index.matching('default', 'payments')).to.deep.equal([]);
    await updateTaskCommand({
      ...world.command('t'),
      changes: { schedule_kind: 'event', schedule_expr: '#' },
    });
    await world.idle();
    expect(index.matching('default', 'payments')).to.deep.equal(['t']);
    await cancelTaskCommand(world.command('t'));
    await world.idle();
    expect(index.matching('default', 'payments')).to.deep.equal([]);
  });

  it('starts from the view and continues from there', async () => {
    await listen('a', '#');
    await listen('b', '#');
    await pauseTaskCommand(world.command('b'));
    await world.project([topicsProjection]);
    await listen('c', '#');
    await follow();
    expect(index.matching('default', 'x')).to.deep.equal(['a', 'c']);
  });

  it('leaves out tasks canceled during an interruption, and keeps all others during it', async () => {
    await listen('gone', '#');
    await listen('stays', '#');
    await follow();
    let broken = 0;
    let meanwhile: readonly string[] = [];
    store.onMessage = async (message) => {
      if (message.kind !== 'events' || broken > 0) return;
      broken += 1;
      await world.project([topicsProjection]);
      meanwhile = index.matching('default', 'x');
      throw new EventStoreError('UNAVAILABLE', 'the subscription ended');
    };
    const again = ready.next();
    await cancelTaskCommand(world.command('gone'));
    await again;
    expect(broken).to.equal(1);
    expect(meanwhile).to.include('stays');
    expect(index.matching('default', 'x')).to.deep.equal(['stays']);
  });

  describe('waiting for a position', () => {
    it('ends when it is passed, or at once if it was', async () => {
      await follow();
      await listen('t', '#');
      const head = await store.head();
      const never = new AbortController().signal;
      await index.passed(head, never);
      await index.passed(head, never);
      expect(index.matching('default', 'x')).to.deep.equal(['t']);
    });

    it('ends when the caller gives up', async () => {
      await follow();
      const caller = new AbortController();
      const waiting = index.passed('9'.repeat(40), caller.signal);
      caller.abort(new Error('too long'));
      expect(await rejection(waiting)).to.have.property('message', 'too long');
    });
  });
});
