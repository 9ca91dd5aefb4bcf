import { expect } from 'chai';
import type { DataOf } from '../../../domain/events/catalogue.ts';
import { auditProjection } from '../../../projections/views/audit.ts';
import { folded, LogOfTest } from '../recorded.ts';

describe('the audit after a removal of records', () => {
  const removed = (stream: string, audited: readonly string[]): DataOf<'RecordsRemoved'> => ({
    kind: 'sessions',
    records: 1,
    events: 1,
    first_position: audited[0] ?? '',
    last_position: audited.at(-1) ?? '',
    older_than: '2026-03-01T00:00:00.000Z',
    streams: [{ stream, before: 1 }],
    audited: [...audited],
  });
  const byAgent = { actor: 'agent-1' };

  it('forgets removed events, and keeps others at their positions in an imported log', () => {
    const log = new LogOfTest();
    const gone = log.add('agent-a', 'AgentUpdated', { changes: { name: 'a' } });
    const kept = log.add('agent-b', 'AgentUpdated', { changes: { name: 'b' } });
    const record = log.add(
      'retention',
      'RecordsRemoved',
      removed('agent-a', [gone.position, kept.position]),
    );
    const events = [gone, kept].map((event) => ({
      ...event,
      metadata: { ...event.metadata, ...byAgent },
    }));
    const left = folded(auditProjection, [...events, record] as never);
    expect([...left.keys()]).to.deep.equal([kept.position]);
  });
});
