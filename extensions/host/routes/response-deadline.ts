import { AsyncResource } from 'node:async_hooks';
import type { Response } from 'express';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { toReadableError } from '../extension.ts';
import type { RequestContext } from './request-context.ts';
import type { HttpPort } from '../ports.ts';
import type { RequestSignals } from './request-signals.ts';
import { timeoutError } from '../overdue-work.ts';

/**
 * Responds in place of handlers that sent no headers in time. All requests have the same limit, so they expire in
 * order of arrival and one timer suffices.
 */
export class ResponseDeadline {
  readonly #seconds: number;
  readonly #http: HttpPort;
  readonly #telemetry: Telemetry;
  readonly #signals: RequestSignals;
  /** In order of expiry. */
  readonly #waiting = new Set<RequestContext>();
  #isArmed = false;
  /** Bound outside any request's async context, as the timer serves all of them. */
  readonly #arm = AsyncResource.bind((milliseconds: number): void => {
    this.#isArmed = true;
    setTimeout(() => this.#check(), milliseconds).unref();
  });

  constructor(seconds: number, http: HttpPort, telemetry: Telemetry, signals: RequestSignals) {
    this.#seconds = seconds;
    this.#http = http;
    this.#telemetry = telemetry;
    this.#signals = signals;
  }

  /** Starts the time limit of a request. */
  start(context: RequestContext): void {
    const milliseconds = this.#seconds * 1000;
    context.deadline = performance.now() + milliseconds;
    this.#waiting.add(context);
    if (!this.#isArmed) this.#arm(milliseconds);
  }

  /** Stops it, as the response has ended. */
  cancel(context: RequestContext): void {
    this.#waiting.delete(context);
  }

  /**
   * Logs the outcome of a handler after its time limit or its client's disconnect.
   * @param error the error that it threw; undefined if it called `next()`
   */
  logDiscarded({ extension, label }: RequestContext, error: unknown): void {
    this.#telemetry.log.debug('discarded a late extension response', {
      extension: extension.id,
      endpoint: label.endpoint,
      ...(error === undefined || error === null ? {} : { error: toReadableError(error) }),
    });
  }

  #check(): void {
    this.#isArmed = false;
    const now = performance.now();
    for (const context of this.#waiting) {
      if (context.deadline > now) {
        this.#arm(context.deadline - now);
        return;
      }
      this.#waiting.delete(context);
      const { response } = context;
      // A started response may last as long as its client wants.
      if (!response.headersSent && !response.closed) this.#respond(context);
    }
  }

  #respond(context: RequestContext): void {
    const { extension, request, response, next } = context;
    const { id } = extension;
    const { endpoint } = context.label;
    const limit_seconds = this.#seconds;
    const message = `extension ${id} did not respond within ${limit_seconds} s`;
    context.hasTimedOut = true;
    extension.noteError(`${request.method} ${endpoint}: no response within ${limit_seconds} s`);
    const counted = { extension: id, endpoint, error_type: 'TimeoutError' };
    this.#telemetry.count('extension_errors_total', counted);
    this.#telemetry.log.error('extension response timed out', {
      extension: id,
      endpoint,
      limit_seconds,
      method: request.method,
      request: response.getHeader('X-Request-Id'),
    });
    for (const name of BODY_HEADERS) response.removeHeader(name);
    next(this.#http.timeoutErrorOf(id, message, limit_seconds));
    muteResponse(response);
    this.#signals.end(extension, request, timeoutError(message));
  }
}

/** Headers that do not fit the body of an error. */
const BODY_HEADERS = [
  'Content-Encoding',
  'Content-Range',
  'Content-Disposition',
  'Transfer-Encoding',
  'Trailer',
  'ETag',
  'Last-Modified',
  'Location',
  'Set-Cookie',
] as const;

/**
 * Makes a response ignore further writes, as it was answered in place of its handler. Errors would otherwise surface
 * in the handler, its timers or its callbacks.
 */
export function muteResponse(response: Response): void {
  const self = (): Response => response;
  const done = (...args: unknown[]): void => {
    const callback = args.findLast((each) => typeof each === 'function');
    if (callback !== undefined) process.nextTick(callback);
  };
  Object.assign(response, {
    setHeader: self,
    setHeaders: self,
    appendHeader: self,
    removeHeader() {},
    writeHead: self,
    flushHeaders() {},
    writeContinue() {},
    writeProcessing() {},
    writeEarlyHints() {},
    addTrailers() {},
    write(...args: unknown[]) {
      done(...args);
      return true;
    },
    end(...args: unknown[]) {
      done(...args);
      return response;
    },
  } satisfies Partial<Record<keyof Response, (...args: unknown[]) => unknown>>);
}
