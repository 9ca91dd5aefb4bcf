import type { NextFunction, Request, Response } from 'express';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { ExtensionError, badInput, type ExtensionCaller } from '../../contract.ts';
import { AccessWatch } from './access-watch.ts';
import { beginServing, endServing } from '../provided/served-agents.ts';
import { Admission } from './admission.ts';
import { ResponseDeadline } from './response-deadline.ts';
import { allowHeader, allowHeaderOf, shouldReadBody, querySchemaOf } from './endpoint-lookup.ts';
import { errorTypeOf, toReadableError, type Extension } from '../extension.ts';
import { RequestContext } from './request-context.ts';
import type { HostSettings, HttpPort, RequestOrigin } from '../ports.ts';
import { RequestSignals } from './request-signals.ts';
import type { Sockets } from './sockets.ts';
import { PreconditionFailedError, type StaticFiles } from './static-files.ts';

const BODILESS_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const METHODS: ReadonlySet<string> = new Set([
  ...BODILESS_METHODS,
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
]);

/** The parts of the host that routing needs. */
export interface RoutingHost {
  /** null for an unknown id. */
  find(id: string): Extension | null;
  /** Loads the extension if necessary. Resolves once it is loaded, failed or disabled. */
  ensureLoaded(extension: Extension): Promise<void>;
  /** Calls the code of an extension. */
  enter<T>(extension: Extension, call: () => T): T;
  readonly sockets: Sockets;
  /** Records a failure outside requests. */
  noteError(extension: Extension, what: string, error: unknown): void;
  staticFilesOf(extension: Extension): StaticFiles | null;
  status(): object;
  version(): string;
}

/** Reason with which the signal of a request is aborted. */
class ClientDisconnectedError extends Error {
  constructor() {
    super('the client disconnected');
    this.name = 'AbortError';
  }
}

/** Routes requests at `/ext/…` to extensions, by the rules of the HTTP interface, and measures them. */
export class Routing {
  readonly #host: RoutingHost;
  readonly #http: HttpPort;
  readonly #telemetry: Telemetry;
  readonly #admission: Admission;
  /** Number of requests in progress, by extension id. */
  readonly active = new Map<string, number>();
  readonly #deadline: ResponseDeadline;
  readonly #signals = new RequestSignals();
  readonly #watch: AccessWatch;

