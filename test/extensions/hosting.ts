import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import type { Authentication } from '../../api/access/authentication.ts';
import type { Caller } from '../../api/endpoint.ts';
import { errorHandler, forbidden, unauthorized } from '../../api/errors.ts';
import { extensionRules } from '../../api/extension-rules.ts';
import { KeyedCommands } from '../../api/keyed-commands.ts';
import { IdempotencyKeys } from '../../api/serving/idempotency.ts';
import { measure } from '../../api/serving/measuring.ts';
import { InnerRequests } from '../../api/inner-requests.ts';
import { SystemClock } from '../../app/clock.ts';
import { Containment } from '../../app/extending/containment.ts';
import { checkDescription } from '../../app/extending/extension-descriptions.ts';
import { toolPort } from '../../app/extending/extension-tools.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { publishEvent } from '../../domain/topics/publishing.ts';
import { ExtensionHost } from '../../extensions/host/host.ts';
import type { HostSettings, HttpPort } from '../../extensions/host/ports.ts';
import { createTelemetry } from '../../observability/create-telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import { basicTools } from '../../scheduler/tools/basic-tools.ts';
import { waitingTools } from '../../scheduler/tools/waiting-tools.ts';
import { ToolRegistry } from '../../scheduler/tools/registry.ts';
import { openSqliteCoordination } from '../../stores/sqlite/coordination/coordination.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { ApiClient } from '../support/api-client.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';

/** Shared between a test and its extensions' modules, which run in this process. */
export const reached: Record<string, unknown> = ((
  globalThis as { extensionTests?: Record<string, unknown> }
).extensionTests ??= {});

/** A valid manifest. */
export const manifestOf = (id: string, more: object = {}): object => ({
  id,
  name: id,
  version: '1.0.0',
  module: 'module.mjs',
  capabilities: ['ROUTES'],
  ...more,
});

const agents: Readonly<Record<string, readonly string[]>> = {
  admin: ['admin'],
  reader: ['events:read'],
  scoped: ['ext:plain:routes'],
  passing: ['events:read'],
  leaving: ['events:read'],
  losing: ['events:read'],
};

/** Removed agents. */
export const removed = new Set<string>();

/** Agents that have lost their scopes. */
export const withoutScopes = new Set<string>();

/** Tokens are names of {@link agents}. */
const authentication = {
  async authenticate({ headers }, scopes) {
    const [, name = ''] = headers.authorization?.split(' ') ?? [];
    const granted = withoutScopes.has(name) ? [] : agents[name];
    if (granted === undefined || removed.has(name))
      throw unauthorized('a bearer token is needed', scopes);
    const fits = granted.includes('admin') || scopes.every((each) => granted.includes(each));
    if (!fits) throw forbidden('a scope is missing', scopes, granted);
    return {
      agentId: name,
      namespace: 'default',
      name,
      scopes: granted,
      admin: name === 'admin',
    } as Caller;
  },
  callerOf: () => Promise.resolve(null),
} satisfies Partial<Authentication>;

/** Hosts extensions in this process, behind an HTTP server, with embedded stores. */
export class Hosting {
  readonly folder: string;
  readonly tools = new ToolRegistry();
  /** Time limit of a setup in milliseconds; long, as the machine may be busy. */
  setupLimit = 15_000;
  readonly #telemetry = createTelemetry({ level: 'silent', strict: true });
  readonly #clock = new SystemClock();
  readonly #remove: () => Promise<void>;
  readonly store: EventStore;
  readonly #coordination: Coordination;
  #running: { host: ExtensionHost; server: Server; client: ApiClient; end: () => void } | null =
    null;

  private constructor(
    folder: string,
    store: EventStore,
    coordination: Coordination,
    remove: () => Promise<void>,
  ) {
    this.folder = folder;
    this.store = store;
    this.#coordination = coordination;
    this.#remove = remove;
    for (const tool of [...basicTools, ...waitingTools]) this.tools.register(tool);
  }

  static async create(): Promise<Hosting> {
    const { path, remove } = await makeTemporaryDirectory();
    const telemetry = createTelemetry({ level: 'silent' });
    const store = await openSqliteEventStore({
      directory: join(path, 'log'),
      codec: createEventCodec(),
      telemetry,
    });
    const coordination = await openSqliteCoordination({ directory: path, telemetry });
    return new Hosting(join(path, 'extensions'), store, coordination, remove);
  }

  /** Writes an extension to the folder that the host searches. @param module source of its module */
  async write(name: string, manifest: object | string, module = ''): Promise<void> {
    const folder = join(this.folder, name);
    await mkdir(folder, { recursive: true });
    const text = typeof manifest === 'string' ? manifest : JSON.stringify(manifest);
    await writeFile(join(folder, 'extension.json'), text);
    const head = 'const reached = globalThis.extensionTests;\n';
    await writeFile(join(folder, 'module.mjs'), head + module);
  }

