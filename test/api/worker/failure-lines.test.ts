import { expect } from 'chai';
import { FailureLines } from '../../../api/worker/failure-lines.ts';

describe('a request of a worker that keeps failing', () => {
  it('is logged once, then once a minute with the count, and when it works again', () => {
    const lines: unknown[] = [];
    let now = 0;
    const failures = new FailureLines(
      (level, message, fields) => level !== 'debug' && lines.push([now, level, message, fields]),
      'ask for jobs',
      () => now,
    );
    for (now of [1000, 2000, 60_999, 61_000, 70_000]) failures.failed(new Error('refused'));
    failures.worked();
    failures.worked();
    failures.failed(new Error('reset'), { worker: 'w' });
    expect(lines).to.deep.equal([
      [1000, 'warn', 'could not ask for jobs; retrying', { error: 'refused' }],
      [61_000, 'warn', 'could not ask for jobs; retrying', { times: 4, error: 'refused' }],
      [70_000, 'info', 'can ask for jobs again', { times: 5 }],
      [70_000, 'warn', 'could not ask for jobs; retrying', { worker: 'w', error: 'reset' }],
    ]);
  });
});
