import type { NextFunction, Request, Response } from 'express';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { ExtensionError, badInput, type ExtensionCaller } from '../../contract.ts';
import { AccessWatch } from './access-watch.ts';
import { beginServing, endServing } from '../lent/acting.ts';
import { Admission } from './admission.ts';
import { AnswerLimit } from './answer-limit.ts';
import { allowed, allowedAt, mayTakeBody, queryOf } from './described.ts';
import { errorTypeOf, readable, type Extension } from '../extension.ts';
import { LedRequest } from './led-request.ts';
import type { HostSettings, HttpPort, RequestOrigin } from '../ports.ts';
import { RequestSignals } from './request-signals.ts';
import type { Sockets } from './sockets.ts';
import { PreconditionFailed, type StaticFiles } from './static-files.ts';

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
  readonly #telemetry: Telemetry;
  readonly #admission: Admission;
  /** Requests under way, by extension. Which route takes one is known only once it has been led there. */
  readonly active = new Map<string, number>();
  readonly #limit: AnswerLimit;
  readonly #signals = new RequestSignals();
  readonly #watch: AccessWatch;

  constructor(host: RoutingHost, http: HttpPort, settings: HostSettings, telemetry: Telemetry) {
    this.#host = host;
    this.#http = http;
    this.#telemetry = telemetry;
    this.#admission = new Admission(http, settings);
    this.#watch = new AccessWatch(this.#admission, this.#signals);
    this.#limit = new AnswerLimit(settings.extensionSeconds, http, telemetry, this.#signals);
  }

  callerOf(request: Request): ExtensionCaller | null {
    return LedRequest.of(request)?.caller ?? null;
  }

  /**
   * What a request of the extension to the service carries that is made for the one that it answers.
   * @throws ExtensionError `bad_request` for what is no request that was led to the extension
   */
  innerFor(extension: Extension, request: Request): ReturnType<HttpPort['innerFor']> {
    this.#checkLed(extension, request);
    const { headers, over } = this.#http.innerFor(request);
    const key = LedRequest.of(request)?.nextCommandId();
    return { headers: key === undefined ? headers : { ...headers, 'idempotency-key': key }, over };
  }

  /**
   * What the audit shows of what the extension does for a request.
   * @throws ExtensionError `bad_request` for what is no request that was led to the extension
   */
  originOf(extension: Extension, request: Request): RequestOrigin {
    this.#checkLed(extension, request);
    const commandId = LedRequest.of(request)?.nextCommandId();
    return { ...this.#http.originOf(request), commandId };
  }

  /**
   * Carries a command out once for the key of its request.
   * @throws ExtensionError `bad_request` for what is no request that was led to the extension
   */
  async once<T>(extension: Extension, request: Request, call: () => Promise<T>): Promise<T> {
    this.#checkLed(extension, request);
    const led = LedRequest.of(request);
    const caller = led?.caller ?? null;
    // Keys are an agent's: without one, each request is a command of its own.
    if (led === undefined || caller === null) return call();
    return this.#http.once(request, caller.agentId, async (commandId) => {
      try {
        return await led.carryOut(commandId, call);
      } catch (error) {
        throw error instanceof ExtensionError ? this.#http.errorOf(error) : error;
      }
    });
  }

  #checkLed(extension: Extension, request: Request): void {
    if (this.#isLed(extension, request)) return;
    throw badInput('onBehalfOf', 'is no request that was led to this extension');
  }

  /**
   * Aborted once nobody waits for an answer any more.
   * @throws ExtensionError `bad_request` for what is no request that was led to the extension
   */
  signalOf(extension: Extension, request: Request): AbortSignal {
    if (!this.#isLed(extension, request)) {
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
      return this.#answerStatus(request, response);
    }
    const extension = this.#host.find(place.id);
    if (extension === null) return next();
    const led = new LedRequest(extension, place.rest, request, response, next);
    return extension.state === 'loaded' ? this.#lead(led) : this.#leadOnceReady(led);
  }

  /** @throws 404 for a method that it has not */
  #answerStatus(request: Request, response: Response): void {
    this.#http.takenBy(response, '/ext/status');
    if (request.method === 'GET' || request.method === 'HEAD') {
      this.#http.checkQuery(request, undefined);
      this.#http.sendJson(response, 200, this.#host.status());
      return;
    }
    response.set('Allow', allowed(['GET']));
    if (request.method !== 'OPTIONS') throw this.#http.errorOf(unknownPath(request));
    response.status(204).end();
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

  #isLed(extension: Extension, request: Request): boolean {
    const led = LedRequest.of(request);
    return led?.isAdmitted === true && led.extension === extension;
  }

  async #leadOnceReady(led: LedRequest): Promise<void> {
    await this.#host.ready(led.extension);
    if (led.extension.state === 'loaded') await this.#lead(led);
    else led.next();
  }

  /** At once, where there is nothing to wait for: to wait costs as much as a short handler. */
  #lead(led: LedRequest): Promise<void> | void {
    const { extension, rest, request, response } = led;
    if (rest === '' && (request.method === 'GET' || request.method === 'HEAD')) {
      // Without the slash, the links of a page would lead elsewhere.
      const query = request.originalUrl.indexOf('?');
      const target = `/ext/${extension.id}/${query < 0 ? '' : request.originalUrl.slice(query)}`;
      response.status(308).set('Location', target).end();
      return undefined;
    }
    const allow = request.method === 'OPTIONS' ? allowedAt(led) : '';
    if (allow !== '') {
      this.#begin(led, 'options');
      response.status(204).set('Allow', allow).end();
      return undefined;
    }
    let admitting: Promise<void> | void;
    try {
      admitting = this.#admission.admit(led);
      if (!(admitting instanceof Promise) && withoutBody.has(request.method)) this.#checkQuery(led);
    } catch (error) {
      this.#begin(led, 'refused');
      throw error;
    }
    if (admitting instanceof Promise || !withoutBody.has(request.method)) {
      return this.#leadOnceAdmitted(led, admitting);
    }
    this.#handOver(led);
    return undefined;
  }

  async #leadOnceAdmitted(led: LedRequest, admitting: Promise<void> | void): Promise<void> {
    const { request } = led;
    try {
      await admitting;
      if (!withoutBody.has(request.method) && mayTakeBody(led)) {
        request.body = await this.#http.readBody(request);
      }
      this.#checkQuery(led);
    } catch (error) {
      this.#begin(led, 'refused');
      throw error;
    }
    this.#handOver(led);
  }

  /** @throws what the interface answers with 400 */
  #checkQuery(led: LedRequest): void {
    const query = queryOf(led);
    if (query !== null) this.#http.checkQuery(led.request, query.schema);
  }

  /** To the extension's code. */
  #handOver(led: LedRequest): void {
    const { extension, rest, request, response } = led;
    if (rest.startsWith('/ws/') && this.#host.sockets.isUpgrade(request)) {
      this.#begin(led, '/ws');
      this.#openSocket(led);
      return;
    }
    const { url, baseUrl } = request;
    const prefix = `/ext/${extension.id}`;
    request.url = url.slice(prefix.length) || '/';
    request.baseUrl = prefix;
    if (extension.isLimited) this.#limit.begin(led);
    if (led.caller !== null) this.#watch.begin(led);
    // Last: of one whose client has left already it is told at once.
    this.#begin(led);
    const goOn = (error?: unknown): void => {
      if (led.isOver) {
        this.#limit.drop(led, error);
        return;
      }
      // What a handler gives up since nobody waits for it is no fault of it.
      if (isGivenUp(error) && hasGone(response)) {
        this.#limit.drop(led, error);
        return;
      }
      request.url = url;
      request.baseUrl = baseUrl;
      if (error === undefined || error === null) void this.#answerByConvention(led);
      else led.next(this.#told(led, readable(error)));
    };
    const { routes } = extension;
    if (routes === null) goOn();
    else this.#host.enter(extension, () => routes.serve(rest || '/', request, response, goOn));
  }

  #openSocket(led: LedRequest): void {
    const { extension, rest, request, response, caller } = led;
    const path = rest.slice('/ws/'.length);
    const counts = (): Promise<boolean> => this.#admission.stillCounts(led);
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

  /** Counts a request once it has been answered. @param named where no route of the extension's takes it */
  #begin(led: LedRequest, named?: string): void {
    const { extension, caller } = led;
    if (named !== undefined) led.named = extension.labels.named(named);
    this.active.set(extension.id, (this.active.get(extension.id) ?? 0) + 1);
    if (caller !== null) beginServing(extension, caller.agentId);
    this.#http.whenEnded(led.response, () => this.#ended(led));
  }

  #ended(led: LedRequest): void {
    const { extension, request, response, caller, label } = led;
    const { id: of, metrics } = extension;
    const { endpoint } = label;
    this.active.set(of, (this.active.get(of) ?? 1) - 1);
    if (caller !== null) endServing(extension, caller.agentId);
    this.#limit.end(led);
    this.#watch.end(led);
    this.#signals.end(extension, request, response.writableFinished ? null : new ClientGone());
    const method = methods.has(request.method) ? request.method : 'other';
    const took = performance.now() - led.begun;
    const status = String(response.statusCode);
    metrics.requests_total += 1;
    metrics.latency_ms_sum += took;
    if (response.statusCode >= 500) metrics.errors_total += 1;
    const labels = { extension: of, endpoint, method };
    const counted = { extension: of, endpoint, method, status };
    this.#telemetry.count('extension_requests_total', counted);
    if (response.writableFinished && response.locals['notMeasured'] !== true) {
      this.#telemetry.observe('extension_request_duration_seconds', took / 1000, labels);
    }
    this.#http.takenBy(response, label.path);
  }

  /** An error of a handler, as it is answered; a fault of the extension itself is counted and logged. */
  #told({ extension, label }: LedRequest, error: unknown): Error {
    const { endpoint } = label;
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
  async #answerByConvention(led: LedRequest): Promise<void> {
    try {
      await this.#answerOfAll(led);
    } catch (error) {
      led.next(error instanceof PreconditionFailed ? this.#http.errorOf(error) : error);
    }
  }

  /** Static files, and a health of those that have none of their own. */
  async #answerOfAll(led: LedRequest): Promise<void> {
    const { extension, rest, request, response } = led;
    const reading = request.method === 'GET' || request.method === 'HEAD';
    if (reading && rest === '/health') {
      this.#http.checkQuery(request, undefined);
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
    const allow = allowedAt(led);
    if (allow !== '') response.set('Allow', allow);
    throw this.#http.errorOf(unknownPath(request, { extension_id: extension.id }));
  }
}

/** Whether an error says that work was given up because a signal was aborted. */
function isGivenUp(error: unknown): boolean {
  const shown = readable(error);
  return shown instanceof Error && shown.name === 'AbortError';
}

const hasGone = (response: Response): boolean => response.closed && !response.writableFinished;

/** `/ext/<id>/<rest>`, taken apart; `rest` begins with a slash, and is empty where there is none. */
function placeOf(path: string): { readonly id: string; readonly rest: string } | null {
  if (!path.startsWith('/ext/')) return null;
  const end = path.indexOf('/', 5);
  const id = end < 0 ? path.slice(5) : path.slice(5, end);
  const rest = end < 0 ? '' : path.slice(end);
  return id === '' ? null : { id, rest: id === 'status' && rest === '' ? '/' : rest };
}

/** There is nothing here, by that method. */
function unknownPath({ method, path }: Request, more: object = {}): ExtensionError {
  const details = { resource: 'path', id: path, ...more };
  return new ExtensionError('not_found', `there is no ${method} ${path}`, details);
}
