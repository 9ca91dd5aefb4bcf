import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook as Verifier } from 'standardwebhooks';
import { registerAgentCommand } from '../../../domain/agents/agent-registration.ts';
import { fromIso, toIso } from '../../../domain/clock.ts';
import type { NewEvent, RecordedEvent } from '../../../domain/event-store.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import { silent } from '../../../observability/telemetry.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import { Leadership } from '../../../scheduler/processes/leadership.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import { WebhookSender } from '../../../scheduler/webhooks/webhook-sender.ts';
import { Webhooks } from '../../../scheduler/webhooks/webhooks.ts';
import { failure, success } from '../../projections/recorded.ts';
import { Signal } from '../../support/signals.ts';
import type { World } from '../scheduler-world.ts';
import { WatchedStore } from '../watched-store.ts';
import { noSecrets } from '../../support/test-secrets.ts';
import type { SecretAccess } from '../../../domain/secrets/secret-access.ts';

/** A received message. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver of webhooks, over HTTP on this machine. */
export class Receiver {
  readonly received = new Signal<Received>('a message');
  readonly all: Received[] = [];
  /** Sends the response. Tests replace it; one that does nothing leaves the request without a response. */
  answer: (response: ServerResponse) => void = (response) => response.writeHead(204).end();
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { url: path = '', headers } = request;
      const received = { path, headers, body: Buffer.concat(chunks).toString() };
      this.all.push(received);
      this.answer(response);
      this.received.send(received);
    });
  });

  async listen(): Promise<string> {
    await new Promise<void>((listening) => this.#server.listen(0, '127.0.0.1', listening));
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}/hook`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}

/** Registers an agent with a webhook. */
export async function registerAgent(world: World, id: string, url: string | null): Promise<void> {
  const fields = { name: id, scopes: [], webhook_url: url };
  await registerAgentCommand(world.store, id, fields, null, world.context());
  await world.idle();
}

/** Ends a run of a task. */
export async function endRun(
  world: World,
  taskId: string,
  runId: string,
  how: 'succeeded' | 'failed' = 'succeeded',
): Promise<void> {
  const at = { task_id: taskId, started_at: toIso(world.clock.now()) };
  const ended: DomainEvent =
    how === 'succeeded'
      ? { type: 'RunSucceeded', data: success(at) }
      : { type: 'RunFailed', data: failure(at) };
  await append(world, streams.run(runId), ended);
}

export async function append(world: World, stream: string, event: DomainEvent): Promise<void> {
  await world.store.append(stream, toNewEvents(stream, [event], world.context()), 'any');
}

/** A process that sends webhooks. */
export class WebhookProcess {
  readonly store: WatchedStore;
  readonly webhooks: Webhooks;
  readonly leadership: Leadership;
  /** Each event that it has appended. */
  readonly written = new Signal<NewEvent>('an event of a delivery');
  readonly counted: string[] = [];
  readonly failures: unknown[] = [];
  /** Prefixes that it follows. */
  readonly followed = new Signal<readonly string[]>('to follow the log');
  readonly #sender: WebhookSender;
  readonly #stop = new AbortController();
  readonly #works: Promise<unknown>[] = [];
  #ended = false;

  constructor(
    world: World,
    name: string,
    options: {
      readonly allowPrivate?: boolean;
      readonly lead?: string;
      readonly secrets?: SecretAccess;
    } = {},
  ) {
    const { coordination, clock, readModel } = world;
    // With another lease name, it leads at the same time as others.
    const { allowPrivate = true, lead = 'webhooks' } = options;
    this.store = world.connect();
    this.store.afterAppend = (_stream, events) => events.forEach((each) => this.written.send(each));
    this.store.onMessage = (message, prefixes) => {
      if (message.kind === 'caught-up' && prefixes.includes('webhook-'))
        this.followed.send(prefixes);
    };
    const telemetry = {
      ...silent,
      count: (counter: string, labels: object = {}) =>
        void this.counted.push(`${counter} ${Object.values(labels).join()}`),
    };
    const shared = { store: this.store, clock, telemetry, coordination };
    this.leadership = new Leadership({
      ...shared,
      telemetry: silent,
      name: lead,
      owner: name,
      lease: LEASE,
    });
    const live = new LiveStreams(this.store, 'task-', taskFold);
    const tasks = new PinnedTasks(this.store, live);
    const { leadership } = this;
    const sender = (this.#sender = new WebhookSender({ clock, allowPrivate, userAgent: 'test' }));
    const secretOf = (id: string, version: number): string => secretOfTest(id, version);
    const { secrets = noSecrets } = options;
    const means = { ...shared, readModel, leadership, tasks, sender, secretOf, secrets, name };
    this.webhooks = new Webhooks(means);
    const { signal } = this.#stop;
    this.#works.push(leadership.run(signal), live.follow(signal), this.#keep(signal));
  }

  async #keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.webhooks.follow(signal).catch((error: unknown) => this.failures.push(error));
    }
  }

  /** Crashes. */
  async kill(): Promise<void> {
    this.store.dead = true;
    this.#ended = true;
    this.#stop.abort();
    await this.#sender.close();
  }

  async stop(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#stop.abort();
    await Promise.all(this.#works);
    await this.#sender.close();
  }
}

/** In milliseconds. Long, because time moves in jumps. */
export const LEASE = 10 * 86_400_000;

/** The secret of a version of an agent. */
export function secretOfTest(agentId: string, version: number): string {
  return `whsec_${Buffer.from(`${agentId}/${String(version)}`).toString('base64')}`;
}

/** Verifiers use the machine's time, not the test's. */
export class VerifierWithoutTime extends Verifier {
  override verify(payload: string, headers: Record<string, string>): unknown {
    const at = new Date(Number(headers['webhook-timestamp']) * 1000);
    const signature = this.sign(headers['webhook-id'] ?? '', at, payload);
    if (!(headers['webhook-signature'] ?? '').split(' ').includes(signature)) {
      throw new Error('the signature does not fit');
    }
    return JSON.parse(payload) as unknown;
  }
}

/** When an attempt is retried, according to its event. */
export function retryOf(event: RecordedEvent | undefined): number {
  if (event?.type !== 'WebhookFailed' || event.data.retry_at === null) {
    throw new Error(`it is ${String(event?.type)}, and not tried again`);
  }
  return fromIso(event.data.retry_at);
}

/** The versions of an agent's secret that signed a message. */
export function versionsThatFit(
  agentId: string,
  { body, headers }: Received,
  versions: readonly number[],
): readonly number[] {
  return versions.filter((version) => {
    try {
      const verifier = new VerifierWithoutTime(secretOfTest(agentId, version));
      return verifier.verify(body, headers as Record<string, string>) !== undefined;
    } catch {
      return false;
    }
  });
}
