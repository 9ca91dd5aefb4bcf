import { SystemClock } from '../../../app/clock.ts';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import type { RunningService } from '../../../app/running-service.ts';
import { startService } from '../../../app/service.ts';
import type { Position } from '../../../domain/event-store.ts';
import { kindOf } from '../../../domain/streams.ts';
import { createTelemetry } from '../../../observability/create-telemetry.ts';
import { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/signals.ts';
import { makeTemporaryDirectory } from '../../support/temporary-directory.ts';
import type { Resident } from './resident.ts';
import { makeThings, type Owner } from './things.ts';

/** Every scope that does not concern the whole service. */
export const everyScope = [
  'tasks:read',
  'tasks:write',
  'runs:read',
  'events:read',
  'events:publish',
  'audit:read',
  'approvals:write',
  'jobs:work',
  'ops',
  'namespace:admin',
] as const;

/** Kinds of streams that belong to no agent. */
const ofService = new Set(['operations', 'import', 'replays', 'retention', 'kept', 'projection']);

/** A whole service in this process with the built-in extensions, and agents of two namespaces. */
export class Neighbourhood {
  readonly admin: ApiClient;
  readonly address: string;
  /** A position of the log before all actions of the agents. */
  readonly beginning: Position;
  readonly #open: ApiClient;
  readonly #service: RunningService;
  readonly #remove: () => Promise<void>;

  private constructor(
    service: RunningService,
    open: ApiClient,
    admin: ApiClient,
    beginning: Position,
    remove: () => Promise<void>,
  ) {
    this.#service = service;
    this.#open = open;
    this.#remove = remove;
    this.admin = admin;
    this.beginning = beginning;
    this.address = service.address;
  }

  /** @param settings which stores it uses; default: the embedded ones */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<Neighbourhood> {
    const directory = await makeTemporaryDirectory();
    const admin = '018f0000-0000-7000-8000-00000000000a';
    const secret = 'the secret of the first agent';
    const service = await startService({
      configuration: readConfiguration({
        SVC_PORT: '0',
        SVC_HOST: '127.0.0.1',
        SVC_DATA_DIR: directory.path,
        SVC_LOG_LEVEL: 'silent',
        SVC_ADMIN_ID: admin,
        SVC_ADMIN_SECRET: secret,
        SVC_RATE_LIMIT: '1000000',
        SVC_JOB_LEASE_SECONDS: '3600',
        ...settings,
      }),
      clock: new SystemClock(),
      telemetry: createTelemetry({ level: 'silent' }),
      env: {},
    });
    const open = ApiClient.readingOwnWrites(service.address);
    const ready = async () => (await open.get('/health/ready')).status === 200;
    await eventually(ready, { limitMs: 60_000 });
    const token = await tokenOf(open, admin, secret);
    const beginning = await service.stores.store.head();
    return new Neighbourhood(service, open, open.as(token), beginning, directory.remove);
  }

  /** Registers an agent with all permissions in its namespace. */
  async settle(namespace: string, name: string): Promise<Owner> {
    // Scopes of the whole service have no effect elsewhere, and cannot be given.
    const scopes = everyScope.filter((scope) => scope !== 'ops' || namespace === 'default');
    const agent = await this.admin.post('/agents', { name, scopes, namespace });
    const id = agent.textAt('id');
    const made = await this.admin.post(`/agents/${id}/credentials`);
    const token = await tokenOf(this.#open, id, made.textAt('agent_secret'));
    return { id, name, client: this.#open.as(token) };
  }

  /** Lets an agent create one thing of each kind. */
  async furnish(owner: Owner, namespace: string): Promise<Resident> {
    const before = await this.#streams();
    const things = await makeThings(owner, namespace, this.admin);
    const streams = [...(await this.#streams())]
      .filter((name) => !before.has(name) && !ofService.has(kindOf(name)))
      .concat(`agent-${owner.id}`);
    // The name of a namespace may be a common word, such as `default`.
    const { namespace: _word, ...own } = things;
    const marks = new Set<string>([...Object.values(own), ...streams]);
    return { owner, namespace, things, streams, marks };
  }

  /** The names of all streams of the log. */
  async #streams(): Promise<ReadonlySet<string>> {
    const names = new Set<string>();
    for (let position = ''; ;) {
      const page = await this.#service.stores.store.readAll(position, 1000);
      for (const { stream } of page) names.add(stream);
      if (page.length === 0) return names;
      position = page.at(-1)?.position ?? '';
    }
  }

  async stop(): Promise<void> {
    this.#open.close();
    await this.#service.stop();
    await this.#remove();
  }
}

async function tokenOf(open: ApiClient, agent_id: string, agent_secret: string): Promise<string> {
  return (await open.post('/agents/auth/token', { agent_id, agent_secret })).textAt('access_token');
}
