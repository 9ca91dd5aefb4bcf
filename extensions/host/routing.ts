import type { NextFunction, Request, Response } from 'express';
import type { Telemetry } from '../../observability/telemetry.ts';
import { ExtensionError, badInput, type ExtensionCaller } from '../contract.ts';
import { serving } from './acting.ts';
import { AnswerLimit, type Awaited } from './answer-limit.ts';
import { errorTypeOf, readable, type Extension } from './extension.ts';
import { isClosedPage, isOpen } from './open-paths.ts';
import type { HostSettings, HttpPort } from './ports.ts';
import { RequestSignals } from './request-signals.ts';
import type { Sockets } from './sockets.ts';
import type { StaticFiles } from './static-files.ts';

/** Routes of one extension that are labels of metrics by themselves; what comes after is `other`. */
const MOST_LABELS = 100;

const withoutBody: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const methods: ReadonlySet<string> = new Set([...withoutBody, 'POST', 'PUT', 'PATCH', 'DELETE']);

/** What routing asks of the host. */
export interface RoutingHost {
  /** By its id; null where there is none. */
  find(id: string): Extension | null;
  /** Resolves once it is loaded, has failed, or is disabled; begins with it where it waits for its first request. */
  ready(extension: Extension): Promise<void>;
  /** Calls into an extension's code. */
  enter<T>(extension: Extension, call: () => T): T;
  readonly sockets: Sockets;
  /** Notes what went wrong outside of a request. */
  fault(extension: Extension, what: string, error: unknown): void;
  filesOf(extension: Extension): StaticFiles | null;
  status(): object;
  version(): string;
}

/** Why the signal of a request is aborted. */
class ClientGone extends Error {
  constructor() {
    super('the client has gone');
    this.name = 'AbortError';
  }
}

/** Leads requests at `/ext/…` to the extensions, by the rules of the whole interface, and measures them. */
export class Routing {
  readonly #host: RoutingHost;
  readonly #http: HttpPort;
  readonly #settings: HostSettings;
  readonly #telemetry: Telemetry;
  /** Requests that were admitted: where they were led, and who calls. */
  readonly #callers = new WeakMap<
    Request,
    { readonly extension: Extension; readonly caller: ExtensionCaller | null }
  >();
  /** By extension: the label of each route's pattern. */
  readonly #labels = new Map<string, Map<string, string>>();
  /** Requests under way, by extension. Which route takes one is known only once it has been led there. */
  readonly active = new Map<string, number>();
  readonly #limit: AnswerLimit;
  readonly #signals = new RequestSignals();

  constructor(host: RoutingHost, http: HttpPort, settings: HostSettings, telemetry: Telemetry) {
    this.#host = host;
    this.#http = http;
    this.#settings = settings;
    this.#telemetry = telemetry;
    this.#limit = new AnswerLimit(settings.extensionSeconds, http, telemetry, this.#signals);
  }

  callerOf(request: Request): ExtensionCaller | null {
    return this.#callers.get(request)?.caller ?? null;
  }

  /** @throws ExtensionError `bad_request` for what is no request that was led to the extension */
  checkLed(extension: Extension, request: Request): void {
    if (this.#callers.get(request)?.extension === extension) return;
    throw badInput('onBehalfOf', 'is no request that was led to this extension');
  }

  /**
   * Aborted once nobody waits for an answer any more.
   * @throws ExtensionError `bad_request` for what is no request that was led to the extension
   */
  signalOf(extension: Extension, request: Request): AbortSignal {
    if (this.#callers.get(request)?.extension !== extension) {
      throw badInput('request', 'is no request that was led to this extension');
    }
    const { res: response } = request;
    const isOver = response === undefined || response.writableEnded || response.closed;
    return this.#signals.of(extension, request, isOver);
  }

  /** An extension is told to end: so is whatever it answers. */
  endOf(extension: Extension): void {
    this.#signals.endOf(extension);
  }

  /** Serves a request at `/ext/…`; others go on, and so do those of extensions that are not there. */
  serve(request: Request, response: Response, next: NextFunction): Promise<void> | void {
    const place = placeOf(request.path);
    if (place === null) return next();
    if (place.id === 'status' && place.rest === '/') {
      if (request.method !== 'GET' && request.method !== 'HEAD') return next();
      this.#http.takenBy(response, '/ext/status');
      return this.#http.sendJson(response, 200, this.#host.status());
    }
    const extension = this.#host.find(place.id);
    if (extension === null) return next();
    if (extension.state === 'loaded') {
      return this.#lead(extension, place.rest, request, response, next);
    }
    return this.#leadOnceReady(extension, place.rest, request, response, next);
  }

  /** What no extension has answered. */
  refuse(request: Request, next: NextFunction): void {
    const place = placeOf(request.path);
    if (place === null) {
      next();
      return;
    }
    const extension = this.#host.find(place.id);
    const details = { extension_id: place.id };
    next(
      this.#http.errorOf(
        extension?.state === 'failed'
          ? new ExtensionError('unavailable', `the extension ${place.id} has failed`, details)
          : new ExtensionError('not_found', `there is no extension ${place.id}`, details),
      ),
    );
  }

