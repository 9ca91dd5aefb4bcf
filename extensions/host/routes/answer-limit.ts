import { AsyncResource } from 'node:async_hooks';
import type { Response } from 'express';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { readable } from '../extension.ts';
import type { LedRequest } from './led-request.ts';
import type { HttpPort } from '../ports.ts';
import type { RequestSignals } from './request-signals.ts';
import { lateError } from '../unsettled.ts';

/**
 * Answers in the place of handlers of extensions that have not begun to within their time. All are given the same
 * time, so that the one who came first is late first, and one timer is enough for all: a request costs next to nothing
 * more.
 */
export class AnswerLimit {
  readonly #seconds: number;
  readonly #http: Pick<HttpPort, 'lateOf'>;
  readonly #telemetry: Telemetry;
  readonly #signals: RequestSignals;
  /** In the order in which their time is over. */
  readonly #waiting = new Set<LedRequest>();
  #isArmed = false;
  /** In no request's asynchronous context: it is for those of all. */
  readonly #arm = AsyncResource.bind((milliseconds: number): void => {
    this.#isArmed = true;
    setTimeout(() => this.#look(), milliseconds).unref();
  });

  constructor(
    seconds: number,
    http: Pick<HttpPort, 'lateOf'>,
    telemetry: Telemetry,
    signals: RequestSignals,
  ) {
    this.#seconds = seconds;
    this.#http = http;
    this.#telemetry = telemetry;
    this.#signals = signals;
  }

  /** Begins to wait for the handler of a request. */
  begin(led: LedRequest): void {
    const milliseconds = this.#seconds * 1000;
    led.due = performance.now() + milliseconds;
    this.#waiting.add(led);
    if (!this.#isArmed) this.#arm(milliseconds);
  }

  /** It is answered, or nobody waits any more. */
  end(led: LedRequest): void {
    this.#waiting.delete(led);
  }

  /**
   * What a handler comes to that was answered for, or whose client has gone.
   * @param error what it threw; nothing where it let the request go on
   */
  drop({ extension, label }: LedRequest, error: unknown): void {
    this.#telemetry.log.debug('an extension is done with a request that nobody waits for', {
      extension: extension.id,
      endpoint: label.endpoint,
      ...(error === undefined || error === null ? {} : { error: readable(error) }),
    });
  }

  #look(): void {
    this.#isArmed = false;
    const now = performance.now();
    for (const led of this.#waiting) {
      if (led.due > now) {
        this.#arm(led.due - now);
        return;
      }
      this.#waiting.delete(led);
      const { response } = led;
      // A stream, or an answer under way, is its client's to end.
      if (!response.headersSent && !response.closed) this.#answer(led);
    }
  }

  #answer(led: LedRequest): void {
    const { extension, request, response, next } = led;
    const { id } = extension;
    const { endpoint } = led.label;
    const limit_seconds = this.#seconds;
    const message = `the extension ${id} did not answer within ${limit_seconds} s`;
    led.isOver = true;
    extension.noteFault(`${request.method} ${endpoint}: not answered within ${limit_seconds} s`);
    const counted = { extension: id, endpoint, error_type: 'TimeoutError' };
    this.#telemetry.count('extension_errors_total', counted);
    const asked = { method: request.method, request: response.getHeader('X-Request-Id') };
    this.#telemetry.log.error('an extension did not answer a request in time', {
      extension: id,
      endpoint,
      limit_seconds,
      ...asked,
    });
    takeBackHeaders(response);
    next(this.#http.lateOf(id, message, limit_seconds));
    silence(response);
    this.#signals.end(extension, request, lateError(message));
  }
}

/** Headers of an answer that would be wrong with another body. */
const ofTheBody = [
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

/** Takes back what a handler has said of an answer that it does not give after all. */
function takeBackHeaders(response: Response): void {
  for (const name of ofTheBody) response.removeHeader(name);
}

/**
 * Makes an answer deaf: what a handler still says of one that was given in its place goes nowhere. As an error it
 * would reach the handler in the midst of its work, and by way of a timer or a callback nobody at all.
 */
export function silence(response: Response): void {
  const same = (): Response => response;
  const done = (...given: unknown[]): void => {
    const callback = given.findLast((each) => typeof each === 'function');
    if (callback !== undefined) process.nextTick(callback);
  };
  Object.assign(response, {
    setHeader: same,
    setHeaders: same,
    appendHeader: same,
    removeHeader() {},
    writeHead: same,
    flushHeaders() {},
    writeContinue() {},
    writeProcessing() {},
    writeEarlyHints() {},
    addTrailers() {},
    write(...given: unknown[]) {
      done(...given);
      return true;
    },
    end(...given: unknown[]) {
      done(...given);
      return response;
    },
  } satisfies Partial<Record<keyof Response, (...given: unknown[]) => unknown>>);
}
