import type { Clock } from '../../../domain/clock.ts';
import type { BackgroundAccess, BackgroundTaskView } from '../../contract.ts';
import { requireCapability } from '../context.ts';
import type { LeasedWork, WorkItem } from '../leased-work.ts';
import type { RetriedWork } from '../retried-work.ts';
import { summarizeError, type Extension } from '../extension.ts';

/** Pause before a task that threw is restarted, in milliseconds. It doubles each time up to the maximum. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;

/** After running this long, a restarted task works again, and the pauses start over. Milliseconds. */
const STABLE_AFTER_MS = MAX_PAUSE_MS;

class BackgroundTask implements WorkItem {
  readonly name: string;
  readonly label: string;
  state: BackgroundTaskView['state'] = 'waiting';
  restarts = 0;
  error: string | null = null;
  readonly #work: (signal: AbortSignal) => Promise<void>;
  readonly #clock: Clock;
  readonly #report: RetriedWork;

  constructor(
    name: string,
    work: (signal: AbortSignal) => Promise<void>,
    clock: Clock,
    reportOf: (what: string) => RetriedWork,
  ) {
    this.name = name;
    this.label = `background task ${name}`;
    this.#work = work;
    this.#clock = clock;
    this.#report = reportOf(this.label);
  }

  async run(signal: AbortSignal): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!signal.aborted && this.state !== 'done') {
      const startedAt = this.#clock.steady();
      this.state = 'running';
      try {
        await this.#attempt(signal);
        // A stopped task is not done: the next lease holder starts it again.
        this.state = signal.aborted ? 'waiting' : 'done';
        if (!signal.aborted) this.#report.worked();
      } catch (error) {
        this.state = 'waiting';
        if (signal.aborted) return;
        this.error = summarizeError(error);
        this.#report.failed(error);
        if (this.#clock.steady() - startedAt >= STABLE_AFTER_MS) pause = FIRST_PAUSE_MS;
        await this.#clock.sleep(pause, signal).catch(() => {});
        pause = Math.min(2 * pause, MAX_PAUSE_MS);
        this.restarts += 1;
      }
    }
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const stable = (): void => this.#report.worked();
    const forget = this.#clock.after(STABLE_AFTER_MS, stable, { background: true });
    try {
      await this.#work(signal);
    } finally {
      forget();
    }
  }
}

/**
 * An extension's access to background tasks.
 * @param enter calls the extension's code
 * @param reportOf reports failures of a task, by its label
 */
export function backgroundAccess(
  extension: Extension,
  leasedWork: LeasedWork,
  clock: Clock,
  enter: <T>(call: () => T) => T,
  reportOf: (what: string) => RetriedWork,
): BackgroundAccess {
  const tasks = new Map<string, BackgroundTask>();
  return Object.freeze({
    async startTask(name, work) {
      requireCapability(extension, 'BACKGROUND_TASKS');
      const existing = tasks.get(name);
      if (existing !== undefined && existing.state !== 'done') {
        throw new Error(`extension ${extension.id} already has a background task ${name}`);
      }
      const call = (signal: AbortSignal): Promise<void> => enter(async () => work(signal));
      const task = new BackgroundTask(name, call, clock, reportOf);
      tasks.set(name, task);
      // The earlier task has ended, so there is nothing to wait for.
      if (existing !== undefined) void leasedWork.remove(existing);
      leasedWork.add(task);
    },
    async stopTask(name) {
      const task = tasks.get(name);
      if (task === undefined) return;
      tasks.delete(name);
      await leasedWork.remove(task);
    },
    listTasks: () =>
      [...tasks.values()].map(({ name, state, restarts, error }) => {
        return { name, state, restarts, error };
      }),
  } satisfies BackgroundAccess);
}
