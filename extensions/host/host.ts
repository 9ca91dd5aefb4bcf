import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import type { RequestListener, Server } from 'node:http';
import { Router, type NextFunction, type Request, type Response } from 'express';
import type { ExtensionModule } from '../contract.ts';
import { backgroundAccess } from './provided/background-tasks.ts';
import { createContext } from './context.ts';
import { BUILT_IN_FOLDER, discover, sources, type Source } from './discovery.ts';
import { DirectRoutes } from './routes/direct-routes.ts';
import { LeasedWork } from './leased-work.ts';
import { readEndpoints } from './routes/endpoints.ts';
import { eventAccess } from './provided/event-access.ts';
import { Extension, errorTypeOf, summarizeError } from './extension.ts';
import { ExtensionStreams } from './provided/extension-streams.ts';
import type { HostDependencies, HttpPort, RequestOrigin } from './ports.ts';
import { Routing } from './routes/routing.ts';
import { Sockets } from './routes/sockets.ts';
import { StaticFiles } from './routes/static-files.ts';
import { ExtensionTools } from './provided/tool-access.ts';
import { reportRetries, type RetriedWork } from './retried-work.ts';
import { importModule } from './import-module.ts';
import { timeoutError } from './overdue-work.ts';
import { withTimeLimit } from './time-limit.ts';
import { upgradeWebSocketsOnly } from './routes/upgrade-requests.ts';

const SETUP_TIMEOUT_MS = 10_000;
const SHUTDOWN_TIMEOUT_MS = 2_000;

/** Time for stopping background work and releasing its lease. */
const WORK_TIMEOUT_MS = 5_000;

/** An extension with the descriptions of its endpoints. */
export type DescribedExtension = Pick<Extension, 'id' | 'isLimited' | 'endpoints'>;

/** The parts of an extension that is being set up or has been. */
interface ActiveParts {
  readonly module: ExtensionModule;
  readonly tools: ExtensionTools;
  readonly work: LeasedWork;
}

/** A current value for the metrics. */
interface GaugeReading {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * Finds extensions, sets them up, routes requests to them and ends them. A failure of one does not affect the others.
 */
export class ExtensionHost {
  readonly #dependencies: HostDependencies;
  readonly #extensions = new Map<string, Extension>();
  readonly #loading = new Map<Extension, Promise<void>>();
  readonly #parts = new Map<Extension, ActiveParts>();
  readonly #files = new Map<Extension, StaticFiles | null>();
  readonly #streams: ExtensionStreams;
  readonly #sockets = new Sockets();
  /** null in a process that does not serve routes. */
  readonly #routing: Routing | null;
  #sources: readonly Source[] = ['builtin'];
  #loaded: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();

