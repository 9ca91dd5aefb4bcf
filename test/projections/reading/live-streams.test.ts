import { expect } from 'chai';
import {
  BEGINNING,
  EventStoreError,
  type SubscriptionMessage,
} from '../../../domain/event-store.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import type { TaskEvent } from '../../../domain/events/catalogue.ts';
import { handle, toNewEvents, type Handled } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { endSession, sessionFold, type SessionState } from '../../../domain/agents/session.ts';
import { pauseTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { taskFold, type TaskState } from '../../../domain/tasks/task.ts';
import { silent } from '../../../observability/telemetry.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { World } from '../../scheduler/scheduler-world.ts';
import type { WatchedStore } from '../../scheduler/watched-store.ts';
import { deferred, Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('streams kept live', () => {
  const directory = useTemporaryDirectory();

  /** A log with one open session, and a subscription that waits for the test. */
  const scene = async (keepsMissing = false) => {
    const options = { directory: directory(), codec: createEventCodec(), telemetry: silent };
    const store = await openSqliteEventStore(options);
    const gate = deferred();
    const delivered = deferred();
    const { subscribe } = store;
    store.subscribe = async function* (asked): AsyncGenerator<SubscriptionMessage> {
      await gate.promise;
      for await (const message of subscribe.call(store, asked)) {
        yield message;
        // The consumer asks for the next message only once it has taken this one.
        if (message.kind === 'caught-up') delivered.resolve();
      }
    };
    const sessions = new LiveStreams(store, 'session-', sessionFold, { keepsMissing });
    const stop = new AbortController();
    const id = newId(0);
    const now = Date.now();
    const context = () => ({
      commandId: newId(now),
      actor: 'a',
      source: 's',
      correlationId: 'c',
      now,
    });
    const data = {
      agent_id: id,
      refresh_id: id,
      expires_at: new Date(now).toISOString(),
      credentials_revision: null,
    };
    const begun = toNewEvents(`session-${id}`, [{ type: 'SessionStarted', data }], context());
    await store.append(`session-${id}`, begun, 'none');
    const started = deferred();
    const following = sessions.follow(stop.signal, () => started.resolve());
    await started.promise;
    return {
      store,
      sessions,
      id,
      position: () => store.head(),
      end: (): Promise<Handled<SessionState>> =>
        handle({
          store,
          stream: `session-${id}`,
          fold: sessionFold,
          decide: endSession,
          context: context(),
        }),
      letGo: () => {
        gate.resolve();
        return delivered.promise;
      },
      close: async () => {
        stop.abort();
        gate.resolve();
        await following;
        await store.close();
      },
    };
  };

  it('know the result of a command of this process before the subscription delivers it', async () => {
    const { sessions, id, end, close } = await scene();
    expect((await sessions.get(id)).state.status).to.equal('open');
    const ended = await end();
    expect((await sessions.get(id)).state.status).to.equal('open');
    sessions.learn(id, ended);
    expect((await sessions.get(id)).state.status).to.equal('ended');
    await close();
  });

  it('ignore results that arrive late', async () => {
    const { sessions, id, end, letGo, close } = await scene();
    const before = await sessions.get(id);
    await end();
    await letGo();
    sessions.learn(id, before);
    expect((await sessions.get(id)).state.status).to.equal('ended');
    await close();
  });

  it('do not cache what the subscription has already passed', async () => {
    const { sessions, id, end, letGo, position, close } = await scene();
    await end();
    await letGo();
    const late = { state: sessionFold.initial, revision: 0, position: await position() };
    sessions.learn(id, late);
    expect(sessions.peek(id)).to.equal(undefined);
    sessions.learn(id, { ...late, position: BEGINNING });
    expect((await sessions.get(id)).state.status).to.equal('ended');
    await close();
  });

  it('keep the result of a command that a read of its stream has missed', async () => {
    const { store, sessions, end, position, close } = await scene(true);
    const { readStream } = store;
    store.readStream = async (...given) => {
      const events = await readStream.call(store, ...given);
      store.readStream = readStream;
      const { state } = await end();
      sessions.learn('new', { state, revision: 0, position: await position() });
      return events;
    };
    expect((await sessions.get('new')).state.status).to.equal('ended');
    expect((await sessions.get('new')).state.status).to.equal('ended');
    await close();
  });

  describe('of one kind', () => {
    let world: World;
    let store: WatchedStore;
    let stop: AbortController;
    let following: Promise<void>;
    let began: Signal;
    let tasks: LiveStreams<TaskState, TaskEvent>;

    const follow = async (capacity = 9, keepsMissing = false): Promise<void> => {
      tasks = new LiveStreams(store, 'task-', taskFold, { capacity, keepsMissing });
      const { signal } = stop;
      following = (async () => {
        while (!signal.aborted) await tasks.follow(signal, began.send).catch(() => {});
      })();
      await began.wait();
      await world.idle();
    };

    const statusOf = async (id: string): Promise<string> => (await tasks.get(id)).state.status;

    const statusOrMissing = async (id: string): Promise<string> =>
      (await tasks.getOrMissing(id)).state.status;

    beforeEach(async () => {
      world = await World.open();
      store = world.connect();
      stop = new AbortController();
      began = new Signal('following to begin');
      await world.createTask('t');
    });

    afterEach(async () => {
      stop.abort();
      await following;
      await world.close();
    });

    it('read a stream once, and follow it', async () => {
      await follow();
      let reads = 0;
      store.onRead = () => void (reads += 1);
      expect(await Promise.all([statusOf('t'), statusOf('t')])).to.deep.equal(['active', 'active']);
      await pauseTaskCommand(world.command('t'));
      await world.idle();
      expect(await statusOf('t')).to.equal('paused');
      expect(reads).to.equal(1);
    });

    it('cache nothing for streams that do not exist yet', async () => {
      await follow();
      expect(await statusOf('later')).to.equal('none');
      await world.createTask('later');
      expect(await statusOf('later')).to.equal('active');
    });

    it('cache that a stream does not exist, until its first event arrives', async () => {
      await follow(9, true);
      let reads = 0;
      store.onRead = () => void (reads += 1);
      expect(await statusOrMissing('later')).to.equal('none');
      expect(await statusOrMissing('later')).to.equal('none');
      expect(reads).to.equal(1);
      await world.createTask('later');
      await world.idle();
      expect(await statusOrMissing('later')).to.equal('active');
      await pauseTaskCommand(world.command('later'));
      await world.idle();
      expect(await statusOrMissing('later')).to.equal('paused');
    });

    it('read a missing stream again for a caller that needs to know', async () => {
      await follow(9, true);
      expect(await statusOrMissing('later')).to.equal('none');
      let reads = 0;
      store.onRead = () => void (reads += 1);
      expect(await statusOf('later')).to.equal('none');
      expect(await statusOrMissing('later')).to.equal('none');
      expect(reads).to.equal(1);
    });

    it('read again if an event arrives that was missing from the read', async () => {
      await follow();
      let first = true;
      const read = store.readStream.bind(store);
      store.readStream = async (...given) => {
        const events = await read(...given);
        if (first) {
          first = false;
          await pauseTaskCommand(world.command('t'));
          await world.idle();
        }
        return events;
      };
      expect(await statusOf('t')).to.equal('paused');
    });

    it('read again if following restarted in the meantime, because events in between are unknown', async () => {
      await follow();
      let first = true;
      const read = store.readStream.bind(store);
      store.readStream = async (...given) => {
        const events = await read(...given);
        if (first) {
          first = false;
          const again = began.next();
          let broken = false;
          store.onMessage = ({ kind }) => {
            if (broken || kind !== 'events') return;
            broken = true;
            throw new EventStoreError('UNAVAILABLE', 'the subscription ended');
          };
          await pauseTaskCommand(world.command('t'));
          await again;
        }
        return events;
      };
      expect(await statusOf('t')).to.equal('paused');
      await world.idle();
      expect(await statusOf('t')).to.equal('paused');
    });

    it('drop the least recently used', async () => {
      for (const id of ['a', 'b', 'c']) await world.createTask(id);
      await follow(2);
      for (const id of ['a', 'b', 'a', 'c']) await statusOf(id);
      expect(['a', 'b', 'c'].filter((id) => tasks.peek(id) !== undefined)).to.deep.equal([
        'a',
        'c',
      ]);
    });
  });
});
