import { expect } from 'chai';
import { SystemClock } from '../../../app/clock.ts';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import type { RunningService } from '../../../app/running-service.ts';
import { startService } from '../../../app/service.ts';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import { streams } from '../../../domain/streams.ts';
import { createTelemetry } from '../../../observability/create-telemetry.ts';
import { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/signals.ts';

/** The fields of a run that these tests use. */
export interface ShownRun {
  readonly id: string;
  readonly depth: number;
  readonly state: string;
  readonly error: string | null;
}

/** Extensions are loaded and views are built on a machine that may be busy. */
const patient = { limitMs: 60_000 };

/** The error of a run whose chain was cut. */
export const cutAt = (limit: number, undone: string): string =>
  `${undone}: its chain of causes has ${limit} runs, and the limit is ${limit} ` +
  '(SVC_MAX_CAUSATION_DEPTH); check whether tasks cause each other in a loop';

/** A whole service in this process, whose only agent is an administrator. */
export class CausingService {
  readonly client: ApiClient;
  readonly token: string;
  readonly #admin: string;
  readonly #service: RunningService;

  private constructor(service: RunningService, client: ApiClient, admin: string, token: string) {
    this.#service = service;
    this.client = client;
    this.#admin = admin;
    this.token = token;
  }

  /**
   * @param folder holds the stores; a service continues with those that a stopped one left there
   */
  static async start(
    folder: string,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<CausingService> {
    const secret = 'the secret of the first agent';
    const admin = '018f0000-0000-7000-8000-00000000000a';
    const service = await startService({
      configuration: readConfiguration({
        SVC_PORT: '0',
        SVC_DATA_DIR: folder,
        SVC_LOG_LEVEL: 'silent',
        SVC_ADMIN_ID: admin,
        SVC_ADMIN_SECRET: secret,
        ...settings,
      }),
      clock: new SystemClock(),
      telemetry: createTelemetry({ level: 'silent' }),
      env: {},
    });
    const client = ApiClient.readingOwnWrites(service.address);
    await eventually(async () => (await client.get('/health/ready')).status === 200, patient);
    const signIn = { agent_id: admin, agent_secret: secret };
    const token = (await client.post('/agents/auth/token', signIn)).textAt('access_token');
    return new CausingService(service, client.as(token), admin, token);
  }

  /** Creates a task that runs when an event on the topic is published. @returns its id */
  async listen(topic: string, pipeline: readonly object[]): Promise<string> {
    const answer = await this.client.post('/tasks', {
      title: `Listens to ${topic}`,
      description: 'One of a chain',
      created_by: this.#admin,
      schedule_kind: 'event',
      schedule_expr: topic,
      payload: { pipeline },
    });
    expect(answer.status, answer.text).to.equal(201);
    return answer.textAt('id');
  }

  async publish(topic: string): Promise<void> {
    const event = { topic, payload: {}, source_agent_id: this.#admin };
    const answer = await this.client.post('/events', event);
    expect(answer.status, answer.text).to.equal(202);
  }

  /** All runs, by depth. */
  async runs(): Promise<readonly ShownRun[]> {
    const listed = await this.client.get('/runs?limit=200&include_errors=true');
    const runs = listed.at('items') as readonly ShownRun[];
    return [...runs].sort((a, b) => a.depth - b.depth);
  }

  /** Waits until a run has failed and none is left to run. @returns all runs, by depth */
  async endOfChain(): Promise<readonly ShownRun[]> {
    let runs: readonly ShownRun[] = [];
    await eventually(async () => {
      runs = await this.runs();
      const unfinished = runs.filter(({ state }) => state !== 'succeeded' && state !== 'failed');
      return unfinished.length === 0 && runs.some(({ state }) => state === 'failed');
    }, patient);
    return runs;
  }

  /** The events of a topic, as they are in the log. */
  published(topic: string): Promise<readonly RecordedEvent[]> {
    return this.#service.stores.store.readStream(streams.topic('default', topic));
  }

  /** The value of a series of the metrics. */
  async metric(series: string): Promise<number> {
    const { text } = await this.client.get('/ext/observability/metrics');
    const line = text.split('\n').find((each) => each.startsWith(`${series} `));
    return Number(line?.slice(series.length + 1));
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.#service.stop();
  }
}
