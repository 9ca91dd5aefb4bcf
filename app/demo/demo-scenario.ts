import { ApiError, createClient, type Client, type RunItem } from '../../api/client/client.ts';
import type { Clock } from '../../domain/clock.ts';
import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import { streams } from '../../domain/streams.ts';
import { demoOrder, demoTasks, demoTopic, type DemoTask } from './demo-tasks.ts';

/** Something did not go as the demo expects; the message says what. */
export class DemoError extends Error {
  override readonly name = 'DemoFault';
}

/** The parts that the demo uses of a run as the API answers it. */
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

/** A created task with the runs that were seen of it, the oldest first. */
export interface TaskWithRuns extends DemoTask {
  readonly id: string;
  readonly seen: readonly DemoRun[];
}

/** What the demo saw. */
export interface DemoOutcome {
  readonly tasks: readonly TaskWithRuns[];
  /** Id of the published event. */
  readonly eventId: string;
  /** Ids of the tasks that the answer to the publication named. */
  readonly triggered: readonly string[];
  /** Stream of the run that called the HTTP server; empty when it has none. */
  readonly calling: readonly RecordedEvent[];
  /** Stream of the run that the event made; empty when it has none. */
  readonly triggeredRun: readonly RecordedEvent[];
}

/** Pause between two looks at what is waited for. Milliseconds. */
const LOOK_EVERY = 100;
/** How long the service may take to be ready. Milliseconds. */
const READY_LIMIT = 10_000;
/** How long the runs may take. Milliseconds. */
const RUNS_LIMIT = 15_000;

const scopes = ['tasks:read', 'tasks:write', 'runs:read', 'events:publish'] as const;

/** Does what a client would do, by HTTP alone; only the streams at the end are read from the log itself. */
export class DemoScenario {
  readonly #admin: { readonly agent_id: string; readonly agent_secret: string };
  readonly #address: string;
  readonly #store: EventStore;
  readonly #receiver: string;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #say: (line: string) => void;

  constructor(options: {
    readonly admin: { readonly agent_id: string; readonly agent_secret: string };
    /** Of the service. */
    readonly address: string;
    readonly store: EventStore;
    /** Address of the HTTP server that a task calls. */
    readonly receiver: string;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    /** Told of each step. */
    readonly say: (line: string) => void;
  }) {
    this.#admin = options.admin;
    this.#address = options.address;
    this.#store = options.store;
    this.#receiver = options.receiver;
    this.#clock = options.clock;
    this.#signal = options.signal;
    this.#say = options.say;
  }

  /**
   * Plays it through. Runs that do not come are no error here: they are missing in the outcome.
   * @throws ApiError when the service refuses something, DemoFault when it is not ready in time
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
    this.#say(`POST /events                     ${demoTopic}, triggers ${triggered.length} task`);
    this.#say('GET  /runs?task_id=…             until all have ended');
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
    const ready = await this.#until(READY_LIMIT, () => isReady(client));
    if (!ready) throw new DemoError(`the service is not ready after ${READY_LIMIT / 1000} s`);
    this.#say('GET  /health/ready               it is ready');
  }

  /** An agent of its own, as every program that uses the service should have. */
  async #agent(): Promise<{ readonly agentId: string; readonly client: Client }> {
    const admin = await this.#signIn(this.#admin);
    this.#say('POST /agents/auth/token          a token as admin');
    const agent = await admin.agents.create({ name: 'demo', scopes: [...scopes] });
    this.#say(`POST /agents                     an agent, demo, with ${scopes.join(' ')}`);
    const { data } = await admin.agents.setCredentials(agent.data.id);
    this.#say('POST /agents/{id}/credentials    its secret, shown this once');
    const client = await this.#signIn(data);
    this.#say('POST /agents/auth/token          a token as demo');
    return { agentId: agent.data.id, client };
  }

  async #signIn(held: { readonly agent_id: string; readonly agent_secret: string }) {
    const { agent_id, agent_secret } = held;
    const { data } = await this.#connect().tokens.get({ agent_id, agent_secret });
    return this.#connect(data.access_token);
  }

  #connect(token?: string): Client {
    const options = { baseUrl: this.#address, signal: this.#signal };
    return createClient(token === undefined ? options : { ...options, token });
  }

  async #create(
    agentId: string,
    client: Client,
  ): Promise<readonly (DemoTask & { readonly id: string })[]> {
    const created: (DemoTask & { readonly id: string })[] = [];
    for (const task of demoTasks(agentId, this.#receiver, this.#clock.now())) {
      const { data } = await client.tasks.create(task.body);
      created.push({ ...task, id: data.id });
      this.#say(`POST /tasks                      ${task.kind}`);
    }
    return created;
  }

  async #runs(
    tasks: readonly (DemoTask & { readonly id: string })[],
    client: Client,
  ): Promise<readonly TaskWithRuns[]> {
    const look = (): Promise<readonly TaskWithRuns[]> =>
      Promise.all(
        tasks.map(async (task) => {
          const { data } = await client.runs.list({ task_id: task.id, include_errors: true });
          return { ...task, seen: data.items.toReversed() };
        }),
      );
    let seen = await look();
    await this.#until(RUNS_LIMIT, async () => {
      seen = await look();
      return seen.every((task) => task.seen.filter(hasEnded).length >= task.runs);
    });
    return seen;
  }

  #stream(runId: string | undefined): Promise<readonly RecordedEvent[]> {
    return runId === undefined ? Promise.resolve([]) : this.#store.readStream(streams.run(runId));
  }

  /** Looks again and again. @returns whether what is waited for came in time */
  async #until(limit: number, holds: () => Promise<boolean>): Promise<boolean> {
    const end = this.#clock.now() + limit;
    while (!(await holds())) {
      if (this.#clock.now() >= end) return false;
      await this.#clock.sleep(LOOK_EVERY, this.#signal);
    }
    return true;
  }
}

/** Not ready is an answer too. @throws what `fetch` throws where there is none */
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
