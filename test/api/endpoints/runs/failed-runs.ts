import type { DataOf, RunEvent, StepEnd } from '../../../../domain/events/catalogue.ts';
import { streams } from '../../../../domain/streams.ts';
import { stepEnd } from '../../../projections/recorded.ts';
import type { RunningApi, SignedIn } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

const pipeline = ['a', 'b', 'c'].map((id) => ({ id, uses: 'echo', with: {} }));

/** What a worker writes when it takes a run. */
export const start: RunEvent = {
  type: 'RunStarted',
  data: { worker: 'w', attempt: 1, leased_until: '2090-01-01T00:00:00.000Z' },
};

/**
 * Tasks with three steps `a`, `b`, `c`, and failed runs of them, as a worker would have recorded
 * them.
 */
export class FailedRuns {
  readonly #api: RunningApi;
  readonly #caller: SignedIn;

  constructor(api: RunningApi, caller: SignedIn) {
    this.#api = api;
    this.#caller = caller;
  }

  async makeTask(extra: object = {}): Promise<string> {
    const { id, client } = this.#caller;
    const body = { ...plainTask(id), payload: { pipeline }, ...extra };
    return (await client.post('/tasks', body)).textAt('id');
  }

  async runNow(task: string): Promise<string> {
    return (await this.#caller.client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
  }

  /** Starts a run, finishes these steps, and lets it fail. */
  async failWith(
    task: string,
    run: string,
    steps: readonly StepEnd[],
    error = 'broken',
  ): Promise<void> {
    const started_at = new Date(this.#api.clock.now()).toISOString();
    const ended = { task_id: task, started_at, attempt: 1, error, step: 'c', steps: [] };
    const recorded: RunEvent[] = steps.map((data) => ({ type: 'RunStepCompleted', data }));
    await this.#api.append(streams.run(run), [
      start,
      ...recorded,
      { type: 'RunFailed', data: { ...ended, output: {} } },
    ]);
  }

  /** A new run with two finished steps and a failed third one. */
  async failed(task: string, error?: string): Promise<string> {
    const run = await this.runNow(task);
    const broken = stepEnd('c', { status: 'failed', result: null, error: 'broken' });
    await this.failWith(task, run, [stepEnd('a'), stepEnd('b'), broken], error);
    return run;
  }

  async succeed(task: string, run: string): Promise<void> {
    const started_at = new Date(this.#api.clock.now()).toISOString();
    const data = { task_id: task, started_at, attempt: 1, steps: [], output: {} };
    await this.#api.append(streams.run(run), [start, { type: 'RunSucceeded', data }]);
  }

  async requestOf(run: string): Promise<DataOf<'RunRequested'>> {
    const [first] = await this.#api.store.readStream(streams.run(run));
    if (first?.type !== 'RunRequested') throw new Error(`${run} was not requested`);
    return first.data;
  }
}
