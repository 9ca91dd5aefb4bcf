import { expect } from 'chai';
import { BEGINNING, type SubscriptionMessage } from '../../domain/event-store.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { handle, toNewEvents, type Handled } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { endSession, sessionFold, type SessionState } from '../../domain/session.ts';
import { silent } from '../../observability/telemetry.ts';
import { LiveStreams } from '../../projections/live-streams.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { deferred } from '../support/signals.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

describe('streams kept live', () => {
  const directory = useTemporaryDirectory();

  /** A log with one session that is open, and a subscription that waits until the test lets it go. */
  const scene = async () => {
    const options = { directory: directory(), codec: createEventCodec(), telemetry: silent };
    const store = await openSqliteEventStore(options);
    const gate = deferred();
    const delivered = deferred();
    const { subscribe } = store;
    store.subscribe = async function* (asked): AsyncGenerator<SubscriptionMessage> {
      await gate.promise;
      for await (const message of subscribe.call(store, asked)) {
        yield message;
        // Whoever asks for the next one has taken this one.
        if (message.kind === 'caught-up') delivered.resolve();
      }
    };
    const sessions = new LiveStreams(store, 'session-', sessionFold);
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

  it('know what a command of this process has made before the subscription brings it', async () => {
    const { sessions, id, end, close } = await scene();
    expect((await sessions.get(id)).state.status).to.equal('open');
    const ended = await end();
    expect((await sessions.get(id)).state.status).to.equal('open');
    sessions.learn(id, ended);
    expect((await sessions.get(id)).state.status).to.equal('ended');
    await close();
  });

  it('do not go back to what is told them late', async () => {
    const { sessions, id, end, letGo, close } = await scene();
    const before = await sessions.get(id);
    await end();
    await letGo();
    sessions.learn(id, before);
    expect((await sessions.get(id)).state.status).to.equal('ended');
    await close();
  });

  it('do not keep what the subscription has passed unseen', async () => {
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
});
