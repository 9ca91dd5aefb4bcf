import { expect } from 'chai';
import { silent } from '../../../observability/telemetry.ts';
import type { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import type { Membership } from '../../../scheduler/processes/membership.ts';
import type { QueuedRun, RunQueueListener } from '../../../scheduler/runs/queued-run.ts';
import { RunDeadlines } from '../../../scheduler/runs/run-deadlines.ts';
import type { RunParts } from '../../../scheduler/runs/run-work.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

type Task = Awaited<ReturnType<PinnedTasks['at']>>;

describe('the deadlines of runs', () => {
  let clock: VirtualClock;
  let listener: RunQueueListener;
  let known: Task | undefined;
  let lookups: number;
  let concurrent: number;
  let mostConcurrent: number;
  let failures: number;
  let streamsRead: string[];
  let deadlines: RunDeadlines;

  beforeEach(() => {
    clock = new VirtualClock();
    known = undefined;
    [lookups, concurrent, mostConcurrent, failures, streamsRead] = [0, 0, 0, 0, []];
    const task = { definition: { timeout_seconds: 60 } } as Task;
    const at = async (): Promise<Task> => {
      lookups += 1;
      concurrent += 1;
      mostConcurrent = Math.max(mostConcurrent, concurrent);
      await settle();
      concurrent -= 1;
      if (failures > 0) {
        failures -= 1;
        throw new Error('the log is unavailable');
      }
      known = task;
      return task;
    };
    const readStream = (stream: string) => {
      streamsRead.push(stream);
      return Promise.resolve([]);
    };
    const membership = { id: 'one', withRole: () => ['one'] } as unknown as Membership;
    const parts: Partial<RunParts> = {
      // Only the parts that the deadlines use.
      queue: {
        subscribe: (given: RunQueueListener) => (listener = given),
      } as unknown as RunParts['queue'],
      tasks: { peek: () => known, at } as unknown as PinnedTasks,
      store: { readStream } as unknown as RunParts['store'],
      membership,
      clock,
      telemetry: silent,
    };
    deadlines = new RunDeadlines(parts as RunParts);
  });

  afterEach(() => deadlines.stop());

  const waitingRun = (index: number): QueuedRun => {
    const now = clock.now();
    const times = { runAt: now, startedAt: now };
    const run = { id: `r${index}`, taskId: 't', taskRevision: 0, state: 'waiting', ...times };
    return { ...run, ended: false } as unknown as QueuedRun;
  };

  const start = (count: number): void => {
    for (let index = 0; index < count; index += 1) listener.onStarted?.(waitingRun(index));
  };

  it('are found with few reads of the task, however many runs wait', async () => {
    start(10_000);
    await clock.advance(1);
    expect(mostConcurrent).to.be.at.most(256);
    expect(lookups).to.be.at.most(256);
    expect(streamsRead).to.deep.equal([]);
    await clock.advance(60_000);
    while (streamsRead.length < 10_000) await settle();
    expect(new Set(streamsRead).size).to.equal(10_000);
  });

  it('are found after the task could not be read', async () => {
    failures = 1;
    start(1);
    await clock.advance(1);
    expect(known).to.equal(undefined);
    await clock.advance(1_000);
    expect(known).not.to.equal(undefined);
    await clock.advance(60_000);
    expect(streamsRead).to.deep.equal(['run-r0']);
  });
});
