import { expect } from 'chai';
import type { DataOf } from '../../../domain/events/catalogue.ts';
import { standing, type RunAccount } from '../../../domain/explain/run-account.ts';
import { Words } from '../../../domain/explain/words.ts';
import { LogOfTest, request } from '../../projections/recorded.ts';

describe('the account of a waiting run', () => {
  const account = (waits_for: DataOf<'RunStepSuspended'>['waits_for'], count = 1): RunAccount => {
    const log = new LogOfTest();
    const first = log.add('run-1', 'RunRequested', request()) as RunAccount['first'];
    const last = log.add('run-1', 'RunReleased', { worker: 'w' });
    const wait = {
      step: 'a',
      wait_id: 'w',
      attempt: 1,
      waits_for,
      resumed: null,
      since: '2026-03-01T08:00:00.000Z',
      until: '2026-03-02T08:00:00.000Z',
    };
    return {
      id: '1',
      first,
      started: null,
      last,
      waits: Array.from({ length: count }, () => wait),
      key: null,
    };
  };
  const span = '(step a, since 2026-03-01T08:00:00Z, until 2026-03-02T08:00:00Z)';
  const words = new Words('UTC', new Map());

  for (const [waitsFor, what] of [
    [{ kind: 'timer', seconds: 5 }, 'a time'],
    [{ kind: 'event', topic: 'orders.*' }, 'an event on topic orders.*'],
    [{ kind: 'approval', message: 'Pay?', on_timeout: 'fail' }, 'an approval: "Pay?"'],
    [{ kind: 'run', run_id: 'r', task_id: 't' }, 'the end of run r'],
    [{ kind: 'callback', token_hashes: ['h'] }, 'its callback'],
    [
      { kind: 'job', tool: 'emails.send', arguments: {}, timeout_seconds: 5, priority: 5 },
      'a worker that offers emails.send',
    ],
  ] as const) {
    it(`says that it waits for ${what}, since when and until when`, () => {
      const given = structuredClone(waitsFor) as DataOf<'RunStepSuspended'>['waits_for'];
      expect(standing(account(given), words)).to.equal(`waits for ${what} ${span}`);
    });
  }

  it('names the concurrency key that blocks it, and three of the runs that hold it', () => {
    const run = account({ kind: 'timer', seconds: 5 });
    const since =
      'has been waiting since 2026-03-01T08:00:02Z for the concurrency key printer, held by ';
    for (const [holders, named] of [
      [['r1'], 'run r1'],
      [['r1', 'r2', 'r3', 'r4', 'r5'], 'run r1, run r2, run r3 and 2 more'],
    ] as const) {
      const key = { key: 'printer', holders };
      expect(standing({ ...run, key }, words)).to.equal(since + named);
    }
  });

  it('says for which slot it waits', () => {
    const log = new LogOfTest();
    const first = log.add('run-1', 'RunRequested', request()) as RunAccount['first'];
    const run = { ...account({ kind: 'timer', seconds: 5 }, 0), first, last: first };
    const limited = new Words('UTC', new Map(), 'a slot of its agent: 8 of 8 in use');
    expect(standing(run, limited)).to.match(
      /^has been waiting since .* and waits for a slot of its agent: 8 of 8 in use$/,
    );
    expect(standing(run, words)).to.match(/^has been waiting for a worker since /);
  });

  it('names three of many waits', () => {
    const said = standing(account({ kind: 'timer', seconds: 5 }, 5), words);
    expect(said).to.match(/^waits for a time .*, for a time .*, for a time .* and 2 more$/);
  });
});
