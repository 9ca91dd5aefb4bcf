import { DatabaseSync } from '@photostructure/sqlite';
import { join } from 'node:path';
import { eventually, found } from '../../support/signals.ts';
import { decidedUpTo } from '../../support/expected-fires.ts';
import { Cluster } from '../cluster.ts';
import { settled } from '../killing/kill-matrix.ts';
import { createTasks, everySecond, held, type CreatedTask } from '../killing/kill-tasks.ts';
import { Ledger } from '../ledger.ts';
import { StepServer } from '../step-server.ts';

/** Three processes that schedule and work, so that one can be paused. */
const roles = ['api,projector', 'scheduler,worker', 'scheduler,worker', 'scheduler,worker'];

/** Longer than the leases of the scheduler (3 s) and the workers (1 s here), in milliseconds. */
const PAUSE = 4500;

/** The observations after a process was paused for a while. */
export interface AfterPause {
  readonly ledger: Ledger;
  readonly tasks: readonly CreatedTask[];
  /** How often each step was called, by idempotency key. */
  readonly counts: ReadonlyMap<string, number>;
  /** The runs whose step had been called when it was paused. */
  readonly called: ReadonlySet<string>;
  /** The paused process, as named in the log. */
  readonly paused: string;
  /** When it was paused, and when it continued. */
  readonly from: number;
  readonly to: number;
}

/**
 * Pauses (SIGSTOP) the process that leads the scheduler and works on a run. Continues it (SIGCONT)
 * long after others took over and ended the run, and waits until all is done.
 */
export async function pauseTheLeader(dataDirectory: string): Promise<AfterPause> {
  const steps = await StepServer.start();
  const cluster = new Cluster(roles, { SVC_DATA_DIR: dataDirectory, SVC_LOG_LEVEL: 'info' });
  try {
    await cluster.start();
    const tasks = await createTasks(cluster, [
      everySecond('all', 60),
      // Three missed fires at once become one running, one waiting and one skipped run.
      everySecond('skip', 60, {
        name: 'one at a time',
        shares: { kind: 'overlap', policy: 'queue' },
        body: { overlap_policy: 'queue' },
      }),
      held(steps.heldUrl),
    ]);
    const leader = await found(() => leaderOf(cluster), { limitMs: 20_000, what: 'a leader' });
    const { pid } = cluster.process(leader);
    const id = tasks.find(({ name }) => name === 'held')?.id ?? '';
    const runs = (): Ledger => Ledger.read(dataDirectory);
    const called = (): Set<string> =>
      new Set(steps.held.values.map((key) => `run-${key.split(':')[0]}`));
    await eventually(
      async () => {
        await cluster.client().post(`/tasks/${id}/run_now`);
        const ledger = runs();
        // The start is in the log before the step is called: the process must not be paused in
        // between.
        const calling = called();
        const works = ledger
          .all('RunStarted')
          .some(({ data, stream }) => isOf(data.worker, pid) && calling.has(stream));
        return works && ledger.all('Fired').some(({ metadata }) => isOf(metadata.source, pid));
      },
      { limitMs: 20_000, what: 'the leader to decide fires and to work on a step' },
    );
    const from = await pauseBetweenWrites(cluster, leader, dataDirectory);
    const before = called();
    await eventually(
      () => {
        const ledger = runs();
        const decided = tasks
          .filter(({ seconds }) => seconds !== undefined)
          .map((task) => decidedUpTo(ledger.fires(task.id)) ?? 0);
        const freed = ledger.all('RunInterrupted').some(({ data }) => isOf(data.worker, pid));
        return freed && Math.min(...decided) >= from + PAUSE;
      },
      { limitMs: 30_000, what: 'others to lead, and to take its runs over' },
    );
    steps.release();
    await eventually(
      () =>
        runs()
          .runs()
          .filter(({ request, end }) => request.data.task_id === id && !end).length === 0,
      { limitMs: 20_000, what: 'others to end its runs' },
    );
    const to = Date.now();
    cluster.process(leader).signal('SIGCONT');
    await eventually(
      () =>
        runs().events.some(
          ({ type, metadata }) =>
            type === 'RunSucceeded' &&
            isOf(metadata.source, pid) &&
            Date.parse(metadata.occurredAt) > to + 500,
        ),
      { limitMs: 30_000, what: 'the paused process to work again' },
    );
    const ledger = await settled(cluster, dataDirectory, tasks);
    const paused = String(
      ledger.all('RunInterrupted').find(({ data }) => isOf(data.worker, pid))?.data.worker,
    );
    await cluster.terminate();
    return { ledger, tasks, counts: steps.counts, called: before, paused, from, to };
  } finally {
    steps.release();
    await steps.close();
  }
}

/**
 * Pauses a process. One that is paused during a write blocks all others that share its file, so it is continued and
 * paused again until none is locked. @returns an instant at which it was paused
 */
async function pauseBetweenWrites(cluster: Cluster, index: number, data: string): Promise<number> {
  return found(
    () => {
      cluster.process(index).signal('SIGSTOP');
      if (['events.sqlite', 'coordination.db'].every((file) => isUnlocked(join(data, file)))) {
        return Date.now();
      }
      cluster.process(index).signal('SIGCONT');
      return undefined;
    },
    { what: 'a pause between two writes', everyMs: 50 },
  );
}

function isUnlocked(file: string): boolean {
  const database = new DatabaseSync(file, { timeout: 1_000 });
  try {
    database.exec('BEGIN IMMEDIATE; ROLLBACK');
    return true;
  } catch {
    return false;
  } finally {
    database.close();
  }
}

/** The index of the process whose scheduler leads. */
function leaderOf(cluster: Cluster): number | undefined {
  const leads = (index: number): boolean => {
    const changes = cluster
      .process(index)
      .log.filter(
        ({ lease, message }) => lease === 'scheduler' && String(message).startsWith('leadership'),
      );
    return changes.at(-1)?.['message'] === 'leadership won';
  };
  return [1, 2, 3].find(leads);
}

/** A process names itself by host, process id and a random part. */
const isOf = (name: string, pid: number): boolean => name.split('-').at(-2) === String(pid);
