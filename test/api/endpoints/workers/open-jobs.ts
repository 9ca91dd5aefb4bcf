import { toIso } from '../../../../domain/clock.ts';
import type { DomainEvent } from '../../../../domain/events/catalogue.ts';
import { newId } from '../../../../domain/ids.ts';
import type { JsonObject } from '../../../../domain/json.ts';
import { streams } from '../../../../domain/streams.ts';
import type { ReceivedResponse } from '../../../support/api-client.ts';
import { found } from '../../../support/signals.ts';
import type { RunningApi, SignedIn } from '../../../support/running-api.ts';

let tools = 0;

/** The name of a tool that no other test uses. */
export const newTool = (): string => `tool.${String((tools += 1))}`;

/** A job as a worker receives it. */
export interface GivenJob {
  readonly job_id: string;
  readonly lease: string;
  readonly run_id: string;
  readonly arguments: unknown;
  readonly attempt: number;
  readonly tool: string;
  readonly step: string;
  readonly idempotency_key: string;
  readonly deadline: string;
}

/** The properties of a job to create. */
export interface Wanted {
  readonly tool: string;
  readonly arguments?: unknown;
  readonly labels?: Readonly<Record<string, string>>;
  readonly priority?: number;
  readonly timeoutSeconds?: number;
  readonly notBefore?: number;
  readonly tries?: number;
  readonly payload?: JsonObject;
}

/** A registered worker, and its requests. */
export class TestWorker {
  readonly id: string;
  readonly agent: SignedIn;

  constructor(id: string, agent: SignedIn) {
    this.id = id;
    this.agent = agent;
  }

  poll(query = ''): Promise<ReceivedResponse> {
    return this.agent.client.post(`/workers/${this.id}/jobs${query}`);
  }

  async jobs(query = ''): Promise<readonly GivenJob[]> {
    const answer = await this.poll(query);
    if (answer.status !== 200) throw new Error(answer.text);
    return answer.at('jobs') as GivenJob[];
  }

  /** The next job. */
  async job(query = '?wait=10'): Promise<GivenJob> {
    const [job] = await this.jobs(query);
    if (job === undefined) throw new Error('there is no job');
    return job;
  }

  say(
    { job_id }: Pick<GivenJob, 'job_id'>,
    what: 'heartbeat' | 'complete' | 'fail',
    body: object,
  ): Promise<ReceivedResponse> {
    return this.agent.client.post(`/jobs/${job_id}/${what}`, body);
  }
}

export const anySchema = { type: 'object' };

/** Makes workers and jobs for the tests of an interface. */
export class OpenJobs {
  readonly #api: RunningApi;
  readonly #taskId: string;

  private constructor(api: RunningApi, taskId: string) {
    this.#api = api;
    this.#taskId = taskId;
  }

  static async make(api: RunningApi, payload?: JsonObject): Promise<OpenJobs> {
    const created = await api.admin.client.post('/tasks', {
      title: 'with a job',
      description: 'waits for a worker',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: api.admin.id,
      payload: payload ?? { pipeline: [{ id: 'one', uses: 'echo' }] },
    });
    if (created.status !== 201) throw new Error(created.text);
    return new OpenJobs(api, created.textAt('id'));
  }

  /** A worker of an agent of its own, or of the given one. */
  async worker(
    tools: readonly (string | object)[],
    given: {
      readonly agent?: SignedIn;
      readonly name?: string;
      readonly labels?: Readonly<Record<string, string>>;
    } = {},
  ): Promise<TestWorker> {
    const agent = given.agent ?? (await this.#api.signIn(['jobs:work']));
    const answer = await agent.client.post('/workers', {
      name: given.name ?? 'worker',
      slots: 4,
      labels: given.labels ?? {},
      tools: tools.map((tool) =>
        typeof tool === 'string' ? { name: tool, description: 'a tool', schema: anySchema } : tool,
      ),
    });
    if (answer.status !== 201) throw new Error(answer.text);
    return new TestWorker(answer.textAt('worker_id'), agent);
  }

  /** A run whose step waits for a worker, as a worker of the service leaves it. @returns the ids of the run and the job */
  async open(wanted: Wanted): Promise<{ readonly runId: string; readonly jobId: string }> {
    const now = this.#api.clock.now();
    const runId = newId(now);
    const jobId = newId(now);
    const at = toIso(now);
    const { priority = 5, tries, labels, notBefore } = wanted;
    const events: DomainEvent[] = [
      {
        type: 'RunRequested',
        data: {
          task_id: this.#taskId,
          task_revision: 0,
          created_by: this.#api.admin.id,
          trigger: 'manual',
          scheduled_for: null,
          priority,
          run_at: at,
          event: null,
          retry_of: null,
          prior_steps: [],
          overlap_policy: 'allow',
        },
      },
      { type: 'RunStarted', data: { worker: 'w', attempt: 1, leased_until: at } },
      {
        type: 'RunStepSuspended',
        data: {
          step: 'one',
          wait_id: jobId,
          task_id: this.#taskId,
          attempt: 1,
          waits_for: {
            kind: 'job',
            tool: wanted.tool,
            arguments: wanted.arguments ?? {},
            timeout_seconds: wanted.timeoutSeconds ?? 60,
            priority,
            ...(labels === undefined ? {} : { labels }),
            ...(notBefore === undefined ? {} : { not_before: toIso(notBefore) }),
          },
          since: at,
          until: toIso(now + 7 * 86_400_000),
          ...(tries === undefined ? {} : { tries }),
        },
      },
      { type: 'RunReleased', data: { worker: 'w' } },
    ];
    await this.#api.append(streams.run(runId), events);
    return { runId, jobId };
  }

  /** The events of a run of a type. */
  async eventsOf(runId: string, type: string): Promise<readonly JsonObject[]> {
    const events = await this.#api.store.readStream(streams.run(runId));
    return events.filter((event) => event.type === type).map(({ data }) => data as JsonObject);
  }

  /** The run as clients see it, once it meets a condition. */
  run(runId: string, has: (run: ReceivedResponse) => boolean): Promise<ReceivedResponse> {
    return found(async () => {
      const run = await this.#api.admin.client.get(`/runs/${runId}`);
      return run.status === 200 && has(run) ? run : undefined;
    });
  }
}
