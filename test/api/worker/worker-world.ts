import { SystemClock } from '../../../app/clock.ts';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import type { RunningService } from '../../../app/running-service.ts';
import { startService } from '../../../app/service.ts';
import { Worker, type Tool, type WorkerOptions } from '../../../api/worker/worker.ts';
import { createTelemetry } from '../../../observability/create-telemetry.ts';
import { ApiClient, type ReceivedResponse } from '../../support/api-client.ts';
import { eventually, found, Signal } from '../../support/signals.ts';
import { makeTemporaryDirectory } from '../../support/temporary-directory.ts';

/** A message of a worker's log. */
export interface Said {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

type Call = (url: URL, init: RequestInit | undefined) => Promise<Response>;

/** A whole service in this process, and the workers of a test. */
export class WorkerWorld {
  readonly url: string;
  readonly admin: ApiClient;
  /** Has the scope `jobs:work`. */
  readonly agent: { readonly agentId: string; readonly agentSecret: string };
  /** The log messages of the test's workers. */
  said = new Signal<Said>('messages of workers');
  readonly adminId: string;
  readonly #workers: Worker[] = [];

  private constructor(parts: Pick<WorkerWorld, 'url' | 'admin' | 'agent' | 'adminId'>) {
    this.url = parts.url;
    this.admin = parts.admin;
    this.agent = parts.agent;
    this.adminId = parts.adminId;
  }

  static async over(service: RunningService, open: ApiClient): Promise<WorkerWorld> {
    const first = await service.firstAdmin;
    if (first === null) throw new Error('an empty store has no first agent');
    const isReady = async (): Promise<boolean> => (await open.get('/health/ready')).status === 200;
    // All views are built from scratch, on a machine that may be busy.
    await eventually(isReady, { limitMs: 60_000 });
    const { agent_id, agent_secret } = first;
    const token = await open.post('/agents/auth/token', { agent_id, agent_secret });
    const admin = open.as(token.textAt('access_token'));
    const made = await admin.post('/agents', { name: 'works', scopes: ['jobs:work'] });
    const agentId = made.textAt('id');
    const secret = await admin.post(`/agents/${agentId}/credentials`);
    const agent = { agentId, agentSecret: secret.textAt('agent_secret') };
    return new WorkerWorld({ url: service.address, admin, agent, adminId: agent_id });
  }

  /** Starts a worker, which is stopped after the test. */
  async worker(
    tools: Readonly<Record<string, Tool['run']>>,
    more: Partial<WorkerOptions> = {},
  ): Promise<Worker> {
    const offered = Object.entries(tools).map(
      ([name, run]) => [name, { description: name, schema: {}, run }] as const,
    );
    const worker = new Worker({
      url: this.url,
      ...this.agent,
      tools: Object.fromEntries(offered),
      shutdownSeconds: 5,
      log: (level, message, fields) => this.said.send({ level, message, fields }),
      ...more,
    });
    this.#workers.push(worker);
    await worker.start();
    return worker;
  }

  /** Requests a run of a new task with these steps. @returns the run's id */
  async run(...pipeline: readonly object[]): Promise<string> {
    const task = await this.admin.post('/tasks', {
      title: 'Job',
      description: 'of a worker',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: this.adminId,
      max_retries: 0,
      payload: { pipeline },
    });
    const asked = await this.admin.post(`/tasks/${task.textAt('id')}/run_now`);
    return asked.textAt('details.run_id');
  }

  async read(runId: string): Promise<ReceivedResponse> {
    return this.admin.get(`/runs/${runId}`);
  }

  /** The run once it has ended. */
  ended(runId: string): Promise<Readonly<Record<string, unknown>>> {
    return found(
      async () => {
        const { json } = await this.read(runId);
        const state = String(json['state']);
        return ['succeeded', 'failed', 'canceled'].includes(state) ? json : undefined;
      },
      { what: `run ${runId} to end` },
    );
  }

  /** The step's result, once the run has succeeded. */
  async result(runId: string, step = 'step_0'): Promise<unknown> {
    const { output, state, error } = await this.ended(runId);
    if (state !== 'succeeded') throw new Error(`the run ${String(state)}: ${String(error)}`);
    return (output as { readonly steps: Readonly<Record<string, unknown>> }).steps[step];
  }

  async endTest(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop()));
    this.said = new Signal<Said>('messages of workers');
  }
}

/** Called inside a `describe`: its tests share one service, whose job leases outlast a stall by default. */
export function useWorkerWorld(settings: Readonly<Record<string, string>> = {}): () => WorkerWorld {
  let world: WorkerWorld | undefined;
  let close = async (): Promise<void> => {};
  before(async () => {
    const directory = await makeTemporaryDirectory();
    const service = await startService({
      configuration: readConfiguration({
        SVC_PORT: '0',
        SVC_HOST: '127.0.0.1',
        SVC_DATA_DIR: directory.path,
        SVC_LOG_LEVEL: 'silent',
        SVC_JOB_LEASE_SECONDS: '15',
        SVC_JOB_HEARTBEAT_SECONDS: '1',
        SVC_RATE_LIMIT: '0',
        ...settings,
      }),
      clock: new SystemClock(),
      telemetry: createTelemetry({ level: 'silent' }),
      env: {},
    });
    const open = ApiClient.readingOwnWrites(service.address);
    close = async () => {
      open.close();
      await service.stop();
      await directory.remove();
    };
    world = await WorkerWorld.over(service, open);
  });
  afterEach(() => world?.endTest());
  after(() => close());
  return () => {
    if (world === undefined) throw new Error('the service runs only during the tests');
    return world;
  };
}

/** A `fetch` that lets a test answer some requests itself; undefined sends them on. */
export function fetchBut(
  answer: (path: string, init: RequestInit | undefined) => Promise<Response | undefined>,
): typeof fetch {
  const call: Call = async (url, init) => (await answer(url.pathname, init)) ?? fetch(url, init);
  return (input, init) => call(new URL(input instanceof Request ? input.url : input), init);
}
