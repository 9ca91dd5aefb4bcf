import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { Server as TlsServer } from 'node:https';
import { hostname } from 'node:os';
import { createApi, createObservingApp } from '../api/app.ts';
import type { ApiDependencies, HealthReports } from '../api/dependencies.ts';
import { AuditTail } from '../api/live/audit-tail.ts';
import { LiveRuns } from '../api/live/live-runs.ts';
import { Refusals } from '../api/access/refusals.ts';
import { ExportPlaces } from '../api/exporting/export-places.ts';
import type { Clock } from '../domain/clock.ts';
import type { ProcessTelemetry } from '../observability/create-telemetry.ts';
import { throwAwayOfOtherLog } from '../projections/generations/other-log.ts';
import {
  createPositionWaiter,
  type PositionWaiter,
} from '../projections/reading/position-waiter.ts';
import { Hold } from '../scheduler/hold.ts';
import { Membership } from '../scheduler/processes/membership.ts';
import { RememberedPosition } from '../scheduler/processes/remembered-position.ts';
import { CHECKPOINT } from '../scheduler/fires/run-requester.ts';
import { createBuiltInTools, type BuiltInTools } from '../scheduler/tools/built-in.ts';
import type { Configuration } from './configuration/configuration.ts';
import { startExtensions, type ProcessExtensions } from './extending/extensions.ts';
import { makeFirstAdmin, type AdminCredentials } from './starting/first-start.ts';
import { addGauges } from './watching/gauges.ts';
import { LedViews } from './watching/led-views.ts';
import { measuredPositions } from './watching/measured-positions.ts';
import { Going } from './roles/going.ts';
import { refuseHalfImport } from './starting/half-import.ts';
import { refuseHalfRestore } from './starting/half-restore.ts';
import { createHealth } from './watching/health.ts';
import { jwtKeys, TokenKeyring, webhookSecrets } from './starting/keys.ts';
import { readTlsFiles } from './starting/tls-files.ts';
import { closeFilesToOthers } from './starting/private-files.ts';
import { mostOpenFiles, roomForClients, scarcityOfFiles } from './starting/open-files.ts';
import { followIndexes, type LiveIndexes } from './roles/live-indexes.ts';
import { checkpointOf } from './projecting/projector-host.ts';
import { projections } from './projecting/projections.ts';
import { startProjector, type RunningProjector } from './projecting/projector.ts';
import { collectingBefore } from './roles/collect-before.ts';
import { rehearsingOnce, type RehearsalMeans } from './roles/rehearsal.ts';
import { retentionLimits, startSchedulerRole, type SchedulerRole } from './roles/scheduler-role.ts';
import { boundAddress, listen, stopServing } from './roles/serving.ts';
import { openStores, type Stores } from './stores.ts';
import { serviceActions } from './roles/service-actions.ts';
import { version } from './version.ts';
import { startWorkerRole, type WorkerRole } from './roles/worker-role.ts';

/** A service that runs in this process. */
export interface RunningService {
  /** `http://host:port`, or `https://…` with a certificate. */
  readonly address: string;
  /** Random, of this start alone. `/health/live` shows it. */
  readonly instance: string;
  /** Made by this start on an empty store; null when there was an admin. Resolves once that is known. */
  readonly firstAdmin: Promise<AdminCredentials | null>;
  readonly stores: Stores;
  /**
   * Takes the certificate and the keys of tokens from newly read settings. Nothing stops, and open connections go on.
   * @throws ConfigurationError when a file cannot be used; everything then stays as it was
   */
  reload(configuration: Configuration): void;
  /** Stops claiming, finishes what runs (for up to 25 s), hands back the rest, closes all. */
  stop(): Promise<void>;
}

/**
 * Starts the roles of this process over the stores of its settings.
 * @throws Error when the port is taken or the data directory can't be used, saying so in one line
 */