  /** Starts a host. Resolves when its extensions have loaded or failed. */
  async start(settings: Partial<HostSettings> = {}, packagesOf: readonly string[] = []) {
    const containment = new Containment((id, what, error) => host.reportError(id, what, error));
    const store = this.store;
    const host: ExtensionHost = new ExtensionHost({
      store,
      coordination: this.#coordination,
      clock: this.#clock,
      telemetry: this.#telemetry,
      settings: {
        extensionPaths: [this.folder],
        allowedPlugins: 'all',
        extensionGrants: {},
        requireScopes: false,
        webuiRequireAuth: false,
        production: false,
        extensionSeconds: 30,
        rateLimit: 10_000,
        rateLimitWindowSeconds: 60,
        extensionSettings: {},
        runsTools: true,
        ...settings,
      },
      service: {
        version: '0.0.0',
        production: false,
        metricsText: () => this.#telemetry.metrics.text(),
      },
      tools: toolPort(
        this.tools,
        this.#clock,
        this.#telemetry.log,
        { carryOut: (_call, work) => work(), refused: () => {} },
        { during: (_cause, call) => call() },
      ),
      core: { request: async () => ({ status: 200, headers: {}, body: null }) },
      http: this.#http(),
      agents: {
        idOf: async ({ id }) => id,
        namespaceOf: async () => 'default',
        requireEntryRoom: async () => {},
        tokenOf: async ({ id }) => id,
        publish: async (_id, topic, payload) => this.publish(topic, payload as JsonObject),
      },
      duringEvent: (_event, call) => call(),
      contain: (id, call) => containment.enter(id, call),
      release: (id) => containment.release(id),
      checkEndpoints: checkDescription,
      member: newId(this.#clock.now()),
      setupLimit: this.setupLimit,
    });
    await host.start(packagesOf);
    const app = express();
    app.disable('etag');
    app.use(measure(this.#telemetry));
    app.use((_request, response, next) => {
      response.setHeader('X-Request-Id', 'of-the-test');
      next();
    });
    app.use(host.serve);
    app.use(host.refuse);
    app.use(errorHandler(this.#telemetry, false));
    const server = createServer(app);
    host.takeUpgrades(server, app);
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const client = new ApiClient(`http://127.0.0.1:${String(port)}`, 'admin');
    this.#running = { host, server, client, end: () => containment.close() };
    await host.loaded;
    return { host, client, url: client.url };
  }

  #http(): HttpPort {
    const keys = new IdempotencyKeys(this.store, this.#clock, this.#telemetry.failures);
    return extensionRules(
      authentication as unknown as Authentication,
      { maxBodyBytes: 10_000, production: false },
      new InnerRequests(),
      { authenticate: (request) => authentication.authenticate(request, []) },
      new KeyedCommands(keys, this.#clock),
    );
  }

  async publish(topic: string, payload: JsonObject): Promise<string> {
    const now = this.#clock.now();
    const base = { actor: 'test', source: 'test', correlationId: newId(now), now };
    const event = { topic, payload, source_agent_id: 'test' };
    const context = { ...base, commandId: newId(now) };
    return (await publishEvent(this.store, event, [], context)).event_id;
  }

  /** How many events a topic has. */
  async published(topic: string): Promise<number> {
    return (await this.store.readStream(`topic-${topic}`)).length;
  }

  /** Whether another process could run an extension's background work now. */
  async canLease(id: string): Promise<boolean> {
    const other = newId(this.#clock.now());
    return (await this.#coordination.acquire(`extension ${id}`, other, 1_000)) !== null;
  }

  metricsText(): Promise<string> {
    return this.#telemetry.metrics.text();
  }

  /** The running host, even while it is setting up extensions. */
  get host(): ExtensionHost | null {
    return this.#running?.host ?? null;
  }

  /** Stops the host, like a process that stops. */
  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = null;
    if (running === null) return;
    await running.host.endConnections();
    running.client.close();
    await new Promise((closed) => {
      running.server.close(closed);
      running.server.closeAllConnections();
    });
    await running.host.close();
    running.end();
  }

  async close(): Promise<void> {
    await this.stop();
    await this.store.close();
    await this.#coordination.close();
    await this.#remove();
    for (const name of Object.keys(reached)) delete reached[name];
    removed.clear();
    withoutScopes.clear();
  }
}

/** Called inside a `describe`. Each test gets its own host. */
export function useHosting(): () => Hosting {
  let hosting: Hosting | undefined;
  beforeEach(async () => {
    hosting = await Hosting.create();
  });
  afterEach(async () => {
    await hosting?.close();
    hosting = undefined;
  });
  return () => {
    if (hosting === undefined) throw new Error('extensions are only hosted during a test');
    return hosting;
  };
}
