import { expect } from 'chai';
import type { DataOf } from '../../../domain/events/catalogue.ts';
import { approvals, waitsProjection } from '../../../projections/views/waits.ts';
import { LogOfTest, folded } from '../recorded.ts';

const until = '2026-03-08T08:00:00.000Z';

describe('the view of waits', () => {
  let log: LogOfTest;
  beforeEach(() => {
    log = new LogOfTest();
  });
  const waits = () => folded(waitsProjection, log.events);
  const suspend = (
    wait_id: string,
    waits_for: DataOf<'RunStepSuspended'>['waits_for'],
    stream = 'run-1',
  ) => {
    const since = '2026-03-01T08:00:00.000Z';
    const data = { step: 'a', wait_id, task_id: 'task-1', attempt: 1, waits_for, since, until };
    log.add(stream, 'RunStepSuspended', data);
  };
  const resume = (wait_id: string, end: Omit<DataOf<'RunStepResumed'>, 'step' | 'wait_id'>) =>
    log.add('run-1', 'RunStepResumed', { step: 'a', wait_id, ...end });
  const approval = { kind: 'approval', message: 'Pay?', on_timeout: 'fail' } as const;

  it('has a document for an approval and a callback, and none for other waits', () => {
    suspend('w1', approval);
    suspend('w2', { kind: 'callback', token_hashes: ['h'], calling: true });
    suspend('w3', { kind: 'timer', seconds: 5 });
    suspend('w4', { kind: 'event', topic: 'a' });
    expect([...waits().keys()]).to.deep.equal(['w1', 'w2']);
    expect(waits().get('w1')).to.deep.include({
      run_id: '1',
      task_id: 'task-1',
      step: 'a',
      kind: 'approval',
      approval_state: 'pending',
      until,
      ended_at: null,
    });
    resume('w3', { by: { kind: 'timeout' }, error: 'late' });
    expect(waits().has('w3')).to.equal(false);
  });

  it('ends a wait once, even if it is recorded again after its callback', () => {
    suspend('w', { kind: 'callback', token_hashes: ['h'], calling: true });
    resume('w', { by: { kind: 'callback' }, result: 1 });
    const ended_at = waits().get('w')?.ended_at;
    expect(ended_at).to.equal('2026-03-01T08:00:02.000Z');
    suspend('w', { kind: 'callback', token_hashes: ['h', 'i'] });
    expect(waits().get('w')).to.deep.include({ ended_at, token_hashes: ['h', 'i'] });
    resume('w', { by: { kind: 'stopped' }, error: 'stopped' });
    expect(waits().get('w')).to.include({ ended_at });
  });

  for (const [name, end, expected] of [
    [
      'approved',
      { by: { kind: 'approval', agent_id: 'ada' }, result: { approved: true, comment: 'ok' } },
      { decided_by: 'ada', comment: 'ok' },
    ],
    [
      'rejected',
      { by: { kind: 'approval', agent_id: 'ada' }, result: { approved: false, comment: null } },
      { decided_by: 'ada', comment: null },
    ],
    ['expired', { by: { kind: 'timeout' }, result: { approved: true } }, { decided_by: null }],
    ['canceled', { by: { kind: 'stopped' }, error: 'stopped' }, { decided_by: null }],
  ] as const) {
    it(`shows how an approval was ${name}`, () => {
      suspend('w', approval);
      resume('w', end);
      const wait = waits().get('w');
      expect(wait?.approval_state).to.equal(name);
      expect(wait?.approval).to.include(expected);
    });
  }

  it('loses the waits that the removal of their run names', () => {
    suspend('w1', approval);
    suspend('w2', approval, 'run-2');
    log.add('run-1', 'RunRemoved', { waits: ['w1'] });
    expect([...waits().keys()]).to.deep.equal(['w2']);
  });

  it('lists approvals of all states by one index', () => {
    expect(approvals('*', {}).filters[0]).to.include({ field: 'approval_state', op: 'in' });
    expect(approvals('*', { state: 'pending' }).filters).to.have.lengthOf(1);
  });
});