  constructor(dependencies: HostDependencies) {
    this.#dependencies = dependencies;
    // Every extension that is being set up adds a listener.
    setMaxListeners(0, this.#closing.signal);
    this.#streams = new ExtensionStreams(dependencies);
    const { http } = dependencies;
    this.#routing = http === null ? null : this.#createRouting(http);
  }

  /**
   * Finds all extensions and starts setting up those that do not wait for their first request.
   * @param packagesOf folders whose `node_modules` may contain plugins
   */
  async start(packagesOf: readonly string[]): Promise<void> {
    const { settings, telemetry } = this.#dependencies;
    const { extensionPaths: paths, allowedPlugins } = settings;
    const found = await discover({ builtIn: BUILT_IN_FOLDER, paths, packagesOf, allowedPlugins });
    for (const each of found) {
      const extension = new Extension(each, settings.extensionGrants[each.key]);
      this.#extensions.set(extension.key, extension);
      if (extension.reason !== null) this.#logFailure(extension);
    }
    this.#sources = sources.filter(
      (source) =>
        source === 'builtin' ||
        (source === 'env_dir' && paths.length > 0) ||
        found.some((each) => each.source === source),
    );
    const eager = [...this.#extensions.values()].filter((each) => this.#isEager(each));
    this.#loaded = Promise.all(eager.map((each) => this.ensureLoaded(each))).then(() => {});
    telemetry.log.debug('extensions found', { ids: [...this.#extensions.keys()] });
  }

  /** Resolves once all tools for pipelines are registered. */
  get toolsReady(): Promise<void> {
    const loading = [...this.#extensions.values()].filter(
      (each) => each.source !== 'builtin' && each.has('TOOLS') && this.#loading.has(each),
    );
    return Promise.all(loading.map((each) => this.ensureLoaded(each))).then(() => {});
  }

  /** Resolves once every extension that is set up at start has loaded or failed. Never rejects. */
  get loaded(): Promise<void> {
    return this.#loaded;
  }

  /** Middleware for requests at `/ext/…`. */
  serve = (request: Request, response: Response, next: NextFunction): Promise<void> | void =>
    this.#routing === null ? next() : this.#routing.serve(request, response, next);

  /** Rejects a request that no extension answered. */
  refuse = (request: Request, _response: Response, next: NextFunction): void =>
    this.#routing === null ? next() : this.#routing.refuse(request, next);

  /** The response of `GET /ext/status`. */
  status(): object {
    const all = [...this.#extensions.values()];
    const count = (of: string): number => all.filter(({ state }) => state === of).length;
    return {
      extensions: Object.fromEntries(all.map((each) => [each.key, each.status()])),
      discovery_sources: this.#sources,
      total_extensions: all.length,
      loaded_extensions: count('loaded'),
      failed_extensions: count('failed'),
    };
  }

  /** The loaded extensions with the descriptions of their endpoints. */
  described(): readonly DescribedExtension[] {
    return [...this.#extensions.values()].filter(({ state }) => state === 'loaded');
  }

  /** Code folders of the extensions that are not built in. */
  folders(): readonly { readonly id: string; readonly folder: string }[] {
    return [...this.#extensions.values()].flatMap(({ id, source, found }) =>
      source === 'builtin' || found === null ? [] : [{ id, folder: found.folder }],
    );
  }

  /** Handles `Upgrade` requests of a server. */
  takeUpgrades(server: Server, listener: RequestListener): void {
    upgradeWebSocketsOnly(server);
    server.on('upgrade', (...upgrade) => this.#sockets.receive(listener, server, ...upgrade));
  }

  /** Ends WebSockets and followed streams. Must precede closing the server, which waits for them. */
  async endConnections(): Promise<void> {
    this.#sockets.close();
    await this.#streams.close();
  }

  /**
   * Reports an error caught outside any call. One that names `process.exit` or `process.abort` makes the extension
   * failed.
   */
  reportError = (extensionId: string, what: string, error: unknown): void => {
    const extension = this.#extensions.get(extensionId);
    if (extension === undefined || extension.state === 'failed') return;
    this.#noteError(extension, what, error);
    if (!what.startsWith('process.')) return;
    extension.fail(what);
    this.#logFailure(extension);
    void this.#end(extension);
  };

  /** Requests in progress, for the metrics. */
  activeConnections(): readonly GaugeReading[] {
    return [...(this.#routing?.active ?? [])].map(([extension, value]) => ({
      labels: { extension, endpoint: 'routes' },
      value,
    }));
  }

  /** The state of each extension, for the metrics. */
  states(): readonly GaugeReading[] {
    return [...this.#extensions.values()].map(({ key: extension, state }) => ({
      labels: { extension, state },
      value: 1,
    }));
  }

  /** Whether this process holds the lease of each extension with background work, for the metrics. */
  leases(): readonly GaugeReading[] {
    return [...this.#parts.values()].flatMap(({ work }) =>
      work.isUnused ? [] : [{ labels: { lease: work.name }, value: work.isLeaseHolder ? 1 : 0 }],
    );
  }

  /** Ends every extension. Each `shutdown` has two seconds, and a setup in progress is abandoned. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the process stopped before setup completed'));
    await this.#loaded;
    await Promise.all([...this.#parts.keys()].map((each) => this.#end(each)));
    await this.endConnections();
  }

  /** Loads an extension unless it has been loaded. Resolves when it has loaded or failed. */
  ensureLoaded(extension: Extension): Promise<void> {
    if (extension.state !== 'discovered' && extension.state !== 'loading') return Promise.resolve();
    if (this.#closing.signal.aborted && extension.state === 'discovered') return Promise.resolve();
    let loading = this.#loading.get(extension);
    if (loading === undefined) {
      loading = this.#load(extension).finally(() => this.#loading.delete(extension));
      this.#loading.set(extension, loading);
    }
    return loading;
  }

  /** An extension that has nothing to do in a process is not loaded there at start. */
  #isEager(extension: Extension): boolean {
    const { http, settings } = this.#dependencies;
    if (extension.state !== 'discovered') return false;
    const hasBackgroundWork = extension.has('EVENTS_SUB') || extension.has('BACKGROUND_TASKS');
    if (http === null) return extension.has('TOOLS') || hasBackgroundWork;
    if (extension.found?.manifest.eager !== false) return true;
    return settings.runsTools && extension.has('TOOLS');
  }

  async #load(extension: Extension): Promise<void> {
    const { found } = extension;
    if (found === null) return;
    const { telemetry } = this.#dependencies;
    const startedAt = performance.now();
    extension.startLoading();
    try {
      const { setupLimit = SETUP_TIMEOUT_MS } = this.#dependencies;
      const message = `setup took longer than ${setupLimit / 1000} s`;
      await withTimeLimit(setupLimit, message, this.#setUp(extension), this.#closing.signal);
      if (extension.finishLoading(Math.round(performance.now() - startedAt))) {
        telemetry.log.info('extension loaded', { extension: extension.id, ms: extension.loadedMs });
      }
    } catch (error) {
      extension.fail(summarizeError(error));
      if (!this.#closing.signal.aborted) this.#logFailure(extension, error);
      else telemetry.log.info('extension setup abandoned', { extension: extension.id });
      await this.#end(extension);
    }
  }

  async #setUp(extension: Extension): Promise<void> {
    const { found } = extension;
    if (found === null) return;
    const enter = <T>(call: () => T): T => this.#enter(extension, call);
    const module = await enter(() => importModule(join(found.folder, found.manifest.module)));
    // The extension may have failed while its module was loading.
    if (extension.state !== 'loading') return;
    const noteError = (what: string, error: unknown): void =>
      this.#noteError(extension, what, error);
    const { failures } = this.#dependencies.telemetry;
    const reportOf = (what: string): RetriedWork =>
      reportRetries(extension.id, what, failures, (error) =>
        this.#countError(extension, what, error),
      );
    const originOf = (request: Request): RequestOrigin | undefined =>
      this.#routing?.originOf(extension, request);
    const tools = new ExtensionTools(extension, this.#dependencies, enter, originOf);
    const { member: owner, clock } = this.#dependencies;
    const work = new LeasedWork({
      ...this.#dependencies,
      extensionId: extension.id,
      owner,
      onOverrun: (item, ended) => this.#noteOverrun(extension, item.label, ended),
    });
    const routes = Router({ strict: false });
    const direct = new DirectRoutes(routes);
    this.#parts.set(extension, { module, tools, work });
    const context = createContext(extension, this.#dependencies, {
      routes,
      tools: tools.access,
      events: eventAccess(extension, this.#dependencies, work, enter, noteError, reportOf),
      streams: this.#streams.accessOf(extension, originOf),
      background: backgroundAccess(extension, work, clock, enter, reportOf),
      routing: () => this.#routing,
      ids: [...this.#extensions.values()].map(({ id }) => id),
    });
    const endpoints = readEndpoints(module.endpoints, extension, this.#dependencies);
    await enter(() => module.setup(context));
    if (extension.state !== 'loading') return;
    if (extension.has('ROUTES')) {
      extension.routes = direct;
      extension.endpoints = endpoints;
    }
  }

  /** Lists stopped work that still runs in the status, until it ends. */
  #noteOverrun(extension: Extension, what: string, ended: Promise<void>): void {
    const key = {};
    const message = 'stopped but still running';
    extension.overdue.set(key, { what: `${what}: ${message}`, since: Date.now() });
    void ended.finally(() => extension.overdue.delete(key));
    this.#noteError(extension, what, timeoutError(message));
  }

  /** Counts and logs a failure outside requests that is not retried. */
  #noteError(extension: Extension, what: string, error: unknown): void {
    this.#countError(extension, what, error);
    const { log } = this.#dependencies.telemetry;
    log.error('extension error', { extension: extension.id, what, error });
  }

  #countError(extension: Extension, what: string, error: unknown): void {
    extension.noteError(`${what}: ${summarizeError(error)}`);
    const labels = { extension: extension.id, endpoint: 'none', error_type: errorTypeOf(error) };
    this.#dependencies.telemetry.count('extension_errors_total', labels);
  }

  #enter<T>(extension: Extension, call: () => T): T {
    // Built-in extensions need no containment, which is not free.
    if (extension.source === 'builtin') return call();
    return this.#dependencies.contain(extension.id, call);
  }

  async #end(extension: Extension): Promise<void> {
    const parts = this.#parts.get(extension);
    this.#parts.delete(extension);
    if (parts !== undefined) await this.#endParts(extension, parts);
    if (extension.source !== 'builtin') this.#dependencies.release(extension.id);
  }

  async #endParts(extension: Extension, parts: ActiveParts): Promise<void> {
    parts.tools.close();
    this.#sockets.closeAll(extension);
    this.#routing?.abortRequests(extension);
    // `shutdown` is called even if stopping the work fails.
    await this.#attempt(extension, WORK_TIMEOUT_MS, 'stopping background work', () =>
      parts.work.close(),
    );
    await this.#attempt(extension, SHUTDOWN_TIMEOUT_MS, 'shutdown', () =>
      this.#enter(extension, async () => parts.module.shutdown?.()),
    );
  }