export async function startService(options: {
  readonly configuration: Configuration;
  readonly clock: Clock;
  readonly telemetry: ProcessTelemetry;
  /** The value of `${secrets.NAME}`. */
  readonly secrets: (name: string) => string | undefined;
}): Promise<RunningService> {
  const service = new Service(options);
  try {
    await service.start();
  } catch (error) {
    await service.stop().catch((fault: unknown) => {
      options.telemetry.log.error('what was started could not be ended in order', { error: fault });
    });
    throw error;
  }
  return service;
}

class Service implements RunningService {
  address = '';
  readonly instance = randomUUID();
  firstAdmin: Promise<AdminCredentials | null> = Promise.resolve(null);
  private readonly options: Parameters<typeof startService>[0];
  private readonly going: Going;
  private readonly member: string;
  private opened: Stores | null = null;
  private server: HttpServer | null = null;
  private keyring: TokenKeyring | null = null;
  private projector: RunningProjector | null = null;
  private scheduler: SchedulerRole | null = null;
  private worker: WorkerRole | null = null;
  private tools: BuiltInTools | null = null;
  private extensions: ProcessExtensions | null = null;
  private live: LiveRuns | null = null;
  private auditTail: AuditTail | null = null;
  private refusals: Refusals | null = null;
  private positions: PositionWaiter | null = null;
  private readonly views: LedViews;
  private started = false;
  private readonly stopping = new AbortController();

  constructor(options: Parameters<typeof startService>[0]) {
    this.options = options;
    // Each request that waits listens: that is no leak.
    setMaxListeners(0, this.stopping.signal);
    this.going = new Going(options.clock, options.telemetry);
    this.views = new LedViews(options.telemetry);
    this.member = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  }

  get stores(): Stores {
    if (this.opened === null) throw new Error('the stores are not open');
    return this.opened;
  }

  async start(): Promise<void> {
    const { configuration, clock, telemetry } = this.options;
    const { roles } = configuration;
    refuseHalfRestore(configuration);
    const opened = (this.opened = await openStores(configuration, telemetry));
    closeFilesToOthers(configuration.dataDirectory, telemetry.log);
    const stores = (this.opened = { ...opened, store: await refuseHalfImport(opened.store) });
    if (configuration.eventStoreUrl === undefined && configuration.readModelUrl === undefined) {
      await throwAwayOfOtherLog(projections, stores.store, stores.readModel, telemetry);
    }
    this.positions = createPositionWaiter({ readModel: stores.readModel, clock });
    stores.notices?.subscribe((notice) => this.onNotice(notice));
    if (roles.includes('projector')) this.startProjector();
    const membership = this.join(stores);
    const indexes = followIndexes(stores.store, stores.readModel, this.going);
    const hold = new Hold(stores.store);
    this.going.keep('following orders of operators', (started) =>
      hold.follow(this.going.signal, started),
    );
    this.tools = createBuiltInTools({
      actions: serviceActions(stores.store, indexes, clock),
      ...configuration.http,
      userAgent: `task-scheduling-service/${version}`,
    });
    const shared = { stores, indexes, clock, telemetry, going: this.going, hold };
    if (roles.includes('scheduler')) {
      const lease = configuration.leaseSeconds * 1000;
      const webhooks = {
        secretOf: webhookSecrets(configuration, this.keys),
        ...configuration.http,
        userAgent: `task-scheduling-service/${version}`,
      };
      this.scheduler = startSchedulerRole({
        ...{ ...shared, member: this.member, lease, webhooks },
        limits: retentionLimits(configuration),
      });
    }
    if (roles.includes('api') || roles.includes('worker')) {
      this.extensions = await startExtensions({
        ...shared,
        configuration,
        tools: this.tools.registry,
        member: this.member,
        version,
        keys: this.keys,
      });
    }
    this.addGauges(stores, membership, hold);
    if (roles.includes('api')) this.makeFirstAdmin(stores);
    await this.serve(stores, indexes);
    if (roles.includes('worker')) {
      // A run must not fail because its tool is about to come.
      await this.extensions?.host.toolsReady;
      this.worker = startWorkerRole({
        ...shared,
        membership,
        tools: this.tools.registry,
        concurrency: configuration.workerConcurrency,
        calls: this.extensions?.calls,
        secrets: this.options.secrets,
      });
      if (this.scheduler !== null) {
        const { store } = stores;
        const tools = this.tools.registry;
        const means = { ...shared, membership, store, tools, tasks: indexes.pinnedTasks };
        this.beginEarly(this.scheduler, this.worker, means);
      }
    }
    this.started = true;
    void stores.warmUp(clock, this.going.signal);
  }

