import { join } from 'node:path';
import { decidedUpTo } from '../../support/expected-fires.ts';
import { eventually } from '../../support/signals.ts';
import type { ClockMover } from './clock-mover.ts';
import { Cluster, oneProcess } from '../cluster.ts';
import { settled } from '../killing/kill-matrix.ts';
import { createTasks, everySecond, type CreatedTask } from '../killing/kill-tasks.ts';
import { Ledger } from '../ledger.ts';

export const HOUR = 3_600_000;

/** The observations after the clock was set back, corrected, and set forward. */
export interface AfterSetting {
  readonly ledger: Ledger;
  readonly tasks: readonly CreatedTask[];
  /**
   * The log's end when the clock was set back, when it was corrected, and when it was set forward.
   */
  readonly atBack: string;
  readonly atRight: string;
  readonly atForward: string;
  /** CPU seconds per second, after each of the three. */
  readonly busy: readonly number[];
  /**
   * The result of a manual run after a restart with a clock an hour behind that of the process
   * before.
   */
  readonly afterRestart: unknown;
}

/**
 * Sets the clock of a process that fires each second: back by an hour, right again, forward by an
 * hour, and right again.
 */
export async function setTheClock(directory: string, mover: ClockMover): Promise<AfterSetting> {
  const data = join(directory, 'data');
  const cluster = new Cluster(oneProcess, { SVC_DATA_DIR: data, ...mover.settings });
  await cluster.start();
  const firing = await createTasks(cluster, [
    everySecond('all', 0),
    everySecond('latest', 1),
    everySecond('skip', 1),
  ]);
  const decideUpTo = (tasks: readonly CreatedTask[], at: number): Promise<void> =>
    eventually(
      () => {
        const ledger = Ledger.read(data);
        return tasks.every(({ id }) => (decidedUpTo(ledger.fires(id)) ?? 0) >= at);
      },
      { limitMs: 30_000, what: `the tasks to fire up to ${new Date(at).toISOString()}` },
    );
  const busy: number[] = [];
  const set = async (offset: number): Promise<string> => {
    const { head } = Ledger.read(data);
    mover.set(offset);
    busy.push(await load(cluster));
    await cluster.signIn();
    return head;
  };
  await decideUpTo(firing, Date.now() + 1000);

  const atBack = await set(-HOUR);
  const [later] = await createTasks(cluster, [everySecond('latest', 1, { name: 'made then' })]);
  if (later === undefined) throw new Error('no task was created');
  const tasks = [...firing, later];
  await decideUpTo([later], Date.now() - HOUR + 1000);

  const atRight = await set(0);
  await decideUpTo(tasks, Date.now() + 1000);

  const atForward = await set(HOUR);
  await decideUpTo(tasks, Date.now() + HOUR + 1000);

  const ledger = await settled(cluster, data, tasks);
  await cluster.kill([0]);
  mover.set(0);
  await cluster.restart([0]);
  await cluster.signIn();
  const ran = await cluster.client().post(`/tasks/${later.id}/run_now?wait=20`);
  await cluster.terminate();
  const afterRestart = ran.at('details.run.state') ?? ran.text;
  return { ledger, tasks, atBack, atRight, atForward, busy, afterRestart };
}

/** A process's CPU use, measured for about a second. */
async function load(cluster: Cluster): Promise<number> {
  const spent = async (): Promise<number> => {
    const { text } = await cluster.clientOf(0).get('/ext/observability/metrics');
    return Number(/^process_cpu_seconds_total ([\d.e+-]+)/m.exec(text)?.[1]);
  };
  const began = performance.now();
  const before = await spent();
  await eventually(() => performance.now() - began > 1500);
  return ((await spent()) - before) / ((performance.now() - began) / 1000);
}
