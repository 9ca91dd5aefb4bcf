import type { Clock } from '../../../domain/clock.ts';
import type { BackgroundAccess, BackgroundTaskView } from '../../contract.ts';
import { needed } from '../context.ts';
import type { Duty, DutyItem } from '../duty.ts';
import { faultText, type Extension } from '../extension.ts';

/** The pause before work that threw is begun again; doubled each time, up to the most. Milliseconds. */
const PAUSE = 1_000;
const MOST_PAUSE = 60_000;

class Task implements DutyItem {
  readonly name: string;
  readonly what: string;
  state: BackgroundTaskView['state'] = 'waiting';
  restarts = 0;
  error: string | null = null;
  readonly #work: (signal: AbortSignal) => Promise<void>;
  readonly #clock: Clock;
  readonly #failed: (error: unknown) => void;

  constructor(options: {
    readonly name: string;
    readonly work: (signal: AbortSignal) => Promise<void>;
    readonly clock: Clock;
    readonly failed: (error: unknown) => void;
  }) {
    this.name = options.name;
    this.what = `background task ${options.name}`;
    this.#work = options.work;
    this.#clock = options.clock;
    this.#failed = options.failed;
  }

  async run(signal: AbortSignal): Promise<void> {
    let pause = PAUSE;
    while (!signal.aborted && this.state !== 'done') {
      const begun = this.#clock.steady();
      this.state = 'running';
      try {
        await this.#work(signal);
        // Told to stop, it has not come to its own end: it is begun again by whoever has the next turn.
        this.state = signal.aborted ? 'waiting' : 'done';
      } catch (error) {
        this.state = 'waiting';
        if (signal.aborted) return;
        this.error = faultText(error);
        this.#failed(error);
        if (this.#clock.steady() - begun > MOST_PAUSE) pause = PAUSE;
        await this.#clock.sleep(pause, signal).catch(() => {});
        pause = Math.min(2 * pause, MOST_PAUSE);
        this.restarts += 1;
      }
    }
  }
}

/** The background tasks of an extension. */
export class BackgroundTasks {
  readonly access: BackgroundAccess;
  readonly #tasks = new Map<string, Task>();

  /** @param enter calls into the extension's code */
  constructor(
    extension: Extension,
    duty: Duty,
    clock: Clock,
    enter: <T>(call: () => T) => T,
    fault: (what: string, error: unknown) => void,
  ) {
    const tasks = this.#tasks;
    this.access = Object.freeze({
      async startTask(name, work) {
        needed(extension, 'BACKGROUND_TASKS');
        const known = tasks.get(name);
        if (known !== undefined && known.state !== 'done') {
          throw new Error(`there is a background task ${name} of ${extension.id} already`);
        }
        const task: Task = new Task({
          name,
          work: (signal) => enter(async () => work(signal)),
          clock,
          failed: (error) => fault(task.what, error),
        });
        tasks.set(name, task);
        // It is done: nothing is waited for.
        if (known !== undefined) void duty.remove(known);
        duty.add(task);
      },
      async stopTask(name) {
        const task = tasks.get(name);
        if (task === undefined) return;
        tasks.delete(name);
        await duty.remove(task);
      },
      listTasks: () =>
        [...tasks.values()].map(({ name, state, restarts, error }) => ({
          name,
          state,
          restarts,
          error,
        })),
    } satisfies BackgroundAccess);
  }
}
