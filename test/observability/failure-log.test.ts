import { expect } from 'chai';
import { EventStoreError } from '../../domain/event-store.ts';
import { UnusableServerError } from '../../domain/server-problem.ts';
import { CoordinationError } from '../../scheduler/coordination.ts';
import type { LogFields, Telemetry } from '../../observability/telemetry.ts';
import { reportingTo } from '../support/reporting-to.ts';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

describe('the failures of a process', () => {
  let now: number;
  let lines: Line[];
  let failures: Telemetry['failures'];
  beforeEach(() => {
    now = 0;
    lines = [];
    const at =
      (level: string) =>
      (message: string, fields: LogFields = {}): void =>
        void lines.push({ level, message, fields });
    const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    ({ failures } = reportingTo(log, () => now));
  });

  const shown = (): Line[] => lines.filter(({ level }) => level !== 'debug');
  const levels = (): string[] => shown().map(({ level }) => level);
  const problem = (kind: UnusableServerError['kind'], more: { readonly message?: string } = {}) =>
    new UnusableServerError({
      kind,
      server: 'EventStoreDB at log:2113',
      message: more.message ?? 'EventStoreDB at log:2113 rejected user `ops`',
      summary: 'EventStoreDB at log:2113 rejected the user',
      remedy: 'use another user',
    });
  const failEachSecond = (seconds: number, fail: () => void): void => {
    for (let second = 0; second < seconds; second += 1) {
      fail();
      now += 1_000;
    }
  };

  it('are reported in one line at first, then one a minute with their count, and one when it works again', () => {
    failEachSecond(150, () => failures.failed('could not renew a lease', new Error('refused')));
    failures.worked('could not renew a lease');
    const message = 'could not renew a lease';
    expect(shown()).to.deep.equal([
      { level: 'warn', message, fields: { error: 'refused' } },
      { level: 'warn', message, fields: { error: 'refused', times: 60, seconds: 60 } },
      { level: 'warn', message, fields: { error: 'refused', times: 60, seconds: 120 } },
      {
        level: 'info',
        message: `succeeded again after: ${message}`,
        fields: { times: 150, seconds: 150 },
      },
    ]);
  });

  it('show stacks only at level debug', () => {
    const error = new Error('refused');
    failures.failed('could not renew a lease', error, { lease: 'one' });
    expect(lines[0]).to.deep.equal({
      level: 'debug',
      message: 'could not renew a lease',
      fields: { lease: 'one', error },
    });
    expect(JSON.stringify(shown())).not.to.include('failure-log.test');
  });

  it('are one line per server, however many loops fail because of it', () => {
    const error = new EventStoreError('UNAVAILABLE', 'away', { cause: problem('user_rejected') });
    failures.unusable(problem('user_rejected'));
    for (let loop = 0; loop < 20; loop += 1) failures.failed(`loop ${loop} failed`, error);
    expect(shown()).to.deep.equal([
      {
        level: 'error',
        message: 'EventStoreDB at log:2113 rejected user `ops`. Use another user',
        fields: { cause: 'user_rejected', recovers_by_itself: false },
      },
    ]);
    now += 61_000;
    failures.failed('loop 1 failed', error);
    expect(shown()[1]?.fields).to.include({ times: 21, seconds: 61 });
    failures.usable(problem('user_rejected'));
    expect(shown()[2]).to.deep.include({
      level: 'info',
      message: 'EventStoreDB at log:2113 can be used again',
    });
  });

  it('of an unavailable server are a warning, as it can recover by itself', () => {
    failures.unusable(problem('connection_refused'));
    expect(levels()).to.deep.equal(['warn']);
  });

  it('leave it to the adapter to report the problem of a server', () => {
    const cause = problem('no_answer');
    failures.failed('could not renew a lease', new CoordinationError('away', cause));
    expect(shown()).to.deep.equal([]);
  });

  it('count as different if the user lacks different rights', () => {
    failures.unusable(problem('rights_missing', { message: 'may not read' }));
    failures.unusable(problem('rights_missing', { message: 'may not write' }));
    failures.unusable(problem('rights_missing', { message: 'may not read' }));
    expect(levels()).to.deep.equal(['error', 'error']);
  });

  it('do not say that a server can be used when another problem replaces the first', () => {
    failures.unusable(problem('connection_refused'));
    failures.unusable(problem('user_rejected'), problem('connection_refused'));
    expect(levels()).to.deep.equal(['warn', 'error']);
    failures.usable(problem('user_rejected'));
    expect(levels()).to.deep.equal(['warn', 'error', 'info']);
  });

  it('are one line for an unavailable embedded store, whatever fails because of it', () => {
    const full = new EventStoreError('UNAVAILABLE', 'database or disk is full');
    failures.failed('could not renew a lease', full);
    failures.failed('could not request a run; retrying', full);
    expect(shown()).to.deep.equal([
      {
        level: 'warn',
        message: 'event log unavailable: database or disk is full',
        fields: { work: 'could not renew a lease' },
      },
    ]);
    failures.worked('could not request a run; retrying');
    expect(shown()[1]).to.deep.include({ level: 'info', message: 'event log available again' });
  });

  it('write no more lines if they come and go than if they last', () => {
    failEachSecond(120, () => {
      failures.failed('could not follow', new Error('cut'));
      failures.worked('could not follow');
    });
    expect(levels()).to.deep.equal(['warn', 'info', 'warn', 'info']);
  });

  it('are errors if no retry can help', () => {
    failures.failed('following failed', new EventStoreError('NEWER_SCHEMA', 'unknown event'));
    expect(levels()).to.deep.equal(['error']);
  });

  it('count as new after a long time without any', () => {
    failures.failed('could not remove old records', new Error('cut'));
    now += 20 * 60_000;
    failures.failed('could not remove old records', new Error('cut'));
    expect(shown()[1]?.fields).to.deep.equal({ error: 'cut' });
  });

  it('say nothing about work that never failed', () => {
    failures.worked('could not renew a lease');
    expect(lines).to.deep.equal([]);
  });
});
