import { expect } from 'chai';
import { SystemClock } from '../../app/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { newId } from '../../domain/ids.ts';
import { compileTopicPattern } from '../../domain/schedule/topic-pattern.ts';
import { publishEvent } from '../../domain/topics/publishing.ts';
import { Subscription } from '../../extensions/host/provided/subscription.ts';
import { silent } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import { openSqliteCoordination } from '../../stores/sqlite/coordination/coordination.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { eventually, Signal } from '../support/signals.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const NAME = 'extension x orders.#';

describe('the events that a subscription of an extension receives', () => {
  const directory = useTemporaryDirectory();
  const clock = new SystemClock();
  let store: EventStore;
  let coordination: Coordination;

  beforeEach(async () => {
    const codec = createEventCodec();
    store = await openSqliteEventStore({ directory: directory(), codec, telemetry: silent });
    coordination = await openSqliteCoordination({ directory: directory(), telemetry: silent });
  });

  afterEach(async () => {
    await coordination.close();
    await store.close();
  });

  const order = async (n: number): Promise<void> => {
    const event = { topic: 'orders.new', payload: { n }, source_agent_id: newId(clock.now()) };
    const [now, commandId] = [clock.now(), newId(clock.now())];
    const context = { now, commandId, correlationId: commandId, actor: 'service', source: 'test' };
    await publishEvent(store, event, [], context);
  };

  /** Subscribes like a process that holds the lease. */
  const subscribe = async () => {
    const given = new Signal<unknown>('orders');
    const subscription = new Subscription({
      label: 'a subscriber',
      name: NAME,
      store,
      coordination,
      clock,
      telemetry: silent,
      pattern: compileTopicPattern('orders.#'),
      handle: async ({ data }) => given.send(data['n']),
      handling: { failed() {}, worked() {} },
    });
    await subscription.fixStart();
    const stop = new AbortController();
    const ended = subscription.run(stop.signal, 1);
    const end = async (): Promise<void> => {
      stop.abort();
      await ended;
    };
    return { given, subscription, end };
  };

  /**
   * Waits until the position after all published events is saved. Stopping a handler earlier would repeat its event.
   */
  const remembered = () =>
    eventually(async () => (await coordination.recall(NAME)) === `at ${await store.head()}`);

  it('are those published after it started', async () => {
    await order(1);
    await order(2);
    const { given, end } = await subscribe();
    await order(3);
    await given.wait((n) => n === 3);
    await end();
    expect(given.values).to.deep.equal([3]);
  });

  it('arrive once, however often its process restarts', async () => {
    const first = await subscribe();
    await order(1);
    await order(2);
    await remembered();
    await first.end();
    await (await subscribe()).end();
    const { given, end } = await subscribe();
    await order(3);
    await given.wait((n) => n === 3);
    await end();
    expect(given.values).to.deep.equal([3]);
  });

  it('exclude those published while it was unsubscribed', async () => {
    const first = await subscribe();
    await order(1);
    await remembered();
    await first.end();
    await first.subscription.forget();
    await order(2);
    const { given, end } = await subscribe();
    await order(3);
    await given.wait((n) => n === 3);
    await end();
    expect(given.values).to.deep.equal([3]);
  });

  it('continue from the position of an older release, which saved no event', async () => {
    const first = await subscribe();
    await order(1);
    await remembered();
    await first.end();
    await order(2);
    await coordination.remember(NAME, `at ${await store.head()}`, 1);
    const { given, end } = await subscribe();
    await order(3);
    await given.wait((n) => n === 3);
    await end();
    expect(given.values).to.deep.equal([3]);
  });
});
