import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import type { Wait } from '../../../domain/runs/run-waits.ts';
import { JobIndex } from '../../../scheduler/jobs/job-index.ts';
import type { Offer } from '../../../scheduler/jobs/job.ts';
import type { QueuedRun, RunQueueListener } from '../../../scheduler/runs/queued-run.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const START = Date.parse('2026-03-02T00:00:00.000Z');

/** The jobs of runs that each wait for one worker. */
class WaitingJobs {
  readonly index: JobIndex;
  #listener: RunQueueListener = {};
  #runs = 0;

  constructor(weights: Readonly<Record<string, number>> = {}) {
    const queue = { subscribe: (listener: RunQueueListener) => void (this.#listener = listener) };
    const listener = { onFree: () => {}, onLookDue: () => {} };
    const weightOf = (namespace: string): number => weights[namespace] ?? 1;
    this.index = new JobIndex(queue, new VirtualClock(START), listener, weightOf);
  }

  add(
    createdBy: string,
    { count = 1, tool = 'print', namespace = 'default', priority = 5 } = {},
  ): void {
    for (let n = 0; n < count; n += 1) {
      this.#runs += 1;
      const wait = {
        wait_id: `wait-${this.#runs}`,
        step: 's',
        since: toIso(START),
        until: toIso(START + 86_400_000),
        waits_for: { kind: 'job', tool, priority, timeout_seconds: 60 },
        resumed: null,
      } as unknown as Wait;
      const about = { id: `run-${this.#runs}`, taskId: 't', createdBy, namespace, ended: false };
      this.#listener.onWaits?.({ ...about, waits: [wait] } as unknown as QueuedRun);
    }
  }

  /** The agents of the next jobs that a worker gets. */
  pick(most: number, tools: readonly string[] = ['print']): string {
    const offer: Offer = {
      id: 'w',
      namespace: 'default',
      agent_id: 'x',
      name: 'w',
      labels: {},
      tools: tools.map((name) => ({ name, schema: {} })),
    };
    return this.index
      .pick(offer, most)
      .map(({ agent }) => agent)
      .join('');
  }
}

describe('the jobs of several agents', () => {
  it('go to workers in turns of the agents, however many each agent has', () => {
    const jobs = new WaitingJobs();
    jobs.add('a', { count: 10_000, priority: 1 });
    expect(jobs.pick(3)).to.equal('aaa');
    jobs.add('b', { count: 2, priority: 9 });
    expect(jobs.pick(6)).to.equal('babaaa');
  });

  it('also take turns across the tools of a worker', () => {
    const jobs = new WaitingJobs();
    jobs.add('a', { count: 100, tool: 'print' });
    jobs.add('a', { count: 100, tool: 'bind' });
    jobs.add('b', { count: 2, tool: 'fold' });
    expect(jobs.pick(4, ['print', 'bind', 'fold'])).to.equal('abab');
  });
});
