import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import type { RequestListener, Server } from 'node:http';
import { Router, type NextFunction, type Request, type Response } from 'express';
import type { ExtensionModule } from '../contract.ts';
import { BackgroundTasks } from './lent/background.ts';
import { createContext } from './context.ts';
import { builtInFolder, discover, sources, type Source } from './discovery.ts';
import { DirectRoutes } from './routes/direct-routes.ts';
import { Duty } from './duty.ts';
import { readEndpoints } from './routes/endpoints.ts';
import { eventAccess } from './lent/events.ts';
import { Extension, errorTypeOf, faultText } from './extension.ts';
import { OwnStreams } from './lent/own-streams.ts';
import type { HostDependencies, HttpPort, RequestOrigin } from './ports.ts';
import { Routing } from './routes/routing.ts';
import { Sockets } from './routes/sockets.ts';
import { StaticFiles } from './routes/static-files.ts';
import { ExtensionTools } from './lent/tools.ts';
import { importModule } from './module.ts';
import { lateError } from './unsettled.ts';
import { within } from './within.ts';
import { upgradeWebSocketsOnly } from './routes/another-protocol.ts';

/** How long a setup may take, and a shutdown. Milliseconds. */
const SETUP_LIMIT = 10_000;
const SHUTDOWN_LIMIT = 2_000;

/** The same of giving back its turn, with what it may wait for before. Milliseconds. */
const DUTY_LIMIT = 5_000;

/** An extension with what it says of its endpoints. */
export type DescribedExtension = Pick<Extension, 'id' | 'isLimited' | 'endpoints'>;

/** What belongs to an extension that has been set up, or is being so. */
interface Parts {
  readonly module: ExtensionModule;
  readonly tools: ExtensionTools;
  readonly duty: Duty;
}

/** A present amount, for the metrics. */
interface Measured {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Finds extensions, sets them up, leads requests to them, and ends them: each by itself, so that none harms another. */
export class ExtensionHost {
  readonly #dependencies: HostDependencies;
  readonly #extensions = new Map<string, Extension>();
  readonly #loading = new Map<Extension, Promise<void>>();
  readonly #parts = new Map<Extension, Parts>();
  readonly #files = new Map<Extension, StaticFiles | null>();
  readonly #streams: OwnStreams;
  readonly #sockets = new Sockets();
  #routing: Routing | null = null;
  #http: HttpPort | null = null;
  #sources: readonly Source[] = ['builtin'];
  #loaded: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(dependencies: HostDependencies) {
    this.#dependencies = dependencies;
    // Each extension that is being set up listens to it.
    setMaxListeners(0, this.#stopping.signal);
    this.#streams = new OwnStreams(dependencies);
  }

  /** Takes what the HTTP interface lends; called in a process with the role `api`, before its first request. */
  useHttp = (http: HttpPort): void => {
    this.#http = http;
    this.#routing = this.#createRouting(http);
  };

