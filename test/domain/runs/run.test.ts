import { expect } from 'chai';
import fc from 'fast-check';
import type { RunEvent } from '../../../domain/events/catalogue.ts';
import { outputOf } from '../../../domain/pipeline/output.ts';
import {
  cancelRun,
  deadlineOf,
  hasEnded,
  MAX_INTERRUPTIONS,
  requireRun,
  retryRun,
  retryTime,
  runFold,
  startRun,
  interruptRun,
} from '../../../domain/runs/run.ts';
import { endsOf } from '../../../domain/runs/run-steps.ts';
import { failure, request, stepEnd, success } from '../../projections/recorded.ts';
import { given, refused, START } from '../given.ts';

const requested: RunEvent = { type: 'RunRequested', data: request() };
const started = (attempt = 1, worker = 'w1'): RunEvent => ({
  type: 'RunStarted',
  data: { worker, attempt, leased_until: '2026-03-02T08:00:31.000Z' },
});
const interrupted = (cause: 'lease_expired' | 'drained' = 'lease_expired'): RunEvent => ({
  type: 'RunInterrupted',
  data: { worker: 'w1', cause },
});
const attemptFailed = (attempt = 1): RunEvent => ({
  type: 'RunAttemptFailed',
  data: { attempt, error: 'broke', step: 'a', retry_at: '2026-03-02T08:05:00.000Z' },
});
const step = (name: string): RunEvent => ({ type: 'RunStepCompleted', data: stepEnd(name) });
const cancelRequested: RunEvent = { type: 'RunCancelRequested', data: {} };
const canceled: RunEvent = { type: 'RunCanceled', data: { attempt: 1 } };
const succeeded: RunEvent = { type: 'RunSucceeded', data: success({ steps: [stepEnd('last')] }) };
const failed: RunEvent = { type: 'RunFailed', data: failure() };
const { run_at: _runAt, event: _event, retry_of: _retryOf, ...asked } = request();
const { prior_steps: _prior, overlap_policy: _overlap, ...skippedOf } = asked;
const skipped: RunEvent = {
  type: 'RunSkipped',
  data: { ...skippedOf, reason: 'paused', because_of: null },
};
const abandoned: RunEvent = { type: 'Abandoned', data: { reservation: 'key-x' } };

/** Three steps. Two of them have other names for their results. */
const payload = {
  pipeline: [
    { id: 'a', uses: 'echo', save_as: 'first' },
    { id: 'b', uses: 'echo', save_as: 'second' },
    { id: 'c', uses: 'echo' },
  ],
};
/** The fields about the output in the end of a run after this many steps. */
const soFar = (executed_steps: number) => ({
  summary: { total_steps: 3, executed_steps, skipped_steps: 0 },
  layout: {
    names: [
      ['a', 'first'],
      ['b', 'second'],
    ],
  },
});

const run = (...events: RunEvent[]): ReturnType<typeof requireRun> =>
  requireRun(given(runFold, events));