  async #leadOnceReady(
    extension: Extension,
    rest: string,
    request: Request,
    response: Response,
    next: NextFunction,
  ): Promise<void> {
    await this.#host.ready(extension);
    if (extension.state === 'loaded') await this.#lead(extension, rest, request, response, next);
    else next();
  }

  async #lead(
    extension: Extension,
    rest: string,
    request: Request,
    response: Response,
    next: NextFunction,
  ): Promise<void> {
    const begun = performance.now();
    const { originalUrl } = request;
    if (rest === '' && (request.method === 'GET' || request.method === 'HEAD')) {
      // Without the slash, the links of a page would lead elsewhere.
      const query = originalUrl.indexOf('?');
      const target = `/ext/${extension.id}/${query < 0 ? '' : originalUrl.slice(query)}`;
      response.status(308).set('Location', target).end();
      return;
    }
    try {
      if (this.#settings.requireScopes || extension.source === 'builtin') {
        await this.#admit(extension, rest, request);
      } else {
        const caller = await this.#http.authenticate(request, []);
        this.#callers.set(request, { extension, caller });
      }
      if (!withoutBody.has(request.method)) {
        request.body = await this.#http.readBody(request);
      }
    } catch (error) {
      this.#begin(extension, 'refused', request, response, begun);
      throw error;
    }
    if (rest.startsWith('/ws/') && this.#host.sockets.isUpgrade(request)) {
      this.#begin(extension, '/ws', request, response, begun);
      this.#openSocket(extension, rest, request, response);
      return;
    }
    const prefix = `/ext/${extension.id}`;
    const { url, baseUrl } = request;
    request.url = url.slice(prefix.length) || '/';
    request.baseUrl = prefix;
    let awaited: Awaited | null = null;
    const ended = (): void => {
      if (awaited !== null) this.#limit.end(awaited);
    };
    const measured = this.#begin(extension, null, request, response, begun, ended);
    if (extension.isLimited) {
      awaited = this.#limit.begin({ extension, request, response, endpointOf: measured, next });
    }
    const goOn = (error?: unknown): void => {
      if (awaited?.isOver === true) {
        this.#limit.drop(awaited, error);
        return;
      }
      request.url = url;
      request.baseUrl = baseUrl;
      if (error === undefined || error === null) {
        void this.#answerByConvention(extension, rest, request, response, next);
      } else {
        next(this.#told(extension, readable(error), measured()));
      }
    };
    const { router } = extension;
    if (router === null) goOn();
    else this.#host.enter(extension, () => router(request, response, goOn));
  }

  #openSocket(extension: Extension, rest: string, request: Request, response: Response): void {
    const path = rest.slice('/ws/'.length);
    const counts = (): Promise<boolean> => this.#stillCounts(extension, rest, request);
    const caller = this.callerOf(request);
    response.locals['notMeasured'] = true;
    response.statusCode = 101;
    try {
      this.#host.sockets.open(
        { extension, path, request, response, caller, counts },
        async (what, call) => {
          try {
            await this.#host.enter(extension, async () => call());
            return true;
          } catch (error) {
            this.#host.fault(extension, what, error);
            return false;
          }
        },
      );
    } catch (error) {
      throw error instanceof ExtensionError ? this.#http.errorOf(error) : error;
    }
  }

  /** Whether a caller may go on. What can't be told just now changes nothing. */
  async #stillCounts(extension: Extension, rest: string, request: Request): Promise<boolean> {
    try {
      await this.#admit(extension, rest, request);
      return true;
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      return code !== 'unauthorized' && code !== 'forbidden';
    }
  }

  /** @throws 401, 403: what the interface says; 404 where the extension has nothing at this path */
  async #admit(extension: Extension, rest: string, request: Request): Promise<void> {
    const { requireScopes } = this.#settings;
    if (isOpen(extension, rest, this.#settings)) {
      const caller = await this.#http.callerOf(request);
      this.#callers.set(request, { extension, caller });
      return;
    }
    // Browsers send what people have typed along by themselves: it counts for nothing that changes anything.
    const reading = request.method === 'GET' || request.method === 'HEAD';
    if (reading && isClosedPage(extension, rest, this.#settings)) {
      this.#callers.set(request, { extension, caller: await this.#http.visitorOf(request) });
      return;
    }
    const scope = `ext:${extension.id}:routes`;
    const caller = await this.#http.authenticate(request, requireScopes ? [scope] : []);
    this.#callers.set(request, { extension, caller });
    if (!requireScopes) return;
    const said = (request.get('x-scopes') ?? '').split(/[\s,]+/).filter((each) => each !== '');
    if (said.includes(scope) || said.includes('admin')) return;
    const details = { required_scopes: [scope], granted_scopes: said };
    const error = new ExtensionError('forbidden', `X-Scopes must name ${scope}`, details);
    throw this.#http.errorOf(error);
  }

  /** Counts a request once it has been answered. @returns what gives the endpoint's label */
  #begin(
    extension: Extension,
    known: string | null,
    request: Request,
    response: Response,
    begun: number,
    ended: (() => void) | null = null,
  ): () => string {
    const { id, metrics } = extension;
    const method = methods.has(request.method) ? request.method : 'other';
    let label: string | null = known;
    this.active.set(id, (this.active.get(id) ?? 0) + 1);
    const caller = this.callerOf(request);
    const served = caller === null ? null : serving(extension, caller.agentId);
    const endpointOf = (): string => (label ??= this.#labelOf(extension, request));
    this.#http.whenEnded(response, () => {
      this.active.set(id, (this.active.get(id) ?? 1) - 1);
      served?.();
      ended?.();
      this.#signals.end(extension, request, response.writableFinished ? null : new ClientGone());
      const endpoint = endpointOf();
      const took = performance.now() - begun;
      const status = String(response.statusCode);
      metrics.requests_total += 1;
      metrics.latency_ms_sum += took;
      if (response.statusCode >= 500) metrics.errors_total += 1;
      const labels = { extension: id, endpoint, method };
      const counted = { extension: id, endpoint, method, status };
      this.#telemetry.count('extension_requests_total', counted);
      if (response.writableFinished && response.locals['notMeasured'] !== true) {
        this.#telemetry.observe('extension_request_duration_seconds', took / 1000, labels);
      }
      this.#http.takenBy(response, endpoint === 'other' ? `/ext/${id}` : `/ext/${id}${endpoint}`);
    });
    return endpointOf;
  }

  /** The pattern of the route that took a request: from a closed set, never a path as it was sent. */
  #labelOf(extension: Extension, request: Request): string {
    const path: unknown = (request.route as { readonly path?: unknown } | undefined)?.path;
    if (typeof path !== 'string') return 'other';
    let known = this.#labels.get(extension.id);
    if (known === undefined) this.#labels.set(extension.id, (known = new Map()));
    const label = known.get(path);
    if (label !== undefined) return label;
    if (known.size >= MOST_LABELS) return 'other';
    const written = path.replaceAll(/[:*](\w+)/g, '{$1}');
    known.set(path, written);
    return written;
  }

  /** An error of a handler, as it is answered; a fault of the extension itself is counted and logged. */
  #told(extension: Extension, error: unknown, endpoint: string): Error {
    if (error instanceof ExtensionError) return this.#http.errorOf(error);
    const known = this.#http.knownError(error);
    if (known !== null) return known;
    const { id } = extension;
    const error_type = errorTypeOf(error);
    this.#telemetry.count('extension_errors_total', { extension: id, endpoint, error_type });
    this.#telemetry.log.error('an extension failed to answer a request', {
      extension: id,
      endpoint,
      error,
    });
    return this.#http.faultOf(id, error);
  }

  /** Never rejects: what is wrong goes on to `next`. */
  async #answerByConvention(
    extension: Extension,
    rest: string,
    request: Request,
    response: Response,
    next: NextFunction,
  ): Promise<void> {
    try {
      await this.#answerOfAll(extension, rest, request, response);
    } catch (error) {
      next(error);
    }
  }

  /** Static files, and a health of those that have none of their own. */
  async #answerOfAll(
    extension: Extension,
    rest: string,
    request: Request,
    response: Response,
  ): Promise<void> {
    const reading = request.method === 'GET' || request.method === 'HEAD';
    if (reading && rest === '/health') {
      this.#http.sendJson(response, 200, {
        status: 'healthy',
        timestamp: new Date().toISOString(),
        version: extension.info.version,
        checks: {},
      });
      return;
    }
    const files = reading ? this.#host.filesOf(extension) : null;
    if (files !== null && (await files.serve(rest, request, response))) return;
    const details = { resource: 'path', id: request.path, extension_id: extension.id };
    const message = `there is no ${request.method} ${request.path}`;
    throw this.#http.errorOf(new ExtensionError('not_found', message, details));
  }
}

/** `/ext/<id>/<rest>`, taken apart; `rest` begins with a slash, and is empty where there is none. */
export function placeOf(path: string): { readonly id: string; readonly rest: string } | null {
  if (!path.startsWith('/ext/')) return null;
  const end = path.indexOf('/', 5);
  const id = end < 0 ? path.slice(5) : path.slice(5, end);
  const rest = end < 0 ? '' : path.slice(end);
  return id === '' ? null : { id, rest: id === 'status' && rest === '' ? '/' : rest };
}
