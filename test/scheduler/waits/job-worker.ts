import type { RefusalError } from '../../../domain/errors.ts';
import type { CommandContext } from '../../../domain/handle.ts';
import type { JobAnswer } from '../../../scheduler/jobs/job-answers.ts';
import type { HandedJob, Offer } from '../../../scheduler/jobs/job.ts';
import { JOB_TOOL, type WaitsProcess } from './waits-process.ts';
import type { WaitsWorld } from './waits-world.ts';

/** An external worker, which polls any live process. Its requests to a dead process get no response. */
export class JobWorker {
  /** Each job that it was given, in order. */
  readonly given: HandedJob[] = [];
  readonly #world: WaitsWorld;
  readonly #offer: Offer;

  constructor(world: WaitsWorld, id = 'worker-1') {
    this.#world = world;
    const tools = [{ name: JOB_TOOL, schema: {} }];
    const agent_id = `agent of ${id}`;
    this.#offer = { id, namespace: 'default', agent_id, name: id, tools, labels: {} };
  }

  get #sender(): { readonly agentId: string; readonly namespace: string } {
    const { agent_id: agentId, namespace } = this.#offer;
    return { agentId, namespace };
  }

  /** Polls a process for a job. @returns null if there is none, or the process dies */
  async poll(process: WaitsProcess): Promise<HandedJob | null> {
    const polled = process.jobs.poll(this.#offer, 1, 0, new AbortController().signal);
    const [job] = (await answerOf(process, this.#world, polled)) ?? [];
    if (job !== undefined) this.given.push(job);
    return job ?? null;
  }

  /** Ends a job. @returns the error, or null; undefined if the process dies before it responds */
  async finish(
    process: WaitsProcess,
    { job_id: job, lease }: Pick<HandedJob, 'job_id' | 'lease'>,
    how: { readonly result: unknown } | { readonly error: string; readonly retryable: boolean },
    more: Partial<CommandContext> = {},
  ): Promise<RefusalError | null | undefined> {
    const context = { ...this.#world.world.context(), ...more };
    const answers: JobAnswer[] = [{ job, lease, ...how }];
    const finished = process.jobs.finish(answers, this.#sender, context);
    return (await answerOf(process, this.#world, finished))?.[0];
  }

  async heartbeat(
    process: WaitsProcess,
    { job_id: job, lease }: Pick<HandedJob, 'job_id' | 'lease'>,
    said: Parameters<WaitsProcess['jobs']['heartbeat']>[1] = {},
  ): Promise<void> {
    const context = this.#world.world.context();
    await process.jobs.heartbeat({ job, lease }, said, this.#sender, context);
  }
}

/** The response of a process; undefined if it dies first. */
async function answerOf<T>(
  process: WaitsProcess,
  { world }: WaitsWorld,
  answer: Promise<T>,
): Promise<T | undefined> {
  let settled: { readonly answer: T } | undefined;
  let failure: { readonly error: unknown } | undefined;
  answer.then(
    (value) => (settled = { answer: value }),
    (error: unknown) => (failure = { error }),
  );
  for (;;) {
    await world.idle();
    if (process.store.dead) return undefined;
    if (failure !== undefined) throw failure.error;
    if (settled !== undefined) return settled.answer;
  }
}