  reload(configuration: Configuration): void {
    const tls = readTlsFiles(configuration);
    const keys = this.keyring === null ? null : jwtKeys(configuration, this.options.telemetry.log);
    if (tls !== null && this.server instanceof TlsServer) this.server.setSecureContext(tls);
    if (keys !== null) this.keyring?.replace(keys);
  }

  /** Read, or made, when a role first needs them. */
  private get keys(): TokenKeyring {
    const { configuration, telemetry } = this.options;
    return (this.keyring ??= new TokenKeyring(jwtKeys(configuration, telemetry.log)));
  }

  /**
   * Ends what this process does, in the order in which it depends on each other.
   * @throws the first fault, once all was tried: a part that does not end in order leaves no other open
   */
  async stop(): Promise<void> {
    this.started = false;
    const faults: unknown[] = [];
    const steps: readonly (() => Promise<void> | undefined)[] = [
      () => this.scheduler?.stop(),
      () => this.worker?.drain(),
      async () => this.stopping.abort(),
      () => this.live?.close(),
      () => this.extensions?.host.endConnections(),
      () => this.auditTail?.close(),
      () => (this.server === null ? undefined : stopServing(this.server)),
      () => this.refusals?.close(),
      () => this.extensions?.close(),
      () => this.going.end(),
      () => this.projector?.stop(),
      () => this.tools?.close(),
      () => this.opened?.close(),
    ];
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        faults.push(error);
      }
    }
    if (faults.length > 0) throw faults[0];
  }

  /** The worker of this process begins runs that its scheduler is about to request. */
  private beginEarly(
    { scheduler }: SchedulerRole,
    { worker, runPipeline }: WorkerRole,
    means: Omit<RehearsalMeans, 'runPipeline'>,
  ): void {
    scheduler.writer.early = worker.early;
    const rehearse = rehearsingOnce({ ...means, runPipeline }, this.going.signal);
    const collect = collectingBefore(means.clock);
    scheduler.onAhead = (due) => {
      rehearse(due);
      collect(due);
    };
  }

  private join({ coordination }: Stores): Membership {
    const { configuration, clock, telemetry } = this.options;
    const { roles, leaseSeconds } = configuration;
    const membership = new Membership({
      id: this.member,
      lease: leaseSeconds * 1000,
      about: { roles: [...roles], host: hostname(), pid: process.pid },
      present: () => (this.worker === null ? {} : { slots: this.worker.worker.slotUse }),
      coordination,
      clock,
      telemetry,
    });
    this.going.keep('saying that this process is alive', async (started) => {
      started();
      await membership.run(this.going.signal);
    });
    return membership;
  }

  private startProjector(): void {
    const { configuration, clock, telemetry } = this.options;
    const { dataDirectory, eventStoreUrl, readModelUrl, logLevel, roles, traces } = configuration;
    this.projector = startProjector({
      data: {
        settings: { dataDirectory, eventStoreUrl, readModelUrl, logLevel, roles, traces },
        version,
        owner: this.member,
        lease: PROJECTOR_LEASE,
      },
      clock,
      telemetry,
      onWord: (word) => {
        if (word.kind === 'checkpoints')
          for (const [name, position] of word.views) this.positions?.notify(name, position);
        if (word.kind === 'status') this.views.update(word.leads ? word.views : null);
      },
    });
  }

  /** Word of a projector in another process of this machine. */
  private onNotice(notice: string): void {
    const told = checkpointOf(notice);
    if (told !== null) this.positions?.notify(told.name, told.position);
  }

  /** Kept up until the log answers: on a store that is away at start, the admin is made once it is there. */
  private makeFirstAdmin({ store }: Stores): void {
    const { configuration, clock } = this.options;
    this.firstAdmin = new Promise((resolve) => {
      this.going.keep('making the first admin', async (started) => {
        resolve(await makeFirstAdmin(store, configuration, clock));
        started();
        await new Promise<void>((ended) => {
          if (this.going.signal.aborted) ended();
          this.going.signal.addEventListener('abort', () => ended(), { once: true });
        });
      });
      this.going.signal.addEventListener('abort', () => resolve(null), { once: true });
    });
  }

  private async serve(stores: Stores, indexes: LiveIndexes): Promise<void> {
    const { configuration, clock, telemetry } = this.options;
    const { production } = configuration;
    const health = this.healthOf(stores);
    const observing = { health, metricsText: () => telemetry.metrics.text() };
    const app = configuration.roles.includes('api')
      ? createApi(this.apiDependencies(stores, indexes), observing, this.extensions?.host ?? null)
      : createObservingApp(observing, { telemetry, production });
    const runs = configuration.roles.includes('worker') ? configuration.workerConcurrency : 0;
    const files = mostOpenFiles();
    const scarcity = scarcityOfFiles(files, runs);
    if (scarcity !== null) telemetry.log.warn(scarcity);
    const room = roomForClients(files, runs);
    const tls = readTlsFiles(configuration);
    this.server = await listen(app, configuration, room, { clock, log: telemetry.log, tls });
    if (this.extensions !== null && configuration.roles.includes('api')) {
      this.extensions.host.takeUpgrades(this.server, app);
    }
    const { port, address } = boundAddress(this.server, configuration.host, tls !== null);
    this.extensions?.core.listensAt(configuration.host, port, tls !== null);
    this.address = address;
  }

  private apiDependencies(stores: Stores, indexes: LiveIndexes): ApiDependencies {
    const { configuration, clock, telemetry } = this.options;
    const { positions, tools } = this;
    if (positions === null || tools === null) throw new Error('the API is built last');
    const { store, readModel, coordination } = stores;
    const { agents, sessions, tasks, topics } = indexes;
    const live = (this.live = new LiveRuns({ store, clock, telemetry }));
    const auditTail = (this.auditTail = new AuditTail({ store, clock, telemetry }));
    const refusals = (this.refusals = new Refusals({ store, clock, telemetry }));
    const { keys } = this;
    return {
      store,
      readModel,
      coordination,
      clock,
      telemetry,
      settings: { ...configuration, tokenKeys: keys, version },
      webhookSecret: webhookSecrets(configuration, keys),
      agents,
      sessions,
      tasks,
      topics,
      projections,
      live,
      auditTail,
      refusals,
      exportPlaces: new ExportPlaces(),
      positions: measuredPositions(positions, telemetry),
      tools: tools.registry,
      requestedUpTo: () => new RememberedPosition(coordination, store, CHECKPOINT).recall(),
      stopping: this.stopping.signal,
    };
  }

  private healthOf(stores: Stores): HealthReports {
    const { going, instance } = this;
    const started = (): boolean => this.started;
    return createHealth({ stores, clock: this.options.clock, going, version, instance, started });
  }

  private addGauges(stores: Stores, membership: Membership, hold: Hold): void {
    const { configuration, clock, telemetry } = this.options;
    addGauges(telemetry.metrics, {
      ...{ configuration, version, clock, membership, hold },
      health: this.healthOf(stores),
      scheduler: () => this.scheduler,
      worker: () => this.worker,
      host: () => this.extensions?.host ?? null,
      views: () => this.views.current,
      liveClients: () => (this.live?.size ?? 0) + (this.auditTail?.size ?? 0),
    });
  }
}

/** Milliseconds after which a projector that is gone is followed by another. */
const PROJECTOR_LEASE = 3000;
