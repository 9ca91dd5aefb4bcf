import { ApiError, createClient, type Client, type RunItem } from '../../api/client/client.ts';
import type { Clock } from '../../domain/clock.ts';
import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import { streams } from '../../domain/streams.ts';
import { demoOrder, demoTasks, demoTopic, type DemoTask } from './demo-tasks.ts';

/** Something did not go as the demo expects. */
export class DemoError extends Error {
  override readonly name = 'DemoError';
}

/** The fields of a run that the demo uses. */
export type DemoRun = Pick<
  RunItem,
  | 'id'
  | 'task_id'
  | 'trigger'
  | 'state'
  | 'attempt'
  | 'scheduled_for'
  | 'started_at'
  | 'finished_at'
  | 'error'
  | 'output'
>;

/** A created task with its runs, oldest first. */
export interface TaskWithRuns extends DemoTask {
  readonly id: string;
  readonly seen: readonly DemoRun[];
}

/** The events of the demo. */
export interface DemoOutcome {
  readonly tasks: readonly TaskWithRuns[];
  /** Id of the published event. */
  readonly eventId: string;
  /** Ids of the triggered tasks in the response to the publication. */
  readonly triggered: readonly string[];
  /** Stream of the run that called the HTTP server; empty without one. */
  readonly calling: readonly RecordedEvent[];
  /** Stream of the run that the event triggered; empty without one. */
  readonly triggeredRun: readonly RecordedEvent[];
}

/** Milliseconds between two polls. */
const POLL_INTERVAL = 100;
/** Milliseconds until the service must be ready. */
const READY_TIMEOUT = 30_000;
/** Milliseconds until the runs must have ended. */
const RUNS_TIMEOUT = 40_000;

const scopes = ['tasks:read', 'tasks:write', 'runs:read', 'events:publish'] as const;

interface DemoOptions {
  readonly admin: { readonly agent_id: string; readonly agent_secret: string };
  /** The service's address. */
  readonly address: string;
  readonly store: EventStore;
  /** Address of the HTTP server that a task calls. */
  readonly receiver: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Receives a line for each step. */
  readonly say: (line: string) => void;
}

/** Plays a client over HTTP. Only the streams at the end are read from the log. */
export class DemoScenario {
  readonly #options: DemoOptions;

  constructor(options: DemoOptions) {
    this.#options = options;
  }

  /**
   * Plays the scenario. Missing runs are no error; the outcome lacks them.
   * @throws ApiError if the service rejects a request, DemoError if it is not ready in time
   */
  async play(): Promise<DemoOutcome> {
    await this.#ready();
    const { agentId, client } = await this.#agent();
    const tasks = await this.#create(agentId, client);
    const published = await client.events.publish({
      topic: demoTopic,
      payload: demoOrder,
      source_agent_id: agentId,
    });
    const { event_id: eventId, triggered_tasks: triggered } = published.data.details;
    this.#options.say(
      `POST /events                     ${demoTopic}, triggers ${triggered.length} task`,
    );
    this.#options.say('GET  /runs?task_id=…             until all have ended');
    const seen = await this.#runs(tasks, client);
    const runOf = (kind: string): string | undefined =>
      seen.find((task) => task.kind === kind)?.seen[0]?.id;
    return {
      tasks: seen,
      eventId,
      triggered,
      calling: await this.#stream(runOf('once')),
      triggeredRun: await this.#stream(runOf('event')),
    };
  }

  async #ready(): Promise<void> {
    const client = this.#connect();
    const ready = await this.#until(READY_TIMEOUT, () => isReady(client));
    if (!ready) throw new DemoError(`the service is not ready after ${READY_TIMEOUT / 1000} s`);
    this.#options.say('GET  /health/ready               it is ready');
  }

  /** The demo's own agent, as every program should have one. */
  async #agent(): Promise<{ readonly agentId: string; readonly client: Client }> {
    const admin = await this.#signIn(this.#options.admin);
    this.#options.say('POST /agents/auth/token          a token as admin');
    const agent = await admin.agents.create({ name: 'demo', scopes: [...scopes] });
    this.#options.say(`POST /agents                     an agent, demo, with ${scopes.join(' ')}`);
    const { data } = await admin.agents.setCredentials(agent.data.id);
    this.#options.say('POST /agents/{id}/credentials    its secret, shown this once');
    const client = await this.#signIn(data);
    this.#options.say('POST /agents/auth/token          a token as demo');
    return { agentId: agent.data.id, client };
  }

  async #signIn(held: { readonly agent_id: string; readonly agent_secret: string }) {
    const { agent_id, agent_secret } = held;
    const { data } = await this.#connect().tokens.get({ agent_id, agent_secret });
    return this.#connect(data.access_token);
  }

  #connect(token?: string): Client {
    const options = { baseUrl: this.#options.address, signal: this.#options.signal };
    return createClient(token === undefined ? options : { ...options, token });
  }

  async #create(
    agentId: string,
    client: Client,
  ): Promise<readonly (DemoTask & { readonly id: string })[]> {
    const created: (DemoTask & { readonly id: string })[] = [];
    for (const task of demoTasks(agentId, this.#options.receiver, this.#options.clock.now())) {
      const { data } = await client.tasks.create(task.body);
      created.push({ ...task, id: data.id });
      this.#options.say(`POST /tasks                      ${task.kind}`);
    }
    return created;
  }

  async #runs(
    tasks: readonly (DemoTask & { readonly id: string })[],
    client: Client,
  ): Promise<readonly TaskWithRuns[]> {
    const read = (): Promise<readonly TaskWithRuns[]> =>
      Promise.all(
        tasks.map(async (task) => {
          const { data } = await client.runs.list({ task_id: task.id, include_errors: true });
          return { ...task, seen: data.items.toReversed() };
        }),
      );
    let seen = await read();
    await this.#until(RUNS_TIMEOUT, async () => {
      seen = await read();
      return seen.every((task) => task.seen.filter(hasEnded).length >= task.runs);
    });
    return seen;
  }

  #stream(runId: string | undefined): Promise<readonly RecordedEvent[]> {
    return runId === undefined
      ? Promise.resolve([])
      : this.#options.store.readStream(streams.run(runId));
  }

  /** Polls a condition. Returns whether it was met in time. */
  async #until(limit: number, holds: () => Promise<boolean>): Promise<boolean> {
    const end = this.#options.clock.now() + limit;
    while (!(await holds())) {
      if (this.#options.clock.now() >= end) return false;
      await this.#options.clock.sleep(POLL_INTERVAL, this.#options.signal);
    }
    return true;
  }
}

/** @throws the error of `fetch` without a response */
async function isReady(client: Client): Promise<boolean> {
  try {
    await client.health.ready();
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 503) return false;
    throw error;
  }
}

const hasEnded = (run: DemoRun): boolean => run.finished_at !== null;
