import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { hostname } from 'node:os';
import { createApi, createObservingApp, prepareApi, type PreparedApi } from '../api/app.ts';
import type { ApiDependencies, HealthReports } from '../api/dependencies.ts';
import { AuditTail } from '../api/live/audit-tail.ts';
import { identityProviderOf } from '../api/people/identity-provider.ts';
import { LiveRuns } from '../api/live/live-runs.ts';
import { AccessRecords } from '../api/access/access-records.ts';
import { ExportPlaces } from '../api/exporting/export-places.ts';
import type { ArtifactKeeping } from '../domain/artifacts/keep-result.ts';
import type { Clock } from '../domain/clock.ts';
import type { ProcessTelemetry } from '../observability/create-telemetry.ts';
import { discardForeignViews } from '../projections/generations/foreign-views.ts';
import { LiveQuotas } from '../projections/reading/live-quotas.ts';
import { createPositionWaiter } from '../projections/reading/position-waiter.ts';
import { Hold } from '../scheduler/hold.ts';
import type { Jobs } from '../scheduler/jobs/jobs.ts';
import { Membership } from '../scheduler/processes/membership.ts';
import { createBuiltInTools, type BuiltInTools } from '../scheduler/tools/built-in.ts';
import { openArtifacts } from './artifacts.ts';
import { Causation } from './causation.ts';
import type { Configuration } from './configuration/configuration.ts';
import type { Environment } from './configuration/setting-readers.ts';
import { startExtensions, type ProcessExtensions } from './extending/extensions.ts';
import { makeFirstAdmin, type AdminCredentials } from './starting/first-start.ts';
import { addGauges } from './watching/gauges.ts';
import { LeadingViews } from './watching/leading-views.ts';
import { measuredPositions } from './watching/measured-positions.ts';
import { Supervisor } from './roles/supervisor.ts';
import { rejectUnfinishedImport } from './starting/unfinished-import.ts';
import { rejectUnfinishedRestore } from './starting/unfinished-restore.ts';
import { createHealth } from './watching/health.ts';
import { jwtKeys, TokenKeyring, webhookSecrets } from './starting/keys.ts';
import { readTlsFiles } from './starting/tls-files.ts';
import { closeFilesToOthers } from './starting/private-files.ts';
import { createSecrets, type ProcessSecrets } from './starting/process-secrets.ts';
import { maxOpenFiles, maxClientConnections, openFilesWarning } from './starting/open-files.ts';
import { createJobs, type SharedParts } from './roles/jobs-role.ts';
import { followIndexes } from './roles/live-indexes.ts';
import { RunQueue } from '../scheduler/runs/run-queue.ts';
import { checkpointOf } from './projecting/projector-host.ts';
import { projections } from './projecting/projections.ts';
import {
  projectorData,
  startProjector,
  type RunningProjector,
} from './projecting/start-projector.ts';
import { prepareForBursts } from './roles/burst/prepare-for-bursts.ts';
import {
  retentionLimits,
  startSchedulerRole,
  type SchedulerRole,
  type SchedulerRoleOptions,
} from './roles/scheduler-role.ts';
import { boundAddress, listen, replaceCertificate, stopServing } from './roles/serving.ts';
import { openStores, type Stores } from './stores.ts';
import type { RunningService } from './running-service.ts';
import { serviceActions } from './roles/service-actions.ts';
import { version } from './version.ts';
import { eventsHandledUpTo } from './roles/handled-events.ts';
import { createWorkerRole, type WorkerRole } from './roles/worker-role.ts';

/**
 * Starts the configured roles of this process.
 * @throws Error of one line when the port is taken or the data directory cannot be used
 */
export async function startService(options: {
  readonly configuration: Configuration;
  readonly clock: Clock;
  readonly telemetry: ProcessTelemetry;
  /** Holds secrets and their key. */
  readonly env: Environment;
}): Promise<RunningService> {
  const service = new Service(options);
  try {
    await service.start();
  } catch (error) {
    await service.stop().catch((fault: unknown) => {
      options.telemetry.log.error('could not stop after a failed start', { error: fault });
    });
    throw error;
  }
  return service;
}

