import { expect } from 'chai';
import { auditOfStream } from '../../../../api/endpoints/history/audit-of-stream.ts';
import {
  requireReadable,
  type EventStore,
  type RecordedEvent,
  type StreamPart,
} from '../../../../domain/event-store.ts';
import { Names } from '../../../../projections/reading/names.ts';
import type { EventFilters } from '../../../../projections/views/audit.ts';

const STREAM = 'run-1';
const time = (second: number): string => `2026-03-01T08:00:0${String(second)}.000Z`;

/** Revision, actor, second and type of each event. */
const events: readonly RecordedEvent[] = [
  event(0, 'a', 1, 'RunRequested'),
  event(1, 'service', 2, 'RunStarted'),
  event(2, 'b', 4, 'RunCancelRequested'),
  { ...event(3, 'a', 4, 'RunRetried'), fault: 'broken' },
  // Its writer's clock was behind.
  event(4, 'a', 3, 'RunCancelRequested'),
  event(5, 'a', 4, 'RunRetried'),
];

function event(revision: number, actor: string, second: number, type: string): RecordedEvent {
  const metadata = { actor, source: 's', occurredAt: time(second), $correlationId: 'c' };
  const position = String(revision + 10).padStart(16, '0');
  const stream = STREAM;
  return {
    id: 'i',
    stream,
    revision,
    position,
    type,
    data: {},
    metadata,
  } as unknown as RecordedEvent;
}

const store = {
  async readStream(_: string, { from = 0, limit = 500, faulty }: StreamPart) {
    const page = events.slice(from, from + limit);
    return faulty === true ? page : page.map(requireReadable);
  },
} as unknown as EventStore;

const names = new Names({
  agentName: () => Promise.resolve(null),
  taskTitle: () => Promise.resolve(null),
  store,
});
const parts = { store, names, isVisible: null };

describe('the audit of a short stream', () => {
  const revisionsOf = async (wanted: EventFilters): Promise<readonly number[]> => {
    const page = await auditOfStream(parts, { ...wanted, stream: STREAM }, { limit: 50 });
    return page.items.map(({ revision }) => revision);
  };

  it('is newest first, by log order within an instant, without unreadable events', async () => {
    expect(await revisionsOf({})).to.deep.equal([5, 2, 4, 0]);
  });

  it('can be filtered by actor, type and time', async () => {
    expect(await revisionsOf({ actor: 'a' })).to.deep.equal([5, 4, 0]);
    expect(await revisionsOf({ type: 'RunCancelRequested' })).to.deep.equal([2, 4]);
    expect(await revisionsOf({ from: time(3), to: time(3) })).to.deep.equal([4]);
    expect(await revisionsOf({ actor: 'service' })).to.deep.equal([]);
  });

  it('continues at its cursor, and gives a total only where the view does', async () => {
    const seen: number[] = [];
    for (let cursor: string | undefined; ;) {
      const query = { limit: 1, ...(cursor === undefined ? {} : { cursor }) };
      const page = await auditOfStream(parts, { stream: STREAM }, query);
      expect(page.total).to.equal(4);
      seen.push(...page.items.map(({ revision }) => revision));
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
    expect(seen).to.deep.equal([5, 2, 4, 0]);
    const { total } = await auditOfStream(parts, { stream: STREAM, actor: 'a' }, { limit: 1 });
    expect(total).to.equal(null);
  });
});
