import { expect } from 'chai';
import { OpenWaits } from '../../../app/watching/open-waits.ts';
import type { Wait } from '../../../domain/runs/run-waits.ts';
import type { RegisteredWorker } from '../../../domain/workers/worker.ts';

const NOW = Date.parse('2026-03-01T08:10:00.000Z');

const waiting = (waits_for: Wait['waits_for'], more: Partial<Wait> = {}): Wait => ({
  step: 'a',
  wait_id: 'wait',
  attempt: 1,
  waits_for,
  since: '2026-03-01T08:00:00.000Z',
  until: '2026-03-02T08:00:00.000Z',
  resumed: null,
  ...more,
});
const job = (tool: string, labels?: Readonly<Record<string, string>>): Wait =>
  waiting({
    kind: 'job',
    tool,
    arguments: {},
    timeout_seconds: 30,
    priority: 5,
    ...(labels === undefined ? {} : { labels }),
  });
const worker = (id: string, tool: string, state: RegisteredWorker['state'] = 'active') =>
  ({
    id,
    state,
    labels: { region: 'eu' },
    tools: [{ name: tool, description: '', schema: {} }],
  }) as unknown as RegisteredWorker;

describe('the open waits', () => {
  const counting = (waits: readonly Wait[] | null, workers: readonly RegisteredWorker[] = []) => {
    let reads = 0;
    const clock = { now: () => NOW };
    const open = new OpenWaits({
      runs: () => waits && [{ waits: waits.slice(0, 1) }, { waits: waits.slice(1) }],
      workers: () => workers,
      leases: {
        seen() {
          reads += 1;
          return Promise.resolve(
            new Map([
              ['fresh', 1000],
              ['late', 61_000],
            ]),
          );
        },
      },
      clock,
      leaseSeconds: 30,
    });
    return { open, reads: () => reads };
  };

  it('are counted by kind, with the age of the oldest', async () => {
    const timer = { kind: 'timer', seconds: 5 } as const;
    const resumed = { by: { kind: 'timer' }, result: null } as unknown as Wait['resumed'];
    const { open } = counting([
      waiting(timer, { since: '2026-03-01T08:09:00.000Z' }),
      waiting(timer),
      waiting({ kind: 'approval', message: '?', on_timeout: 'fail' }, { resumed }),
      job('x'),
    ]);
    const none = { event: 0, approval: 0, run: 0, callback: 0 };
    expect(await open.read()).to.deep.include({
      open: { ...none, timer: 2, job: 1 },
      oldest: { ...none, timer: 600, job: 600 },
    });
  });

  it('include a job without a worker if no recently seen worker fits it', async () => {
    const workers = [
      worker('fresh', 'x'),
      worker('late', 'silent'),
      worker('fresh', 'drained', 'drained'),
    ];
    const jobs = [
      job('x'),
      job('x', { region: 'eu' }),
      job('x', { region: 'us' }),
      job('silent'),
      job('drained'),
      job('unknown'),
    ];
    const counts = await counting(jobs, workers).open.read();
    expect(counts).to.include({ workers: 1, unserved: 4 });
  });

  it('are counted once for all gauges of a request, and only by their leader', async () => {
    const led = counting([]);
    await Promise.all([led.open.read(), led.open.read()]);
    expect(led.reads()).to.equal(1);
    expect(await counting(null).open.read()).to.equal(null);
  });
});