  async #attempt(
    extension: Extension,
    limit: number,
    what: string,
    call: () => Promise<void>,
  ): Promise<void> {
    try {
      await withTimeLimit(limit, `${what} took longer than ${limit / 1000} s`, call());
    } catch (error) {
      const fields = { extension: extension.id, error };
      this.#dependencies.telemetry.log.warn('extension did not shut down cleanly', fields);
    }
  }

  #createRouting(http: HttpPort): Routing {
    const { settings, telemetry, service } = this.#dependencies;
    return new Routing(
      {
        find: (id) => this.#extensions.get(id) ?? null,
        ensureLoaded: (extension) => this.ensureLoaded(extension),
        enter: (extension, call) => this.#enter(extension, call),
        sockets: this.#sockets,
        noteError: (extension, what, error) => this.#noteError(extension, what, error),
        staticFilesOf: (extension) => this.#staticFilesOf(extension, http),
        status: () => this.status(),
        version: () => service.version,
      },
      http,
      settings,
      telemetry,
    );
  }

  #staticFilesOf(extension: Extension, { pageHeaders }: HttpPort): StaticFiles | null {
    const known = this.#files.get(extension);
    if (known !== undefined) return known;
    const { found } = extension;
    const hasFiles = found !== null && extension.has('STATIC');
    const files = hasFiles ? StaticFiles.of(found.folder, pageHeaders) : null;
    this.#files.set(extension, files);
    return files;
  }

  #logFailure(extension: Extension, error?: unknown): void {
    const { log } = this.#dependencies.telemetry;
    const fields = { extension: extension.key, reason: extension.reason };
    log.error('extension failed', error === undefined ? fields : { ...fields, error });
  }
}