class Service implements RunningService {
  address = '';
  readonly instance = randomUUID();
  firstAdmin: Promise<AdminCredentials | null> = Promise.resolve(null);
  readonly #options: Parameters<typeof startService>[0];
  readonly #supervisor: Supervisor;
  readonly #member: string;
  #opened: Stores | null = null;
  #artifacts: ArtifactKeeping | null = null;
  #server: HttpServer | null = null;
  #keyring: TokenKeyring | null = null;
  #projector: RunningProjector | null = null;
  #scheduler: SchedulerRole | null = null;
  #worker: WorkerRole | null = null;
  #tools: BuiltInTools | null = null;
  #extensions: ProcessExtensions | null = null;
  #jobs: Jobs | null = null;
  #live: LiveRuns | null = null;
  #auditTail: AuditTail | null = null;
  #records: AccessRecords | null = null;
  #secrets: ProcessSecrets | null = null;
  readonly #views: LeadingViews;
  #started = false;
  readonly #stopping = new AbortController();

  constructor(options: Parameters<typeof startService>[0]) {
    this.#options = options;
    // Each waiting request adds a listener; this is not a leak.
    setMaxListeners(0, this.#stopping.signal);
    this.#supervisor = new Supervisor(options.clock, options.telemetry);
    this.#views = new LeadingViews(options.telemetry);
    this.#member = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  }

  get stores(): Stores {
    if (this.#opened === null) throw new Error('the stores are not open');
    return this.#opened;
  }

  async start(): Promise<void> {
    const { configuration, clock, telemetry } = this.#options;
    const { roles, http } = configuration;
    rejectUnfinishedRestore(configuration);
    const opened = (this.#opened = await openStores(configuration, telemetry));
    closeFilesToOthers(configuration.dataDirectory, telemetry.log);
    const store = await rejectUnfinishedImport(opened.store);
    const stores = (this.#opened = { ...opened, store });
    if (configuration.eventStoreUrl === undefined && configuration.readModelUrl === undefined) {
      await discardForeignViews(projections, stores.store, stores.readModel, telemetry);
    }
    const member = this.#member;
    const supervisor = this.#supervisor;
    const secretStore = createSecrets({ ...this.#options, store, supervisor, member });
    this.#secrets = secretStore;
    const secrets = secretStore.access;
    const positions = createPositionWaiter({ readModel: stores.readModel, clock, telemetry });
    // Notices of projectors in other processes of this machine.
    stores.notices?.subscribe((notice) => {
      const checkpoint = checkpointOf(notice);
      if (checkpoint !== null) positions.notify(checkpoint.name, checkpoint.position);
    });
    if (roles.includes('projector')) {
      const data = projectorData(configuration, { version, owner: member });
      const parts = { data, stores: opened, clock, telemetry, positions, views: this.#views };
      this.#projector = startProjector(parts);
    }
    const membership = this.#join(stores);
    const quotas = new LiveQuotas(stores.store, configuration.quotas, telemetry.failures);
    const indexes = followIndexes(stores.store, stores.readModel, supervisor, quotas);
    const hold = new Hold(stores.store);
    const { signal } = supervisor;
    supervisor.supervise('following operator orders', (started) => hold.follow(signal, started));
    const userAgent = `task-scheduling-service/${version}`;
    const limit = configuration.maxCausationDepth;
    const causation = new Causation({ store: stores.store, limit, telemetry });
    const viewPositions = measuredPositions(positions, telemetry);
    const quotaParts = { ...stores, clock, telemetry, quotas, positions: viewPositions };
    const artifacts = (this.#artifacts = await openArtifacts(configuration, telemetry, quotaParts));
    const actions = serviceActions(stores.store, indexes, clock, causation, quotaParts);
    this.#tools = createBuiltInTools({ actions, offered: indexes.workers, ...http, userAgent });
    const { registry: tools } = this.#tools;
    const shared = { stores, artifacts, indexes, clock, telemetry, supervisor, hold, secrets };
    const queue = roles.includes('worker')
      ? new RunQueue(stores.store, stores.readModel, clock, telemetry, true, quotas.weightOf)
      : undefined;
    const sharedDependencies: SharedDependencies = {
      artifacts,
      tools,
      secrets: secrets.values,
      secretStore,
      positions: viewPositions,
      depthOfRequest: (ticket, what) => causation.depthOfRequest(ticket, what),
      jobs: (this.#jobs = createJobs({ ...shared, configuration, queue })),
    };
    const api = roles.includes('api')
      ? prepareApi(this.#apiDependencies(shared, sharedDependencies))
      : null;
    if (roles.includes('api') || roles.includes('worker')) {
      this.#extensions = await startExtensions({
        ...shared,
        configuration,
        tools,
        causation,
        member,
        version,
        quotaParts,
        keys: this.#keys,
        http: api?.rules ?? null,
      });
    }
    let burst: SchedulerRoleOptions['burst'] = {};
    if (queue !== undefined) {
      const { workerConcurrency: concurrency, sharing } = configuration;
      const calls = this.#extensions?.calls;
      const parts = { ...shared, membership, tools, queue, sharing };
      // The address is only known once the service listens.
      const callbackUrl = (token: string): string =>
        `${configuration.publicUrl ?? this.address}/callbacks/${token}`;
      const worker = createWorkerRole({ ...parts, concurrency, calls, callbackUrl });
      this.#worker = worker;
      const { runPipeline } = worker;
      const warmUp = { ...parts, store: stores.store, tasks: indexes.pinnedTasks, runPipeline };
      burst = { early: worker.early, onPrepare: prepareForBursts(warmUp, signal) };
    }
    if (roles.includes('scheduler')) {
      const secretOf = webhookSecrets(configuration, this.#keys);
      this.#scheduler = startSchedulerRole({
        ...shared,
        member,
        lease: configuration.leaseSeconds * 1000,
        limits: retentionLimits(configuration),
        burst,
        webhooks: { secretOf, ...http, userAgent },
      });
    }
    this.#addGauges(shared, membership);
    if (roles.includes('api')) this.#makeFirstAdmin(stores);
    await this.#serve(stores, api);
    if (this.#worker !== null) {
      // Otherwise a run could fail because its tool is not registered yet.
      await this.#extensions?.host.toolsReady;
      this.#worker.start();
    }
    this.#started = true;
    void stores.warmUp(clock, signal);
  }

  reload(configuration: Configuration): void {
    const tls = readTlsFiles(configuration);
    const keys =
      this.#keyring === null ? null : jwtKeys(configuration, this.#options.telemetry.log);
    if (tls !== null) replaceCertificate(this.#server, tls);
    if (keys !== null) this.#keyring?.replace(keys);
  }

  /** Read or created when a role first needs them. */
  get #keys(): TokenKeyring {
    const { configuration, telemetry } = this.#options;
    return (this.#keyring ??= new TokenKeyring(jwtKeys(configuration, telemetry.log)));
  }

  /** Stops all parts, dependents first. @throws the first error, after all parts were stopped */
  async stop(): Promise<void> {
    this.#started = false;
    const errors: unknown[] = [];
    const steps: readonly (() => Promise<void> | undefined)[] = [
      () => this.#scheduler?.stop(),
      () => this.#worker?.drain(),
      async () => this.#stopping.abort(),
      async () => this.#jobs?.stop(),
      () => this.#live?.close(),
      () => this.#extensions?.host.endConnections(),
      () => this.#auditTail?.close(),
      () => (this.#server === null ? undefined : stopServing(this.#server)),
      () => this.#records?.close(),
      () => this.#secrets?.close(),
      () => this.#extensions?.close(),
      () => this.#supervisor.end(),
      () => this.#projector?.stop(),
      () => this.#tools?.close(),
      () => this.#artifacts?.store.close(),
      () => this.#opened?.close(),
    ];
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  #join({ coordination }: Stores): Membership {
    const { configuration, clock, telemetry } = this.#options;
    const { roles, leaseSeconds } = configuration;
    const membership = new Membership({
      id: this.#member,
      lease: leaseSeconds * 1000,
      about: { roles: [...roles], host: hostname(), pid: process.pid },
      present: () => (this.#worker === null ? {} : { slots: this.#worker.worker.slotUse }),
      onAlive: () => this.#worker?.worker.wake(),
      coordination,
      clock,
      telemetry,
    });
    const { signal } = this.#supervisor;
    this.#supervisor.superviseStarted('sending heartbeats', () => membership.run(signal));
    return membership;
  }

  /** Retries until the log is available. */
  #makeFirstAdmin({ store }: Stores): void {
    const { configuration, clock } = this.#options;
    this.firstAdmin = new Promise((resolve) => {
      this.#supervisor.superviseOnce('creating the first admin', async () => {
        resolve(await makeFirstAdmin(store, configuration, clock));
      });
      this.#supervisor.signal.addEventListener('abort', () => resolve(null), { once: true });
    });
  }

  async #serve(stores: Stores, api: PreparedApi | null): Promise<void> {
    const { configuration, clock, telemetry } = this.#options;
    const health = this.#healthOf(stores);
    const observing = { health, metricsText: () => telemetry.metrics.text() };
    const app =
      api === null
        ? createObservingApp(observing, { telemetry, production: configuration.production })
        : createApi(api, observing, this.#extensions?.host ?? null);
    const runs = configuration.roles.includes('worker') ? configuration.workerConcurrency : 0;
    const files = maxOpenFiles();
    const scarcity = openFilesWarning(files, runs);
    if (scarcity !== null) telemetry.log.warn(scarcity);
    const room = maxClientConnections(files, runs);
    const tls = readTlsFiles(configuration);
    this.#server = await listen(app, configuration, room, { clock, telemetry, tls });
    if (this.#extensions !== null && api !== null) {
      this.#extensions.host.takeUpgrades(this.#server, app);
    }
    const { port, address } = boundAddress(this.#server, configuration.host, tls !== null);
    this.#extensions?.core.listensAt(configuration.host, port, tls !== null);
    this.address = address;
  }

  #apiDependencies({ stores, indexes }: SharedParts, shared: SharedDependencies): ApiDependencies {
    const { configuration, clock, telemetry } = this.#options;
    const { store, readModel, coordination } = stores;
    const { pinnedTasks, eventPayloads } = indexes;
    const params = { pinnedTasks, eventPayloads, secrets: shared.secrets };
    const live = (this.#live = new LiveRuns({ store, params, clock, telemetry }));
    const auditTail = (this.#auditTail = new AuditTail({ store, clock, telemetry }));
    this.#records = new AccessRecords({ store, clock, telemetry });
    const { refusals, apiKeyUses } = this.#records;
    return {
      store,
      readModel,
      coordination,
      clock,
      telemetry,
      identityProvider: identityProviderOf(configuration.people, clock, telemetry.failures),
      settings: { ...configuration, tokenKeys: this.#keys, version },
      webhookSecret: webhookSecrets(configuration, this.#keys),
      ...indexes,
      projections,
      live,
      auditTail,
      refusals,
      apiKeyUses,
      exportPlaces: new ExportPlaces(),
      ...shared,
      requestedUpTo: () => eventsHandledUpTo(coordination, store),
      stopping: this.#stopping.signal,
    };
  }

  #healthOf(stores: Stores): HealthReports {
    return createHealth({
      stores,
      clock: this.#options.clock,
      supervisor: this.#supervisor,
      version,
      instance: this.instance,
      started: () => this.#started,
    });
  }

  #addGauges({ stores, indexes, hold }: SharedParts, membership: Membership): void {
    const { configuration, clock, telemetry } = this.#options;
    addGauges(telemetry.metrics, {
      configuration,
      version,
      clock,
      membership,
      hold,
      health: this.#healthOf(stores),
      scheduler: () => this.#scheduler,
      worker: () => this.#worker,
      leases: stores.coordination.jobs,
      registered: () => indexes.workers.workers(),
      host: () => this.#extensions?.host ?? null,
      views: () => this.#views.current,
      liveClients: () => (this.#live?.size ?? 0) + (this.#auditTail?.size ?? 0),
    });
  }
}

/** Dependencies of the API that other parts of the process use too. */
type Shared = 'artifacts' | 'positions' | 'tools' | 'depthOfRequest' | 'jobs';
type SharedDependencies = Pick<ApiDependencies, Shared | 'secrets' | 'secretStore'>;
