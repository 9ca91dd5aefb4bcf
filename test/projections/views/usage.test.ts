import { expect } from 'chai';
import { artifactOf } from '../../../domain/artifacts/artifact.ts';
import { artifactBytesAt } from '../../../domain/artifacts/artifact-bytes.ts';
import type { StepEnd } from '../../../domain/events/catalogue.ts';
import { usageProjection } from '../../../projections/views/usage.ts';
import { LogOfTest, folded, request } from '../recorded.ts';

const at = '2026-03-01T09:00:00.000Z';
const artifact = artifactOf(new Uint8Array(300));

describe('the view of the usage of namespaces', () => {
  const stepEnd = (result: unknown): StepEnd => ({
    step: 'a',
    status: 'succeeded',
    result,
    error: null,
    log: [],
    started_at: at,
    finished_at: at,
    attempt: 1,
  });
  const end = { task_id: 'task-1', started_at: at, attempt: 1, output: {} };
  const runIn = (log: LogOfTest, id: string, namespace?: string): void => {
    const place = namespace === undefined ? {} : { namespace };
    log.add(`run-${id}`, 'RunRequested', request(place));
    log.add(`run-${id}`, 'RunStarted', { worker: 'w', attempt: 1, leased_until: at });
    const step = log.add(`run-${id}`, 'RunStepCompleted', stepEnd({ rows: [artifact] }));
    Object.assign(step.metadata, place);
    log.add(`run-${id}`, 'RunSucceeded', { ...end, ...place, steps: [stepEnd(artifact)] });
  };

  it('counts all events of a run when it ends, and the artifacts of its steps', () => {
    const log = new LogOfTest();
    runIn(log, '1');
    runIn(log, '2', 'sales');
    log.add('run-3', 'RunRequested', request());
    expect([...folded(usageProjection, log.events)]).to.deep.equal([
      ['default', { events: 4, artifact_bytes: 600 }],
      ['sales', { namespace: 'sales', events: 4, artifact_bytes: 600 }],
    ]);
  });

  it('frees what retention removes', () => {
    const log = new LogOfTest();
    runIn(log, '1');
    runIn(log, '2');
    const own = log.events.filter(({ stream }) => stream === 'run-1');
    const artifact_bytes = own.reduce((sum, event) => sum + artifactBytesAt(event), 0);
    log.add('run-1', 'RunRemoved', { artifact_bytes });
    const kept = folded(usageProjection, log.events).get('default');
    expect(kept).to.deep.equal({ events: 4, artifact_bytes: 600 });
  });

  it('counts published events until they are trimmed', () => {
    const log = new LogOfTest();
    for (const _each of [1, 2, 3]) {
      log.add('topic-~sales~a', 'EventPublished', {
        event_id: 'e',
        topic: 'a',
        payload: {},
        source_agent_id: 's',
        published_at: at,
        triggered_tasks: [],
        namespace: 'sales',
      });
    }
    const trimmed = { cutoff: at, deleted_count: 2, first: 0, before: 2, oldest_at: at };
    const event = log.add('topic-~sales~a', 'TopicTrimmed', trimmed);
    Object.assign(event.metadata, { namespace: 'sales' });
    expect(folded(usageProjection, log.events).get('sales')).to.include({ events: 1 });
  });
});