  constructor(host: RoutingHost, http: HttpPort, settings: HostSettings, telemetry: Telemetry) {
    this.#host = host;
    this.#http = http;
    this.#telemetry = telemetry;
    this.#admission = new Admission(http, settings);
    this.#watch = new AccessWatch(this.#admission, this.#signals);
    this.#deadline = new ResponseDeadline(
      settings.extensionSeconds,
      http,
      telemetry,
      this.#signals,
    );
  }

  callerOf(request: Request): ExtensionCaller | null {
    return RequestContext.of(request)?.caller ?? null;
  }

  /**
   * Headers of an internal request made for a client's request.
   * @throws ExtensionError `bad_request` for a request that was not routed to the extension
   */
  innerFor(extension: Extension, request: Request): ReturnType<HttpPort['innerFor']> {
    const context = this.#contextOf(extension, request);
    const { headers, over } = this.#http.innerFor(request);
    const key = context.nextCommandId();
    return { headers: key === undefined ? headers : { ...headers, 'idempotency-key': key }, over };
  }

  /**
   * The origin of a request, for the audit.
   * @throws ExtensionError `bad_request` for a request that was not routed to the extension
   */
  originOf(extension: Extension, request: Request): RequestOrigin {
    const commandId = this.#contextOf(extension, request).nextCommandId();
    return { ...this.#http.originOf(request), commandId };
  }

  /**
   * Runs a command once for the key of its request.
   * @throws ExtensionError `bad_request` for a request that was not routed to the extension
   */
  async once<T>(extension: Extension, request: Request, call: () => Promise<T>): Promise<T> {
    const context = this.#contextOf(extension, request);
    const { caller } = context;
    // Keys belong to an agent. Without a caller, every request is a separate command.
    if (caller === null) return call();
    return this.#http.once(request, caller.agentId, async (commandId) => {
      try {
        return await context.runCommand(commandId, call);
      } catch (error) {
        throw error instanceof ExtensionError ? this.#http.errorOf(error) : error;
      }
    });
  }

  #contextOf(extension: Extension, request: Request, field = 'onBehalfOf'): RequestContext {
    const context = RequestContext.of(request);
    if (context?.isAdmitted === true && context.extension === extension) return context;
    throw badInput(field, 'must be a request that this extension received');
  }

  /**
   * The signal of a request, aborted when nobody waits for the response.
   * @throws ExtensionError `bad_request` for a request that was not routed to the extension
   */
  signalOf(extension: Extension, request: Request): AbortSignal {
    const { response } = this.#contextOf(extension, request, 'request');
    return this.#signals.of(extension, request, response.writableEnded || response.closed);
  }

  /** Aborts the signals of an extension that is being ended. */
  abortRequests(extension: Extension): void {
    this.#signals.abortAll(extension);
  }

  /** Serves a request at `/ext/…`. Other requests and those of unknown extensions are passed on. */
  serve(request: Request, response: Response, next: NextFunction): Promise<void> | void {
    const target = parsePath(request.path);
    if (target === null) return next();
    if (target.id === 'status' && target.subpath === '/') {
      return this.#respondWithStatus(request, response);
    }
    const extension = this.#host.find(target.id);
    if (extension === null) return next();
    const context = new RequestContext(extension, target.subpath, request, response, next);
    return extension.state === 'loaded' ? this.#route(context) : this.#routeOnceLoaded(context);
  }

  /** @throws an error for 404 if the method is not supported */
  #respondWithStatus(request: Request, response: Response): void {
    this.#http.setRoute(response, '/ext/status');
    if (request.method === 'GET' || request.method === 'HEAD') {
      this.#http.checkQuery(request, undefined);
      this.#http.sendJson(response, 200, this.#host.status());
      return;
    }
    response.set('Allow', allowHeader(['GET']));
    if (request.method !== 'OPTIONS') throw this.#http.errorOf(unknownPath(request));
    response.status(204).end();
  }

  /** Rejects a request that no extension answered. */
  refuse(request: Request, next: NextFunction): void {
    const target = parsePath(request.path);
    if (target === null) return next();
    const extension = this.#host.find(target.id);
    const details = { extension_id: target.id };
    next(
      this.#http.errorOf(
        extension?.state === 'failed'
          ? new ExtensionError('unavailable', `extension ${target.id} has failed`, details)
          : new ExtensionError('not_found', `no extension ${target.id}`, details),
      ),
    );
  }

  async #routeOnceLoaded(context: RequestContext): Promise<void> {
    await this.#host.ensureLoaded(context.extension);
    if (context.extension.state === 'loaded') await this.#route(context);
    else context.next();
  }

  /** Synchronous where possible, as awaiting costs as much as a short handler. */
  #route(context: RequestContext): Promise<void> | void {
    const { extension, subpath, request, response } = context;
    if (subpath === '' && (request.method === 'GET' || request.method === 'HEAD')) {
      // Relative links of a page need the trailing slash.
      const query = request.originalUrl.indexOf('?');
      const target = `/ext/${extension.id}/${query < 0 ? '' : request.originalUrl.slice(query)}`;
      response.status(308).set('Location', target).end();
      return;
    }
    const allow = request.method === 'OPTIONS' ? allowHeaderOf(context) : '';
    if (allow !== '') {
      this.#trackRequest(context, 'options');
      response.status(204).set('Allow', allow).end();
      return;
    }
    const isBodiless = BODILESS_METHODS.has(request.method);
    let admitting: Promise<void> | void;
    try {
      admitting = this.#admission.admit(context);
      if (!(admitting instanceof Promise) && isBodiless) this.#checkQuery(context);
    } catch (error) {
      this.#trackRequest(context, 'refused');
      throw error;
    }
    if (admitting instanceof Promise || !isBodiless) {
      return this.#routeOnceAdmitted(context, admitting);
    }
    this.#callHandler(context);
  }

  async #routeOnceAdmitted(
    context: RequestContext,
    admitting: Promise<void> | void,
  ): Promise<void> {
    const { request } = context;
    try {
      await admitting;
      if (!BODILESS_METHODS.has(request.method) && shouldReadBody(context)) {
        request.body = await this.#http.readBody(request);
      }
      this.#checkQuery(context);
    } catch (error) {
      this.#trackRequest(context, 'refused');
      throw error;
    }
    this.#callHandler(context);
  }

  #checkQuery(context: RequestContext): void {
    const query = querySchemaOf(context);
    if (query !== null) this.#http.checkQuery(context.request, query.schema);
  }

  /** Passes a request to the extension's code. */
  #callHandler(context: RequestContext): void {
    const { extension, subpath, request, response } = context;
    if (subpath.startsWith('/ws/') && this.#host.sockets.isUpgrade(request)) {
      this.#trackRequest(context, '/ws');
      this.#openSocket(context);
      return;
    }
    const { url, baseUrl } = request;
    const prefix = `/ext/${extension.id}`;
    request.url = url.slice(prefix.length) || '/';
    request.baseUrl = prefix;
    if (extension.isLimited) this.#deadline.start(context);
    if (context.caller !== null) this.#watch.watch(context);
    // This comes last, because a client that has already disconnected ends the request at once.
    this.#trackRequest(context);
    const onNext = (error?: unknown): void => {
      // Giving up after a disconnect is not an error.
      if (context.hasTimedOut || (isAbortError(error) && hasDisconnected(response))) {
        this.#deadline.logDiscarded(context, error);
        return;
      }
      request.url = url;
      request.baseUrl = baseUrl;
      if (error === undefined || error === null) void this.#respondByConvention(context);
      else context.next(this.#toHttpError(context, toReadableError(error)));
    };
    const { routes } = extension;
    if (routes === null) onNext();
    else this.#host.enter(extension, () => routes.serve(subpath || '/', request, response, onNext));
  }

  #openSocket(context: RequestContext): void {
    const { extension, subpath, request, response, caller } = context;
    const path = subpath.slice('/ws/'.length);
    const isStillAllowed = (): Promise<boolean> => this.#admission.isStillAllowed(context);
    response.locals['notMeasured'] = true;
    response.statusCode = 101;
    try {
      this.#host.sockets.open(
        { extension, path, request, response, caller, isStillAllowed },
        async (what, call) => {
          try {
            await this.#host.enter(extension, async () => call());
            return true;
          } catch (error) {
            this.#host.noteError(extension, what, error);
            return false;
          }
        },
      );
    } catch (error) {
      throw error instanceof ExtensionError ? this.#http.errorOf(error) : error;
    }
  }

  /**
   * Counts a request, and records it when it has ended.
   * @param label set if no route of the extension answers it
   */
  #trackRequest(context: RequestContext, label?: string): void {
    const { extension, caller } = context;
    if (label !== undefined) context.hostLabel = extension.labels.labelFor(label);
    this.active.set(extension.id, (this.active.get(extension.id) ?? 0) + 1);
    if (caller !== null) beginServing(extension, caller);
    this.#http.whenEnded(context.response, () => this.#recordRequest(context));
  }

  #recordRequest(context: RequestContext): void {
    const { extension, request, response, caller, label } = context;
    const { id, metrics } = extension;
    this.active.set(id, (this.active.get(id) ?? 1) - 1);
    if (caller !== null) endServing(extension, caller.agentId);
    this.#deadline.cancel(context);
    this.#watch.unwatch(context);
    const reason = response.writableFinished ? null : new ClientDisconnectedError();
    this.#signals.end(extension, request, reason);
    const method = METHODS.has(request.method) ? request.method : 'other';
    const milliseconds = performance.now() - context.arrivedAt;
    metrics.requests_total += 1;
    metrics.latency_ms_sum += milliseconds;
    if (response.statusCode >= 500) metrics.errors_total += 1;
    const [{ endpoint }, status] = [label, String(response.statusCode)];
    const telemetry = this.#telemetry;
    telemetry.count('extension_requests_total', { extension: id, endpoint, method, status });
    if (response.writableFinished && response.locals['notMeasured'] !== true) {
      const labels = { extension: id, endpoint, method };
      telemetry.observe('extension_request_duration_seconds', milliseconds / 1000, labels);
    }
    this.#http.setRoute(response, label.path);
  }

  /** Converts a handler's error to an error response. Errors of the extension itself are counted and logged. */
  #toHttpError({ extension, label }: RequestContext, error: unknown): Error {
    if (error instanceof ExtensionError) return this.#http.errorOf(error);
    const known = this.#http.knownError(error);
    if (known !== null) return known;
    const [{ id }, { endpoint }, error_type] = [extension, label, errorTypeOf(error)];
    this.#telemetry.count('extension_errors_total', { extension: id, endpoint, error_type });
    this.#telemetry.log.error('extension request failed', { extension: id, endpoint, error });
    return this.#http.internalErrorOf(id, error);
  }

  /** Never rejects: errors go to `next`. */
  async #respondByConvention(context: RequestContext): Promise<void> {
    try {
      await this.#respondByDefault(context);
    } catch (error) {
      context.next(error instanceof PreconditionFailedError ? this.#http.errorOf(error) : error);
    }
  }

  /** Answers with a static file or the default health. */
  async #respondByDefault(context: RequestContext): Promise<void> {
    const { extension, subpath, request, response } = context;
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    if (isReading && subpath === '/health') {
      this.#http.checkQuery(request, undefined);
      this.#http.sendJson(response, 200, {
        status: 'healthy',
        timestamp: new Date().toISOString(),
        version: extension.info.version,
        checks: {},
      });
      return;
    }
    const files = isReading ? this.#host.staticFilesOf(extension) : null;
    if (files !== null && (await files.serve(subpath, request, response))) return;
    const allow = allowHeaderOf(context);
    if (allow !== '') response.set('Allow', allow);
    throw this.#http.errorOf(unknownPath(request, { extension_id: extension.id }));
  }
}

/** Whether work was given up because a signal was aborted. */
function isAbortError(error: unknown): boolean {
  const shown = toReadableError(error);
  return shown instanceof Error && shown.name === 'AbortError';
}

const hasDisconnected = (response: Response): boolean =>
  response.closed && !response.writableFinished;

/** Splits `/ext/<id>/<subpath>`. The subpath is empty or begins with a slash. */
function parsePath(path: string): { readonly id: string; readonly subpath: string } | null {
  if (!path.startsWith('/ext/')) return null;
  const end = path.indexOf('/', 5);
  const id = end < 0 ? path.slice(5) : path.slice(5, end);
  const subpath = end < 0 ? '' : path.slice(end);
  return id === '' ? null : { id, subpath: id === 'status' && subpath === '' ? '/' : subpath };
}

function unknownPath({ method, path }: Request, more: object = {}): ExtensionError {
  const details = { resource: 'path', id: path, ...more };
  return new ExtensionError('not_found', `no ${method} ${path}`, details);
}