  /**
   * Finds all extensions, and begins to set up those that don't wait for their first request.
   * @param packagesOf folders whose `node_modules` may have plugins
   */
  async start(packagesOf: readonly string[]): Promise<void> {
    const { settings, telemetry } = this.#dependencies;
    const found = await discover({
      builtIn: builtInFolder,
      paths: settings.extensionPaths,
      packagesOf,
    });
    for (const each of found) {
      const extension = new Extension(each, settings.extensionGrants[each.key]);
      this.#extensions.set(extension.key, extension);
      if (extension.reason !== null) this.#logFailure(extension);
    }
    this.#sources = sources.filter(
      (source) =>
        source === 'builtin' ||
        (source === 'env_dir' && settings.extensionPaths.length > 0) ||
        found.some((each) => each.source === source),
    );
    const eager = [...this.#extensions.values()].filter((each) => this.#isEager(each));
    this.#loaded = Promise.all(eager.map((each) => this.ready(each))).then(() => {});
    telemetry.log.debug('extensions found', { ids: [...this.#extensions.keys()] });
  }

  /** Resolves once all tools that pipelines may use are there. */
  get toolsReady(): Promise<void> {
    const bringing = [...this.#extensions.values()].filter(
      (each) => each.source !== 'builtin' && each.has('TOOLS') && this.#loading.has(each),
    );
    return Promise.all(bringing.map((each) => this.ready(each))).then(() => {});
  }

  /** Resolves once every extension that is set up at start is loaded, or has failed. Never rejects. */
  get loaded(): Promise<void> {
    return this.#loaded;
  }

  /** The middleware for requests at `/ext/…`. */
  serve = (request: Request, response: Response, next: NextFunction): Promise<void> | void =>
    this.#routing === null ? next() : this.#routing.serve(request, response, next);

  /** Tells what no extension has answered. */
  refuse = (request: Request, _response: Response, next: NextFunction): void =>
    this.#routing === null ? next() : this.#routing.refuse(request, next);

  /** As `GET /ext/status` shows it. */
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

  /** What the loaded extensions say of their endpoints. */
  described(): readonly DescribedExtension[] {
    return [...this.#extensions.values()].filter(({ state }) => state === 'loaded');
  }

  /** Where the code of those lies that are not of this service. */
  folders(): readonly { readonly id: string; readonly folder: string }[] {
    return [...this.#extensions.values()].flatMap(({ id, source, found }) =>
      source === 'builtin' || found === null ? [] : [{ id, folder: found.folder }],
    );
  }

  /** Takes requests of a server that ask for another protocol. */
  takeUpgrades(server: Server, listener: RequestListener): void {
    upgradeWebSocketsOnly(server);
    server.on('upgrade', (...asked) => this.#sockets.receive(listener, server, ...asked));
  }

  /** Ends what goes on for as long as its client likes. Before the server is closed, which waits for it. */
  async endConnections(): Promise<void> {
    this.#sockets.close();
    await this.#streams.close();
  }

  /** An extension did what would have ended the process, or left something uncaught: it is not to be called again. */
  blame = (extensionId: string, what: string, error: unknown): void => {
    const extension = this.#extensions.get(extensionId);
    if (extension === undefined || extension.state === 'failed') return;
    this.#noteFault(extension, what, error);
    if (!what.startsWith('process.')) return;
    extension.fail(what);
    this.#logFailure(extension);
    void this.#end(extension);
  };

  /** Requests under way. */
  activeConnections(): readonly Measured[] {
    return [...(this.#routing?.active ?? [])].map(([extension, value]) => ({
      labels: { extension, endpoint: 'routes' },
      value,
    }));
  }

  /** The state of each, for the metrics. */
  states(): readonly Measured[] {
    return [...this.#extensions.values()].map(({ key: extension, state }) => ({
      labels: { extension, state },
      value: 1,
    }));
  }

  /** Whether this process has the turn of each extension that works by itself, for the metrics. */
  leases(): readonly Measured[] {
    return [...this.#parts.values()].flatMap(({ duty }) =>
      duty.isIdle ? [] : [{ labels: { lease: duty.name }, value: duty.holds ? 1 : 0 }],
    );
  }

  /** Ends every extension: each is told, and has two seconds; a setup that goes on is given up. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error('the process was stopped before it was set up'));
    await this.#loaded;
    await Promise.all([...this.#parts.keys()].map((each) => this.#end(each)));
    await this.endConnections();
  }

  /** Loads an extension that has not been; resolves once that has ended, one way or the other. */
  ready(extension: Extension): Promise<void> {
    if (extension.state !== 'discovered' && extension.state !== 'loading') return Promise.resolve();
    if (this.#stopping.signal.aborted && extension.state === 'discovered') return Promise.resolve();
    let loading = this.#loading.get(extension);
    if (loading === undefined) {
      loading = this.#load(extension).finally(() => this.#loading.delete(extension));
      this.#loading.set(extension, loading);
    }
    return loading;
  }

  /** What has nothing to do in a process without routes, or without pipelines, is not loaded there at start. */
  #isEager(extension: Extension): boolean {
    const { servesRoutes, runsTools } = this.#dependencies.settings;
    if (extension.state !== 'discovered') return false;
    const goesOnItsOwn = extension.has('EVENTS_SUB') || extension.has('BACKGROUND_TASKS');
    if (!servesRoutes) return extension.has('TOOLS') || goesOnItsOwn;
    if (extension.found?.manifest.eager !== false) return true;
    return runsTools && extension.has('TOOLS');
  }

  async #load(extension: Extension): Promise<void> {
    const { found } = extension;
    if (found === null) return;
    const { telemetry } = this.#dependencies;
    const begun = performance.now();
    extension.begin();
    try {
      const { setupLimit = SETUP_LIMIT } = this.#dependencies;
      const late = `its setup took longer than ${setupLimit / 1000} s`;
      await within(setupLimit, late, this.#setUp(extension), this.#stopping.signal);
      if (extension.complete(Math.round(performance.now() - begun))) {
        telemetry.log.info('extension loaded', { extension: extension.id, ms: extension.loadedMs });
      }
    } catch (error) {
      extension.fail(faultText(error));
      if (this.#stopping.signal.aborted)
        telemetry.log.info('not set up', { extension: extension.id });
      else this.#logFailure(extension, error);
      await this.#end(extension);
    }
  }

  async #setUp(extension: Extension): Promise<void> {
    const { found } = extension;
    if (found === null) return;
    const enter = <T>(call: () => T): T => this.#enter(extension, call);
    const module = await enter(() => importModule(join(found.folder, found.manifest.module)));
    // Its code has run: what it does now reaches nothing.
    if (extension.state !== 'loading') return;
    const fault = (what: string, error: unknown): void => this.#noteFault(extension, what, error);
    const originOf = (request: Request): RequestOrigin | undefined =>
      this.#routing?.originOf(extension, request);
    const tools = new ExtensionTools(extension, this.#dependencies, enter, originOf);
    const { member: owner, clock } = this.#dependencies;
    const duty = new Duty({
      ...this.#dependencies,
      extensionId: extension.id,
      owner,
      goesOn: (item, ended) => this.#noteGoingOn(extension, item.what, ended),
    });
    const routes = Router({ strict: false });
    const direct = new DirectRoutes(routes);
    this.#parts.set(extension, { module, tools, duty });
    const context = createContext(extension, this.#dependencies, {
      routes,
      tools: tools.access,
      events: eventAccess(extension, this.#dependencies, duty, enter, fault),
      streams: this.#streams.accessOf(extension, originOf),
      background: new BackgroundTasks(extension, duty, clock, enter, fault).access,
      callerOf: (request) => this.#routing?.callerOf(request as Request) ?? null,
      signalOf: (request) =>
        this.#routing?.signalOf(extension, request as Request) ?? new AbortController().signal,
      once: (request, call) => this.#routing?.once(extension, request, call) ?? call(),
      ids: [...this.#extensions.values()].map(({ id }) => id),
      innerFor: (request) =>
        this.#routing?.innerFor(extension, request) ?? { headers: {}, over: () => {} },
    });
    const endpoints = readEndpoints(module.endpoints, extension, this.#dependencies);
    await enter(() => module.setup(context));
    if (extension.state !== 'loading') return;
    if (extension.has('ROUTES')) {
      extension.routes = direct;
      extension.endpoints = endpoints;
    }
  }

  /** Something goes on that was told to end: it is named for as long as it does. */
  #noteGoingOn(extension: Extension, what: string, ended: Promise<void>): void {
    const key = {};
    const named = `${what}: it was told to end, and goes on`;
    extension.unsettled.set(key, { what: named, since: Date.now() });
    void ended.finally(() => extension.unsettled.delete(key));
    this.#noteFault(extension, what, lateError('it was told to end, and goes on'));
  }

  /** A subscriber or a background task threw, or does not come to an end. */
  #noteFault(extension: Extension, what: string, error: unknown): void {
    const { telemetry } = this.#dependencies;
    extension.noteFault(`${what}: ${faultText(error)}`);
    telemetry.count('extension_errors_total', {
      extension: extension.id,
      endpoint: 'none',
      error_type: errorTypeOf(error),
    });
    telemetry.log.error('something of an extension failed', {
      extension: extension.id,
      what,
      error,
    });
  }

  #enter<T>(extension: Extension, call: () => T): T {
    // Those of this service end no process, and what keeps others from it has its price.
    if (extension.source === 'builtin') return call();
    return this.#dependencies.contain(extension.id, call);
  }

  async #end(extension: Extension): Promise<void> {
    const parts = this.#parts.get(extension);
    this.#parts.delete(extension);
    if (parts !== undefined) await this.#endParts(extension, parts);
    if (extension.source !== 'builtin') this.#dependencies.release(extension.id);
  }

  async #endParts(extension: Extension, parts: Parts): Promise<void> {
    parts.tools.close();
    this.#sockets.closeOf(extension);
    this.#routing?.endOf(extension);
    // Its own end is told to it, whatever goes on.
    await this.#inOrder(extension, DUTY_LIMIT, 'its turn could not be given back', () =>
      parts.duty.close(),
    );
    await this.#inOrder(extension, SHUTDOWN_LIMIT, 'its shutdown took longer than 2 s', () =>
      this.#enter(extension, async () => parts.module.shutdown?.()),
    );
  }

  async #inOrder(
    extension: Extension,
    limit: number,
    late: string,
    call: () => Promise<void>,
  ): Promise<void> {
    try {
      await within(limit, late, call());
    } catch (error) {
      const fields = { extension: extension.id, error };
      this.#dependencies.telemetry.log.warn('an extension did not end in order', fields);
    }
  }

  #createRouting(http: HttpPort): Routing {
    const { settings, telemetry, service } = this.#dependencies;
    return new Routing(
      {
        find: (id) => this.#extensions.get(id) ?? null,
        ready: (extension) => this.ready(extension),
        enter: (extension, call) => this.#enter(extension, call),
        sockets: this.#sockets,
        fault: (extension, what, error) => this.#noteFault(extension, what, error),
        filesOf: (extension) => this.#filesOf(extension),
        status: () => this.status(),
        version: () => service.version,
      },
      http,
      settings,
      telemetry,
    );
  }

  #filesOf(extension: Extension): StaticFiles | null {
    const known = this.#files.get(extension);
    if (known !== undefined) return known;
    const { found } = extension;
    const files =
      found === null || this.#http === null || !extension.has('STATIC')
        ? null
        : StaticFiles.of(found.folder, this.#http.pageHeaders);
    this.#files.set(extension, files);
    return files;
  }

  #logFailure(extension: Extension, error?: unknown): void {
    const { log } = this.#dependencies.telemetry;
    const fields = { extension: extension.key, reason: extension.reason };
    log.error('an extension failed', error === undefined ? fields : { ...fields, error });
  }
}