describe('a run', () => {
  it('keeps the params of its request in every state', () => {
    const params = { limit: 5 };
    const asked: RunEvent = { type: 'RunRequested', data: request({ params }) };
    const events = [asked, started(), interrupted(), started(), failed];
    for (let count = 1; count <= events.length; count += 1) {
      const run = requireRun(given(runFold, events.slice(0, count)));
      expect(run.request.params).to.deep.equal(params);
    }
    expect(requireRun(given(runFold, [requested])).request.params).to.equal(null);
  });

  it('changes its state with its events', () => {
    const states: readonly (readonly [string, readonly RunEvent[]])[] = [
      ['queued', [requested]],
      ['running', [requested, started()]],
      ['retrying', [requested, started(), attemptFailed()]],
      ['running', [requested, started(), attemptFailed(), started(2)]],
      ['queued', [requested, started(), interrupted()]],
      ['succeeded', [requested, started(), succeeded]],
      ['failed', [requested, started(), failed]],
      ['running', [requested, started(), cancelRequested]],
      ['canceled', [requested, started(), cancelRequested, canceled]],
      ['canceled', [requested, canceled]],
      ['skipped', [skipped]],
      ['skipped', [requested, skipped]],
    ];
    for (const [state, events] of states) {
      expect(given(runFold, events).state, events.map(({ type }) => type).join()).to.equal(state);
    }
    expect(given(runFold, [])).to.deep.equal({ state: 'none' });
    expect(given(runFold, [abandoned])).to.deep.equal({ state: 'abandoned' });
  });

  it('has ended in four states, and when it was abandoned', () => {
    for (const events of [[succeeded], [failed], [canceled]]) {
      expect(hasEnded(given(runFold, [requested, started(), ...events]))).to.equal(true);
    }
    expect(hasEnded(given(runFold, [skipped]))).to.equal(true);
    expect(hasEnded(given(runFold, [abandoned]))).to.equal(true);
    for (const events of [
      [],
      [requested],
      [requested, started()],
      [requested, started(), attemptFailed()],
    ]) {
      expect(hasEnded(given(runFold, events))).to.equal(false);
    }
  });

  it('keeps the steps of all attempts, first those of the run that it retries', () => {
    const state = run(
      { type: 'RunRequested', data: request({ prior_steps: [stepEnd('before')] }) },
      started(),
      step('one'),
      attemptFailed(),
      started(2),
      step('two'),
      succeeded,
    );
    expect(endsOf(state.steps).map((end) => end.step)).to.deep.equal([
      'before',
      'one',
      'two',
      'last',
    ]);
  });

  it('has a worker only while it runs', () => {
    expect(run(requested, started()).lease_owner).to.equal('w1');
    for (const event of [interrupted(), attemptFailed(), succeeded, failed, canceled]) {
      expect(run(requested, started(), event).lease_owner, event.type).to.equal(null);
    }
  });

  it('counts its execution from its first start', () => {
    const state = run(requested, started(), attemptFailed(), started(2));
    expect(state.first_started_at).to.equal('2026-03-02T08:00:01.000Z');
    expect(deadlineOf(state, 60)).to.equal(START + 61_000);
    expect(deadlineOf(state, null)).to.equal(null);
    expect(deadlineOf(run(requested), 60)).to.equal(null);
  });

  it('stays failed when other runs retry it, however often', () => {
    const events = retryRun(run(requested, started(), failed), 'run-2', 'failed_step');
    expect(events).to.deep.equal([
      { type: 'RunRetried', data: { run_id: 'run-2', from: 'failed_step' } },
    ]);
    const retried = run(requested, started(), failed, ...events);
    expect(retried).to.include({ state: 'failed', retried_by: 'run-2' });
    expect(retryRun(retried, 'run-3', 'start')).to.have.length(1);
  });

  it('is not retried in any other state', () => {
    const others: readonly (readonly [string, readonly RunEvent[]])[] = [
      ['queued', [requested]],
      ['running', [requested, started()]],
      ['retrying', [requested, started(), attemptFailed()]],
      ['succeeded', [requested, started(), succeeded]],
      ['canceled', [requested, canceled]],
      ['skipped', [skipped]],
    ];
    for (const [state, events] of others) {
      const retry = (): unknown => retryRun(given(runFold, events), 'run-2', 'start');
      const refusal = refused('STATE_CONFLICT', retry);
      expect(refusal.details).to.deep.equal({ state });
    }
    refused('NOT_FOUND', () => retryRun(given(runFold, []), 'run-2', 'start'));
  });

  describe('that is started', () => {
    it('begins its first attempt', () => {
      expect(startRun(run(requested), 'w1', START)).to.deep.equal({
        type: 'RunStarted',
        data: { worker: 'w1', attempt: 1, leased_until: '2026-03-02T08:00:00.000Z' },
      });
    });

    it('continues an interrupted attempt', () => {
      expect(startRun(run(requested, started(), interrupted()), 'w2', START).data).to.include({
        attempt: 1,
        worker: 'w2',
      });
    });

    it('follows a failed attempt with the next', () => {
      const state = run(requested, started(), attemptFailed());
      expect(startRun(state, 'w2', START).data).to.include({ attempt: 2 });
    });
  });

  describe('that is to be canceled', () => {
    it('ends at once if no worker has it', () => {
      expect(cancelRun(run(requested), null)).to.deep.equal([
        { type: 'RunCanceled', data: { attempt: 0 } },
      ]);
      expect(cancelRun(run(requested, started(), attemptFailed()), null)).to.deep.equal([canceled]);
      expect(cancelRun(run(requested, started(), interrupted()), null)).to.deep.equal([canceled]);
    });

    it('records the names of its results if it had started', () => {
      expect(cancelRun(run(requested), payload)[0]?.data).to.deep.equal({ attempt: 0 });
      const retrying = run(requested, started(), step('a'), attemptFailed());
      const [event] = cancelRun(retrying, payload);
      expect(event?.data).to.deep.equal({ attempt: 1, output: soFar(1) });
      const output = outputOf(endsOf(retrying.steps), soFar(1));
      expect(Object.keys(output.steps)).to.deep.equal(['first']);
    });

    it('is asked to stop once while it runs', () => {
      expect(cancelRun(run(requested, started()), null)).to.deep.equal([cancelRequested]);
      expect(cancelRun(run(requested, started(), cancelRequested), null)).to.deep.equal([]);
    });

    it('is refused if it has ended, unless it was canceled', () => {
      expect(cancelRun(run(requested, canceled), null)).to.deep.equal([]);
      for (const event of [succeeded, failed]) {
        refused('STATE_CONFLICT', () => cancelRun(run(requested, started(), event), null));
      }
      refused('STATE_CONFLICT', () => cancelRun(run(skipped), null));
      refused('NOT_FOUND', () => cancelRun(given(runFold, []), null));
      refused('NOT_FOUND', () => cancelRun(given(runFold, [abandoned]), null));
    });
  });

  describe('whose worker is lost', () => {
    const gone = (times: number, ...more: RunEvent[]): ReturnType<typeof requireRun> => {
      const interruptions = Array.from({ length: times }, () => [interrupted(), started()]).flat();
      return run(requested, started(), ...interruptions, ...more);
    };

    it('continues elsewhere, up to five times in an attempt', () => {
      for (let times = 0; times < MAX_INTERRUPTIONS; times += 1) {
        expect(interruptRun(gone(times), START, START, payload)).to.deep.equal([interrupted()]);
      }
    });

    it('fails its attempt at the sixth loss, and retries if a retry is left', () => {
      const [event] = interruptRun(gone(MAX_INTERRUPTIONS), START, START + 1000, payload);
      expect(event).to.deep.equal({
        type: 'RunAttemptFailed',
        data: {
          attempt: 1,
          error: 'the run lost its worker 6 times',
          step: null,
          retry_at: '2026-03-02T08:00:01.000Z',
        },
      });
    });

    it('fails at the sixth loss without a retry left', () => {
      const [event] = interruptRun(gone(MAX_INTERRUPTIONS), START, null, payload);
      expect(event?.type).to.equal('RunFailed');
      expect(event?.data).to.include({ attempt: 1, started_at: '2026-03-02T08:00:01.000Z' });
      expect(event?.data).to.deep.include({ output: soFar(0) });
    });

    it('counts losses per attempt, without returned runs', () => {
      expect(gone(MAX_INTERRUPTIONS, attemptFailed(), started(2)).interruptions).to.equal(0);
      expect(run(requested, started(), interrupted('drained'), started()).interruptions).to.equal(
        0,
      );
    });

    it('is canceled if that was requested', () => {
      expect(interruptRun(gone(0, cancelRequested), START, START, payload)).to.deep.equal([
        { type: 'RunCanceled', data: { attempt: 1, output: soFar(0) } },
      ]);
    });

    it('is left alone when it is not running', () => {
      for (const state of [run(requested), run(requested, started(), succeeded), run(skipped)]) {
        expect(interruptRun(state, START, START, payload)).to.deep.equal([]);
      }
      refused('NOT_FOUND', () => interruptRun(given(runFold, []), START, START, payload));
    });
  });

  describe('that failed', () => {
    const backoff = fc.record({
      max_retries: fc.integer({ min: 0, max: 50 }),
      backoff_strategy: fc.constantFrom('exponential_jitter', 'linear', 'fixed' as const),
      retry_delay_seconds: fc.double({ min: 0, max: 86_400, noNaN: true }),
      retry_max_delay_seconds: fc.double({ min: 0, max: 604_800, noNaN: true }),
    });
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

    it('is retried within the bounds of its backoff while a retry is left', () => {
      fc.assert(
        fc.property(backoff, fc.integer({ min: 1, max: 60 }), chance, (rules, attempt, random) => {
          const at = retryTime(attempt, rules, START, () => random);
          if (attempt > rules.max_retries) return at === null;
          const d = rules.retry_delay_seconds;
          const capped = (delay: number): number => Math.min(delay, rules.retry_max_delay_seconds);
          const most = capped(d * 2 ** (attempt - 1));
          const [low, high] = {
            fixed: [capped(d), capped(d)],
            linear: [capped(d * attempt), capped(d * attempt)],
            exponential_jitter: [most / 2, most],
          }[rules.backoff_strategy] as [number, number];
          const delay = ((at ?? Number.NaN) - START) / 1000;
          return delay >= low - 0.001 && delay <= high + 0.001 && Number.isFinite(delay);
        }),
        { numRuns: 500 },
      );
    });

    it('never waits longer than its maximum delay', () => {
      const rules = { max_retries: 9, retry_delay_seconds: 40, retry_max_delay_seconds: 60 };
      const delaysOf = (backoff_strategy: 'fixed' | 'linear' | 'exponential_jitter'): number[] =>
        [1, 2, 3].map((attempt) => {
          const at = retryTime(attempt, { ...rules, backoff_strategy }, START, () => 1);
          return ((at ?? Number.NaN) - START) / 1000;
        });
      expect(delaysOf('fixed')).to.deep.equal([40, 40, 40]);
      expect(delaysOf('linear')).to.deep.equal([40, 60, 60]);
      expect(delaysOf('exponential_jitter')).to.deep.equal([40, 60, 60]);
      const longer = { ...rules, retry_max_delay_seconds: 30, backoff_strategy: 'fixed' } as const;
      expect(retryTime(1, longer, START, () => 1)).to.equal(START + 30_000);
    });

    it('waits at least as long as the called service asked for', () => {
      const rules = {
        max_retries: 3,
        backoff_strategy: 'fixed',
        retry_delay_seconds: 1,
        retry_max_delay_seconds: 300,
      } as const;
      expect(retryTime(1, rules, START, Math.random, 90_000)).to.equal(START + 90_000);
      expect(retryTime(1, rules, START, Math.random, 10)).to.equal(START + 1000);
      expect(retryTime(4, rules, START, Math.random, 90_000)).to.equal(null);
    });

    it('is not retried after its deadline', () => {
      const rules = {
        max_retries: 3,
        backoff_strategy: 'fixed',
        retry_delay_seconds: 1,
        retry_max_delay_seconds: 300,
      } as const;
      const at = (deadline: number | null): number | null =>
        retryTime(1, rules, START, Math.random, 5000, deadline);
      expect(at(null)).to.equal(START + 5000);
      expect(at(START + 5001)).to.equal(START + 5000);
      expect(at(START + 5000)).to.equal(null);
    });
  });
});
