import { setMaxListeners } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createApi, prepareApi } from '../../api/app.ts';
import type { ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import type { ApiDependencies, ApiSettings } from '../../api/dependencies.ts';
import { createHttpServer } from '../../api/serving/http-server.ts';
import { requireArtifactRoom } from '../../api/access/count-quotas.ts';
import { AuditTail } from '../../api/live/audit-tail.ts';
import { LiveRuns } from '../../api/live/live-runs.ts';
import { ExportPlaces } from '../../api/exporting/export-places.ts';
import { AccessRecords } from '../../api/access/access-records.ts';
import type { ApiKeyUses } from '../../api/access/api-key-uses.ts';
import type { Refusals } from '../../api/access/refusals.ts';
import { identityProviderOf } from '../../api/people/identity-provider.ts';
import { signToken } from '../../api/access/tokens.ts';
import { reportProjections } from '../../app/projecting/projector-report.ts';
import { projections } from '../../app/projecting/projections.ts';
import { apiKeyFold } from '../../domain/agents/api-key.ts';
import { agentFold } from '../../domain/agents/agent.ts';
import { registerAgentCommand } from '../../domain/agents/agent-registration.ts';
import { toIso, type Clock } from '../../domain/clock.ts';
import type { EventStore, Position } from '../../domain/event-store.ts';
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import type { QuotaSettings } from '../../domain/namespaces/quotas.ts';
import { sessionFold } from '../../domain/agents/session.ts';
import { streams } from '../../domain/streams.ts';
import { taskFold } from '../../domain/tasks/task.ts';
import { createTelemetry } from '../../observability/create-telemetry.ts';
import { EventPayloads } from '../../projections/reading/event-payloads.ts';
import { LiveQuotas } from '../../projections/reading/live-quotas.ts';
import { LiveStreams } from '../../projections/reading/live-streams.ts';
import { Replayer } from '../../projections/replays/replayer.ts';
import { REPLAY_REPORT } from '../../projections/replays/replay-report.ts';
import { WorkerDirectory } from '../../projections/reading/worker-directory.ts';
import { createPositionWaiter } from '../../projections/reading/position-waiter.ts';
import { createProjector } from '../../projections/projector/projector.ts';
import { TopicIndex } from '../../projections/reading/topic-index.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { Jobs } from '../../scheduler/jobs/jobs.ts';
import { PinnedTasks } from '../../scheduler/pinned-tasks.ts';
import { RunQueue } from '../../scheduler/runs/run-queue.ts';
import { createBuiltInTools } from '../../scheduler/tools/built-in.ts';
import type { ToolRegistry } from '../../scheduler/tools/registry.ts';
import { FileArtifacts } from '../../stores/artifacts/file-artifacts.ts';
import { openSqliteCoordination } from '../../stores/sqlite/coordination/coordination.ts';
import { noActions, plainSettings } from './api-settings.ts';
import { ApiClient } from './api-client.ts';
import { openEmbedded, type OpenStores } from './api-stores.ts';
import { FaultyEventStore, faultyReadModel } from './faulty-stores.ts';
import { ShiftedClock } from './shifted-clock.ts';
import { makeTemporaryDirectory } from './temporary-directory.ts';
import { plainSecrets, secretStoreOver } from './test-secrets.ts';

/** An agent with a client. */
export interface SignedIn {
  readonly id: string;
  readonly client: ApiClient;
}

/** The secrets of pipelines, by name. */
export const pipelineSecrets: Readonly<Record<string, string>> = { TOKEN: 'hush-hush-7' };

/** How long a view may take on a busy machine, where the interface gives up earlier. Milliseconds. */
const SLOW_VIEW = 30_000;

/** The HTTP interface over the embedded stores, with a projector and no scheduler or worker. */
export class RunningApi {
  readonly url: string;
  /** The parts that the interface uses, which a test can make fail. */
  readonly store: FaultyEventStore;
  /** Set `away` to make reads of the views unavailable. */
  readonly views: { away: boolean };
  /** Set `timesOut` to make waits for a view time out. */
  readonly waiting: { timesOut: boolean };
  /** The views themselves. */
  readonly readModel: ReadModel;
  /** The position up to which runs are requested; null: the whole log. */
  readonly requestedUpTo: { position: Position | null };
  /** A test aborts it to stop the service. */
  readonly stopping: AbortController;
  /** A test advances it to make tokens expire and reservations grow old. */
  readonly clock: ShiftedClock;
  readonly live: LiveRuns;
  readonly auditTail: AuditTail;
  readonly refusals: Refusals;
  readonly apiKeyUses: ApiKeyUses;
  readonly exportPlaces: ExportPlaces;
  readonly settings: ApiSettings;
  readonly artifacts: ArtifactKeeping;
  readonly coordination: ApiDependencies['coordination'];
  readonly quotas: LiveQuotas;
  /** The tools that pipelines may use. */
  readonly tools: ToolRegistry;
  /** The jobs of workers. */
  readonly jobs: Jobs;
  /** Lines of the log. */
  readonly logged: readonly string[];
  readonly metricsText: () => Promise<string>;
  /** An agent with the scope `admin`. */
  readonly admin: SignedIn;
  readonly #close: () => Promise<void>;

  private constructor(
    parts: Omit<RunningApi, 'signIn' | 'append' | 'close'>,
    close: () => Promise<void>,
  ) {
    this.url = parts.url;
    this.store = parts.store;
    this.views = parts.views;
    this.waiting = parts.waiting;
    this.readModel = parts.readModel;
    this.requestedUpTo = parts.requestedUpTo;
    this.stopping = parts.stopping;
    this.clock = parts.clock;
    this.live = parts.live;
    this.auditTail = parts.auditTail;
    this.refusals = parts.refusals;
    this.apiKeyUses = parts.apiKeyUses;
    this.exportPlaces = parts.exportPlaces;
    this.settings = parts.settings;
    this.artifacts = parts.artifacts;
    this.coordination = parts.coordination;
    this.quotas = parts.quotas;
    this.tools = parts.tools;
    this.jobs = parts.jobs;
    this.logged = parts.logged;
    this.metricsText = parts.metricsText;
    this.admin = parts.admin;
    this.#close = close;
  }

  /** @param openStores default: the embedded ones */
  static async start(
    given: GivenSettings = {},
    openStores: OpenStores = openEmbedded,
  ): Promise<RunningApi> {
    const { quotas: quotaSettings, ...givenSettings } = given;
    const directory = await makeTemporaryDirectory();
    const logged: string[] = [];
    const telemetry = createTelemetry({
      level: 'debug',
      strict: true,
      destination: { write: (line) => void logged.push(line) },
    });
    const { log, kept, stop: stopServers } = await openStores(directory.path, telemetry);
    const begun = performance.now();
    const coordination = await openSqliteCoordination({
      directory: directory.path,
      telemetry,
      // Windows start with the test, so none ends during it.
      clock: () => WINDOWS_BEGIN + (performance.now() - begun),
    });
    const clock = new ShiftedClock(undefined, { passes: true });
    const store = new FaultyEventStore(log);
    const views = { away: false };
    const waiting = { timesOut: false };
    const requestedUpTo = { position: null };
    const stopping = new AbortController();
    const readModel: ReadModel = faultyReadModel(kept, views);
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const positions = createPositionWaiter({ readModel, clock, telemetry });
    const projector = createProjector({
      store: log,
      readModel: kept,
      projections,
      telemetry,
      clock,
      fence: 1,
    });
    projector.onCheckpoint(positions.notify);
    const agents = new LiveStreams(store, 'agent-', agentFold);
    const sessions = new LiveStreams(store, 'session-', sessionFold);
    const apiKeys = new LiveStreams(store, 'apikey-', apiKeyFold);
    const tasks = new LiveStreams(store, 'task-', taskFold);
    const topics = new TopicIndex(store, readModel);
    const workers = new WorkerDirectory(store, readModel);
    const quotas = new LiveQuotas(store, quotaSettings, telemetry.failures);
    const queue = new RunQueue(store, readModel, clock, telemetry, false);
    const secretStore = secretStoreOver(store, plainSecrets(pipelineSecrets), clock);
    const { stored } = secretStore;
    const followers = [agents, sessions, apiKeys, tasks, topics, quotas, workers, queue, stored];
    const replayer = new Replayer({
      ...{ store: log, readModel: kept, telemetry, clock, fence: 1 },
      tell: async (progress) => {
        await coordination.remember(REPLAY_REPORT, JSON.stringify(progress), 1);
      },
    });
    const running: Promise<unknown>[] = [
      projector.run(stop.signal),
      replayer.run(stop.signal),
      reportProjections({
        status: () => projector.status(),
        coordination,
        fence: 1,
        clock,
        telemetry,
        signal: stop.signal,
        every: 50,
      }),
    ];
    await Promise.all(
      followers.map(
        (follower) =>
          new Promise<void>((started, failed) => {
            running.push(follower.follow(stop.signal, started).catch(failed));
          }),
      ),
    );
    const tools = createBuiltInTools({ actions: noActions, allowPrivate: false });
    const settings: ApiSettings = { ...plainSettings, ...givenSettings };
    const { values: secrets } = secretStore.access;
    const pinnedTasks = new PinnedTasks(store, tasks);
    const params = { pinnedTasks, eventPayloads: new EventPayloads(store), secrets };
    tools.registry.addOffered(workers);
    const viewPositions: ApiDependencies['positions'] = {
      wait: async (projection, position, limit) =>
        !waiting.timesOut &&
        (await positions.passed(projection, position, Math.max(limit, SLOW_VIEW))).passed,
    };
    const quotaParts = {
      ...{ store, readModel, coordination, clock, telemetry, quotas },
      positions: viewPositions,
    };
    const artifacts: ArtifactKeeping = {
      store: new FileArtifacts(directory.path),
      maxBytes: 16 * 1024 * 1024,
      requireRoom: (namespace, bytes) => requireArtifactRoom(quotaParts, namespace, bytes),
    };
    const jobs = new Jobs({
      ...{ artifacts, store, coordination, queue, directory: workers, clock, telemetry },
      ...{ tasks: params.pinnedTasks, leaseSeconds: settings.jobLeaseSeconds, secrets },
      begin: () => {},
    });
    const live = new LiveRuns({ store, params, clock, telemetry, beat: 20, maxClients: 1_100 });
    const auditTail = new AuditTail({ store, clock, telemetry, beat: 20 });
    const records = new AccessRecords({ store, clock, telemetry });
    const { refusals, apiKeyUses } = records;
    const exportPlaces = new ExportPlaces();
    const dependencies: ApiDependencies = {
      ...{ store, readModel, coordination, artifacts, clock, telemetry, settings },
      webhookSecret: (agentId, version) => `whsec_${btoa(`${agentId}/${version}`)}`,
      ...{ agents, sessions, apiKeys, tasks },
      ...params,
      ...{ secretStore, topics, quotas, workers, jobs, projections, live, auditTail, exportPlaces },
      ...{ refusals, apiKeyUses },
      identityProvider: identityProviderOf(settings.people, clock, telemetry.failures, 0),
      positions: viewPositions,
      tools: tools.registry,
      // Not used, as no extension calls it.
      depthOfRequest: async () => 0,
      requestedUpTo: async () => requestedUpTo.position ?? log.head(),
      stopping: stopping.signal,
    };
    const metricsText = (): Promise<string> => telemetry.metrics.text();
    const about = {
      timestamp: toIso(clock.now()),
      version: settings.version,
    };
    const health = {
      report: async () => ({ status: 200, body: { status: 'healthy', ...about, checks: [] } }),
      ready: async () => ({ status: 200, body: { status: 'ready', checks: [] } }),
      live: () => ({ status: 'alive', ...about, instance: 'of-tests' }),
    };
    const server = createHttpServer(createApi(prepareApi(dependencies), { health, metricsText }));
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    const client = new ApiClient(url, null);
    const admin = await signIn({ store: log, clock, settings, client }, ['admin'], 'admin');
    const parts = {
      url,
      store,
      views,
      waiting,
      readModel: kept,
      requestedUpTo,
      stopping,
      clock,
      live,
      auditTail,
      ...{ refusals, apiKeyUses },
      exportPlaces,
      ...{ settings, artifacts, coordination, quotas },
      tools: tools.registry,
      ...{ jobs, logged, metricsText, admin },
    };
    return new RunningApi(parts, async () => {
      client.close();
      await live.close();
      await auditTail.close();
      await new Promise((closed) => {
        server.close(closed);
        server.closeAllConnections();
      });
      jobs.stop();
      await records.close();
      stop.abort();
      await Promise.all(running);
      await tools.close();
      await Promise.all([log.close(), kept.close(), coordination.close()]);
      await stopServers?.();
      await directory.remove();
    });
  }

  /** Registers an agent without the interface and gives it a token. It has no credentials. */
  signIn(scopes: readonly string[], name?: string): Promise<SignedIn> {
    const { store, clock, settings } = this;
    const client = this.admin.client.as(null);
    return signIn({ store, clock, settings, client }, scopes, name);
  }

  /** Appends an event without the interface, as other parts of the service do. */
  async append(stream: string, events: readonly DomainEvent[]): Promise<void> {
    await this.store.append(stream, toNewEvents(stream, events, contextAt(this.clock)), 'any');
  }

  close(): Promise<void> {
    return this.#close();
  }
}

/** Settings of a running interface, and the quotas of namespaces. */
type GivenSettings = Partial<ApiSettings> & { readonly quotas?: QuotaSettings };

/** Called inside a `describe`: one running interface for all its tests. */
export function useRunningApi(
  settings: GivenSettings = {},
  openStores?: OpenStores,
): () => RunningApi {
  let api: RunningApi | undefined;
  before(async () => {
    api = await RunningApi.start(settings, openStores);
  });
  after(async () => {
    await api?.close();
    api = undefined;
  });
  return () => {
    if (api === undefined) throw new Error('the interface runs only during the tests');
    return api;
  };
}

/** A multiple of all windows, in milliseconds. */
const WINDOWS_BEGIN = 1_800_000_000_000;

async function signIn(
  {
    store,
    clock,
    settings,
    client,
  }: Pick<RunningApi, 'clock' | 'settings'> & {
    readonly store: EventStore;
    readonly client: ApiClient;
  },
  scopes: readonly string[],
  name = newId(clock.now()),
): Promise<SignedIn> {
  const context = contextAt(clock);
  const { now } = context;
  const id = newId(now);
  const sid = newId(now);
  const fields = { name, scopes, webhook_url: null };
  await registerAgentCommand(store, id, fields, null, context);
  const started: DomainEvent = {
    type: 'SessionStarted',
    data: {
      agent_id: id,
      refresh_id: newId(now),
      expires_at: toIso(now + 7 * 86_400_000),
      credentials_revision: null,
    },
  };
  const stream = streams.session(sid);
  await store.append(stream, toNewEvents(stream, [started], context), 'none');
  const claims = { sub: id, type: 'access', scope: '', name, sid, jti: newId(now) } as const;
  const token = signToken(claims, 7 * 86_400, now, settings.tokenKeys.jwtKey);
  return { id, client: client.as(token) };
}

function contextAt(clock: Clock): CommandContext {
  const now = clock.now();
  return { commandId: newId(now), actor: 'test', source: 'test', correlationId: newId(now), now };
}
