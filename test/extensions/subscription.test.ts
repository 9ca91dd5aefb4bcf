import { expect } from 'chai';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import { compileTopicPattern } from '../../domain/schedule/topic-pattern.ts';
import { Subscription } from '../../extensions/host/provided/subscription.ts';
import { silent } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const HEAD = '09';

/** Its topic is not subscribed, so nothing is handled. */
const event = {
  type: 'TopicTrimmed',
  stream: 'topic-a',
  revision: 4,
  id: 'event-1',
  position: '05',
  createdAt: '2026-01-01T00:00:00.000Z',
} as RecordedEvent;

describe('the position of a subscription of an extension', () => {
  const remembered = new Map<string, string>();
  const coordination = {
    recall: async (name: string) => remembered.get(name) ?? null,
    remember: async (name: string, value: string) => remembered.set(name, value).size > 0,
  } as unknown as Coordination;

  beforeEach(() => remembered.clear());

  /** Follows a log briefly. @returns the position it started from */
  const follow = async (log: {
    readonly ids: readonly string[];
    readonly events?: readonly RecordedEvent[];
  }): Promise<Position | undefined> => {
    let from: Position | undefined;
    const store = {
      head: async () => HEAD,
      reaches: async (position: Position) => position <= HEAD,
      readAll: async () => [],
      readAllBackwards: async () => [],
      hasHad: async ({ id }: { id: string }) => log.ids.includes(id),
      async *subscribe({ after, signal }: { after: Position; signal: AbortSignal }) {
        from = after;
        yield { kind: 'events', events: log.events ?? [] };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    } as unknown as EventStore;
    const subscription = new Subscription({
      label: 'a subscriber',
      name: 'extension x a.*',
      store,
      coordination,
      telemetry: silent,
      pattern: compileTopicPattern('a.*'),
      handle: async () => {},
      handling: { failed() {}, worked() {} },
      clock: new VirtualClock(),
    });
    await subscription.fixStart();
    const end = new AbortController();
    const ended = subscription.run(end.signal, 1);
    await settle();
    end.abort();
    await ended;
    return from;
  };

  it('is the last saved one', async () => {
    await follow({ ids: [], events: [event] });
    expect(await follow({ ids: ['event-1'] })).to.equal('05');
  });

  it('is the end of a longer log that never had its last event', async () => {
    await follow({ ids: [], events: [event] });
    expect(await follow({ ids: ['event-2'] })).to.equal(HEAD);
  });

  it('is the one saved by an older release, which saved no event', async () => {
    remembered.set('extension x a.*', 'at 03');
    expect(await follow({ ids: [] })).to.equal('03');
  });
});
