import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { projectRoot } from '../../support/project-root.ts';
import { Signal } from '../../support/signals.ts';

/** A worker in its own process, `worker-program.mjs`, from the build (see `buildService`). */
export class WorkerProcess {
  /** What it reports about its jobs. */
  readonly lines = new Signal<string>('lines of the worker');
  /** Its log. */
  readonly log = new Signal<string>('log lines of the worker');
  readonly #ended = new Signal<number | NodeJS.Signals | null>('the end of the worker');
  readonly #child: ChildProcess;

  private constructor(words: readonly string[]) {
    const program = join(projectRoot, 'test/process/workers/worker-program.mjs');
    const child = spawn(process.execPath, [program, ...words], {
      cwd: projectRoot,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    createInterface({ input: child.stdout }).on('line', this.lines.send);
    createInterface({ input: child.stderr }).on('line', this.log.send);
    child.once('close', (code, signal) => {
      alive.delete(this);
      this.#ended.send(code ?? signal);
    });
    this.#child = child;
    alive.add(this);
  }

  /** Starts a worker, and waits until it takes jobs. */
  static async start(
    url: string,
    agent: { readonly id: string; readonly secret: string },
  ): Promise<WorkerProcess> {
    const worker = new WorkerProcess([url, agent.id, agent.secret]);
    const started = worker.lines.wait((line) => line.startsWith('started '), { limitMs: 30_000 });
    const ended = worker.#ended.wait(undefined, { limitMs: 31_000 }).catch(() => null);
    await Promise.race([
      started,
      ended.then((end) => {
        throw new Error(`the worker ended (${end}): ${worker.log.values.join('\n')}`);
      }),
    ]);
    return worker;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended();
  }

  /** @returns its exit code, or the signal that ended it */
  ended(): Promise<number | NodeJS.Signals | null> {
    return this.#ended.wait(undefined, { limitMs: 30_000 });
  }
}

const alive = new Set<WorkerProcess>();

/** Called inside a `describe`: kills the workers that a test has left running. */
export function endsItsWorkers(): void {
  afterEach(async () => {
    await Promise.all([...alive].map((worker) => worker.kill()));
  });
}
